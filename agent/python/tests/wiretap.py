"""A proxy between a program and the server. It stores the bytes that the program sends. It can close the first connection at
once, or leave it without an answer."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Optional


class Wiretap:
    """`address`: the address for the program; `heard`: the bytes that the program has sent to the server so far; `connections`:
    the number of accepted connections, including one that fails."""

    def __init__(self, server: str, first: Optional[str] = None) -> None:
        """`first`: "closes" or "hangs", if the first connection fails in this way."""
        host, _, port = server.rpartition(":")
        self.server = (host, int(port))
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.lock = threading.Lock()
        self.heard = bytearray()
        self.first = first
        self.failed: list[socket.socket] = []
        self.connections = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Wiretap:
        return self

    def __exit__(self, *_thrown: object) -> None:
        self.listener.close()
        for client in self.failed:
            client.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                client, _ = self.listener.accept()
                self.connections += 1
                if self.first is not None and self.connections == 1:
                    self._fail(client)
                    continue
                server = socket.create_connection(self.server)
                for source, target, is_kept in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=(source, target, is_kept), daemon=True).start()

    def _fail(self, client: socket.socket) -> None:
        if self.first == "closes":
            client.close()
        else:
            self.failed.append(client)

    def _pass(self, source: socket.socket, target: socket.socket, is_kept: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if is_kept:
                    with self.lock:
                        self.heard += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
