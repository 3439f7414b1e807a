"""Work in threads, pools, asyncio tasks and other processes has the right caller."""

from __future__ import annotations

import asyncio
import gc
import threading
import types
import unittest
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import tachograph
from tachograph import track
from tachograph.context import REMOTE, parse_traceparent

from .inside import Recording, tree

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@tachograph.record(name="f")
def f() -> None:
    pass


@tachograph.record(name="wait")
async def wait(seconds: float = 0.0) -> None:
    await asyncio.sleep(seconds)
    f()


@tachograph.record(name="fails")
async def fails() -> None:
    await asyncio.sleep(0)
    raise KeyError("gone")


@tachograph.record(name="both")
async def both() -> None:
    await wait()
    await asyncio.gather(wait(0.002), wait(0.001))
    f()


@tachograph.record(name="ticks")
async def ticks(count: int) -> Any:
    for tick in range(count):
        await asyncio.sleep(0)
        f()
        yield tick


async def unwatched(name: str) -> None:
    with tachograph.span(name):
        await asyncio.sleep(0.001)
        f()


class Traceparent(unittest.TestCase):
    def test_a_valid_header_is_passed_on(self) -> None:
        header = f"00-{TRACE}-{SPAN}-01"
        context = parse_traceparent(header)
        self.assertEqual((context.segment, context.traceparent), (REMOTE, header))
        self.assertEqual(parse_traceparent(f"cc-{TRACE}-{SPAN}-00-what the future brings").traceparent, header)

    def test_invalid_headers_are_no_context(self) -> None:
        for header in [
            None,
            "",
            "00",
            f"ff-{TRACE}-{SPAN}-01",
            f"00-{TRACE}-{SPAN}-01-more",
            f"cc-{TRACE}-{SPAN}-01x",
            f"00-{'0' * 32}-{SPAN}-01",
            f"00-{TRACE}-{'0' * 16}-01",
            f"00-{TRACE}-{SPAN}-0x",
            f"00-{TRACE.upper()}-{SPAN}-01",
            f"00_{TRACE}-{SPAN}-01",
            f"0g-{TRACE}-{SPAN}-01",
            f"00-{TRACE}-{SPAN}-01\n",
        ]:
            self.assertIsNone(parse_traceparent(header), header)

    def test_the_header_names_the_innermost_call(self) -> None:
        with Recording() as recording:
            with tachograph.span("outer"), tachograph.span("inner") as inner:
                told = parse_traceparent(tachograph.traceparent())
                self.assertEqual(inner.traceparent, tachograph.traceparent())
            self.assertEqual(told.span, recording.calls()[1].span)
            self.assertIsNone(tachograph.traceparent())


class Threads(unittest.TestCase):
    def test_the_starting_call_is_the_parent_of_a_thread(self) -> None:
        def run() -> None:
            with tachograph.span("starter"):
                thread = threading.Thread(target=f)
                thread.start()
                thread.join()

        self.assertEqual(tree(run), ["|starter", "  |f"])

    def test_the_submitting_call_is_the_parent_of_a_pool_task(self) -> None:
        def run() -> None:
            with ThreadPoolExecutor(1) as pool:
                with tachograph.span("a"):
                    pool.submit(f).result()
                with tachograph.span("b"):
                    list(pool.map(lambda _: f(), range(2)))
                pool.submit(f).result()

        self.assertEqual(tree(run), ["|a", "  |f", "|b", "  |f", "  |f", "|f"])

    def test_tracks_of_ended_threads_are_released(self) -> None:
        with Recording() as recording:
            for _ in range(20):
                thread = threading.Thread(target=f)
                thread.start()
                thread.join()
            gc.collect()
            self.assertEqual(len(recording.calls()), 20)
            recording.sender.step()
            self.assertLess(len(recording.home.tracks), 3)

    def test_a_call_fails_if_its_thread_ends_inside_it(self) -> None:
        def die() -> None:
            track.here().enter(track.operation(1, "never"))

        with Recording() as recording:
            thread = threading.Thread(target=die)
            thread.start()
            thread.join()
            gc.collect()
            self.assertEqual(recording.tree(), ["|never!"])


class Tasks(unittest.TestCase):
    maxDiff = None

    def check(self, run: Any, *lines: str) -> None:
        self.assertEqual(tree(lambda: asyncio.run(run())), list(lines))

    def test_awaited_calls_nest(self) -> None:
        self.check(wait, "|wait", "  f")

    def test_tasks_that_overlap_are_segments_of_their_own(self) -> None:
        self.check(both, "|both", "  wait", "    f", "  |wait", "    f", "  |wait", "    f", "  f")

    def test_failed_and_cancelled_calls_have_their_exception(self) -> None:
        async def cancelled() -> None:
            task = asyncio.ensure_future(wait(10))
            await asyncio.sleep(0.001)
            task.cancel()
            await asyncio.gather(task, fails(), return_exceptions=True)

        lines = tree(lambda: asyncio.run(cancelled()))
        self.assertEqual(len(lines), 2)
        self.assertRegex(lines[0], r"\|wait! exception=asyncio\.exceptions\.CancelledError")
        self.assertEqual(lines[1], "|fails! exception=KeyError: 'gone'")

    def test_results_exceptions_and_kinds_are_kept(self) -> None:
        @tachograph.record
        async def answer() -> int:
            await asyncio.sleep(0)
            return 42

        def run() -> None:
            self.assertEqual(asyncio.run(answer()), 42)
            self.assertRaises(KeyError, asyncio.run, fails())

        tree(run)
        self.assertTrue(asyncio.iscoroutinefunction(answer))
        self.assertEqual(asyncio.run(answer()), 42)

    def test_each_step_of_an_asynchronous_generator_is_a_call(self) -> None:
        async def consume() -> None:
            async for _ in ticks(2):
                pass

        self.check(consume, "|ticks", "  f", "|ticks", "  f", "|ticks")

    def test_a_span_in_a_task_that_is_not_recorded_is_a_segment(self) -> None:
        async def run() -> None:
            await asyncio.gather(unwatched("a"), unwatched("b"))

        lines = tree(lambda: asyncio.run(run()))
        self.assertEqual(sorted(lines), ["  |f", "  |f", "|a", "|b"])

    def test_the_creating_call_is_the_parent_of_a_task(self) -> None:
        async def run() -> None:
            with tachograph.span("outer"):
                task = asyncio.ensure_future(unwatched("inner"))
                await task
                await asyncio.get_running_loop().run_in_executor(None, f)

        self.check(run, "|outer", "  |inner", "    |f", "  |f")

    def test_a_call_that_runs_the_loop_is_the_parent_of_its_tasks(self) -> None:
        @tachograph.record(name="main")
        def main() -> None:
            asyncio.run(both())
            f()

        inside = ["    wait", "      f", "    |wait", "      f", "    |wait", "      f", "    f"]
        self.assertEqual(tree(main), ["|main", "  |both", *inside, "  f"])

    def test_callbacks_do_not_mix_with_awaited_calls(self) -> None:
        @tachograph.record(name="sleeper")
        async def sleeper() -> None:
            asyncio.get_running_loop().call_later(0.001, f)
            await asyncio.sleep(0.003)

        self.check(sleeper, "|sleeper", "  |f")

    def test_coroutines_stepped_by_hand_are_separate_segments(self) -> None:
        @types.coroutine
        def pause() -> Any:
            yield

        @tachograph.record(name="steps")
        async def steps() -> None:
            await pause()
            f()

        def run() -> None:
            a, b = steps(), steps()
            with tachograph.span("driver"):
                a.send(None)
            b.send(None)
            for one in (a, b):
                self.assertRaises(StopIteration, one.send, None)
            left = steps()
            left.send(None)
            left.close()

        self.assertEqual(tree(run), ["|driver", "  |steps", "    f", "|steps", "  f", "|steps"])

    def test_each_of_many_tasks_is_recorded(self) -> None:
        async def run() -> None:
            await asyncio.gather(*(both() for _ in range(200)))

        lines = tree(lambda: asyncio.run(run()))
        self.assertEqual((len(lines), lines.count("|both")), (200 * 8, 200))


if __name__ == "__main__":
    unittest.main()
