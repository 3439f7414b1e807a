"""The link follows the protocol for all answers of the server. The tests play the server and step the link by hand."""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import time
import unittest
from typing import Any, Optional
from unittest import mock

from tachograph import link, switchboard, wire
from tachograph.dictionary import Dictionary
from tachograph.imports import Imports
from tachograph.log import Log
from tachograph.operations import METHOD, OFF, ON, SHARED, Operations
from tachograph.outbox import Outbox
from tachograph.switchboard import TELL_S, Switchboard
from tachograph.totals import Totals

NAMES = {wire.HELLO: "HELLO", wire.DICT: "DICT", wire.DATA: "DATA", wire.PING: "PING", wire.BYE: "BYE", wire.PROBED: "PROBED"}


def varints(*numbers: int) -> bytes:
    out = bytearray()
    for number in numbers:
        wire.put_varint(out, number)
    return bytes(out)


def welcome(acked: int = 0, heartbeat_ms: int = 5_000) -> bytes:
    return wire.frame(wire.WELCOME, b"\x01" + varints(acked, wire.FRAME_BODY_BYTES_MAX, heartbeat_ms))


def error(code: int) -> bytes:
    return wire.frame(wire.ERROR, varints(code, 4) + b"text")


class Peer:
    """The server's side of a connection, played by a test."""

    def __init__(self, accepted: socket.socket) -> None:
        self.socket = accepted
        self.socket.setblocking(False)
        self.pending = bytearray()
        self.heard: list[str] = []
        self.is_closed = False

    def listen(self) -> None:
        """Adds the received frames to `heard`, each as its name. DATA is followed by its number, PING by its counts, and PROBED
        by its revision and counts."""
        with contextlib.suppress(BlockingIOError):
            data = self.socket.recv(1 << 20)
            self.is_closed = not data
            self.pending += data
        while len(self.pending) >= wire.FRAME_HEADER_BYTES:
            length, type_ = struct.unpack_from("<IB", self.pending)
            end = wire.FRAME_HEADER_BYTES + length
            if len(self.pending) < end:
                return
            body = wire.Body(bytes(self.pending[wire.FRAME_HEADER_BYTES : end]))
            del self.pending[:end]
            numbers = {wire.DATA: 1, wire.PING: 4, wire.PROBED: 4}.get(type_, 0)
            self.heard.append(" ".join([NAMES[type_], *(str(body.varint()) for _ in range(numbers))]))


def probes(revision: int, *rules: tuple[int, str]) -> bytes:
    body = bytearray(varints(revision, len(rules)))
    for state, pattern in rules:
        body.append(state)
        wire.put_blob(body, pattern.encode())
    return wire.frame(wire.PROBES, bytes(body))


class LinkTest(unittest.TestCase):
    def setUp(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.listener.close)
        self.listener.setblocking(False)
        self.totals = Totals()
        self.outbox = Outbox(Dictionary(SHARED), 1 << 20)
        self.said: list[str] = []
        log = Log()
        log.say = self.said.append
        address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.operations = Operations()
        self.switchboard = Switchboard(self.operations, Imports((), (), log), log)
        self.link = link.Link(address, wire.hello(bytes(16), []), self.outbox, self.totals, log, self.switchboard)
        self.addCleanup(self.link.forget)
        self.peer: Optional[Peer] = None
        self.addCleanup(self.drop_peer)

    def again(self) -> None:
        self.doCleanups()
        self.setUp()

    def drop_peer(self) -> None:
        if self.peer is not None:
            self.peer.socket.close()
        self.peer = None

    def put(self, text: str, calls: int = 1) -> None:
        """Adds a frame, and the definition of a text that must be sent before it, unless the text is known."""
        self.outbox.dictionary.text(text)
        self.outbox.begin(0)
        self.outbox.put(wire.TAG_ENTRY, b"", calls)
        self.outbox.close()

    def until(self, is_done: Any) -> None:
        deadline = time.monotonic() + 30
        while not is_done():
            self.assertLess(time.monotonic(), deadline, f"heard {self.peer and self.peer.heard}, said {self.said}")
            self.link.step()
            with contextlib.suppress(BlockingIOError):
                accepted = self.listener.accept()[0]
                self.drop_peer()
                self.peer = Peer(accepted)
            if self.peer is not None:
                self.peer.listen()
            time.sleep(0.001)

    def hears(self, *frames: str) -> None:
        self.until(lambda: self.peer is not None and len(self.peer.heard) >= len(frames))
        self.assertEqual(self.peer.heard, list(frames))
        self.peer.heard.clear()

    def says(self, *frames: bytes) -> None:
        """Sends frames byte by byte. Then the link makes one step."""
        for byte in b"".join(frames):
            self.peer.socket.sendall(bytes((byte,)))
        self.link.step()

    def settle(self, steps: int = 20) -> None:
        for _ in range(steps):
            self.link.step()
            self.peer.listen()
            time.sleep(0.001)

    def opened(self, acked: int = 0) -> None:
        self.hears("HELLO")
        self.says(welcome(acked))
        self.until(lambda: self.link.state is link.State.OPEN)

    def hang_up(self) -> None:
        self.drop_peer()
        self.until(lambda: self.link.state is not link.State.OPEN)


class Conversations(LinkTest):
    def test_frames_wait_for_their_acknowledgement(self) -> None:
        self.put("a")
        self.opened()
        self.hears("PING 0 0 0 " + str(self.outbox.bytes), "DICT", "DATA 1")
        self.put("a")
        self.put("b")
        self.hears("DATA 2", "DICT", "DATA 3")
        self.assertFalse(self.outbox.has_all(1))
        self.says(wire.frame(wire.ACK, varints(2)))
        self.until(lambda: self.outbox.has_all(2))
        self.assertFalse(self.outbox.has_all(3))
        self.link.close()
        self.until(lambda: self.peer.is_closed)
        self.assertEqual(self.peer.heard, ["BYE"])

    def test_after_a_reconnect_the_dictionary_and_unacknowledged_frames_are_sent_again(self) -> None:
        for text in "abc":
            self.put(text)
        self.opened()
        self.hears("PING 0 0 0 " + str(self.outbox.bytes), "DICT", "DATA 1", "DICT", "DATA 2", "DICT", "DATA 3")
        self.hang_up()
        self.put("d")
        self.opened(acked=2)
        self.hears("PING 0 0 0 " + str(self.outbox.bytes), "DICT", "DATA 3", "DICT", "DATA 4")
        self.assertRegex(self.said[0], "^lost the server")
        self.assertRegex(self.said[1], "^connected again to")
        self.assertEqual(self.totals.connects, 2)

    def test_at_most_one_outage_per_minute_is_logged_and_its_end_with_the_losses(self) -> None:
        self.opened()
        lost = self.link.outage
        name = lost.server
        gone = f"lost the server {name}: why; the program goes on, the agent keeps trying"
        again = f"connected again to {name};"
        past = f"connected to {name} again; the connection failed once since the last message about it;"
        for is_early, during, after, expected in [
            (False, (0, 0, 0), (0, 0, 0), [gone, f"{again} nothing was dropped in the meantime"]),
            (True, (5, 1, 0), (100, 100, 100), [f"{past} 5 calls, 1 samples and 0 entries were dropped in the meantime"]),
            (False, (2, 0, 3), (0, 0, 0), [gone, f"{again} 2 calls, 0 samples and 3 entries were dropped in the meantime"]),
            (False, (0, 0, 0), (0, 0, 0), [gone, f"{again} nothing was dropped in the meantime"]),
        ]:
            if not is_early and lost.told_at is not None:
                lost.told_at -= 60
            self.said.clear()
            self.hang_up()
            self.drop(*during)
            self.opened()
            if is_early:
                self.assertEqual(self.said, [])
                lost.told_at -= 60
                self.until(lambda: self.said)
            # The kernel determines whether the socket reports reset or closed.
            said = [re.sub(": [^;]+;", ": why;", line) for line in self.said if "so far" not in line]
            self.assertEqual([re.sub(" after [0-9]+ s;", ";", line) for line in said], expected)
            self.drop(*after)
        self.said.clear()
        self.hang_up()
        self.opened()
        self.link.close()
        said = [line for line in self.said if "so far" not in line]
        self.assertEqual(said, [f"{past} nothing was dropped in the meantime"], "must be logged at the end at the latest")

    def test_dropped_calls_are_logged_at_most_once_a_minute_and_at_the_end(self) -> None:
        outage = self.link.outage
        self.drop(3, 0, 0)
        for now in (0, 1, 59):
            outage.look(now)
        self.drop(3, 0, 0)
        outage.look(59)
        outage.look(60)
        outage.failed(61, True, "gone")
        self.drop(3, 0, 0)
        outage.look(140)
        outage.over(141)  # the line about the end of the outage counts these calls
        outage.look(142)
        self.drop(3, 0, 0)
        self.link.close()
        self.link.close()
        said = [line for line in self.said if "so far" in line]
        start = "calls were dropped so far, usually because a buffer was full: record fewer functions (include, exclude), or "
        self.assertEqual(said, [f"{calls} {start}raise buffer, strands_max or queue" for calls in (3, 6, 12)])

    def drop(self, calls: int, samples: int, entries: int) -> None:
        self.totals.calls_dropped_in_tracks += calls
        self.totals.samples_dropped += samples
        self.totals.entries_dropped += entries

    def test_an_outage_that_comes_too_soon_is_logged_when_the_minute_is_over(self) -> None:
        outage, said = self.link.outage, self.said
        steps = [(0, "fails", 1), (1, "opens", 2), (2, "fails", 2), (59, "fails", 2), (60, "fails", 3), (61, "opens", 4)]
        for now, happens, count in steps:
            outage.over(now) if happens == "opens" else outage.failed(now, now == 2, f"at {now}")
            self.assertEqual(len(said), count, f"{now} {said}")
        self.assertRegex(said[0], "^cannot reach the server .*: at 0;")
        self.assertRegex(said[1], "^connected to .* after 1 s; nothing was dropped in the meantime$")
        self.assertRegex(said[2], "^lost the server .*: at 60;")
        self.assertRegex(said[3], "^connected again to .* after 59 s; nothing was dropped in the meantime$")

    def test_ended_outages_are_logged_together_when_the_minute_is_over(self) -> None:
        away = "the connection failed {} since the last message about it; {} dropped in the meantime"
        for steps, expected in [
            (
                "0 fails,1 opens,30 fails,30 1 0 2,31 opens,32 7 7 7,40 fails,41 1 1 0,42 opens,59 looks,60 looks,61 looks,"
                "119 fails,119 opens,119 looks,120 looks,200 looks,200 ends",
                [
                    away.format("2 times", "2 calls, 1 samples and 2 entries were"),
                    away.format("once", "nothing was"),  # at 120 s, a minute after the line above
                ],
            ),
            ("0 fails,1 opens,58 fails,59 3 0 0,61 opens", [away.format("once", "3 calls, 0 samples and 0 entries were")]),
            ("0 fails,1 opens,2 fails,3 opens,4 ends,5 ends", [away.format("once", "nothing was")]),
            # Ended outages are not logged during another outage.
            ("0 fails,1 opens,2 fails,3 0 0 4,4 opens,59 fails,60 looks,60 ends,61 fails,63 opens,122 looks", []),
        ]:
            self.again()
            outage = self.link.outage
            for step in steps.split(","):
                second, what = step.split(" ", 1)
                now = float(second)
                if what == "fails":
                    outage.failed(now, True, "gone")
                elif what in ("opens", "looks", "ends"):
                    {"opens": outage.over, "looks": outage.look, "ends": outage.tell_past}[what](now)
                else:
                    self.drop(*map(int, what.split()))
            start = f"connected to {outage.server} again; "
            self.assertEqual([line[len(start) :] for line in self.said if line.startswith(start)], expected, steps)

    def test_refused_records_count_as_dropped_in_the_outage(self) -> None:
        self.put("a", calls=3)
        self.opened()
        self.says(error(4))
        self.until(lambda: self.link.state is link.State.RESTING)
        self.drop_peer()
        self.link.due = 0.0
        self.opened()
        self.assertRegex(self.said[-1], "^connected again to .*; 3 calls, 0 samples and 0 entries were dropped in the meantime$")

    def test_data_is_not_sent_until_the_wait_is_over(self) -> None:
        self.opened()
        self.hears("PING 0 0 0 0")
        before = time.monotonic()
        self.says(wire.frame(wire.WAIT, varints(60_000)))
        self.until(lambda: self.link.hold_until)
        self.assertTrue(before + 60 <= self.link.hold_until <= time.monotonic() + 60)
        self.put("a")
        self.settle()
        self.assertEqual(self.peer.heard, [])
        self.link.hold_until = before
        self.hears("DICT", "DATA 1")

    def test_after_wait_the_server_may_be_silent_even_if_another_frame_follows(self) -> None:
        self.opened()
        self.says(wire.frame(wire.WAIT, varints(60_000)), wire.frame(wire.ACK, varints(0)))
        self.until(lambda: self.link.hold_until)
        self.settle()
        for silence_s, state in ((14, link.State.OPEN), (16, link.State.RESTING)):
            with mock.patch.object(link, "monotonic", return_value=self.link.hold_until + silence_s):
                self.link.step()
            self.assertIs(self.link.state, state)

    def test_a_refused_record_is_counted_and_logged(self) -> None:
        self.opened()
        self.says(wire.frame(wire.REJECT, varints(1, 2, 4) + b"text"), wire.frame(99, b"of a later version"))
        self.until(lambda: self.totals.records_rejected)
        self.assertIn("the server refused a record (frame 1, record 2): text", self.said)
        self.assertIs(self.link.state, link.State.OPEN)

    def test_drops_are_reported_soon(self) -> None:
        self.opened()
        self.hears("PING 0 0 0 0")
        self.totals.calls_dropped_in_tracks = 5
        self.totals.samples_dropped = 1
        self.link.ping_soon()
        self.hears("PING 5 1 0 0")

    def test_rules_are_taken_and_answered(self) -> None:
        ids = [self.operations.id(METHOD, name) for name in ("shop.post", "shop.find", "main")]
        self.opened()
        self.hears("PING 0 0 0 0")
        self.says(probes(7, (0, "shop.*"), (1, "a b")))
        self.hears("PROBED 7 1 0 2")
        self.assertEqual([self.operations.states[id_] for id_ in ids], [OFF, OFF, ON])
        self.assertEqual(self.said, ["a rule of the server is ignored: ' ' cannot be part of a pattern: a b"])
        self.operations.id(METHOD, "another")
        self.switchboard.told_at += 3_600  # so the next report would be early, however long this takes
        self.settle()
        self.assertEqual(self.peer.heard, [], "a changed result must be reported later")
        self.switchboard.told_at -= 3_600 + TELL_S[1]
        self.hears("PROBED 7 2 0 2")
        self.switchboard.told_at -= TELL_S[1]
        self.settle()
        self.assertEqual(self.peer.heard, [], "a report although the result has not changed")
        self.hang_up()
        self.operations.id(METHOD, "one more")
        self.opened()
        self.switchboard.told_at -= TELL_S[1]
        self.hears("PING 0 0 0 0")
        self.settle()
        self.assertEqual(self.peer.heard, [], "a report although PROBES did not arrive on this connection")
        self.assertEqual([self.operations.states[id_] for id_ in ids], [OFF, OFF, ON], "the rules must stay in force")
        self.says(probes(1))
        self.hears("PROBED 1 5 0 0")
        self.assertEqual([self.operations.states[id_] for id_ in ids], [ON, ON, ON])

    def test_rules_are_applied_after_the_connection_is_lost(self) -> None:
        ids = [self.operations.id(METHOD, f"shop.f{at}") for at in range(500)]
        self.opened()
        with mock.patch.object(switchboard, "SLICE_S", 0):
            self.says(probes(1, (0, "*")))
            self.until(lambda: self.link.is_deciding)
            self.hang_up()
            self.assertTrue(self.link.is_deciding)
            self.until(lambda: not self.link.is_deciding)
        self.assertEqual({self.operations.states[id_] for id_ in ids}, {OFF})

    def test_rules_are_answered_while_the_server_is_full(self) -> None:
        self.opened()
        self.hears("PING 0 0 0 0")
        self.says(wire.frame(wire.WAIT, varints(60_000)))
        self.until(lambda: self.link.hold_until)
        self.put("a")
        self.says(probes(1, (0, "*")))
        self.hears("PROBED 1 0 0 0")

    def test_an_error_of_the_server_is_logged_and_followed_by_a_pause(self) -> None:
        for code, is_kept, pause_s in [(1, True, 1), (7, True, 1), (8, True, 1), (9, True, 1), (4, False, 1), (5, False, 1)]:
            with self.subTest(code):
                self.check_error(code, is_kept, pause_s)
        for code in (2, 6):
            with self.subTest(code):
                self.check_error(code, True, 60)

    def check_error(self, code: int, is_kept: bool, pause_s: float) -> None:
        self.again()
        self.put("a", calls=3)
        self.opened()
        before = time.monotonic()
        self.says(error(code))
        self.until(lambda: self.link.state is link.State.RESTING)
        self.assertIn(f"the server refuses: text (error {code})", self.said[-1])
        self.assertEqual((len(self.outbox.waiting), self.totals.calls_dropped), (1, 0) if is_kept else (0, 3))
        self.assertGreaterEqual(self.link.due, before + pause_s)
        self.assertLessEqual(self.link.due, time.monotonic() + max(pause_s, 5))

    def test_a_server_that_violates_the_protocol_is_logged_with_the_reason(self) -> None:
        for answer, words in [
            (b"HTTP/1.1 400 Bad Request\r\n\r\n", "not the agent port of a tacho server: it answers with HTTP; agents connect to"),
            (b"SSH-2.0-OpenSSH_9.9\r\n", "not the agent port of a tacho server: a frame claims"),
            (wire.frame(wire.ACK, varints(1)), "frame type 66 came before WELCOME"),
            (welcome() + wire.frame(wire.PROBES, varints(1, 1_001)), "PROBES claims 1001 rules, at most 1000 are allowed"),
            (welcome()[:-1] + b"\x00", "checksum mismatch"),
        ]:
            with self.subTest(words):
                self.again()
                self.hears("HELLO")
                self.says(answer)
                self.until(lambda: self.said)
                self.assertIn(words, self.said[0])

    def test_a_silent_server_is_logged(self) -> None:
        self.hears("HELLO")
        self.says(welcome(heartbeat_ms=100))
        self.until(lambda: self.said)
        self.assertIn("the server has not answered for 0.3 s", self.said[0])

    def test_a_server_that_does_not_greet_is_logged(self) -> None:
        with mock.patch.object(link, "_GREETING_S", 0.05):
            self.until(lambda: self.said)
        self.assertIn("no answer within 0.05 s", self.said[0])

    def test_pauses_between_attempts_grow(self) -> None:
        self.listener.close()
        with mock.patch.object(link, "monotonic") as clock:
            waits = []
            self.link.due = 0.0
            clock.return_value = 0.0
            for _ in range(10):
                while self.link.state is not link.State.RESTING or self.link.due <= clock.return_value:
                    self.link.step()
                waits.append(self.link.due - clock.return_value)
                clock.return_value = self.link.due
        for wait, step in zip(waits, (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 5, 5)):
            self.assertTrue(step / 2 <= wait <= step, waits)
        self.assertEqual(len(self.said), 1, "an outage must be logged once")


class Endings(LinkTest):
    """A program that ends may wait for a server that was reached. It does not wait for a server that is absent or that would
    also refuse the next attempt."""

    def setUp(self) -> None:
        super().setUp()
        self.put("a")

    def ends(self) -> None:
        """The program ends, and the server answers the next attempt."""
        self.link.is_ending = True
        self.drop_peer()
        self.assertTrue(self.link.may_open(time.monotonic() + 60))
        self.opened()
        self.hears("PING 0 0 0 " + str(self.outbox.bytes), "DICT", "DATA 1")

    def test_after_a_connection_that_was_closed(self) -> None:
        self.hears("HELLO")
        self.drop_peer()
        self.until(lambda: self.said)
        self.ends()

    def test_after_a_connection_without_an_answer(self) -> None:
        with mock.patch.object(link, "_GREETING_S", 0.05):
            self.until(lambda: self.said)
        self.ends()

    def test_after_an_open_connection_that_was_lost(self) -> None:
        self.opened()
        self.hang_up()
        self.ends()

    def test_the_pause_of_earlier_failures_does_not_apply(self) -> None:
        self.link.backoff_s = 3_600.0
        self.hears("HELLO")
        self.drop_peer()
        self.until(lambda: self.said)
        for _ in range(20):
            self.link.step()
        self.assertIs(self.link.state, link.State.RESTING)
        self.ends()

    def test_no_wait_for_an_absent_server(self) -> None:
        self.assertTrue(self.link.may_open(time.monotonic() + 60), "the program must wait for the first attempt")
        self.listener.close()
        while not self.said:
            self.link.step()
        self.assertFalse(self.link.may_open(time.monotonic() + 60))

    def test_a_server_that_refuses_is_asked_again_after_its_pause_or_not_at_all(self) -> None:
        for code, is_hopeful in [(1, True), (7, True), (8, True), (9, True), (2, False), (4, False), (5, False), (12, False)]:
            with self.subTest(code):
                self.again()
                self.link.is_ending = True
                self.hears("HELLO")
                self.says(error(code))
                self.until(lambda: self.said)
                failed_at = time.monotonic()
                self.assertIs(self.link.may_open(failed_at + 3_600), is_hopeful)
                self.assertFalse(self.link.may_open(failed_at), "would connect before the pause is over")
                self.assertGreaterEqual(self.link.due_at_end, failed_at)

    def test_another_kind_of_server_is_not_asked_again(self) -> None:
        self.hears("HELLO")
        self.says(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        self.until(lambda: self.said)
        self.assertFalse(self.link.may_open(time.monotonic() + 60))

    def test_time_in_which_the_sender_does_not_run_is_not_the_servers_silence(self) -> None:
        self.hears("HELLO")
        with mock.patch.object(link, "monotonic") as clock:
            clock.return_value = time.monotonic()
            for _ in range(40):  # 40 s of the clock, of which 4 s count (`_STEP_S_MAX`)
                clock.return_value += 1.0
                self.link.step()
            self.assertEqual(self.said, [])
            for _ in range(11):
                clock.return_value += 1.0
                self.link.step()
        self.assertIn("no answer within 5 s", self.said[0])


if __name__ == "__main__":
    unittest.main()
