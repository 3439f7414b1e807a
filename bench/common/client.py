"""HTTP over one kept connection, with as little time in the client as Python allows.

Supports only the responses of the measured systems: a status, and a body with `Content-Length`, in chunks, or up to the
end of the connection.
"""

import socket
from dataclasses import dataclass

ANSWER_SECONDS_MAX = 300
RECEIVE_BYTES = 1 << 20


class HttpError(Exception):
    """A response with a status other than 2xx."""

    def __init__(self, status: int, text: str):
        super().__init__(f"{status}: {text}")
        self.status = status


@dataclass(frozen=True)
class Request:
    """`path` is already escaped."""

    method: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()


class Client:
    """One connection to 127.0.0.1, opened at first use, and again at the first use after a close or a failure."""

    def __init__(self, port: int):
        self._port = port
        self._socket: socket.socket | None = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def send(self, request: Request) -> bytes:
        """Raises HttpError with the beginning of the response, or OSError."""
        try:
            status, body = self._exchange(request)
        except BaseException:
            self.close()
            raise
        if not 200 <= status < 300:
            raise HttpError(status, f"{request.method} {request.path[:200]}: {body[:300].decode(errors='replace').strip()}")
        return body

    def _exchange(self, request: Request) -> tuple[int, bytes]:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=ANSWER_SECONDS_MAX)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = "".join(f"{name}: {value}\r\n" for name, value in request.headers)
        head = f"{request.method} {request.path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\n{headers}"
        self._socket.sendall(f"{head}Content-Length: {len(request.body)}\r\n\r\n".encode() + request.body)
        return self._receive()

    def _receive(self) -> tuple[int, bytes]:
        data = bytearray()
        while (end := data.find(b"\r\n\r\n")) < 0:
            data += self._more()
        status, headers = _head(bytes(data[:end]))
        del data[: end + 4]
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = self._chunks(data)
        elif status == 204:
            body = b""
        elif "content-length" in headers:
            length = int(headers["content-length"])
            while len(data) < length:
                data += self._more()
            body = bytes(data)
        else:
            body = self._rest(data)
        if headers.get("connection", "").lower() == "close":
            self.close()
        return status, body

    def _chunks(self, data: bytearray) -> bytes:
        """`data` has the bytes received so far."""
        body, at = bytearray(), 0
        while True:
            while (end := data.find(b"\r\n", at)) < 0:
                data += self._more()
            size = int(data[at:end].split(b";")[0], 16)
            at = end + 2
            while len(data) < at + size + 2:
                data += self._more()
            if size == 0:
                return bytes(body)
            body += memoryview(data)[at : at + size]
            at += size + 2

    def _rest(self, data: bytearray) -> bytes:
        """Reads all bytes until the server closes the connection."""
        while piece := self._socket.recv(RECEIVE_BYTES):
            data += piece
        self.close()
        return bytes(data)

    def _more(self) -> bytes:
        piece = self._socket.recv(RECEIVE_BYTES)
        if not piece:
            raise ConnectionError("the server closed the connection before the end of a response")
        return piece


def _head(text: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = text.decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in lines)
    return int(first.split()[1]), {name.lower(): value.strip() for name, _, value in fields}


def free_port() -> int:
    """A port that is currently unused."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
