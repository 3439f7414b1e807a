"""The last matching rule decides an operation (vectors shared by the agents). The search for this rule gives the same result as a
search over all rules, and costs less. New rules are applied in slices, and the result is reported."""

from __future__ import annotations

import random
import sys
import unittest
from collections.abc import Iterator
from unittest import mock

from tachograph import operations, switchboard, wire
from tachograph.imports import Imports
from tachograph.log import Log
from tachograph.operations import AGGREGATE, METHOD, NO_RULE, OFF, ON, Operations
from tachograph.patterns import Pattern
from tachograph.rules import Rules
from tachograph.switchboard import Switchboard

from .vectors import cases, one, several

DECISIONS = cases("decisions.vec", "rules")


def given(*rules: str) -> list[tuple[int, str]]:
    """State and pattern of rules that are written like `0 shop..*`."""
    return [(int(rule[0]), rule[2:]) for rule in rules]


def decide(pattern: str, kind: int, name: str, module: str = "") -> bool:
    return Rules([(0, pattern)]).decide(kind, name, len(module), ON) == (0, OFF)


def naive(text: str) -> Pattern:
    return Pattern("..*" if text == "*" else text)


class Decisions(unittest.TestCase):
    def test_vectors_give_the_expected_decisions(self) -> None:
        seen = 0
        for case in DECISIONS:
            with self.subTest(one(case, "case")):
                rules = Rules(given(*several(case, "rule")))
                faulty = [str(at) for at, rule in enumerate(rules.list) if rule.fault]
                self.assertEqual(faulty, several(case, "fault"))
                for line in several(case, "method"):
                    owner, name, expected = line.split(" ")
                    at, _ = rules.decide(METHOD, f"{owner}.{name}", len(owner), ON)
                    self.assertEqual("-" if at == NO_RULE else str(at), expected, line)
                    seen += 1
        self.assertGreater(seen, 40, "the file has too few vectors")

    def test_functions_match_by_name_and_other_operations_by_kind(self) -> None:
        for pattern, kind, name, module, expected in [
            ("shop.board", METHOD, "shop.board.Board.post", "shop.board", True),
            ("shop", METHOD, "shop.board.Board.post", "shop.board", False),
            ("shop", METHOD, "shop.opening", "shop", True),
            ("shop.board.Board", METHOD, "shop.board.Board.post", "shop.board", True),
            ("shop.board.*", METHOD, "shop.board.Board.post", "shop.board", True),
            ("shop..post", METHOD, "shop.board.Board.post", "shop.board", True),
            ("render", METHOD, "render", "", True),
            ("render", METHOD, "render.page", "", True),
            ("render.page", METHOD, "render.page", "", True),
            ("page", METHOD, "render.page", "", False),
            ("*", operations.HTTP_SERVER, "GET /ads/{id}", "", True),
            ("http-server", operations.HTTP_SERVER, "GET /ads/{id}", "", True),
            ("http-*", operations.HTTP_CLIENT, "GET 127.0.0.1:80", "", True),
            ("http-server", operations.HTTP_CLIENT, "GET 127.0.0.1:80", "", False),
            ("database", operations.DATABASE, "select a.b from c", "", True),
            ("*.b*", operations.DATABASE, "select a.b from c", "", False),
            ("connection-wait", operations.CONNECTION_WAIT, "sqlite3.connect", "", True),
            ("sqlite3.connect", operations.CONNECTION_WAIT, "sqlite3.connect", "", False),
            ("jobs.*", operations.TASK, "jobs.clean", "", True),
        ]:
            self.assertEqual(decide(pattern, kind, name, module), expected, f"{pattern} {name}")

    def test_invalid_rules_have_a_reason(self) -> None:
        for rule, fault in [
            ((3, "*"), "state 3 is not known here"),
            ((0, "@shop.Watched"), "patterns of decorators are not supported"),
            ((1, "a b"), "' ' cannot be part of a pattern: a b"),
            ((2, "a...b"), "a dot is out of place in the pattern: a...b"),
        ]:
            rules = Rules([rule, (0, "a")])
            self.assertIn(fault, rules.list[0].fault)
            self.assertEqual(rules.decide(METHOD, "a", 0, ON), (1, OFF))
            self.assertEqual(rules.decide(METHOD, "b", 0, ON), (NO_RULE, ON))

    def test_rules_decide_new_operations_and_an_operation_off_by_default_needs_a_rule(self) -> None:
        shop = Operations()
        known = shop.id(METHOD, "shop.post")
        hidden = shop.function(METHOD, "shop.hidden", 4, OFF)

        def states(*rules: str) -> list[int]:
            list(shop.decide_all(Rules(given(*rules)).decide))
            fresh = shop.id(METHOD, f"shop.new{len(shop.entries)}")
            return [shop.states[id_] for id_ in (known, hidden, fresh)]

        self.assertEqual(states(), [ON, OFF, ON])
        self.assertEqual(states("0 *"), [OFF, OFF, OFF])
        self.assertEqual(states("2 shop"), [AGGREGATE, AGGREGATE, AGGREGATE])
        self.assertEqual(states("2 shop", "1 shop.hidden"), [AGGREGATE, ON, AGGREGATE])
        self.assertEqual(states(), [ON, OFF, ON])
        self.assertEqual(shop.function(METHOD, "shop.hidden", 4), hidden, "a function that is decorated now must keep its id")
        self.assertEqual(states(), [ON, ON, ON])

    def test_rules_for_kinds_set_the_state_of_new_names(self) -> None:
        shop = Operations()
        list(shop.decide_all(Rules(given("0 http-*", "2 database")).decide))
        self.assertEqual(shop.kinds[operations.HTTP_SERVER : operations.TASK], [OFF, OFF, AGGREGATE, ON])

    def test_the_search_finds_the_last_matching_rule(self) -> None:
        draw = random.Random(7)
        parts = ["shop", "a", "ab", "b", "Board", "find", "*", "a*", "*b", "*a*b*", "S*p"]
        for _ in range(2_000):
            patterns = [draw.choice(["", "", ".."]) + "".join(self._some(draw, parts)) for _ in range(draw.randint(1, 6))]
            name = ".".join(draw.choices([part for part in parts if "*" not in part], k=draw.randint(2, 5)))
            module = name.split(".")[: draw.randint(1, name.count("."))]
            beginnings = [".".join(name.split(".")[:count]) for count in range(len(module), name.count(".") + 2)]
            fitting = [at for at, text in enumerate(patterns) if any(naive(text).fits(one) for one in beginnings)]
            at, _ = Rules([(0, text) for text in patterns]).decide(METHOD, name, len(".".join(module)), ON)
            self.assertEqual(at, max(fitting, default=NO_RULE), f"{patterns} {beginnings}")

    def _some(self, draw: random.Random, parts: list[str]) -> Iterator[str]:
        for at in range(draw.randint(1, 4)):
            yield (draw.choice([".", ".", ".."]) if at else "") + draw.choice(parts)

    def test_patterns_of_a_long_list_are_matched_only_with_names_that_contain_their_text(self) -> None:
        names = [f"shop.part{at % 10}.mod{at}.Board.find_{at}" for at in range(100)]
        for text in ["shop.b{}..*Service.*o*s*", "shop.part1.mod{}x.Board.post", "..*Service{}.find*", "shop..part*..*{}x*"]:
            rules = Rules([(0, text.format(at)) for at in range(1_000)] + [(0, "shop..Board.find_7")])
            with mock.patch.object(Pattern, "fits_parts", autospec=True, side_effect=Pattern.fits_parts) as fits:
                decided = [rules.decide(METHOD, name, name.index(".Board"), ON)[0] for name in names]
            self.assertEqual(decided, [1_000 if name.endswith("find_7") else NO_RULE for name in names], text)
            self.assertLess(fits.call_count, 10 * len(names), f"{text}: a full search would need 3 checks for each rule and name")

    def test_rules_are_applied_in_slices_and_the_last_list_wins(self) -> None:
        shop = Operations()
        ids = [shop.id(METHOD, f"shop.f{at}") for at in range(100)]
        log = Log()
        log.say = lambda _line: None
        imports = Imports((), (), log)
        self.addCleanup(lambda: imports in sys.meta_path and sys.meta_path.remove(imports))
        board = Switchboard(shop, imports, log)

        def rounds() -> int:
            count = 0
            while board.is_deciding:
                self.assertIsNone(board.answer(0.0), "a report while rules are being applied")
                board.go_on()
                count += 1
            return count

        with mock.patch.object(switchboard, "SLICE_S", 0):
            board.take(1, given("0 *"))
            for _ in range(50):
                board.go_on()
            self.assertEqual({shop.states[id_] for id_ in ids}, {OFF, ON})
            ids.append(shop.id(METHOD, "shop.fresh"))
            self.assertEqual(shop.states[ids[-1]], OFF, "a new operation must be decided at once")
            board.take(2, given("2 *"))
            self.assertGreater(rounds(), 100)
        self.assertEqual({shop.states[id_] for id_ in ids}, {AGGREGATE})
        self.assertEqual(board.answer(0.0), wire.probed(wire.Report(2, 0, 101, 0, [(101, "")])))
        with mock.patch.object(switchboard, "SLICE_S", 60):
            board.take(3, ())
            self.assertEqual(rounds(), 1, "one slice must be enough if it may last long")
        self.assertEqual({shop.states[id_] for id_ in ids}, {ON})

    def test_changes_are_reported_after_pauses_that_grow_to_five_seconds_and_start_again(self) -> None:
        shop = Operations()
        board = Switchboard(shop, Imports((), (), Log()), Log())
        board.take(1, ())
        while board.is_deciding:
            board.go_on()
        now = 1_000.0
        self.assertEqual(board.answer(now), wire.probed(wire.Report(1, 0, 0, 0, [])))
        # Seconds from the last report to the arrival of a change, and to the report of this change.
        rising = [(0.0, pause) for pause in (0.2, 0.4, 0.8, 1.6, 3.2, 5.0)]
        late = [(quiet, quiet) for quiet in (4.9, 5.1, 3_600.0)]
        steps = [*rising, *rising, (0, 0.2), late[0], (0, 0.8), late[1], *rising, late[2], (0, 0.2), (0, 0.4)]
        for at, (comes, told) in enumerate(steps):
            for look in (0.5, 0.9, 1):
                self.assertIsNone(board.answer(now + comes * look), "a report without news")
                shop.function(METHOD, f"shop.off{at} {look}", 0, OFF)  # off by default: not reported
            shop.id(METHOD, f"shop.f{at}")
            if told > comes:
                self.assertIsNone(board.answer(now + told - 0.01), "the report is too early")
            now += told + 0.001  # the sum may be rounded down
            self.assertEqual(board.answer(now), wire.probed(wire.Report(1, at + 1, 0, 0, [])), f"{comes} {told}")


if __name__ == "__main__":
    unittest.main()
