"""Records arrive over TLS. If one side has no TLS, or a setting cannot be used, no record is sent, and the log has the
cause."""

from __future__ import annotations

import os
import re
import shutil
import ssl
import tempfile
import unittest
from pathlib import Path
from typing import Optional
from unittest import mock

from tachograph import tls

from .certificates import Authority, Pair
from .packages import packages
from .server import PATIENCE_S, Server, ServerTest, until

CALLS = """
import sys, tachograph
tachograph.start()
with tachograph.span("outer"):
    pass
for line in sys.stdin:
    with tachograph.span(line.strip()):
        tachograph.entry("app_log", "x" * 1_000_000)
"""
FORK = """
import os, tachograph
tachograph.start()
with tachograph.span("parent"):
    pass
tachograph.flush(30)
child = os.fork()
with tachograph.span("after"):
    pass
if child:
    os.waitpid(child, 0)
"""
GEVENT = """
import sys, time
from _thread import get_ident
sys.path.append({packages!r})
import tachograph
from gevent import monkey, joinall, spawn
from gevent.hub import Hub
hubs, create = [], Hub.__init__
def record(self, *args, **kwargs):
    hubs.append(get_ident())
    create(self, *args, **kwargs)
Hub.__init__ = record
for step in {steps}:
    tachograph.start() if step == "start" else monkey.patch_all()
import ssl
def work():
    with tachograph.span("green"):
        time.sleep(0.01)
joinall([spawn(work) for _ in range(5)])
tachograph.flush(30)
# A hub of the sender's thread and the hub of the program could wait for each other.
assert hubs == [get_ident()], (hubs, get_ident())
context = ssl.create_default_context()
context.options |= ssl.OP_NO_COMPRESSION
"""
# After `trust()` a program trusts every server. The tests call `trust` before or after the start of the agent.
TRUSTING = """
import ssl
class Trusting(ssl.SSLContext):
    def __init__(self, *_):
        self.check_hostname = False
        self.verify_mode = ssl.CERT_NONE
def trust():
    ssl.create_default_context = ssl._create_unverified_context
    ssl.SSLContext = Trusting
"""
UNENCRYPTED = """
import sys, tachograph
tachograph.start()
with tachograph.span("outer"):
    pass
tachograph.flush(30)
sys.exit("ssl" in sys.modules)
"""


class Files(unittest.TestCase):
    def test_a_file_of_the_maximum_size_is_read_and_one_byte_more_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ours = Authority(folder, "ours")
            path = Path(folder, "padded.pem")
            path.write_bytes(Path(ours.file).read_bytes().ljust(tls.FILE_BYTES_MAX, b"\n"))
            files = tls.Tls(str(path), "", "")
            files.open(mock.Mock(), "localhost")
            with path.open("ab") as file:
                file.write(b"\n")
            with self.assertRaises(tls.TlsError) as caught:
                files.open(mock.Mock(), "localhost")
            self.assertEqual(str(caught.exception), f"tls_ca={path}: it has more than {tls.FILE_BYTES_MAX} bytes")


class TlsTest(ServerTest):
    """`server` has no TLS, `secured` has TLS, `strict` also requires client certificates."""

    secured: Server
    strict: Server

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.place = folder.name
        cls.ours, cls.other = (Authority(cls.place, name) for name in ("ours", "other"))
        cls.client, cls.foreign = cls.ours.sign("client"), cls.other.sign("foreign")
        cls.locked = cls.ours.sign("locked", password="secret")
        cls.secured = cls.serve(cls.ours.sign("server"))
        cls.strict = cls.serve(cls.ours.sign("strict"), "--tls-client-ca", cls.ours.file)

    @classmethod
    def serve(cls, pair: Pair, *flags: str, name: str = "127.0.0.1") -> Server:
        context = ssl.create_default_context(cafile=cls.ours.file)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.load_cert_chain(*cls.client)
        server = Server("--tls-cert", pair.cert, "--tls-key", pair.key, *flags, context=context)
        server.name = name
        cls.addClassCleanup(server.close)
        server.start()
        return server

    def file(self, name: str, text: str = "") -> str:
        path = Path(self.folder(), name)
        path.write_text(text, "utf-8")
        return str(path)

    def succeeds(self, server: Server, source: str, *spans: str, **settings: str) -> None:
        _, err = self.run_program(source, server=server.address, **settings)
        self.assertEqual(err, "", "the agent logs only errors")
        self.assertEqual(server.counts(self.service), {span: 1 for span in spans})

    def fails(self, server: Server, expected: str, address: str = "", source: str = CALLS, **settings: str) -> None:
        """The log has a line that matches `expected`, and the server has no record."""
        settings = {"server": address or server.address, "service": self.id(), **settings}
        log = self.file("log")
        program = self.launch(source, log=log, **settings)
        said = until(lambda: re.search(r".*(cannot reach|lost) the server .*", Path(log).read_text("utf-8")), "a line")[0]
        _, err = program.communicate(timeout=2 * PATIENCE_S)
        self.assertEqual((program.returncode, err), (0, ""))
        self.assertRegex(said, expected)
        self.assertRegex(said, "the program goes on, the agent keeps trying$")
        self.assertEqual(server.traces(self.id()), [])


class Connections(TlsTest):
    def test_records_arrive_over_tls(self) -> None:
        self.succeeds(self.secured, CALLS, "outer", tls_ca=self.ours.file)

    def test_records_arrive_with_a_client_certificate(self) -> None:
        settings = {"tls_client_cert": self.client.cert, "tls_client_key": self.client.key}
        self.succeeds(self.strict, CALLS, "outer", tls_ca=self.ours.file, **settings)

    def test_a_file_may_be_given_as_a_path_of_pathlib(self) -> None:
        given = f"import pathlib\n{CALLS}".replace("start()", f"start(tls_ca=pathlib.Path({self.ours.file!r}))")
        self.succeeds(self.secured, given, "outer")

    def test_records_of_a_forked_child_arrive(self) -> None:
        self.run_program(FORK, server=self.secured.address, tls_ca=self.ours.file)
        self.assertEqual(self.secured.counts(self.service), {"parent": 1, "after": 2})

    def test_gevent_may_replace_the_sockets_before_and_after_the_start(self) -> None:
        by_name = self.server.address.replace("127.0.0.1", "localhost")
        secured = (self.secured, self.secured.address, {"tls_ca": self.ours.file})
        for steps in (["patch", "start"], ["start", "patch"]):
            for server, address, settings in (secured, (self.server, by_name, {})):
                with self.subTest((steps, address)):
                    service = f"{steps} {address}"
                    source = GEVENT.format(packages=packages(), steps=steps)
                    _, err = self.run_program(source, server=address, service=service, **settings)
                    self.assertEqual(err, "")
                    self.assertEqual(server.counts(service), {"green": 5})

    def test_many_megabytes_arrive(self) -> None:
        program = self.launch(CALLS, server=self.secured.address, tls_ca=self.ours.file)
        _, err = program.communicate("big\n" * 12, timeout=2 * PATIENCE_S)
        self.assertEqual((program.returncode, err), (0, ""))
        self.assertEqual(self.secured.counts(self.service), {"outer": 1, "big": 12})
        sent = self.secured.last(f'tacho_agent_sent_total{{service="{self.service}",kind="entry"}}')
        self.assertEqual(list(sent.values()), [12])

    def test_the_authorities_of_the_system_are_used(self) -> None:
        # OpenSSL reads the authorities of the system from the file in SSL_CERT_FILE.
        source = f"import os\nos.environ['SSL_CERT_FILE'] = {self.ours.file!r}\n{CALLS}"
        self.succeeds(self.secured, source, "outer", tls_ca="system")

    def test_a_renewed_client_certificate_is_used_at_the_next_connection(self) -> None:
        pair = Pair(self.file("cert"), self.file("key"))
        self.put(self.foreign, pair)
        log = self.file("log")
        settings = {"tls_ca": self.ours.file, "tls_client_cert": pair.cert, "tls_client_key": pair.key}
        program = self.launch(CALLS, server=self.strict.address, log=log, **settings)
        until(lambda: "cannot reach" in Path(log).read_text("utf-8"), "a refusal")
        self.put(self.client, pair)
        until(lambda: "connected to" in Path(log).read_text("utf-8"), "a connection")
        program.communicate(timeout=2 * PATIENCE_S)
        self.assertEqual(self.strict.counts(self.service), {"outer": 1})

    def put(self, source: Pair, target: Pair) -> None:
        for before, after in zip(source, target):
            shutil.copyfile(before, f"{after}.new")
            os.replace(f"{after}.new", after)

    def test_the_keys_of_the_connection_are_not_logged(self) -> None:
        keys = Path(self.folder(), "keys")
        source = f"import os\nos.environ['SSLKEYLOGFILE'] = {str(keys)!r}\n{CALLS}"
        self.succeeds(self.secured, source, "outer", tls_ca=self.ours.file)
        self.assertFalse(keys.exists())

    def test_without_the_setting_the_module_ssl_is_not_loaded(self) -> None:
        self.run_program(UNENCRYPTED)
        self.assertEqual(self.server.counts(self.service), {"outer": 1})


class Refusals(TlsTest):
    def test_nothing_is_sent_to_servers_that_are_not_trusted(self) -> None:
        for authority in (self.other.file, "system"):
            with self.subTest(authority=authority):
                self.fails(self.secured, "no authority of tls_ca has signed the server's certificate", tls_ca=authority)

    def test_a_program_that_trusts_every_server_does_not_change_the_agent(self) -> None:
        start = "tachograph.start()\n"
        self.assertIn(start, CALLS)
        for source in (f"{TRUSTING}trust()\n{CALLS}", TRUSTING + CALLS.replace(start, f"{start}trust()\n")):
            for authority in (self.other.file, "system"):
                with self.subTest(source, authority=authority):
                    self.fails(self.secured, "no authority of tls_ca has signed", source=source, tls_ca=authority)

    def test_values_that_are_not_paths_do_not_disable_tls(self) -> None:
        """The server has no TLS, so that an unencrypted connection would succeed."""
        for value, expected in [
            ("None", "tls_ca=.*<NoneType>: no such file"),
            ("[]", "tls_ca=.*<list>: no such file"),
            (repr("/x\0y"), "tls_ca=.*: embedded null byte"),
            (repr(" "), "tls_ca=.*<blank>: no such file"),
        ]:
            with self.subTest(value):
                self.fails(self.server, expected, source=CALLS.replace("start()", f"start(tls_ca={value})"))

    def test_the_name_in_the_certificate_must_be_that_of_the_setting(self) -> None:
        named = self.serve(self.ours.sign("named", "DNS:localhost"), name="localhost")
        self.fails(named, "the server's certificate is not for 127.0.0.1", tls_ca=self.ours.file)
        # The log is not checked: `localhost` may also have an address without a listener, and then the log has a failed attempt.
        self.run_program(CALLS, server=f"localhost:{named.records}", service="by name", tls_ca=self.ours.file)
        self.assertEqual(named.counts("by name"), {"outer": 1})

    def test_a_required_client_certificate_is_named_in_the_log(self) -> None:
        for expected, pair in [
            ("the server requires a client certificate: set tls_client_cert and tls_client_key", None),
            ("the server refuses the certificate in tls_client_cert", self.foreign),
        ]:
            with self.subTest(expected):
                shown = {"tls_client_cert": pair.cert, "tls_client_key": pair.key} if pair else {}
                self.fails(self.strict, expected, tls_ca=self.ours.file, **shown)

    def test_nothing_is_sent_to_a_server_without_tls(self) -> None:
        self.fails(self.server, "the server does not use TLS, but tls_ca is set", tls_ca=self.ours.file)

    def test_an_agent_without_tls_logs_that_the_server_requires_tls(self) -> None:
        self.fails(self.secured, r"the server requires TLS: set tls_ca \(error 11\)")

    def test_files_that_cannot_be_used_are_named_in_the_log(self) -> None:
        """The server has no TLS, so that an unencrypted connection would succeed."""
        missing, text = self.file("x") + ".missing", self.file("text", "no PEM")
        fifo = str(Path(self.folder(), "fifo"))
        os.mkfifo(fifo)
        damaged = self.file("damaged", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
        ours, (cert, key) = self.ours.file, self.client
        for setting, why, ca, client_cert, client_key in [
            ("tls_ca", "no such file", missing, None, None),
            ("tls_ca", "it holds no certificate in PEM", text, None, None),
            ("tls_ca", "", damaged, None, None),
            ("tls_ca", "is a directory", self.place, None, None),
            ("tls_ca", "it is not a regular file", fifo, None, None),
            ("tls_client_cert", "no such file", ours, missing, key),
            ("tls_client_cert", "it holds no certificate in PEM", ours, text, key),
            ("tls_client_cert", "", ours, damaged, key),
            ("tls_client_key", "no such file", ours, cert, missing),
            ("tls_client_key", "it holds no private key in PEM", ours, cert, text),
            ("tls_client_key", "the key is encrypted with a password", ours, self.locked.cert, self.locked.key),
            ("tls_client_key", "it is not the key of the certificate in tls_client_cert", ours, cert, self.foreign.key),
        ]:
            with self.subTest(setting, why=why):
                given: dict[str, Optional[str]] = {"tls_ca": ca, "tls_client_cert": client_cert, "tls_client_key": client_key}
                settings = {name: path for name, path in given.items() if path}
                self.fails(self.server, f"{setting}={re.escape(settings[setting])}: {why}", **settings)

    def test_settings_that_need_another_setting_are_logged(self) -> None:
        cert, key = {"tls_client_cert": self.client.cert}, {"tls_client_key": self.client.key}
        self.fails(self.server, "tls_client_cert is set without tls_client_key", tls_ca=self.ours.file, **cert)
        self.fails(self.server, "tls_client_key is set without tls_client_cert", tls_ca=self.ours.file, **key)
        _, err = self.run_program(CALLS, **cert)
        self.assertRegex(err, "tachograph: tls_client_cert has no effect without tls_ca: the connection is not encrypted\n$")


if __name__ == "__main__":
    unittest.main()
