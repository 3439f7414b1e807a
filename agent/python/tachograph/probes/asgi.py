"""Records requests to an ASGI application: `application = tachograph.asgi(application)`.

Requests overlap on one thread, so each request has its own track (list of events). Calls inside the application are recorded on
this track, except those on other tasks and threads. Before: the server (ASGI 3). After: http_server.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Iterable
from typing import Any, Callable, Optional

from ..recorder import drive, task_here
from . import frameworks, http_server

Scope = dict[str, Any]
Application = Callable[[Scope, Callable[..., Any], Callable[..., Any]], Awaitable[None]]
Route = Callable[[Scope], Optional[str]]

_INSIDE = "tachograph.request"


class Asgi:
    """`route`: see `asgi`."""

    def __init__(self, application: Application, route: Optional[Route] = None) -> None:
        self.application = application
        self.route = route
        frameworks.install()

    async def __call__(self, scope: Scope, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
        if scope.get("type") != "http" or not http_server.is_on() or _INSIDE in scope:
            await self.application(scope, receive, send)
            return
        try:
            request = self._begin(scope)
        except Exception:  # not a valid scope
            await self.application(scope, receive, send)
            return
        scope[_INSIDE] = True
        status = 0

        async def watch(message: dict[str, Any]) -> None:
            nonlocal status
            with contextlib.suppress(AttributeError, TypeError, ValueError):  # the server handles an invalid message
                if message.get("type") == "http.response.start":
                    status = int(message.get("status", 0))
            await send(message)

        async def run() -> None:
            try:
                await self.application(scope, receive, watch)
            except BaseException as e:
                request.finish(status, e, frameworks.route_of(scope, status))
                raise
            request.finish(status, None, frameworks.route_of(scope, status))

        await drive(run(), 0, task_here(), request.strand)

    def _begin(self, scope: Scope) -> http_server.Request:
        headers = _headers(scope.get("headers") or ())
        request_ids = (headers[name] for name in http_server.request_id_headers if name in headers)
        path = scope.get("root_path", "") + scope.get("path", "/") if self._is_mounted(scope) else scope.get("path", "/")
        method = scope.get("method", "GET")
        return http_server.Request(method, path, self._route(scope), headers.get("traceparent"), next(request_ids, None))

    @staticmethod
    def _is_mounted(scope: Scope) -> bool:
        """True if the scope has a mount point that `path` does not include, as with older servers."""
        root = scope.get("root_path", "")
        return bool(root) and not str(scope.get("path", "")).startswith(root)

    def _route(self, scope: Scope) -> Optional[str]:
        try:
            return self.route(scope) if self.route else None
        except Exception:
            return None


def _headers(pairs: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Uses the first header of each name."""
    found: dict[str, str] = {}
    for name, value in pairs:
        found.setdefault(name.decode("latin-1").lower(), value.decode("latin-1"))
    return found


def asgi(application: Application, route: Optional[Route] = None) -> Asgi:
    """Wraps the application.

    `route`: maps a scope to the pattern of the route, such as `/ads/{id}`. None: the framework's route is used, or a guess
    from the path.
    """
    return Asgi(application, route)
