"""TLS of the connection: the files of the settings, and a socket that encrypts. Imported only if `tls_ca` is set.

The socket encrypts in memory: gevent may replace the sockets of `ssl` by sockets that work only in greenlets, and the sender is a
thread.
Before: link. After: crates/server/src/tls.
"""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import stat
from typing import Any

from . import messages

# Value of `tls_ca` for the authorities that Python trusts by default.
SYSTEM = "system"

# Maximum size of a file. All authorities that a system trusts have about 256 KiB.
FILE_BYTES_MAX = 4 << 20

_READ_BYTES = 65_536
# Reasons of OpenSSL for bytes that are not TLS; the name depends on the version and on the bytes.
_NOT_TLS = ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "UNSUPPORTED_PROTOCOL", "HTTP_REQUEST")
# Results of X509_verify_cert of OpenSSL: no trusted issuer; another name or address.
_UNTRUSTED = (2, 18, 19, 20, 21)
_OTHER_NAME = (62, 64)


class TlsError(OSError):
    """The message states the setting, or the cause at the server."""

    # Another attempt would fail in the same way, unlike after other faults of a connection.
    is_of_tls = True


class Tls:
    """The settings. The files are read at each connection, so that renewed certificates are used."""

    # The original class of the standard library. The program may have replaced the class, or the functions that create a context.
    # A context of such a replacement may trust other servers, or all servers. (It is not a variable of this module, because
    # gevent warns about modules that have such a variable.)
    _Context: type[ssl.SSLContext] = next(one for one in ssl.SSLContext.__mro__ if one.__module__ == "ssl")

    def __init__(self, ca: str, client_cert: str, client_key: str) -> None:
        # The program may change its directory.
        self.ca = ca if ca == SYSTEM else os.path.abspath(ca)
        self.client_cert = client_cert and os.path.abspath(client_cert)
        self.client_key = client_key and os.path.abspath(client_key)

    def open(self, plain: socket.socket, host: str) -> Encrypted:
        """`plain` is connected and does not block; `host` is the name or address in the server's certificate.

        Raises TlsError if a file cannot be used, or if `host` cannot be in a certificate.
        """
        return Encrypted(plain, self._context(), host, bool(self.client_cert))

    def _context(self) -> ssl.SSLContext:
        if bool(self.client_cert) != bool(self.client_key):
            names = ("tls_client_cert", "tls_client_key")
            raise TlsError(messages.tls_half(*(names if self.client_cert else reversed(names))))
        # A new context verifies the certificate and the name. Its attributes are not changed: if `ssl.SSLContext` is replaced,
        # setting an attribute recurses without end.
        context = self._Context(ssl.PROTOCOL_TLS_CLIENT)
        if self.ca == SYSTEM:
            context.load_default_certs()
        else:
            _check("tls_ca", self.ca, b"CERTIFICATE-----", messages.TLS_NO_CERTIFICATE)
            try:
                context.load_verify_locations(self.ca)
            except OSError as e:
                raise _unusable("tls_ca", self.ca, e) from e
        if self.client_cert:
            self._show_certificate(context)
        return context

    def _show_certificate(self, context: ssl.SSLContext) -> None:
        def password() -> str:  # without this function OpenSSL asks on the terminal
            raise _unusable("tls_client_key", self.client_key, messages.TLS_KEY_ENCRYPTED)

        _check("tls_client_cert", self.client_cert, b"CERTIFICATE-----", messages.TLS_NO_CERTIFICATE)
        _check("tls_client_key", self.client_key, b"PRIVATE KEY-----", messages.TLS_NO_KEY)
        try:
            context.load_cert_chain(self.client_cert, self.client_key, password)
        except ssl.SSLError as e:
            if e.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
                raise _unusable("tls_client_key", self.client_key, messages.TLS_KEY_OTHER) from e
            raise TlsError(f"tls_client_key={self.client_key}, tls_client_cert={self.client_cert}: {_reason(e)}") from e


class Encrypted:
    """A connected socket with the methods that link uses. Encrypted bytes that the kernel has not accepted are in `pending`."""

    def __init__(self, plain: socket.socket, context: ssl.SSLContext, host: str, has_certificate: bool) -> None:
        self.plain = plain
        self.host = host.partition("%")[0]  # the zone of an address is not part of a certificate
        self.has_certificate = has_certificate
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.pending = b""
        try:
            self.session = context.wrap_bio(self.incoming, self.outgoing, server_hostname=self.host)
        except ValueError as e:  # not a name
            raise TlsError(messages.tls_failed(e)) from e

    def handshake(self) -> bool:
        """Continues the handshake without waiting; True when it is complete. Raises OSError, with the cause."""
        while True:
            try:
                self.session.do_handshake()
            except ssl.SSLWantReadError:
                try:
                    if not self._fill():
                        raise ConnectionError(messages.SERVER_CLOSED) from None
                except BlockingIOError:
                    return False
            except ssl.SSLError as e:
                with contextlib.suppress(OSError):
                    self._flush()  # tells the server the reason
                raise self._fault(e) from e
            else:
                self._flush()
                return True

    def recv(self, size: int) -> bytes:
        """As `recv` of a socket; also sends pending bytes when nothing has arrived."""
        while True:
            try:
                return self.session.read(size)
            except ssl.SSLWantReadError:
                if not self._fill():
                    return b""
            except ssl.SSLZeroReturnError:
                return b""
            except ssl.SSLError as e:
                raise self._fault(e) from e

    def send(self, data: bytes) -> int:
        """As `send` of a socket, but takes all bytes or none, so that at most one frame is pending."""
        self._flush()
        if self.pending:
            raise BlockingIOError
        view = memoryview(data)
        while view:
            view = view[self.session.write(view) :]
        self._flush()
        return len(data)

    def close(self) -> None:
        """Sends no bytes, because after a fork the connection may belong to the parent."""
        self.plain.close()

    def _fill(self) -> bool:
        """False if the server has closed the connection. Raises BlockingIOError if nothing has arrived."""
        try:
            data = self.plain.recv(_READ_BYTES)
        except BlockingIOError:
            self._flush()
            raise
        self.incoming.write(data)
        return bool(data)

    def _flush(self) -> None:
        self.pending += self.outgoing.read()
        while self.pending:
            try:
                self.pending = self.pending[self.plain.send(self.pending) :]
            except BlockingIOError:
                return

    def _fault(self, error: ssl.SSLError) -> TlsError:
        why = _reason(error)
        reason = error.reason or ""
        if isinstance(error, ssl.SSLCertVerificationError):
            if error.verify_code in _OTHER_NAME:
                return TlsError(messages.tls_other_name(self.host, why))
            return TlsError((messages.tls_untrusted if error.verify_code in _UNTRUSTED else messages.tls_invalid)(why))
        if reason in _NOT_TLS:
            return TlsError(messages.tls_not_there(why))
        if "ALERT" in reason and ("CERTIFICATE" in reason or "UNKNOWN_CA" in reason or "HANDSHAKE_FAILURE" in reason):
            said = messages.tls_client_cert_refused if self.has_certificate else messages.tls_client_cert_needed
            return TlsError(said(why))
        return TlsError(messages.tls_failed(why))


def _check(setting: str, path: str, mark: bytes, missing: str) -> None:
    """Raises TlsError unless the file can be read and contains `mark`; the errors of `ssl` do not name the file."""
    try:
        mode = os.stat(path).st_mode
        is_readable = stat.S_ISREG(mode) or stat.S_ISDIR(mode)  # reading a FIFO would block; the system refuses a directory
        content = _content(path) if is_readable else b""
    except (OSError, ValueError) as e:  # ValueError: not a path
        raise _unusable(setting, path, e) from e
    if not is_readable:
        raise _unusable(setting, path, messages.TLS_NOT_A_FILE)
    if len(content) > FILE_BYTES_MAX:
        raise _unusable(setting, path, messages.tls_too_large(FILE_BYTES_MAX))
    if mark not in content:
        raise _unusable(setting, path, missing)


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read(FILE_BYTES_MAX + 1)


def _unusable(setting: str, path: str, why: Any) -> TlsError:
    return TlsError(messages.tls_unusable(setting, path, _reason(why) if isinstance(why, OSError) else why))


def _reason(error: OSError) -> str:
    """The error in words, without the position in Python's source code."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError) and error.reason:
        return error.reason.lower().replace("_", " ")
    return (error.strerror or str(error)).lower()
