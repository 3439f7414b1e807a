"""Rules of a real server, set by the command line, reach a real program, and the server shows the result."""

from __future__ import annotations

import json
import subprocess
import time
import unittest
from pathlib import Path
from typing import Any, Callable, Optional

from .server import BINARY, PATIENCE_S, ServerTest, until

BOARD = """
def price(ad): return ad
def post(ad): return price(ad) + price(1)
class Board:
    def find(self, ad): return ad
"""

# Each round of the loop handles a request, executes a statement, and calls functions without decorators and one with a decorator.
PROGRAM = """
import sqlite3, sys, threading, time, tachograph
tachograph.start()
from shop import board

@tachograph.record
def turn(n):
    return board.post(n) + board.Board().find(n)

def application(environ, start):
    start("200 OK", [])
    return [str(turn(int(connection.execute("select 7").fetchone()[0]))).encode()]

watched = tachograph.wsgi(application)
connection = sqlite3.connect(":memory:")
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
print("under way", flush=True)
while not stop.wait(0.01):
    (body,) = watched({"REQUEST_METHOD": "GET", "PATH_INFO": "/ads"}, lambda *_: None)
    assert body == b"15", body
"""

# A child keeps the rules of its parent. Both make ten turns. The child makes one more turn after a line on standard input.
FORKING = """
import os, sys, time, tachograph
tachograph.start()
@tachograph.record
def early(): pass
@tachograph.record
def turn(): pass
from tachograph.operations import OFF, SHARED
while SHARED.states[early.__tachograph__] != OFF: time.sleep(0.01)
pid = os.fork()
for _ in range(10): early(), turn()
if not pid:
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    early(), turn()
    tachograph.flush(60)
    os._exit(0)
os.waitpid(pid, 0)
"""

TURN, SERVER, STATEMENT = "app.turn", "GET /ads", "select ?"
POST, PRICE, FIND = "shop.board.post", "shop.board.price", "shop.board.Board.find"
INCLUDED = [SERVER, STATEMENT, TURN, POST, PRICE]


class Probes(ServerTest):
    def command(self, *arguments: str) -> tuple[int, dict[str, Any], str]:
        """`tacho probes ...`: status, output, warnings. `on`, `off` and `aggregate` wait for the agents."""
        patience = () if arguments[0] == "clear" else ("--wait", f"{PATIENCE_S:.0f}s")
        command = [str(BINARY), "probes", *arguments, *patience, "--json", "--server", f"http://127.0.0.1:{self.server.http}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * PATIENCE_S, check=False)
        return done.returncode, json.loads(done.stdout or "{}"), done.stderr

    def switch(self, state: str, pattern: str, *more: str) -> int:
        """Adds a rule. Returns the number of operations that the rule decides in the only agent; 0 without an agent."""
        status, told, err = self.command(state, pattern, "--service", self.service, *more)
        self.assertEqual(status, 0, err)
        return sum(agent["probes"]["rules"][0]["matched"] for agent in told["agents"])

    def agent(self) -> dict[str, Any]:
        found = self.server.get("/api/v1/agents", service=self.service)["data"]["agents"]
        (connected,) = (agent for agent in found if agent["left"] is None)
        return connected

    def told(self) -> list[int]:
        """The numbers of operations that are on, aggregated and off, according to the server."""
        agent = self.agent()
        self.assertEqual(agent["state"], "follows")
        return [agent["probes"][key] for key in ("on", "aggregated", "off")]

    def begin(self, **settings: str) -> Callable[[], None]:
        """Starts the program; returns a function that ends it."""
        folder = self.folder()
        (Path(folder) / "shop").mkdir()
        (Path(folder) / "shop" / "__init__.py").touch()
        (Path(folder) / "shop" / "board.py").write_text(BOARD)
        settings = {"include": "shop.board", "exclude": FIND, "sample_interval": "200ms", **settings}
        process = self.launch(PROGRAM, folder=folder, **settings)
        self.assertEqual(process.stdout.readline(), "under way\n")

        def end() -> None:
            _, err = process.communicate("stop\n", timeout=PATIENCE_S)
            self.assertEqual(process.returncode, 0, err)
            self.command("clear", "--all")

        return end

    def recorded(self) -> list[str]:
        before = self.server.counts(self.service)
        time.sleep(0.3)
        after = self.server.counts(self.service)
        return sorted(name for name, count in after.items() if count > before.get(name, 0))

    def until_recorded(self, *names: str) -> None:
        found: Optional[list[str]] = None

        def is_so() -> bool:
            nonlocal found
            found = self.recorded()
            return found == sorted(names)

        try:
            until(is_so, f"just {sorted(names)}")
        except AssertionError as e:
            raise AssertionError(f"{e}; found {found}") from e

    def test_probes_are_switched_off_and_on_again(self) -> None:
        end = self.begin()
        self.until_recorded(*INCLUDED)
        for state, pattern, matched, names in [
            ("off", "shop..*", 2, [SERVER, STATEMENT, TURN]),
            ("on", "shop.board.post", 1, [SERVER, STATEMENT, TURN, POST]),
            ("off", "database", 1, [SERVER, TURN, POST]),
            ("on", FIND, 1, [SERVER, TURN, POST, FIND]),
            ("off", "*", 7, []),  # includes `sqlite3.connect`
            ("on", "http-server", 1, [SERVER]),
            ("on", "shop.board", 3, [SERVER, POST, PRICE, FIND]),
            ("aggregate", "shop.board.p*", 2, [SERVER, FIND]),
            ("on", "app.*", 2, [SERVER, FIND, TURN, "app.application"]),
        ]:
            with self.subTest(f"{state} {pattern}"):
                self.assertEqual(self.switch(state, pattern), matched)
                self.until_recorded(*names)
        self.assertEqual(self.told(), [4, 2, 2])
        self.assertEqual(self.command("clear", "--all")[0], 0)
        self.until_recorded(*INCLUDED)
        self.assertEqual(self.told(), [6, 0, 0])
        end()

    def test_everything_goes_off_and_on_again(self) -> None:
        end = self.begin()
        self.until_recorded(*INCLUDED)
        for state, names in (("off", []), ("on", [*INCLUDED, FIND, "app.application"])):
            self.switch(state, "*")
            self.until_recorded(*names)
        end()

    def test_aggregated_operations_are_counted(self) -> None:
        self.switch("aggregate", "shop.board.price")
        self.switch("aggregate", "database")
        end = self.begin()
        self.until_recorded(SERVER, TURN, POST)
        end()
        counts = self.server.counts(self.service)
        told = self.server.last(f'tacho_operation_seconds_count{{service="{self.service}"}}')
        told = {dict(labels)["operation"]: count for labels, count in told.items()}
        # Each call is either recorded (before the program applied the rule) or counted (after it).
        self.assertEqual(told[PRICE] + counts.get(PRICE, 0), 2 * counts[POST])
        self.assertEqual(told[STATEMENT] + counts.get(STATEMENT, 0), counts[SERVER])
        seconds = self.server.last(f'tacho_operation_seconds_sum{{service="{self.service}",operation="{PRICE}"}}')
        self.assertTrue(0 < next(iter(seconds.values())) < told[PRICE])

    def test_a_forked_process_keeps_the_rules_and_gets_its_own(self) -> None:
        self.switch("off", "app.early")
        process = self.launch(FORKING)
        pid = process.stdout.readline().strip()

        def child() -> str:
            found = self.server.get("/api/v1/agents", service=self.service)["data"]["agents"]
            return next((agent["instance"] for agent in found if agent["instance"].endswith(f":{pid}")), "")

        status, told, err = self.command("off", "app.turn", "--instance", until(child, "the child"))
        self.assertEqual((status, told["agents"][0]["probes"]["off"]), (0, 2), err)
        _, err = process.communicate("go\n", timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, err)
        self.assertEqual(self.server.counts(self.service), {"app.turn": 20})
        self.command("clear", "--all")

    def test_an_invalid_rule_or_one_without_matches_is_reported(self) -> None:
        end = self.begin()
        self.until_recorded(*INCLUDED)
        status, _, err = self.command("off", "@com.shop.Watched", "--service", self.service)
        self.assertEqual(status, 3)
        self.assertRegex(err, "1 of 1 agent cannot follow the rule: .*: patterns of decorators are not supported")
        status, _, err = self.command("off", "com.shop..*", "--service", self.service)
        self.assertEqual(status, 0)
        self.assertIn("com.shop..* decides no method of", err)
        self.until_recorded(*INCLUDED)
        end()

    def test_a_program_that_starts_later_gets_the_rules_and_only_the_kept_ones_after_a_restart_of_the_server(self) -> None:
        self.switch("off", "database", "--keep")
        self.switch("off", "shop..*")
        end = self.begin()
        self.until_recorded(SERVER, TURN)
        self.server.kill()
        time.sleep(0.2)
        self.server.start()
        self.until_recorded(SERVER, TURN, POST, PRICE)
        self.assertEqual(self.told()[2], 1)
        end()


if __name__ == "__main__":
    unittest.main()
