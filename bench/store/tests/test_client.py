"""Tests that responses in pieces of any size are received completely."""

import socket
import threading
from unittest import TestCase

from ...common.client import Client, HttpError, Request

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\n\r\n"
CLOSED = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello"
REFUSED = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nfull"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


class Answers(TestCase):
    def receive(self, answer: bytes, piece: int) -> bytes:
        """The result of the client for a response that arrives in pieces of this size."""
        with socket.create_server(("127.0.0.1", 0)) as listener:
            server = threading.Thread(target=_serve, args=(listener, answer, piece))
            server.start()
            try:
                with Client(listener.getsockname()[1]) as client:
                    return client.send(Request("GET", "/"))
            finally:
                server.join()

    def test_a_response_is_received_in_all_forms(self):
        for answer, expected in ((WHOLE, b"hello"), (CHUNKED, b"hello"), (CLOSED, b"hello"), (EMPTY, b"")):
            for piece in (1, 7, 1_000):
                self.assertEqual(expected, self.receive(answer, piece), (answer, piece))

    def test_an_error_status_is_raised(self):
        with self.assertRaises(HttpError) as caught:
            self.receive(REFUSED, 1_000)
        self.assertEqual(503, caught.exception.status)
        self.assertIn("full", str(caught.exception))

    def test_an_incomplete_response_is_an_error(self):
        with self.assertRaises(ConnectionError):
            self.receive(WHOLE[:-2], 1_000)


def _serve(listener: socket.socket, answer: bytes, piece: int) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.recv(1_000)
        for at in range(0, len(answer), piece):
            connection.sendall(answer[at : at + piece])
