"""Calls on one thread are recorded correctly: plain functions, failures, generators, spans, limits."""

from __future__ import annotations

import random
import sqlite3
import unittest
from typing import Any
from unittest import mock

import tachograph
from tachograph import recorder, thrown, track
from tachograph.reader import EVENTS_MAX

from .inside import Recording, aged, tree


@tachograph.record(name="f")
def f(depth: int = 0) -> int:
    return f(depth - 1) + 1 if depth else 0


@tachograph.record(name="bad")
def bad(message: str = "no") -> None:
    raise ValueError(message)


@tachograph.record(name="caller")
def caller() -> None:
    f()
    bad()


@tachograph.record(name="numbers")
def numbers(count: int) -> Any:
    for number in range(count):
        f()
        yield number
    return "end"


class LoudError(Exception):
    """An exception whose text runs code of the program."""

    def __str__(self) -> str:
        raise AssertionError("the agent has run code of the program")


@tachograph.record(name="loud")
def loud(*arguments: object) -> None:
    raise LoudError(*arguments)


class Board:
    @tachograph.record(name="method")
    def method(self) -> str:
        return "method"

    @tachograph.record(name="static")
    @staticmethod
    def static() -> str:
        return "static"

    @tachograph.record(name="class")
    @classmethod
    def of_class(cls) -> str:
        return cls.__name__

    @tachograph.record(name="property")
    @property
    def value(self) -> str:
        return "value"


def quietly(run: Any, *arguments: Any) -> None:
    try:
        run(*arguments)
    except Exception:
        return


class Calls(unittest.TestCase):
    maxDiff = None

    def check(self, run: Any, *lines: str, **home: int) -> None:
        self.assertEqual(tree(run, **home), list(lines))

    def test_nested_calls_are_recorded_with_their_callers(self) -> None:
        self.check(lambda: f(2), "|f", "  f", "    f")
        self.check(lambda: (f(), f()), "|f", "|f")

    def test_an_exception_is_described_where_it_appears_and_at_an_outermost_call_that_it_leaves(self) -> None:
        def twice() -> None:
            with tachograph.span("outer"):
                quietly(caller)

        self.check(lambda: quietly(bad), "|bad! exception=ValueError: no")
        self.check(lambda: quietly(caller), "|caller! exception=ValueError: no", "  f", "  bad! exception=ValueError: no")
        self.check(twice, "|outer", "  caller!", "    f", "    bad! exception=ValueError: no")

    def test_messages_of_databases_are_recorded_only_if_configured(self) -> None:
        class Own(sqlite3.IntegrityError):
            @property
            def sqlstate(self) -> str:
                raise AssertionError("code of the program")

        class WrapperError(Exception):
            @property
            def orig(self) -> None:
                raise AssertionError("code of the program")

        def behind(fault: BaseException, attribute: str, count: int = 1) -> BaseException:
            for _ in range(count):
                outer = WrapperError("s3cret") if attribute != "orig" else ValueError("s3cret")
                setattr(outer, attribute, fault)
                fault = outer
            return fault

        coded = sqlite3.Error("s3cret")
        coded.sqlstate = "22P02"  # type: ignore[attr-defined]
        wrong = sqlite3.Error("s3cret")
        wrong.sqlstate = "no code: s3cret"  # type: ignore[attr-defined]
        circle = ValueError("s3cret")
        circle.__context__, circle.__cause__ = coded, circle
        faults = [coded, wrong, Own("s3cret"), circle, behind(coded, "orig"), behind(Own("s3cret"), "orig")]
        faults += [behind(coded, name, count) for name in ("__cause__", "__context__") for count in (1, 15, 16, 1_000)]
        for fault in faults:
            self.assertNotIn("s3cret", thrown.exception_text(fault))
        self.assertEqual(thrown.exception_text(coded), "sqlite3.Error (22P02)")
        self.assertEqual(thrown.exception_text(circle), "ValueError (22P02)")
        self.assertEqual(thrown.exception_text(behind(ValueError("s3cret"), "__cause__"))[-8:], ": s3cret")
        self.addCleanup(setattr, thrown, "database_messages", thrown.database_messages)
        thrown.database_messages = True
        self.assertEqual(thrown.exception_text(coded), "sqlite3.Error: s3cret")

    def test_texts_of_exceptions_run_no_code_of_the_program(self) -> None:
        name = f"{__name__}.LoudError"
        self.check(lambda: quietly(loud, "text", object()), f"|loud! exception={name}: text")
        self.check(lambda: quietly(loud, object()), f"|loud! exception={name}")
        self.check(lambda: quietly(bad, "x" * 10_000), f"|bad! exception=ValueError: {'x' * 4_084}")

        def run(*_: object) -> object:
            ran.append(_)
            return "code of the program"

        ran: list[object] = []
        meta = type("Meta", (type,), {"__getattribute__": run, "__str__": run})
        loudest = meta("Loudest", (Exception,), {"args": property(run), "__getattribute__": run, "__repr__": run})
        self.assertEqual(thrown.exception_text(loudest("text")), f"{__name__}.Loudest: text")
        of_object = type("OfObject", (Exception,), {"__str__": object.__str__, "__repr__": run})
        self.assertEqual(thrown.exception_text(of_object("text")), f"{__name__}.OfObject: text")
        odd = type("Odd", (Exception,), {"__module__": property(run)})
        self.assertEqual(thrown.exception_text(odd("text")), "Odd: text")
        self.assertEqual(ran, [])
        self.assertEqual(thrown.exception_text(KeyError("key")), "KeyError: 'key'")
        self.assertEqual(thrown.exception_text(OSError(2, "no file")), "FileNotFoundError: [Errno 2] no file")

    def test_methods_are_recorded(self) -> None:
        board = Board()
        for run, name in [(board.method, "method"), (board.static, "static"), (board.of_class, "class")]:
            self.check(run, f"|{name}")
        self.check(lambda: board.value, "|property")
        self.assertEqual((board.method(), board.static(), board.of_class(), board.value), ("method", "static", "Board", "value"))

    def test_a_decorated_class_records_its_methods(self) -> None:
        @tachograph.record
        class Shop:
            size = 1

            def __init__(self) -> None:
                self.ads: list[int] = []

            def __len__(self) -> int:
                return len(self.ads)

            @property
            def first(self) -> int:
                return self.size

        def run() -> None:
            shop = Shop()
            self.assertEqual((len(shop), shop.first, isinstance(shop, Shop)), (0, 1, True))

        names = [line.rpartition(".")[2] for line in tree(run)]
        self.assertEqual(names, ["__init__", "first"])

    def test_calls_after_an_endless_recursion_are_recorded(self) -> None:
        @tachograph.record(name="endless")
        def endless() -> None:
            endless()

        def run() -> None:
            self.assertRaises(RecursionError, endless)
            f()

        lines = tree(run)
        self.assertRegex(lines[0], r"^\|endless! exception=(RecursionError|\(exception\))")
        self.assertGreater(len(lines), 100)
        self.assertEqual(lines[-1], "|f", "the track must still be usable")

    def test_each_step_of_a_generator_is_a_call(self) -> None:
        def consume() -> None:
            with tachograph.span("consumer"):
                for _ in numbers(2):
                    f()

        step = ["  numbers", "    f"]
        self.check(consume, "|consumer", *step, "  f", *step, "  f", "  numbers")

    def test_recorded_generators_behave_like_others(self) -> None:
        def talk() -> Any:
            heard = []
            try:
                while True:
                    try:
                        heard.append((yield len(heard)))
                    except KeyError as e:
                        heard.append(repr(e))
            finally:
                heard.append("closed")
                said.extend(heard)

        for make in (talk, tachograph.record(talk)):
            said: list[Any] = []
            generator = make()
            self.assertEqual([next(generator), generator.send("a"), generator.throw(KeyError("b"))], [0, 1, 2])
            generator.close()
            self.assertEqual(said, ["a", "KeyError('b')", "closed"])
        self.assertEqual(list(numbers(3)), [0, 1, 2])

    def test_attributes_are_recorded(self) -> None:
        def run() -> None:
            tachograph.attribute("lost", 1)
            with tachograph.span("span") as span:
                f()
                span.attribute("text", "Größe 漢 🚀")
                tachograph.attribute("number", -(1 << 63))
                tachograph.attribute("large", 1 << 63)
                tachograph.attribute("flag", True)
                tachograph.attribute("id", "01234567-89ab-cdef-0123-456789abcdef")
                tachograph.attribute("long", "y" * 5_000)
            span.attribute("late", 1)

        text = "text=Größe 漢 🚀 number=-9223372036854775808 large=9223372036854775808 flag=true"
        self.check(run, f"|span {text} id=0123456789abcdef0123456789abcdef long={'y' * 4_096}", "  f")

    def test_spans_that_overlap_do_not_break_the_nesting(self) -> None:
        def crossed() -> None:
            a, b = tachograph.span("a"), tachograph.span("b")
            a.__enter__()
            b.__enter__()
            a.__exit__(None, None, None)
            f()
            b.__exit__(None, None, None)
            f()

        self.check(crossed, "|a", "  b!", "|f", "|f")

    def test_a_span_is_closed_by_a_function_inside_it(self) -> None:
        span = tachograph.span("span")

        @tachograph.record(name="closer")
        def closer() -> None:
            span.__exit__(None, None, None)
            f()

        def run() -> None:
            span.__enter__()
            closer()
            f()

        self.check(run, "|span", "  closer!", "|f", "|f")

    def test_without_a_start_nothing_is_recorded(self) -> None:
        self.assertEqual(f(3), 3)
        with tachograph.span("span") as span:
            span.attribute("a", 1)
            self.assertIsNone(span.traceparent)
        tachograph.sample("a", 1)
        tachograph.entry("a", "b")
        self.assertFalse(tachograph.flush())
        self.assertFalse(track.here().events)

    def test_arguments_and_names_are_kept(self) -> None:
        @tachograph.record
        def named(a: int, *, b: int = 2) -> tuple[int, int]:
            """Its text."""
            return a, b

        self.assertEqual((named(1, b=3), named.__name__, named.__doc__), ((1, 3), "named", "Its text."))
        self.check(lambda: named(1), f"|{__name__}.Calls.test_arguments_and_names_are_kept.<locals>.named")
        self.assertIs(tachograph.record(named), named, "a recorded function must not be recorded again")
        self.assertRaisesRegex(ValueError, '"query" is not a kind of operation', tachograph.record, f, kind="query")


class Limits(unittest.TestCase):
    def test_labels_over_the_limits_are_refused_with_their_length(self) -> None:
        with Recording() as recording:
            for labels, says in (
                ({"a" * 257: "v"}, "the name of the label a{256} has 257 bytes, at most 256 are allowed"),
                ({"ä" * 129: "v"}, "the name of the label ä{129} has 258 bytes, at most 256 are allowed"),
                ({"b": "v" * 4_097}, "the value of the label b has 4097 bytes, at most 4096 are allowed"),
                ({"b": "😀" * 1_025}, "the value of the label b has 4100 bytes, at most 4096 are allowed"),
            ):
                with self.assertRaisesRegex(ValueError, says):
                    recording.inbox.series("m", {**labels})
            self.assertIn(("c" * 256, "v" * 4_096), recording.inbox.series("m", {"c" * 256: "v" * 4_096}))
            self.assertIn(("ä" * 128, "😀" * 1_024), recording.inbox.series("m", {"ä" * 128: "😀" * 1_024}))

    def test_the_bytes_of_waiting_entries_are_counted(self) -> None:
        with Recording() as recording:
            series = recording.inbox.series("m", {})
            for body, size in ((b"abc", 3), ("abc", 3), ("äöü", 6), ("😀", 4), ("\ud800", 1), (b"x" * 1_048_577, 1_048_576)):
                recording.inbox.entry_bytes = 0
                recording.inbox.entry(series, body)
                self.assertEqual(recording.inbox.entry_bytes, size, body[:5])

    def test_a_full_buffer_drops_whole_calls_and_counts_them(self) -> None:
        with Recording(buffer=1_024) as recording:
            with tachograph.span("outer"):
                for _ in range(1_000):
                    f(1)
            with tachograph.span("later"):
                pass
            calls = recording.calls()
            recording.sender.step()
            kept = len(calls)
            self.assertLess(kept, 1_000)
            self.assertEqual(kept + recording.totals.calls_dropped, 2_002)
            self.assertTrue(all(call.end is not None for call in calls))
            with tachograph.span("after"):
                pass
            self.assertIn("|after", recording.tree(), "there must be room again")

    def test_a_full_queue_drops_and_counts(self) -> None:
        with Recording(queue=200_000) as recording:
            for _ in range(100):
                for _ in range(1_000):
                    f()
                recording.sender.step()
            totals = recording.totals
            self.assertGreater(totals.calls_dropped_in_queue, 0)
            self.assertEqual(totals.calls_sent + totals.calls_dropped, 100_000)
            self.assertLess(recording.outbox.bytes, 300_000)
            recording.outbox.discard(totals)
            self.assertEqual((totals.calls_dropped, recording.outbox.bytes), (100_000, 0))

    def test_calls_of_too_many_strands_are_dropped_and_counted(self) -> None:
        with Recording(strands_max=4) as recording:
            strands = [track.Strand(track.operation(1, "strand")) for _ in range(5)]
            with strands[4]:
                f(1)
            for strand in strands:
                strand.end()
            recording.sender.step()
            self.assertEqual(len(recording.calls()), 3)
            self.assertEqual(recording.totals.calls_dropped, 4)

    def test_the_number_of_a_call_has_24_bits_and_the_next_segment_is_recorded(self) -> None:
        for buffer in (1_024, 65_536, 1 << 20):
            with self.subTest(buffer), Recording(buffer=buffer) as recording:
                with tachograph.span("outer"):
                    recording.sender.step()
                    this = track.here()
                    [reader] = recording.sender.readers.values()
                    reader.close_part()
                    this.calls, reader.calls = (1 << 24) - 70_001, (1 << 24) - 70_000
                    recording.sender.step()
                    for at in range(100_000):
                        f()
                        if buffer < 1 << 20 and at % 100 == 0:
                            recording.sender.step()
                    self.assertLess(this.calls, 1 << 24)
                    self.assertGreater(this.dropped, 25_000)
                recording.sender.step()
                before = recording.totals.calls_sent
                f()
                recording.sender.step()
                self.assertEqual(recording.totals.calls_sent, before + 1, "the call of the next segment must be recorded")

    def test_long_segments_come_in_parts(self) -> None:
        with Recording() as recording:
            with tachograph.span("outer") as span:
                for round_ in range(4):
                    for _ in range(EVENTS_MAX // 2):
                        f(1)
                    recording.sender.step()
                    span.attribute(f"round{round_}", round_)
                aged(recording, 2)
                tachograph.attribute("between", 1)
                aged(recording, 2)
            calls = recording.calls()
            self.assertEqual(len(calls), 1 + 4 * EVENTS_MAX)
            self.assertGreater(recording.parts, 4)
            self.assertEqual(calls[0].attributes, {"round0": 0, "round1": 1, "round2": 2, "round3": 3, "between": 1})
            self.assertTrue(all(call.end is not None and call.parent for call in calls[1:]))

    def test_many_long_attributes_come_in_parts_or_are_counted(self) -> None:
        with Recording() as recording:
            with tachograph.span("outer") as span:
                for number in range(400):
                    span.attribute(f"fact{number}", "x" * 4_000)
                    f()
            calls = recording.calls()
            self.assertEqual((len(calls), len(calls[0].attributes)), (401, 400))
            with tachograph.span("outer") as span:
                recording.sender.step()
                for number in range(400):
                    span.attribute(f"fact{number}", "x" * 4_000)
            recording.calls()
            dropped = recording.totals.attributes_dropped
            self.assertTrue(0 < dropped < 400, dropped)
            self.assertLess(max(len(sent.frame) for sent in recording.outbox.waiting), 1 << 20)

    def test_a_deep_recursion_is_recorded_completely(self) -> None:
        self.assertEqual(len(tree(lambda: f(150))), 151)

    def test_open_calls_are_sent_and_continue(self) -> None:
        with Recording() as recording:
            with tachograph.span("open"):
                f()
                aged(recording, 2)
                self.assertEqual(recording.tree(), ["|open~", "  f"])
                f()
            self.assertEqual(recording.tree(), ["|open", "  f", "  f"])

    def test_a_lost_exit_is_added(self) -> None:
        def run() -> None:
            with tachograph.span("outer"):
                own = track.here()
                own.enter(track.operation(1, "lost"))  # simulates an exception between an enter and its `try`
            f()

        self.assertEqual(tree(run), ["|outer", "  lost!", "|f"])

    def test_calls_without_an_exit_end_at_the_last_event_of_their_segment_even_in_an_earlier_part(self) -> None:
        with Recording() as recording:
            own = track.here()
            own.enter(track.operation(1, "outer"))
            for _ in range(3):
                f()
            aged(recording, 2)
            reader = recording.sender.readers[own]
            self.assertEqual(reader.event_count, 0)
            reader.finish()
            calls = recording.calls()
            self.assertEqual([(call.operation, call.is_failed) for call in calls], [("outer", True), *[("f", False)] * 3])
            self.assertEqual(calls[0].end, calls[-1].end)


class Faults(unittest.TestCase):
    def test_an_error_of_the_sender_loses_only_the_segment(self) -> None:
        with Recording() as recording:
            with tachograph.span("before"):
                pass
            recording.sender.step()
            with mock.patch.object(recording.outbox.dictionary, "text", side_effect=MemoryError), tachograph.span("lost"):
                f()
                recording.sender.step()
                f()
            recording.sender.step()
            with tachograph.span("after"):
                f()
            self.assertEqual(recording.tree(), ["|before", "|after", "  f"])
            self.assertEqual((recording.totals.calls_sent, recording.totals.calls_dropped), (3, 3))

    def test_a_sampler_that_fails_does_not_end_the_sender(self) -> None:
        with Recording() as recording:
            recording.sender.sampler = mock.Mock()
            recording.sender.sampler.sample.side_effect = OSError("no /proc")
            recording.sender.start()
            recording.sender.flush(0.1, is_last=True)
            self.assertTrue(recording.sender.done.locked())
            recording.sender.rest()
            recording.sender.sampler = None


class AnyProgram(unittest.TestCase):
    def test_calls_of_random_programs_are_nested(self) -> None:
        for seed in range(200):
            rng = random.Random(seed)
            expected: list[str] = []
            with self.subTest(seed), Recording(buffer=1 << 20) as recording:
                for _ in range(20):
                    quietly(self.act, rng, recording, expected, 0)
                self.assertEqual([line.split(" exception")[0].replace("|", "") for line in recording.tree()], expected)

    def act(self, rng: random.Random, recording: Recording, expected: list[str], depth: int) -> None:
        at = len(expected)
        expected.append("")
        is_failed = rng.random() < 0.2
        kind = rng.choice(["function", "span"])

        def body() -> None:
            for _ in range(rng.randrange(3) if depth < 5 else 0):
                quietly(self.act, rng, recording, expected, depth + 1)
                if rng.random() < 0.2:
                    recording.sender.step()
                if rng.random() < 0.1:
                    aged(recording, 2)
            if is_failed:
                raise ValueError(depth)

        expected[at] = "  " * depth + kind + ("!" if is_failed else "")
        if kind == "function":
            tachograph.record(body, name=kind)()
        else:
            with tachograph.span(kind):
                body()


# Code above a function `f`, the body of `f`, and whether `f` or a function that it calls inspects the frame of the caller of `f`.
LOOKS = [
    ("import warnings", "warnings.warn('x', DeprecationWarning, 2)", True),
    ("import warnings as w", "w.warn('x', DeprecationWarning, 2)", True),
    ("from warnings import warn", "warn('x', DeprecationWarning, 2)", True),
    ("from warnings import warn as say; warn = say", "warn('x', DeprecationWarning, 2)", True),
    ("", "import warnings; warnings.warn('x', DeprecationWarning, 2)", True),
    ("", "from warnings import warn; [warn('x', UserWarning, 3) for _ in 'a']", True),
    ("", "import warnings; return lambda: warnings.warn('x', UserWarning, 3)", True),
    ("import warnings", "warnings.warn('x')", False),
    ("import logging; log = logging.getLogger()", "log.warn('x'); return range(5)", False),
    ("warn = print", "warn('x', 5)", False),
    ("import inspect", "return inspect.stack()[1]", True),
    ("import inspect as i", "return i.stack()[1]", True),
    ("from inspect import stack", "return stack()[1]", True),
    ("", "import inspect; return inspect.stack()[1]", True),
    ("numpy = None", "return numpy.stack([])", False),
    ("import inspect", "return inspect.signature(len)", False),
    # Here `far` inspects the frame of the caller of `f`. `near` inspects the frame of `f`.
    ("import warnings\ndef far(): warnings.warn('x', UserWarning, stacklevel=3)", "far()", True),
    ("import warnings\ndef far(level=3): warnings.warn('x', stacklevel=level)", "far()", True),
    ("import warnings\ndef near(): warnings.warn('x', UserWarning, stacklevel=2)", "near()", False),
    ("import sys\ndef far(): return sys._getframe(2)", "far()", True),
    ("import sys\ndef near(): return sys._getframe(1)", "near()", False),
    ("", "from unittest.mock import patch; return 3", False),
]


class Frames(unittest.TestCase):
    def test_functions_that_inspect_their_caller_are_recognised(self) -> None:
        for above, body, expected in LOOKS:
            module: dict[str, Any] = {}
            exec(f"{above}\ndef f(): {body}", module)
            self.assertEqual(recorder.looks_at_caller(module["f"]), expected, f"{above} | {body}")


if __name__ == "__main__":
    unittest.main()
