"""Tests that the bodies of each protocol carry all samples of a round, and that the same seed makes the same fleet."""

import struct
from unittest import TestCase

from ..bodies import LINES_A_BODY, SAMPLES_A_REQUEST, SHARDS, Lines, Remote
from ..fleet import METRIC, PATHS, Fleet

TIME_MS = 1_700_000_000_000
STEP_MS = 15_000


def samples(fleet: Fleet) -> dict[tuple[str, str, str], float]:
    """The values of a round by pod, path and zone."""
    return {
        (fleet.name(pod), path, fleet.zone(pod)): float(fleet.counts[pod * len(PATHS) + nth])
        for pod in range(fleet.pods)
        for nth, path in enumerate(PATHS)
    }


def of_lines(body: bytes) -> dict[tuple[str, str, str], tuple[float, int]]:
    found = {}
    for line in body.decode().splitlines():
        tags, value, time = line.split()
        pairs = dict(pair.split("=") for pair in tags.split(",")[1:])
        found[pairs["pod"], pairs["path"], pairs["zone"]] = (float(value.removeprefix("n=")), int(time))
    return found


def of_request(body: bytes) -> dict[tuple[str, str, str], tuple[float, int]]:
    """Decodes a snappy literal, then the protobuf message."""
    length, at = varint(body, 0)
    plain = body[at + 5 :]
    assert len(plain) == length
    found = {}
    for _, series in fields(plain):
        labels, sample = {}, {}
        for number, message in fields(series):
            parts = dict(fields(message))
            if number == 1:
                labels[parts[1].decode()] = parts[2].decode()
            else:
                sample = parts
        assert list(labels) == sorted(labels) and labels["__name__"] == METRIC
        found[labels["pod"], labels["path"], labels["zone"]] = (struct.unpack("<d", sample[1])[0], sample[2])
    return found


def fields(message: bytes) -> list[tuple[int, bytes | int]]:
    found, at = [], 0
    while at < len(message):
        key, at = varint(message, at)
        if key & 7 == 0:
            value, at = varint(message, at)
        else:
            length, at = varint(message, at) if key & 7 == 2 else (8, at)
            value, at = message[at : at + length], at + length
        found.append((key >> 3, value))
    return found


def varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (message[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if message[at - 1] < 0x80:
            return number, at


class Bodies(TestCase):
    def test_lines_carry_each_sample_once_at_one_time(self):
        fleet = Fleet(LINES_A_BODY + 60, seed=1)
        protocol = Lines(fleet)
        for time_ms in (TIME_MS, TIME_MS + STEP_MS):
            fleet.advance()
            lists = protocol.round(time_ms)
            self.assertEqual([LINES_A_BODY, 60], [body.count(b"\n") for bodies in lists for body in bodies])
            found = [of_lines(body) for bodies in lists for body in bodies]
            expected = {key: (value, time_ms * 1_000_000) for key, value in samples(fleet).items()}
            self.assertEqual(expected, found[0] | found[1])

    def test_requests_of_remote_write_mix_pods_and_keep_the_shard_of_a_series(self):
        fleet = Fleet(10_000, seed=1)
        protocol = Remote(fleet, STEP_MS, seed=2)
        shard_of: dict[tuple[str, str, str], int] = {}
        for time_ms in (TIME_MS, TIME_MS + STEP_MS):
            fleet.advance()
            pod_of = {fleet.name(pod): pod for pod in range(fleet.pods)}
            shards = [[of_request(body) for body in bodies] for bodies in protocol.round(time_ms)]
            self.assertEqual([[2_000, 500]] * SHARDS, [[len(request) for request in requests] for requests in shards])
            self.assertGreater(len({pod for pod, _, _ in shards[0][0]}), SAMPLES_A_REQUEST // len(PATHS))
            found = {}
            for number, requests in enumerate(shards):
                times = [time for request in requests for _, time in request.values()]
                self.assertEqual(sorted(times), times)
                for key in (key for request in requests for key in request):
                    self.assertEqual(number, shard_of.setdefault(key, number))
                found |= {key: sample for request in requests for key, sample in request.items()}
            self.assertEqual(samples(fleet), {key: value for key, (value, _) in found.items()})
            for (pod, _, _), (_, time) in found.items():
                self.assertEqual(protocol.time_ms(pod_of[pod], time_ms), time)
                self.assertTrue(time_ms <= time < time_ms + STEP_MS)

    def test_a_small_write_is_one_sample(self):
        self.assertEqual(1, Lines.small(TIME_MS).count(b"\n"))
        length, at = varint(Remote.small(TIME_MS), 0)
        self.assertEqual(length, len(Remote.small(TIME_MS)) - at - 5)
        self.assertEqual([1], [number for number, _ in fields(Remote.small(TIME_MS)[at + 5 :])])


class Fleets(TestCase):
    def test_the_same_seed_gives_the_same_rounds(self):
        one, other = Fleet(1_000, seed=7), Fleet(1_000, seed=7)
        for _ in range(3):
            one.advance()
            other.advance()
        self.assertEqual(samples(one), samples(other))
        self.assertNotEqual(samples(one), samples(Fleet(1_000, seed=8)))
        self.assertEqual(1_000, len(samples(one)))

    def test_counters_never_fall_and_about_half_of_them_do_not_change_in_a_round(self):
        fleet = Fleet(10_000, seed=7)
        fleet.advance()
        before = list(fleet.counts)
        fleet.advance()
        steps = [after - value for value, after in zip(before, fleet.counts)]
        self.assertTrue(all(step >= 0 for step in steps))
        self.assertTrue(4_000 < steps.count(0) < 6_000)

    def test_replaced_pods_have_new_names_and_begin_at_zero(self):
        fleet = Fleet(2_000, seed=7, churn=0.1)
        protocol = Lines(fleet)
        fleet.advance()
        protocol.round(TIME_MS)
        before = set(samples(fleet))
        for nth in range(1, 4):
            fleet.advance()
            self.assertEqual(10, len(fleet.replaced))
            fresh = set(samples(fleet)) - before
            self.assertEqual(10 * len(PATHS) * nth, len(fresh))
            body = of_lines(protocol.round(TIME_MS)[0][0])
            self.assertEqual(set(samples(fleet)), set(body))
            self.assertTrue(all(body[key][0] < 50 for pod in fleet.replaced for key in body if key[0] == fleet.name(pod)))
        self.assertEqual(2_000 + 40 * 20, fleet.series_ever)
