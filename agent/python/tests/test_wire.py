"""Encoding and decoding of the protocol. The vectors are shared with the other agents and the Rust code."""

from __future__ import annotations

import random
import struct
import unittest

from tachograph import crc32c, wire
from tachograph.context import Session

from .vectors import Case, cases, one, several


def encode(case: Case) -> bytes:
    """The whole frame of a client, built from a case's keys."""
    name = one(case, "frame")
    if name == "HELLO":
        pairs = [tuple(pair.split("=", 1)) for pair in several(case, "pair")]
        session = bytes.fromhex(one(case, "session"))
        secret = next((bytes.fromhex(secret) for secret in several(case, "secret")), None)
        if secret is not None:
            assert Session.of(secret).id == session
        versions = int(one(case, "version_min")), int(one(case, "version_max"))
        return wire.frame(wire.HELLO, wire.hello(session, pairs, *versions, secret, "".join(several(case, "token")).encode()))
    if name == "PING":
        keys = ("executions_dropped", "samples_dropped", "entries_dropped", "bytes_buffered")
        return wire.frame(wire.PING, wire.ping(*(int(one(case, key)) for key in keys)))
    if name == "BYE":
        return wire.frame(wire.BYE, b"")
    if name == "DICT":
        return wire.frame(wire.DICT, definitions(case))
    if name == "PROBED":
        return wire.frame(wire.PROBED, wire.probed(report(case)))
    out = wire.data_head(int(one(case, "seq")), int(one(case, "base")))
    for record in records(case):
        tag, content = RECORDS[one(record, "record")](record, int(one(case, "base")))
        wire.put_record(out, tag, content)
    return wire.frame(wire.DATA, bytes(out))


def report(case: Case) -> wire.Report:
    rules = [rule.split(" ", 2)[1:] for rule in several(case, "rule")]
    since = [int(at) for at in several(case, "since")]
    moved = list(zip(several(case, "moved"), several(case, "reason"), since))
    counts = (int(one(case, key)) for key in ("revision", "on", "aggregated", "off"))
    return wire.Report(*counts, [(int(matched), "".join(fault)) for matched, *fault in rules], moved)


def definitions(case: Case) -> bytes:
    out = bytearray()
    series: list[list[str]] = []
    for key, value in case:
        if key == "label":
            series[-1].append(value)
        if key != "define":
            continue
        sort, id_, *rest = value.split(" ", 2)
        text = rest[0] if rest else ""
        if sort == "text":
            wire.put_text(out, int(id_), text.encode())
        elif sort == "operation":
            kind, name = text.split(" ", 1)
            wire.put_operation(out, int(id_), int(kind), name.encode())
        else:
            series.append([id_])
    for id_, *labels in series:
        wire.put_series(out, int(id_), [tuple(part.encode() for part in label.split("=", 1)) for label in labels])
    return bytes(out)


def records(case: Case) -> list[Case]:
    found: list[Case] = []
    for key, value in case:
        if key == "record":
            found.append([])
        if found:
            found[-1].append((key, value))
    return found


def samples(record: Case, base: int) -> tuple[int, bytes]:
    value_type, time, points = int(one(record, "type")), base, []
    for dt, value in (sample.split(" ") for sample in several(record, "sample")):
        time += int(dt)
        points.append((time, struct.unpack(">d", bytes.fromhex(value))[0] if value_type == wire.VALUE_F64 else int(value)))
    return wire.TAG_SAMPLES, wire.samples(value_type, int(one(record, "series")), base, points)


def entry(record: Case, _base: int) -> tuple[int, bytes]:
    is_text = bool(several(record, "text"))
    content = one(record, "text").encode() if is_text else bytes.fromhex(one(record, "bytes"))
    body = wire.BODY_TEXT if is_text else wire.BODY_BYTES
    return wire.TAG_ENTRY, wire.entry(int(one(record, "series")), int(one(record, "dt")), body, content)


def segment(record: Case, _base: int) -> tuple[int, bytes]:
    def number(key: str) -> int:
        return int(one(record, key)) if several(record, key) else 0

    events, attributes = bytearray(), bytearray()
    for kind, dt, *operation in (event.split(" ") for event in several(record, "event")):
        if kind == "enter":
            wire.put_enter(events, int(dt), int(operation[0]))
        else:
            (wire.put_exit if kind == "exit" else wire.put_failed)(events, int(dt))
    for call, key, form, value in (attribute.split(" ", 3) for attribute in several(record, "attribute")):
        put, read = ATTRIBUTES[form]
        put(attributes, int(call), int(key), read(value))
    head = wire.Head(
        segment=number("number"),
        thread=number("thread"),
        trace=bytes.fromhex(one(record, "trace")) if several(record, "trace") else None,
        trace_of=number("trace_of") if several(record, "trace_of") else None,
        parent=bytes.fromhex(one(record, "parent")) if several(record, "parent") else None,
        part=number("part"),
        first_call=number("first_call"),
        carried=tuple(tuple(int(part) for part in call.split(" ")) for call in several(record, "carried")),
    )
    counts = len(several(record, "event")), len(several(record, "attribute"))
    return wire.TAG_SEGMENT, wire.segment(head, number("start"), bytes(events), counts[0], bytes(attributes), counts[1])


RECORDS = {"samples": samples, "entry": entry, "segment": segment}
ATTRIBUTES = {
    "text": (wire.put_attribute_text, int),
    "string": (wire.put_attribute_string, str.encode),
    "uuid": (wire.put_attribute_uuid, lambda value: bytes.fromhex(value.replace("-", ""))),
    "integer": (wire.put_attribute_integer, int),
}


def decode(name: str, data: bytes) -> Case:
    reader = wire.FrameReader()
    for at in range(len(data)):
        assert reader.next() is None, f"a frame was complete after {at} of {len(data)} bytes"
        reader.push(data[at : at + 1])
    type_, body = reader.next()
    if name == "PROBES":
        assert type_ == wire.PROBES
        revision, rules = wire.probes(body)
        return [("revision", str(revision)), *(("rule", f"{state} {pattern}") for state, pattern in rules)]
    fields = {
        "WELCOME": (wire.WELCOME, [("version", body.u8), *((key, body.varint) for key in WELCOME_VARINTS)]),
        "ACK": (wire.ACK, [("seq", body.varint)]),
        "REJECT": (wire.REJECT, [("seq", body.varint), ("record", body.varint), ("reason", body.string)]),
        "WAIT": (wire.WAIT, [("ms", body.varint)]),
        "PONG": (wire.PONG, [("time", body.i64)]),
        "ERROR": (wire.ERROR, [("code", body.varint), ("message", body.string)]),
    }
    expected_type, readers = fields[name]
    assert type_ == expected_type, f"{name} is type {type_}"
    return [(key, str(read())) for key, read in readers]


WELCOME_VARINTS = ("acked", "frame_body_bytes_max", "heartbeat_ms")
CLIENT_FRAMES = {"HELLO", "DICT", "DATA", "PING", "BYE", "PROBED"}


class Vectors(unittest.TestCase):
    def test_frames_of_an_agent_are_encoded_and_frames_of_a_server_decoded(self) -> None:
        seen = 0
        for case in cases("control.vec") + cases("token.vec") + cases("data.vec") + cases("probes.vec"):
            with self.subTest(case[0][1]):
                self.check(case)
                seen += 1
        self.assertGreater(seen, 33, "too few vectors in testdata/wire")

    def check(self, case: Case) -> None:
        name, expected = one(case, "frame"), one(case, "hex")
        if name in CLIENT_FRAMES:
            self.assertEqual(encode(case).hex(), expected)
        else:
            keys = [pair for pair in case if pair[0] not in ("case", "frame", "hex")]
            self.assertEqual(decode(name, bytes.fromhex(expected)), keys)
        for record in records(case):
            self.check_ids(record, case)

    def check_ids(self, record: Case, case: Case) -> None:
        if one(record, "record") != "segment":
            return
        session = Session(bytes.fromhex(one(case, "session")))
        number = int(one(record, "number"))
        for call, span in (pair.split(" ") for pair in several(case, "span")):
            self.assertEqual(f"{session.span(number, int(call)):016x}", span)
        if not several(record, "trace"):
            root = int(one(record, "trace_of")) if several(record, "trace_of") else number
            self.assertEqual(f"{session.high:016x}{session.trace_low(root):016x}", one(case, "trace_id"))


class Primitives(unittest.TestCase):
    def test_the_checksum_is_crc32c(self) -> None:
        self.assertEqual(crc32c.crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(crc32c.crc32c(bytes(32)), 0x8A9136AA)
        rng = random.Random(1)
        for length in [*range(520), 1000, 1023, 1024, 1025, 4099, 65_536, 70_001]:
            data = rng.randbytes(length)
            crc = crc32c.MASK
            for byte in data:
                crc = crc >> 8 ^ crc32c._TABLE[(crc ^ byte) & 255]
            self.assertEqual(crc32c.crc32c(data), crc ^ crc32c.MASK, f"{length} bytes")

    def test_cut_texts_end_in_an_ellipsis(self) -> None:
        for text, bytes_max, expected in [
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abc…"),
            ("aböög", 6, "ab…"),
            ("漢字漢", 8, "漢…"),
            ("\ud83d", 8, "?"),
        ]:
            self.assertEqual(wire.cut(text, bytes_max).decode(), expected)

    def test_damaged_frames_are_reported(self) -> None:
        ack = bytes.fromhex("0100000042000000f66f62dc07")
        for data, words in [
            (ack[:-1] + b"\x08", "checksum mismatch"),
            (b"HTTP/1.1 400 Bad Request\r\n", "it answers with HTTP; agents connect to a different port"),
            (b"SSH-2.0-OpenSSH_9.9\r\n", "a frame claims"),
            (wire.frame(wire.ACK, b""), "ends inside"),
            (wire.frame(wire.ACK, b"\xff" * 12), "more than 10 bytes"),
            (wire.frame(wire.ACK, b"\xff" * 9 + b"\x7f"), "more than 64 bits"),
        ]:
            with self.subTest(words), self.assertRaisesRegex(wire.DamagedError, words):
                reader = wire.FrameReader()
                reader.push(data)
                _, body = reader.next()
                body.varint()


if __name__ == "__main__":
    unittest.main()
