"""Records of a real program arrive at a real server, also after failures of the connection or the server."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from .server import PATIENCE_S, ServerTest, until
from .wiretap import Wiretap

SHOP = """
import sqlite3
def post(ad):
    check(ad)
    return ad
def check(ad):
    if ad < 0:
        raise ValueError("no such ad")
class Board:
    def __init__(self): self.ads = []
    def add(self, ad): self.ads.append(post(ad))
    def __len__(self): return len(self.ads)
    def getter(self): return self.ads
    @staticmethod
    def fixed(): return 1
    @property
    def size(self): return len(self)
async def later(): return 1
def steps():
    yield 1
"""

TRACED = """
import tachograph
tachograph.start()
@tachograph.record
def inner(n):
    if n == 2: raise KeyError(n)
with tachograph.span("outer") as span:
    span.attribute("order.id", 17)
    for n in range(3):
        try: inner(n)
        except KeyError: pass
tachograph.sample("app_orders", 3, shop="north")
tachograph.sample("app_weight", 2.5)
tachograph.entry("app_log", "größe 漢")
"""


class Programs(ServerTest):
    def test_traces_operations_samples_and_entries_arrive(self) -> None:
        _, err = self.run_program(TRACED)
        self.assertEqual(err, "", "the log must be empty if there was no error")
        name = self.service
        lines = [f"  {name}: app.inner", f"  {name}: app.inner", f"  {name}: app.inner! exception=KeyError: 2"]
        self.assertEqual(self.only_tree(facts=("order.id", "exception")), [f"{name}: outer order.id=17", *lines])
        self.assertEqual(self.server.counts(name), {"outer": 1, "app.inner": 3})
        self.assertEqual(self.server.last(f'app_orders{{service="{name}"}}'), {(("service", name), ("shop", "north")): 3})
        self.assertEqual(self.server.last(f'app_weight{{service="{name}"}}'), {(("service", name),): 2.5})
        found = self.server.get("/api/v1/entries", **{"match[]": f'app_log{{service="{name}"}}'})["data"]
        self.assertEqual([one["text"] for one in found["entries"]], ["größe 漢"])

    def test_samples_of_the_process_and_of_the_agent_arrive(self) -> None:
        source = "import tachograph, sys, gc\ntachograph.start()\nwith tachograph.span('s'): gc.collect()\nsys.stdin.readline()\n"
        process = (("service", self.service),)
        program = self.launch(source, sample_interval="200ms")
        query = f'tacho_agent_sent_total{{service="{self.service}"}}'
        until(lambda: self.server.last(query).get((("kind", "execution"), *process)), "a sample after the call")
        _, err = program.communicate("stop\n", timeout=PATIENCE_S)
        self.assertEqual(program.returncode, 0, err)
        for name in [
            "process_cpu_seconds_total",
            "process_cpu_user_seconds_total",
            "process_cpu_system_seconds_total",
            "process_resident_memory_bytes",
            "process_uptime_seconds",
            "python_threads_current",
        ]:
            self.assertIn(process, self.server.last(f'{name}{{service="{self.service}"}}'), name)
        full = (("generation", "2"), *process)
        self.assertGreaterEqual(self.server.last(f'python_gc_collection_seconds_count{{service="{self.service}"}}')[full], 1)
        self.assertEqual(self.server.last(query)[(("kind", "execution"), *process)], 1)

    def test_the_last_counts_of_the_agent_arrive_when_a_program_ends(self) -> None:
        """The program ends before its next samples are due."""
        calls = "@tachograph.record\ndef f(): pass\nwith tachograph.span('s'):\n  for _ in range(100_000): f()\n"
        for how, end in [("natural", ""), ("exit", "raise SystemExit(0)")]:
            service = f"{self.service}_{how}"
            source = f"import tachograph\ntachograph.start(service='{service}')\n{calls}{end}\n"
            self.run_program(source, sample_interval="60s", buffer="1024")
            told = {
                name: self.server.last(f'tacho_agent_{name}_total{{service="{service}",kind="execution"}}')
                for name in ("sent", "dropped")
            }
            sent, dropped = (value for found in told.values() for value in found.values())
            self.assertEqual(sent + dropped, 100_001, how)
            self.assertEqual(sent, sum(self.server.counts(service).values()), how)

    def test_samples_and_entries_arrive_when_a_program_ends_without_exit_handlers(self) -> None:
        ends = [
            ("exit", "os._exit(0)"),
            ("exec", "os.execv(sys.executable, [sys.executable, '-c', ''])"),
            ("signal", "os.kill(os.getpid(), signal.SIGTERM)"),
        ]
        for how, end in ends:
            for kind, record in [("sample", "tachograph.sample('app_last', 7)"), ("entry", "tachograph.entry('app_log', 'bye')")]:
                service = f"{self.service}_{how}_{kind}"
                # After the flush, the sender has nothing else to send.
                source = f"tachograph.start(service='{service}', samplers=False)\ntachograph.flush(30)\n{record}\n{end}\n"
                process = self.launch(f"import os, signal, sys, tachograph\n{source}")
                _, err = process.communicate(timeout=2 * PATIENCE_S)
                self.assertEqual((process.returncode, err), (-signal.SIGTERM if how == "signal" else 0, ""), service)
                if kind == "sample":
                    self.assertEqual(list(self.server.last(f'app_last{{service="{service}"}}').values()), [7], service)
                else:
                    found = self.server.get("/api/v1/entries", **{"match[]": f'app_log{{service="{service}"}}'})["data"]
                    self.assertEqual([one["text"] for one in found["entries"]], ["bye"], service)

    def test_a_program_without_references_to_the_agent_is_recorded(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "shop").mkdir()
            (Path(folder) / "shop" / "__init__.py").write_text("def opening(): pass\n")
            (Path(folder) / "shop" / "board.py").write_text(SHOP)
            source = (
                "import sys, inspect, asyncio, pickle\n"
                "from shop import board, opening\n"
                "opening(); b = board.Board(); b.add(1); b.getter(); b.fixed(); b.size; list(board.steps())\n"
                "asyncio.run(board.later())\n"
                "assert inspect.getsource(board).startswith('\\nimport sqlite3'), 'the source is found as before'\n"
                "assert board.__spec__.loader.get_source('shop.board'), 'the loader is unchanged'\n"
                "assert pickle.loads(pickle.dumps(board.post)) is board.post\n"
                "print(sys.argv[1:], __name__, len(b))\n"
            )
            settings = {"include": "shop.*,nothing.here", "exclude": "shop.*.Board.get*"}
            process = self.launch(source, "-m", "tachograph", "run", folder=folder, **settings)
            out, err = process.communicate()
            self.assertEqual((process.returncode, out), (0, "[] __main__ 1\n"), err)
            self.assertRegex(err, r"the pattern nothing\.here has selected no function so far \(\d+ modules were searched for")
        board = ["Board.__init__", "Board.add", "Board.fixed", "Board.size", "check", "later", "post"]
        expected = {"shop.opening": 1, "shop.board.steps": 2, **{f"shop.board.{name}": 1 for name in board}}
        self.assertEqual(self.server.counts(self.service), expected)

    def test_a_pattern_that_selects_nothing_is_named_once_while_the_program_runs(self) -> None:
        source = """
import os, sys, time
import tachograph.imports
tachograph.imports.REPORT_AFTER_S = float(sys.argv[1])
tachograph.start()
def said(): return open(os.environ["TACHO_LOG"]).read().count("the pattern nothing.here has selected no function so far")
if sys.argv[2] == "forks" and os.fork() != 0:
    time.sleep(1)
    print(os.wait()[1], said())
    os._exit(0)
until = time.monotonic() + 60
while not said() and time.monotonic() < until: time.sleep(0.01)
time.sleep(0.2)
print(said(), flush=True)
if sys.argv[2] == "forks": os._exit(0)
"""
        for how, expected in (("waits", "1\n"), ("forks", "1\n0 1\n")):
            log = Path(self.folder()) / "log"
            log.touch()
            folder = self.folder()
            (Path(folder) / "app.py").write_text(source)
            environment = self.environment(include="nothing.here", log=str(log))
            done = subprocess.run(
                [sys.executable, "app.py", "0.2", how],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=2 * PATIENCE_S,
                check=False,
            )
            self.assertEqual((done.returncode, done.stdout), (0, expected), done.stderr)
            self.assertEqual(log.read_text().count("selected no function"), 1, log.read_text())

    def test_functions_of_the_script_itself_are_recorded(self) -> None:
        source = """# -*- coding: latin-1 -*-
import functools, inspect
@functools.lru_cache
def cached(n): return n
class Board:
    @property
    def size(self): return 1
    @size.setter
    def size(self, n): pass
    @staticmethod
    def fixed(): return 2
    def __len__(self): return 3
    def skipped(self): pass
async def later(): pass
def fails(): raise KeyError
if __name__ == "__main__":
    import asyncio, pickle
    board = Board(); board.size; board.size = 2; board.fixed(); len(board); board.skipped(); cached(1); cached(1)
    asyncio.run(later())
    assert pickle.loads(pickle.dumps(fails)) is fails
    try: fails()
    except KeyError as e: assert e.__traceback__.tb_next.tb_next.tb_lineno == 15, e.__traceback__.tb_next.tb_next.tb_lineno
"""
        self.run_program(source, "-m", "tachograph", "run", include="app.*", exclude="app.Board.skipped")
        names = {"Board.size": 2, "Board.fixed": 1, "cached": 1, "later": 1, "fails": 1}
        self.assertEqual(self.server.counts(self.service), {f"app.{name}": count for name, count in names.items()})

    def test_dropped_calls_are_logged_once_a_minute_and_at_the_end(self) -> None:
        folder = Path(self.folder())
        (folder / "app.py").write_text("def f(): pass\nfor _ in range(100_000): f()\n")
        command = [sys.executable, "-m", "tachograph", "run", "app.py"]
        environment = self.environment(include="app", buffer="1024")
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        lines = [line.partition("tachograph: ")[2] for line in done.stderr.splitlines()]
        self.assertIn(len(lines), (1, 2), lines)
        calls = self.server.counts(self.service)["app.f"]
        self.assertEqual(int(lines[-1].split()[0]) + calls, 100_000)
        self.assertTrue(lines[-1].endswith("(include, exclude), or raise buffer, strands_max or queue"), lines)

    def test_a_module_runs_with_its_arguments_and_its_status(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "tool.py").write_text("import sys\nprint(sys.argv[1:])\nsys.exit(3)\n")
            command = [sys.executable, "-m", "tachograph", "run", "-m", "tool", "--a", "b"]
            done = subprocess.run(command, cwd=folder, env=self.environment(), capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (3, "['--a', 'b']\n", ""))

    def test_help_and_wrong_arguments_print_the_usage(self) -> None:
        for arguments, status in [(["--help"], 0), ([], 2), (["run"], 2), (["walk", "app.py"], 2), (["run", "-m"], 2)]:
            command = [sys.executable, "-m", "tachograph", *arguments]
            done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, status)
            self.assertIn("usage: python -m tachograph run", done.stdout + done.stderr)

    def test_a_forked_child_has_a_session_of_its_own(self) -> None:
        out, _ = self.run_program(
            """
import multiprocessing, os, tachograph, warnings
warnings.simplefilter("error")
tachograph.start()
@tachograph.record
def child(): pass
with tachograph.span("parent"):
    pid = os.fork()
    if not pid:
        child()
        tachograph.flush(30)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
    process = multiprocessing.get_context("fork").Process(target=child)
    process.start(); process.join()
    assert process.exitcode == 0
child()
print("done")
"""
        )
        self.assertEqual(out, "done\n")
        traces = self.server.traces(self.service)
        trees = sorted(self.server.tree(trace["trace_id"]) for trace in traces)
        name = self.service
        own = [f"{name}: app.child"]
        inherited = [f"{name}: parent", f"  {name}: app.child", f"  {name}: app.child"]
        self.assertEqual(trees, [own, inherited])
        kinds = self.server.get("/api/v1/status/cardinality")["data"]["series"]
        self.assertGreaterEqual(kinds["execution"], 3, "each process must have an instance of its own")

    def test_a_trace_spans_two_processes(self) -> None:
        answering = self.launch(
            """
import sys, tachograph
from wsgiref.simple_server import make_server
tachograph.start(service="answering")
@tachograph.record
def page(): return b"page"
def application(environ, start_response):
    start_response("200 OK", [])
    return [page()]
server = make_server("127.0.0.1", 0, tachograph.wsgi(application))
print(server.server_port, flush=True)
server.handle_request()
""",
        )
        port = answering.stdout.readline().strip()
        asking = f"""
import tachograph, urllib.request
tachograph.start(service="asking")
with tachograph.span("visit"):
    assert urllib.request.urlopen("http://127.0.0.1:{port}/ads/17").read() == b"page"
"""
        self.run_program(asking)
        _, err = answering.communicate(timeout=60)
        self.assertEqual(answering.returncode, 0, err)
        expected = [
            "asking: visit",
            f"  asking: GET 127.0.0.1:{port} http.status=200",
            "    answering: GET /ads/{id} http.status=200",
            "      answering: app.page",
        ]
        self.assertEqual(self.only_tree("asking", ("http.status",)), expected)

    def test_enormous_names_texts_and_values_are_cut(self) -> None:
        self.run_program(
            """
import tachograph
tachograph.start()
with tachograph.span("漢" * 10_000) as span:
    span.attribute("k" * 10_000, "漢" * 10_000)
    for number in range(5_000):
        span.attribute("many", number)
tachograph.entry("log", "漢" * 1_000_000)
tachograph.sample("large", 1 << 80)
tachograph.sample("wrong", "text")
assert tachograph.flush(30)
print(tachograph.totals().records_rejected)
"""
        )
        span = self.server.get(f"/api/traces/{self.server.traces(self.service)[0]['trace_id']}")["spans"][0]
        self.assertEqual((len(span["operation"].encode()), span["operation"][-1]), (8_190, "…"))
        self.assertEqual(sorted(len(key.encode()) for key in span["attributes"]), [4, 4_096])
        self.assertEqual(self.server.last(f'large{{service="{self.service}"}}'), {(("service", self.service),): float(1 << 80)})

    def test_an_absent_server_does_not_affect_the_program(self) -> None:
        source = """
import tachograph
tachograph.start()
@tachograph.record
def f(): return 1
print(sum(f() for _ in range(1000)))
"""
        for address, words in [
            ("127.0.0.1:1", "cannot reach the server"),
            ("no.such.host.invalid:7071", "cannot reach the server"),
            (f"127.0.0.1:{self.server.http}", "this is not the agent port of a tacho server"),
            ("not an address", "TACHO_SERVER=not an address: expected host:port; using 127.0.0.1:7071"),
        ]:
            out, err = self.run_program(source, server=address, flush_max="2s")
            self.assertEqual(out, "1000\n")
            if address != "no.such.host.invalid:7071":  # a name server may take longer than the program
                self.assertIn(words, err)
            self.assertNotIn("Traceback", err)

    def test_records_of_a_short_program_arrive_although_its_first_connection_fails(self) -> None:
        source = """
import tachograph
tachograph.start()
@tachograph.record
def f(): pass
for _ in range(1000): f()
"""
        for first in ("closes", "hangs"):
            with self.subTest(first), Wiretap(self.server.address, first) as proxy:
                service = f"{self.service}_{first}"
                _, err = self.run_program(source, server=proxy.address, service=service)
                self.assertEqual(self.server.counts(service), {"app.f": 1000}, err)
                self.assertEqual(proxy.connections, 2)

    def test_an_unwritable_log_is_reported_on_standard_error(self) -> None:
        source = "import tachograph\ntachograph.start()\n"
        line = "TACHO_LOG=/no/such/log: expected a writable file (No such file or directory); using standard error"
        _, err = self.run_program(source, log="/no/such/log", queue="5")
        self.assertIn(line, err)
        self.assertIn("TACHO_QUEUE=5: at least 64KiB is needed; using 16MiB", err)
        path = Path(self.folder()) / "agent.log"
        _, err = self.run_program(source, log=str(path), queue="5")
        self.assertEqual(err, "")
        self.assertIn("TACHO_QUEUE=5: at least 64KiB is needed; using 16MiB", path.read_text("utf-8"))

    def test_a_disabled_agent_records_nothing(self) -> None:
        source = "import tachograph, threading\nprint(tachograph.start(), threading.active_count())\n"
        out, err = self.run_program(source, enabled="false")
        self.assertEqual(out, "False 1\n")
        self.assertIn("switched off: the setting enabled is false", err)

    def test_a_daemon_thread_at_work_does_not_disturb_the_end_of_the_program(self) -> None:
        out, err = self.run_program(
            """
import tachograph, threading, time
tachograph.start()
@tachograph.record
def f(): pass
count = 0
def work():
    global count
    while True:
        f()
        count += 1
threading.Thread(target=work, daemon=True).start()
while count < 1_000: time.sleep(0.001)
print("end")
"""
        )
        # The thread makes calls faster than they can be sent.
        said = [line for line in err.splitlines() if "calls were dropped so far" not in line]
        self.assertEqual((out, said), ("end\n", []))
        self.assertGreater(self.server.counts(self.service)["app.f"], 100)


class Restarts(ServerTest):
    def test_no_record_is_lost_or_stored_twice_when_the_server_is_killed(self) -> None:
        program = self.launch(
            """
import sys, tachograph, threading, time
tachograph.start()
@tachograph.record
def work(): pass
is_over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), is_over.set()), daemon=True).start()
count = 0
while not is_over.is_set():
    with tachograph.span("request") as span:
        span.attribute("number", count)
        work()
    count += 1
    tachograph.sample("app_count", count)
    time.sleep(0.001)
ok = tachograph.flush(60)
totals = tachograph.totals()
print(ok, count, totals.calls_dropped, totals.samples_dropped, totals.connects)
"""
        )
        for _ in range(3):
            before = self.server.counts(self.service).get("request", 0)
            until(lambda before=before: self.server.counts(self.service).get("request", 0) > before + 50, "some requests")
            self.server.kill()
            time.sleep(0.2)
            self.server.start()
        out, err = program.communicate("\n", timeout=120)
        ok, count, calls_dropped, samples_dropped, connects = out.split()
        self.assertEqual((ok, calls_dropped, samples_dropped), ("True", "0", "0"), err)
        self.assertGreaterEqual(int(connects), 4)
        self.assertEqual(self.server.counts(self.service), {"request": int(count), "app.work": int(count)})
        self.assertIn("connected again to", err)
        found = self.server.get("/api/v1/query", query=f'count_over_time(app_count{{service="{self.service}"}}[1h])')
        self.assertEqual([one["value"][1] for one in found["data"]["result"]], [count])

    def test_a_server_that_starts_late_gets_the_records_for_which_the_queue_had_room(self) -> None:
        self.server.kill()
        program = self.launch(
            """
import sys, tachograph
tachograph.start()
@tachograph.record
def f(): pass
with tachograph.span("first"): pass
for _ in range(300_000): f()
print("ready", flush=True)
sys.stdin.readline()
assert tachograph.flush(60)
totals = tachograph.totals()
print(totals.calls_sent, totals.calls_dropped, totals.bytes_queued)
""",
            queue="200000",
            samplers="false",
        )
        self.assertEqual(program.stdout.readline(), "ready\n")
        self.server.start()
        out, err = program.communicate("\n", timeout=120)
        sent, dropped, queued = map(int, out.split())
        self.assertEqual((sent + dropped, queued), (300_001, 0), err)
        self.assertGreater(dropped, 100_000)
        counts = self.server.counts(self.service)
        self.assertEqual((counts["first"], counts["app.f"]), (1, sent - 1))


if __name__ == "__main__":
    unittest.main()
