"""An incoming request: the root of its trace, or a child of the call that its `traceparent` names.

Before: wsgi, asgi. After: track.
"""

from __future__ import annotations

from typing import Optional

from .. import operations, track
from ..context import parse_traceparent
from ..track import Strand
from . import server_names

_FAILED_FROM = 500
_TEXT_CHARS_MAX = 4_096

# Header fields with the id of a request, in lower case and in order of precedence; set by `agent.begin`.
request_id_headers: tuple[str, ...] = ("x-request-id", "x-correlation-id")


def is_on() -> bool:
    return track.home.is_on and operations.SHARED.kinds[operations.HTTP_SERVER] != operations.OFF


class Request:
    __slots__ = ("is_named", "method", "path", "strand")

    def __init__(
        self, method: str, path: str, route: Optional[str], traceparent: Optional[str], request_id: Optional[str]
    ) -> None:
        """`path`: without the query. `route` None: at the end of the request, the framework's route is used, or a guess from the
        path."""
        self.method = method
        self.path = path
        self.is_named = bool(route)
        operation = server_names.early(method, path, route)
        self.strand = Strand(operation, parse_traceparent(traceparent), is_root=True)
        self.strand.attribute("http.path", path[:_TEXT_CHARS_MAX])
        if request_id:
            self.strand.attribute("request.id", request_id[:_TEXT_CHARS_MAX])

    def finish(self, status: int, thrown: Optional[BaseException], route: Optional[str] = None) -> None:
        """`status` 0: unknown. `route`: the route of the framework, if known."""
        strand = self.strand
        if not strand.is_open:
            return
        # The server answers an exception with status 500.
        told = _FAILED_FROM if thrown is not None and status < _FAILED_FROM else status
        if not self.is_named:
            strand.rename(server_names.final(self.method, self.path, told, route))
        if route:
            strand.attribute("http.route", route[:_TEXT_CHARS_MAX])
        if told:
            strand.attribute("http.status", told)
        strand.end(thrown, is_failed=told >= _FAILED_FROM)
