"""Rules of a server: which calls are recorded, functions that are changed and restored, and counts of aggregated operations."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import importlib
import inspect
import json
import pickle
import sqlite3
import sys
import tempfile
import threading
import time
import types
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tachograph
from tachograph import operations, tallies
from tachograph.imports import Imports
from tachograph.log import Log
from tachograph.operations import METHOD, ON, SHARED
from tachograph.switchboard import Switchboard
from tachograph.tallies import BOUNDS, TALLIES

from .inside import Recording
from .test_decisions import given


class RulesTest(unittest.TestCase):
    """Uses the operations of this process, and removes the rules after each test."""

    def setUp(self) -> None:
        self.said: list[str] = []
        self.log = Log()
        self.log.say = self.said.append
        self.imports = Imports((), (), self.log)
        self.addCleanup(self.forget)
        self.switchboard = Switchboard(SHARED, self.imports, self.log)
        TALLIES.forget()

    def forget(self) -> None:
        self.take()
        TALLIES.forget()
        if self.imports in sys.meta_path:
            sys.meta_path.remove(self.imports)

    def take(self, *rules: str) -> None:
        self.switchboard.take(1, given(*rules))
        while self.switchboard.is_deciding:
            self.switchboard.go_on()

    def counts(self) -> dict[str, tuple[int, int]]:
        """Counted calls, and the number of failed ones, by operation."""
        rows = TALLIES._sums(1)
        return {SHARED.entries[id_][1]: (sum(row[4:]), row[3]) for id_, row in rows.items()}


@tachograph.record(name="rules.add")
def add(a: int, b: int = 1) -> int:
    return inner(a) + b


@tachograph.record(name="rules.inner")
def inner(a: int) -> int:
    if a < 0:
        raise ValueError(a)
    return a


@tachograph.record(name="rules.steps")
def steps(count: int) -> Iterator[int]:
    for at in range(count):
        sent = yield inner(at)
        if sent is not None:
            yield sent
    return count


@tachograph.record(name="rules.later")
async def later(a: int) -> int:
    await asyncio.sleep(0)
    return inner(a)


@tachograph.record(name="rules.walk")
async def walk(count: int) -> Any:
    for at in range(count):
        yield inner(at)


class Calls(RulesTest):
    def check(self, run: Any, rules: tuple[str, ...], expected: Any, tree: list[str], counts: dict[str, tuple[int, int]]) -> None:
        TALLIES.forget()
        with Recording() as recording:
            self.take(*rules)
            self.assertEqual(run(), expected)
            self.assertEqual(recording.tree(), tree, rules)
            self.assertEqual(self.counts(), counts, rules)

    def test_rules_apply_to_functions(self) -> None:
        def run() -> list[Any]:
            found: list[Any] = [add(3, b=4)]
            try:
                add(-1)
            except ValueError as e:
                found.append(e.args)
            return found

        expected = [7, (-1,)]
        fault = "exception=ValueError: -1"
        every = ["|rules.add", "  rules.inner", f"|rules.add! {fault}", f"  rules.inner! {fault}"]
        for rules, tree, counts in [
            ((), every, {}),
            (("0 *",), [], {}),
            (("0 rules.add",), ["|rules.inner", f"|rules.inner! {fault}"], {}),
            (("0 rules.inner",), ["|rules.add", f"|rules.add! {fault}"], {}),
            (("0 *", "1 rules.inner"), ["|rules.inner", f"|rules.inner! {fault}"], {}),
            (("2 rules.inner",), ["|rules.add", f"|rules.add! {fault}"], {"rules.inner": (2, 1)}),
            (("2 rules.add",), ["|rules.inner", f"|rules.inner! {fault}"], {"rules.add": (2, 1)}),
            (("2 rules",), [], {"rules.add": (2, 1), "rules.inner": (2, 1)}),
        ]:
            self.check(run, rules, expected, tree, counts)

    def test_rules_apply_to_generators(self) -> None:
        def run() -> list[Any]:
            generator = steps(2)
            found: list[Any] = [next(generator), generator.send("sent"), next(generator)]
            try:
                next(generator)
            except StopIteration as stop:
                found.append(stop.value)
            return found

        self.assertTrue(inspect.isgeneratorfunction(steps))
        expected = [0, "sent", 1, 2]
        step = "|rules.steps"
        for rules, tree, counts in [
            ((), [step, "  rules.inner", step, step, "  rules.inner", step], {}),
            (("0 rules.steps",), ["|rules.inner", "|rules.inner"], {}),
            (("2 rules.steps",), ["|rules.inner", "|rules.inner"], {"rules.steps": (4, 0)}),
        ]:
            self.check(run, rules, expected, tree, counts)

    def test_rules_apply_to_coroutines(self) -> None:
        def run() -> list[Any]:
            async def main() -> list[Any]:
                found = [await later(2), [item async for item in walk(2)]]
                try:
                    await later(-2)
                except ValueError as e:
                    found.append(e.args)
                return found

            return asyncio.run(main())

        expected = [2, [0, 1], (-2,)]
        lone = ["|rules.inner"] * 3 + ["|rules.inner! exception=ValueError: -2"]
        for rules, tree, counts in [
            (("0 rules.later", "0 rules.walk"), lone, {}),
            (("0 *",), [], {}),
            (("2 rules.later", "2 rules.walk"), lone, {"rules.later": (2, 1), "rules.walk": (3, 0)}),
        ]:
            self.check(run, rules, expected, tree, counts)

    def test_rules_apply_to_spans(self) -> None:
        def run() -> None:
            with contextlib.suppress(KeyError), tachograph.span("rules.block") as block:
                block.attribute("a", 1)
                self.assertEqual(block.traceparent is None, SHARED.states[block.operation] != ON)
                inner(1)
                raise KeyError

        failed = "|rules.block! a=1 exception=KeyError"
        for rules, tree, counts in [
            ((), [failed, "  rules.inner"], {}),
            (("0 rules.block",), ["|rules.inner"], {}),
            (("2 rules.block",), ["|rules.inner"], {"rules.block": (1, 1)}),
        ]:
            self.check(run, rules, None, tree, counts)

    def test_rules_apply_to_statements(self) -> None:
        def run() -> list[Any]:
            with tachograph.span("rules.block"), contextlib.closing(sqlite3.connect(":memory:")) as connection:
                return connection.execute("select 17").fetchall()

        block = "|rules.block"
        for rules, tree, counts in [
            ((), [block, "  sqlite3.connect", "  select ?", "  fetch select ?"], {}),
            (("0 database",), [block, "  sqlite3.connect"], {}),
            (("0 connection-wait", "2 database"), [block], {"select ?": (1, 0), "fetch select ?": (1, 0)}),
        ]:
            self.check(run, rules, [(17,)], tree, counts)

    def test_rules_apply_to_requests(self) -> None:
        caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

        def application(_environ: Any, start: Any) -> list[bytes]:
            start("500 Broken", [])
            inner(1)
            return [str(tachograph.traceparent()).encode()]

        def run() -> str:
            environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/ads/1", "HTTP_TRACEPARENT": caller}
            (body,) = tachograph.wsgi(application)(environ, lambda *_: None)
            return body.decode()[:35]

        trace = caller[:35]
        answered = "|GET /ads/{id}! http.path=/ads/1 http.status=500"
        for rules, expected, tree, counts in [
            ((), trace, [answered, "  rules.inner"], {}),
            (("0 http-server",), "None", ["|rules.inner"], {}),
            (("2 http-server",), trace, ["|rules.inner"], {"GET /ads/{id}": (1, 1)}),
        ]:
            self.check(run, rules, expected, tree, counts)

    def test_a_new_rule_does_not_affect_open_calls(self) -> None:
        with Recording() as recording:
            with tachograph.span("rules.held"):
                self.take("0 *")
                with tachograph.span("rules.off"):
                    self.take()
            self.assertEqual(recording.tree(), ["|rules.held"])


MODULE = """
import dataclasses
from functools import lru_cache
def post(ad): return ad
def find(ad): return -ad
async def later(ad): return ad
class Board:
    def add(self, ad): return post(ad)
    def __len__(self): return 3
    @property
    def size(self): return 4
    @staticmethod
    def fixed(): return 5
@lru_cache
def cached(): return 6
"""


class Functions(RulesTest):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        sys.path.insert(0, folder.name)
        self.addCleanup(sys.path.remove, folder.name)
        self.name = f"rules_shop_{self._testMethodName}"
        (Path(folder.name) / f"{self.name}.py").write_text(MODULE)
        importlib.invalidate_caches()
        self.addCleanup(sys.modules.pop, self.name, None)

    def load(self) -> types.ModuleType:
        return importlib.import_module(self.name)

    def use(self, shop: Any) -> None:
        board = shop.Board()
        found = [shop.post(1), shop.find(2), board.add(3), board.size, board.fixed(), len(board), asyncio.run(shop.later(7))]
        self.assertEqual(found, [1, -2, 3, 4, 5, 3, 7])

    def recorded(self, shop: Any) -> list[str]:
        with Recording() as recording:
            self.use(shop)
            return sorted(line.strip(" |").removeprefix(f"{self.name}.") for line in recording.tree())

    def test_functions_that_are_not_included_are_switched_on_and_off(self) -> None:
        shop = self.load()
        before = {name: getattr(member, "__code__", member) for name, member in vars(shop.Board).items()}
        for rules, expected in [
            ([], []),
            ([f"1 {self.name}"], ["Board.add", "Board.fixed", "Board.size", "find", "later", "post", "post"]),
            ([f"1 {self.name}", f"0 {self.name}.Board"], ["find", "later", "post", "post"]),
            ([f"1 {self.name}.Board.add"], ["Board.add"]),
            ([f"1 {self.name}.Board.__len__"], ["Board.__len__"]),
            ([f"1 {self.name}", "0 *"], []),
            ([f"2 {self.name}.post"], []),
            ([], []),
        ]:
            with self.subTest(rules):
                self.take(*rules)
                self.assertEqual(self.recorded(shop), expected)
        after = {name: getattr(member, "__code__", member) for name, member in vars(shop.Board).items()}
        self.assertEqual(after, before, "the class must have its original code again")

    def test_modules_imported_later_are_decided_too(self) -> None:
        self.take(f"1 {self.name}.*", f"0 {self.name}.find")
        shop = self.load()
        self.assertEqual(self.recorded(shop), ["Board.add", "Board.fixed", "Board.size", "later", "post", "post"])
        self.take()
        self.assertEqual(self.recorded(shop), [])

    def test_rules_override_include_and_exclude(self) -> None:
        self.forget()
        self.imports = Imports((f"{self.name}.post", f"{self.name}.Board"), (f"{self.name}.Board.fixed",), self.log)
        self.switchboard = Switchboard(SHARED, self.imports, self.log)
        self.imports.install()
        shop = self.load()
        every = ["Board.add", "Board.size", "post", "post"]
        self.assertEqual(self.recorded(shop), every)
        for rules, expected in [
            ([f"0 {self.name}.post"], ["Board.add", "Board.size"]),
            ([f"1 {self.name}.Board.fixed"], ["Board.add", "Board.fixed", "Board.size", "post", "post"]),
            ([f"0 {self.name}.Board", f"1 {self.name}.find"], ["find", "post", "post"]),
            ([f"1 {self.name}", f"0 {self.name}.later"], ["Board.add", "Board.fixed", "Board.size", "find", "post", "post"]),
            ([], every),
        ]:
            self.take(*rules)
            self.assertEqual(self.recorded(shop), expected)

    def test_functions_stay_the_same_objects(self) -> None:
        shop = self.load()
        taken_before = shop.post
        odd = importlib.import_module("tests.odd")
        signature = inspect.signature(odd.defaults)
        for rules in (["1 *"], ["0 *"], ["2 *"], []):
            with self.subTest(rules):
                self.take(*rules)
                self.assertIs(shop.post, taken_before)
                self.assertIs(pickle.loads(pickle.dumps(taken_before)), taken_before)
                self.assertEqual(inspect.signature(odd.defaults), signature)
                self.assertEqual(odd.results(), odd.RESULTS)
                with self.assertRaises(TypeError):
                    odd.defaults()
                self.assertTrue(inspect.isgeneratorfunction(odd.steps) and inspect.iscoroutinefunction(odd.later))
        self.assertIn("tests.odd.walk stays unchanged: the code of an asynchronous generator cannot be replaced", self.said)

    def test_all_references_call_the_recorded_function(self) -> None:
        taken_before = self.load().post
        self.take(f"1 {self.name}.post")
        with Recording() as recording:
            self.assertEqual(taken_before(5), 5)
            self.assertEqual(recording.tree(), [f"|{self.name}.post"])

    def test_code_sent_to_another_process_is_the_original(self) -> None:
        shop = self.load()
        own = shop.post.__code__
        self.take(f"1 {self.name}.post")
        (target,) = (constant for constant in shop.post.__code__.co_consts if isinstance(constant, functools.partial))
        make, arguments = target.__reduce__()
        self.assertIs(make(*arguments).__code__, own)

    def test_a_function_decorated_later_is_recorded_once(self) -> None:
        shop = self.load()
        self.take(f"1 {self.name}.post")
        shop.post = tachograph.record(shop.post)
        for rules, expected in [([f"1 {self.name}.post"], 1), ([f"0 {self.name}.post"], 0), ([], 1)]:
            self.take(*rules)
            with Recording() as recording:
                shop.post(1)
                self.assertEqual(len(recording.calls()), expected, rules)

    def test_code_assigned_by_others_stays(self) -> None:
        shop = self.load()
        self.take(f"1 {self.name}.*")
        shop.find = patched = lambda ad: ad
        shop.post.__code__ = (lambda ad: ad + 1).__code__
        for rules in (["0 *"], [f"1 {self.name}.*"], []):
            self.take(*rules)
            self.assertIs(shop.find, patched)
            self.assertEqual((shop.find(5), shop.post(5)), (5, 6))

    def test_a_collected_function_is_removed(self) -> None:
        self.take(f"1 {self.name}.*")
        shop = self.load()
        first = set(self.imports.changed)
        importlib.reload(shop)
        gc.collect()
        self.take(f"1 {self.name}.*")
        self.assertEqual(len(self.imports.changed), len(first))
        self.take()
        del sys.modules[self.name], shop
        gc.collect()
        self.take()
        self.assertEqual((len(first), len(self.imports.changed)), (6, 0))

    def test_the_star_selects_neither_the_standard_library_nor_the_agent(self) -> None:
        shop = self.load()
        functions = (json.dumps, json.JSONDecoder.decode, tempfile.mkdtemp, threading.Thread.run, Log.say)
        before = [function.__code__ for function in functions]
        own = shop.post.__code__
        self.take("1 *")
        self.assertIsNot(shop.post.__code__, own)
        self.assertEqual([function.__code__ for function in functions], before)

    def test_the_report_counts_operations_by_state_and_by_rule(self) -> None:
        def report(*rules: str) -> tuple[int, int, int]:
            self.take(*rules)
            told = self.switchboard._report(1)
            return told.on, told.aggregated, told.off

        self.load()
        on, aggregated, off = report()
        self.assertEqual((aggregated, off), (0, 0), "operations that are off by default must not be counted")
        self.assertEqual(report(f"1 {self.name}"), (on + 6, 0, 0))
        self.assertEqual(report(f"2 {self.name}"), (on, 6, 0))
        on, aggregated, off = report("0 *")
        self.assertEqual((on, aggregated), (0, 0))
        self.assertGreaterEqual(off, 6)
        self.take(f"1 {self.name}.Board", "1 nothing.here", f"0 {self.name}.Board.add")
        self.assertEqual([count for count, _ in self.switchboard._report(1).rules], [2, 0, 1])


class Counts(RulesTest):
    def told(self) -> dict[str, float]:
        """Takes a sample. Returns the sent values, by name of the series, operation and, for a bucket, bound."""
        with Recording() as recording:
            TALLIES.sample(recording.inbox)
            found = {}
            for series, _, value in recording.inbox.samples:
                labels = dict(series)
                name = labels["__name__"].removeprefix("tacho_operation_")
                found[f"{name} {labels['operation']} {labels.get('le', '')}".strip()] = value
            return found

    def test_counts_are_sent_as_series(self) -> None:
        ns = [0, 64, 65, 2_000_000_000, 1_000]
        id_ = SHARED.id(METHOD, "rules.counted")
        self.assertFalse(TALLIES.has_news)
        for at, each in enumerate(ns):
            TALLIES.add(id_, each, at == 1)
        self.assertTrue(TALLIES.has_news)
        told = self.told()
        self.assertFalse(TALLIES.has_news)
        self.assertEqual(len(told), 4 + len(BOUNDS) + 1)
        self.assertEqual(told["seconds_count rules.counted"], 5)
        self.assertEqual(told["seconds_sum rules.counted"], sum(ns) / 1e9)
        self.assertEqual(told["seconds_max rules.counted"], 2)
        self.assertEqual(told["failed_total rules.counted"], 1)
        for bound, below in [("0.000000064", 2), ("0.000000128", 3), ("0.000001024", 4), ("1.073741824", 4), ("+Inf", 5)]:
            self.assertEqual(told[f"seconds_bucket rules.counted {bound}"], below, bound)
        self.assertEqual(self.told(), {}, "values were sent although nothing has changed")
        TALLIES.add(id_, 7, False)
        told = self.told()
        self.assertEqual((told["seconds_count rules.counted"], told["seconds_max rules.counted"]), (6, 7e-9))
        TALLIES.told[id_] = (6, time.monotonic() - 61)
        self.assertEqual(self.told()["seconds_max rules.counted"], 0, "an operation without new calls must be sent once a minute")

    def test_a_long_name_is_cut_to_the_limit_of_a_label(self) -> None:
        for name, bytes_max in (("n" * 4_096, 4_096), ("n" * 4_097, 4_096), ("ä" * 3_000, 4_096), ("😀" * 1_360, 4_096)):
            TALLIES.forget()
            TALLIES.add(SHARED.id(METHOD, name), 10, False)
            [label] = {key.split(" ")[1] for key in self.told()}
            self.assertLessEqual(len(label.encode()), bytes_max)
            self.assertGreater(len(label.encode()), bytes_max - 4)
            self.assertTrue(label == name or label == f"{name[: len(label) - 1]}…", label[-9:])

    def test_threads_that_end_stay_counted(self) -> None:
        id_ = SHARED.id(METHOD, "rules.threads")

        def work() -> None:
            for at in range(1_000):
                TALLIES.add(id_, at, False)

        for _ in range(3):
            threads = [threading.Thread(target=work) for _ in range(5)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.told()
        self.assertEqual(self.counts(), {"rules.threads": (15_000, 0)})
        self.assertEqual(TALLIES.tables, [])

    def test_operations_are_bounded_and_the_sums_stay_complete(self) -> None:
        for at in range(tallies.OPERATIONS_MAX + 100):
            TALLIES.add(SHARED.id(METHOD, f"rules.many{at}"), 10, False)
        counts = self.counts()
        self.assertEqual(len(counts), tallies.OPERATIONS_MAX + 1)
        self.assertEqual(counts[operations.OTHER], (100, 0))
        TALLIES.add(SHARED.id(METHOD, "rules.many0"), 10, False)
        self.assertEqual(self.counts()["rules.many0"], (2, 0))


if __name__ == "__main__":
    unittest.main()
