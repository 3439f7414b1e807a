"""Tests that bodies match the protocols."""

import pickle
import struct
from unittest import TestCase

from ..encode.carbon_pickle import carbon_pickle
from ..encode.lines import lines
from ..encode.remote_write import remote_write, varint
from .small import START_MS, small


class Encode(TestCase):
    def test_lines(self):
        (body,) = lines(small())
        rows = body.decode().splitlines()
        self.assertEqual(14, len(rows))
        self.assertEqual("cpu,hostname=h0,rack=1\\ a user=1i,idle=0.5 1451606400000000000", rows[0])
        self.assertEqual("cpu,hostname=h1,rack=1\\ a user=1i,idle=4.0 1451606460000000000", rows[-1])

    def test_remote_write(self):
        (body,) = remote_write(small())
        payload = _literal(body)
        series = [entry for number, entry in _fields(payload) if number == 1]
        self.assertEqual(4, len(series))
        labels = [
            dict((bytes(text) for _, text in _fields(label)) for number, label in _fields(entry) if number == 1)
            for entry in series
        ]
        self.assertEqual({b"__name__": b"cpu_user", b"hostname": b"h0", b"rack": b"1 a"}, labels[0])
        samples = [dict(_fields(sample)) for number, sample in _fields(series[1]) if number == 2]
        self.assertEqual([0.5, 0.5, 1.5, 1.5, 2.5, 2.5, 3.5], [sample[1] for sample in samples])
        self.assertEqual(START_MS + 60_000, samples[-1][2])

    def test_carbon_pickle(self):
        (body,) = carbon_pickle(small(), shift_s=5)
        (length,) = struct.unpack_from("!I", body)
        points = pickle.loads(body[4:])
        self.assertEqual(len(body) - 4, length)
        self.assertEqual(("cpu.h0.user", (START_MS // 1_000 + 5, 1)), points[0])
        self.assertEqual(28, len(points))

    def test_varint(self):
        for number, expected in ((0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**63 - 1, "ffffffffffffffff7f")):
            self.assertEqual(expected, varint(number).hex())


def _literal(body: bytes) -> bytes:
    """The content of a snappy block that consists of one literal."""
    length, at = _varint(body, 0)
    assert body[at] == 0xFC and struct.unpack_from("<I", body, at + 1)[0] == length - 1 == len(body) - at - 6
    return body[at + 5 :]


def _fields(message: bytes):
    """(number, value) for each field of a protobuf message. Values are bytes, doubles and varints."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag & 7 == 2:
            length, at = _varint(message, at)
            yield tag >> 3, message[at : at + length]
            at += length
        elif tag & 7 == 1:
            yield tag >> 3, struct.unpack_from("<d", message, at)[0]
            at += 8
        else:
            number, at = _varint(message, at)
            yield tag >> 3, number


def _varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while data[at] & 0x80:
        number |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return number | data[at] << shift, at + 1
