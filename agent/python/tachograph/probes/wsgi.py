"""Records requests to a WSGI application: `application = tachograph.wsgi(application)`.

A request with a streamed body lasts until the body is exhausted or closed; the calls in each step of the body are recorded on the
request's track (list of events). A request with another body (a list, a tuple, a `wsgi.file_wrapper` of the server) ends when the
application returns. Before: the server (PEP 3333). After: http_server.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional

from ..track import Strand
from . import frameworks, http_server

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]
Route = Callable[[Environ], Optional[str]]

_INSIDE = "tachograph.request"


class Wsgi:
    """`route`: see `wsgi`."""

    def __init__(self, application: Application, route: Optional[Route] = None) -> None:
        self.application = application
        self.route = route
        frameworks.install()

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not http_server.is_on() or _INSIDE in environ:
            return self.application(environ, start_response)
        try:
            request = _Request(environ, self._route(environ))
        except Exception:  # not a valid environ
            return self.application(environ, start_response)

        def start(status: str, headers: Any, *exc_info: Any) -> Any:
            request.answers(status)
            return start_response(status, headers, *exc_info)

        try:
            with request.strand:
                body = self.application(environ, start)
        except BaseException as e:
            request.finish(e)
            raise
        file_wrapper = environ.get("wsgi.file_wrapper")
        is_file = isinstance(file_wrapper, type) and isinstance(body, file_wrapper)
        if isinstance(body, (list, tuple)) or is_file:
            request.finish(None)
            return body
        return _Body(body, request)

    def _route(self, environ: Environ) -> Optional[str]:
        try:
            return self.route(environ) if self.route else None
        except Exception:
            return None


class _Request:
    def __init__(self, environ: Environ, route: Optional[str]) -> None:
        self.environ = environ
        self.status = 0
        self.found: Optional[str] = None
        path = frameworks.utf8(environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", ""))
        self.request = http_server.Request(
            environ.get("REQUEST_METHOD", "GET"), path, route, environ.get("HTTP_TRACEPARENT"), _request_id(environ)
        )
        self.strand: Strand = self.request.strand
        environ[_INSIDE] = True

    def answers(self, status: Any) -> None:
        with contextlib.suppress(AttributeError, TypeError, ValueError):  # an invalid status is left to the server
            self.status = int(status[:3]) if status[:3].isdigit() else 0
        self.found = frameworks.route_of(self.environ)  # before Flask removes its request from the environ

    def finish(self, thrown: Optional[BaseException]) -> None:
        self.request.finish(self.status, thrown, self.found or frameworks.route_of(self.environ))


def _request_id(environ: Environ) -> Optional[str]:
    for name in http_server.request_id_headers:
        found = environ.get("HTTP_" + name.upper().replace("-", "_"))
        if found:
            return str(found)
    return None


class _Body:
    """A body that is generated while it is sent."""

    def __init__(self, body: Iterable[bytes], request: _Request) -> None:
        self.body = body
        self.request = request
        self.chunks: Optional[Iterator[bytes]] = None

    def __iter__(self) -> _Body:
        return self

    def __next__(self) -> bytes:
        try:
            with self.request.strand:
                if self.chunks is None:
                    self.chunks = iter(self.body)
                return next(self.chunks)
        except StopIteration:
            self.request.finish(None)
            raise
        except BaseException as e:
            self.request.finish(e)
            raise

    def close(self) -> None:
        try:
            close = getattr(self.body, "close", None)
            if close is not None:
                with self.request.strand:
                    close()
        finally:
            self.request.finish(None)


def wsgi(application: Application, route: Optional[Route] = None) -> Wsgi:
    """Wraps the application.

    `route`: maps an environ to the pattern of the route, such as `/ads/{id}`. None: the framework's route is used, or a guess
    from the path.
    """
    return Wsgi(application, route)
