"""The token authenticates the program at the server. The log reports an invalid or refused token without its text."""

from __future__ import annotations

import os
import re
import ssl
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from tachograph import config, link, messages, wire
from tachograph.secret import Secret, Token, TokenError, is_loopback

from .certificates import Authority
from .server import PATIENCE_S, Server, ServerTest, until
from .test_link import LinkTest, varints

TOKEN = "tacho_" + "5eC-.~!" * 9
FORM = "a token has 1 to 256 visible ASCII characters, no blanks and no line breaks"


def refusal(code: int, text: str = "no such token") -> bytes:
    return wire.frame(wire.ERROR, varints(code, len(text)) + text.encode())


class Values(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, content: bytes) -> str:
        path = Path(self.folder, "token")
        path.write_bytes(content)
        return str(path)

    def fails(self, token: Token, expected: str) -> None:
        with self.assertRaises(TokenError) as caught:
            token.read()
        self.assertEqual(str(caught.exception), expected)

    def test_a_token_is_a_value_or_the_only_line_of_a_file(self) -> None:
        for text in ("t", TOKEN, "x" * 256):
            self.assertEqual(Token(Secret(text), "", False).read(), text.encode())
            for end in (b"", b"\n", b"\r\n"):
                self.assertEqual(Token(Secret(""), self.file(text.encode() + end), False).read(), text.encode())
        self.assertEqual(Token(Secret(""), "", False).read(), b"")

    def test_other_values_are_refused_and_not_shown(self) -> None:
        for text in (" ", "\n", " 5eC", "5eC ", "5e C", "5eC\n", "5\nC", "5eCä", "5eC\x00", "\ufeff5eC", "\udc80", "5" * 257):
            self.fails(Token(Secret(text), "", False), f"token: {FORM}")
        for content in (b"", b"\n", b"5eC\n\n", b"a\nb", b" 5eC", b"5eC ", b"\xff", b"5" * 257, b"5" * 1_000_000):
            path = self.file(content)
            self.fails(Token(Secret(""), path, False), f"token_file={path}: {FORM}")

    def test_files_that_cannot_be_used_are_named(self) -> None:
        fifo = str(Path(self.folder, "fifo"))
        os.mkfifo(fifo)
        missing = str(Path(self.folder, "missing"))
        for path, why in [
            (fifo, "it is not a regular file"),
            (self.folder, "is a directory"),
            ("/dev/zero", "it is not a regular file"),
            (missing, "no such file or directory"),
            (f"{missing}\0", "embedded null byte"),
        ]:
            self.fails(Token(Secret(""), path, False), f"token_file={path}: {why}")
        self.fails(Token(Secret("5eC"), missing, False), "token and token_file are both set, set only one of them")

    def test_only_an_empty_text_means_no_token(self) -> None:
        for value in (None, 7, True, b"5eC", ["5eC"], " ", "5eC\n"):
            settings, warnings = config.load({}, {"token": value})
            self.assertEqual(warnings, [])
            self.fails(Token(settings.token, settings.token_file, False), f"token: {FORM}")
        for value in (None, 7, " ", b""):
            settings, warnings = config.load({}, {"token_file": value})
            self.assertRegex(warnings[0], r"^token_file=.*: expected the path of a file; using <")
            self.assertRaises(TokenError, Token(settings.token, settings.token_file, False).read)
        settings, warnings = config.load({"TACHO_TOKEN": "", "TACHO_TOKEN_FILE": ""})
        self.assertEqual((Token(settings.token, settings.token_file, False).read(), warnings), (b"", []))

    def test_no_representation_contains_the_token(self) -> None:
        settings, _ = config.load({"TACHO_TOKEN": TOKEN})
        token = Token(settings.token, "", False)
        for one in (settings, settings.token, token, vars(token)):
            self.assertNotIn("5eC", f"{one!r} {one}")

    def test_only_loopback_addresses_are_addresses_of_this_machine(self) -> None:
        for address, is_local in [
            ("127.0.0.1", True),
            ("127.9.9.9", True),
            ("::1", True),
            ("::ffff:127.0.0.1", True),
            ("10.0.0.1", False),
            ("::", False),
            ("fe80::1%eth0", False),
            ("::ffff:10.0.0.1", False),
        ]:
            self.assertEqual(is_loopback(address), is_local, address)


class Refusals(LinkTest):
    def use(self, token: str = TOKEN, file: str = "", is_insecure: bool = False) -> None:
        self.link.token = Token(Secret(token), file, is_insecure)

    def last(self) -> str:
        self.assertNotIn("5eC", " ".join(self.said))
        return self.said[-1]

    def refused(self, *answer: Any) -> None:
        """The server answers HELLO with a refusal."""
        self.link.due = 0.0
        self.hears("HELLO")
        self.says(refusal(*answer))
        self.until(lambda: self.link.state is link.State.RESTING)

    def test_each_refusal_of_a_token_is_logged_once_with_what_to_do(self) -> None:
        for token, code, expected in [
            ("", 12, "the server requires a token: set token_file or token (error 12)"),
            (TOKEN, 12, "the server refuses the token: no such token (error 12); put a valid one into token"),
            (TOKEN, 13, "the token does not permit this: no such token (error 13); change its role or selector, or"),
        ]:
            with self.subTest(expected):
                self.again()
                self.use(token)
                self.refused(code)
                self.refused(code)
                self.assertEqual(len(self.said), 1)
                self.assertIn(expected, self.last())
                self.refused(code, "another text")
                self.assertEqual(len(self.said), 1 if not token else 2)

    def test_a_refusal_is_logged_although_the_outage_was_already_logged(self) -> None:
        self.use()
        with mock.patch.object(self.link, "_connect", side_effect=OSError(111, "connection refused")):
            self.until(lambda: self.said)
        self.refused(12)
        self.assertEqual(len(self.said), 2)
        self.assertIn("the server refuses the token", self.last())

    def test_pauses_grow_to_a_minute_and_begin_again_after_a_connection(self) -> None:
        self.use()
        for step in (1, 2, 4, 8, 16, 32, 60, 60):
            before = link.monotonic()
            self.refused(12)
            self.assertGreaterEqual(self.link.due, before + step / 2)
            self.assertLessEqual(self.link.due, link.monotonic() + step)
        self.link.due = 0.0
        self.opened()
        self.assertEqual(self.link.token_pause_s, 1)
        self.assertRegex(self.last(), r"^connected to .* after \d+ s; nothing was dropped in the meantime$")

    def test_records_stay_queued_while_the_token_is_refused(self) -> None:
        self.use()
        self.put("a", calls=3)
        self.opened()
        self.says(refusal(12, "revoked"))
        self.until(lambda: self.link.state is link.State.RESTING)
        self.assertIn("lost the server", self.last())
        self.assertEqual((len(self.outbox.waiting), self.totals.calls_dropped), (1, 0))

    def test_the_file_is_read_before_each_connection(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "token")
            self.use("", str(path))
            self.until(lambda: self.said)
            self.assertIn(f"token_file={path}: no such file or directory", self.last())
            self.assertIsNone(self.peer, "connected without a token")
            for text in ("first", "second"):
                path.write_text(f"{text}\n", "utf-8")
                self.refused(12)
                self.assertEqual(self.link.token_read, text.encode())

    def test_a_token_is_sent_in_clear_to_another_machine_only_with_insecure_token(self) -> None:
        with mock.patch.object(link, "is_loopback", return_value=False):
            self.use()
            self.until(lambda: self.said)
            self.assertIn(messages.TOKEN_IN_CLEAR, self.last())
            self.assertIsNone(self.peer)
            self.use(is_insecure=True)
            self.refused(12)
            self.refused(12)
            told = [line for line in self.said if re.search("is sent to 127.0.0.1:.* without TLS, because insecure_token", line)]
            self.assertEqual(len(told), 1, self.said)
            self.use("")
            self.refused(12)

    def test_hello_ends_with_the_token(self) -> None:
        hello = wire.hello(bytes(16), [], secret=bytes(range(16)))
        self.assertEqual(wire.with_token(hello, TOKEN.encode()), hello + bytes((len(TOKEN),)) + TOKEN.encode())
        self.assertEqual(wire.with_token(hello, b""), hello)


CALLS = """
import sys, tachograph
tachograph.start()
with tachograph.span("outer"):
    pass
for line in sys.stdin:
    with tachograph.span(line.strip()):
        pass
    print(tachograph.flush(0.05), flush=True)
"""


class WithServer(ServerTest):
    @classmethod
    def setUpClass(cls) -> None:
        cls.server = Server()
        cls.addClassCleanup(cls.server.close)
        cls.server.token = cls.server.add_token("admin", "admin")
        cls.writer = cls.server.add_token("writer", "write")
        cls.server.start()

    def begin(self, **settings: str) -> None:
        self.log = str(Path(self.folder(), "log"))
        self.program = self.launch(CALLS, log=self.log, **settings)

    def logged(self) -> str:
        text = Path(self.log).read_text("utf-8") if os.path.exists(self.log) else ""
        self.assertNotIn("tacho_", text)
        return text

    def says(self, pattern: str) -> None:
        until(lambda: re.search(pattern, self.logged()), f"{pattern} in {self.logged()!r}")

    def call(self, name: str) -> None:
        self.program.stdin.write(f"{name}\n")
        self.program.stdin.flush()
        self.program.stdout.readline()

    def end(self, *expected: str) -> None:
        _, err = self.program.communicate(timeout=2 * PATIENCE_S)
        self.assertEqual((self.program.returncode, err), (0, ""), "the program must not be disturbed")
        self.assertEqual(self.server.counts(self.service), {name: 1 for name in expected})

    def put(self, path: str, token: str) -> None:
        """Replaces the file atomically, as administrators should."""
        Path(f"{path}.new").write_text(f"{token}\n", "utf-8")
        os.replace(f"{path}.new", path)

    def test_a_program_with_a_token_records(self) -> None:
        file = str(Path(self.folder(), "token"))
        self.put(file, self.writer)
        for number, settings in enumerate(({"token": self.writer}, {"token_file": file})):
            _, err = self.run_program(CALLS, service=f"{self.service}{number}", **settings)
            self.assertEqual(err, "", "the log must be empty if there was no error")
            self.assertEqual(self.server.counts(f"{self.service}{number}"), {"outer": 1})

    def test_a_token_is_sent_with_tls(self) -> None:
        ours = Authority(self.folder(), "ours")
        pair = ours.sign("server")
        context = ssl.create_default_context(cafile=ours.file)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        server = Server("--tls-cert", pair.cert, "--tls-key", pair.key, context=context)
        self.addCleanup(server.close)
        server.token = server.add_token("admin", "admin")
        token = server.add_token("writer", "write")
        server.start()
        _, err = self.run_program(CALLS, server=server.address, tls_ca=ours.file, token=token)
        self.assertEqual((server.counts(self.service), err), ({"outer": 1}, ""))

    def test_a_program_without_a_valid_token_is_not_disturbed(self) -> None:
        reader = self.server.add_token("reader", "read")
        for settings, expected in [
            ({}, r"the server requires a token: set token_file or token \(error 12\)"),
            ({"token": "tacho_unknown"}, r"the server refuses the token: .* \(error 12\); put a valid one into token;"),
            ({"token": reader}, r"the token does not permit this: .*reader.*write.* \(error 13\); change its role or selector"),
        ]:
            with self.subTest(expected):
                self.begin(flush_max="100ms", **settings)
                self.says(expected)
                self.call("inner")
                self.assertEqual(len(re.findall("cannot reach the server", self.logged())), 1)
                self.end()

    def test_after_its_token_was_revoked_the_agent_uses_the_new_token_in_the_file(self) -> None:
        file = str(Path(self.folder(), "token"))
        self.begin(token_file=file)
        self.says("token_file=.*: no such file or directory; the program goes on")
        first = self.server.add_token("first", "write")
        self.put(file, first)
        self.says("connected to .* after .* nothing was dropped in the meantime")
        self.server.revoke_token("first")
        self.says("lost the server .*: the server refuses the token: .*; put a valid one into token_file=")
        self.call("inner")
        self.put(file, self.server.add_token("second", "write"))
        self.says("connected again to .* nothing was dropped in the meantime")
        self.end("outer", "inner")

    def test_a_token_that_is_confined_to_another_service_is_refused(self) -> None:
        token = self.server.add_token("confined", "write", "--match", '{service="other"}')
        self.begin(token=token, flush_max="100ms")
        self.says(r"the token does not permit this: .*confined to .* set its service \(error 13\)")
        self.end()
        self.begin(token=token, service="other")
        self.program.communicate(timeout=2 * PATIENCE_S)
        self.assertEqual(self.server.counts("other"), {"outer": 1})


if __name__ == "__main__":
    unittest.main()
