"""Records outgoing requests of `http.client`, and so those of urllib, urllib3 and requests. Adds a traceparent header, unless
the program has set one.

A request is a child of the call that sends it, and lasts from its first line to the status of the answer. It has its own segment,
because several requests may be open on one thread. Before: http.client. After: track.
"""

from __future__ import annotations

import functools
import types
from typing import Any, Callable, Optional

from .. import operations
from ..config import Settings
from ..log import Log
from ..track import Strand, here
from .late import when_imported
from .route import known_method

_STRAND = "_tachograph_strand"
_FAILED_FROM = 500


def install(_settings: Settings, _log: Log) -> None:
    when_imported("http.client", _watch)


def _watch(module: types.ModuleType) -> None:
    for name, make in (
        ("putrequest", _begin),
        ("putheader", _notice),
        ("endheaders", _tell),
        ("getresponse", _end),
        ("close", _close),
    ):
        original = getattr(module.HTTPConnection, name)
        setattr(module.HTTPConnection, name, functools.wraps(original)(make(original)))


def _take(connection: Any) -> Optional[Strand]:
    strand = connection.__dict__.get(_STRAND)
    connection.__dict__[_STRAND] = None
    return strand


def _begin(original: Callable[..., Any]) -> Callable[..., Any]:
    def putrequest(self: Any, method: str, url: str, *args: Any, **kwargs: Any) -> Any:
        abandoned = _take(self)
        if abandoned is not None:
            abandoned.end(is_failed=True)
        self._tachograph_told = False
        if here().home.is_on and operations.SHARED.kinds[operations.HTTP_CLIENT] != operations.OFF:
            host = getattr(self, "_tunnel_host", None) or self.host
            authority = host if self.port == self.default_port else f"{host}:{self.port}"
            strand = Strand(operations.SHARED.id(operations.HTTP_CLIENT, f"{known_method(method)} {authority}"))
            strand.attribute("http.path", str(url).partition("?")[0])
            self.__dict__[_STRAND] = strand
        return _failing(self, lambda: original(self, method, url, *args, **kwargs))

    return putrequest


def _notice(original: Callable[..., Any]) -> Callable[..., Any]:
    def putheader(self: Any, header: Any, *values: Any) -> Any:
        name = header.decode("latin-1") if isinstance(header, bytes) else str(header)
        if name.lower() == "traceparent":
            self._tachograph_told = True
        return original(self, header, *values)

    return putheader


def _tell(original: Callable[..., Any]) -> Callable[..., Any]:
    def endheaders(self: Any, *args: Any, **kwargs: Any) -> Any:
        strand = self.__dict__.get(_STRAND)
        if not getattr(self, "_tachograph_told", True):
            # If requests are switched off, the header names the enclosing call.
            caller = (strand or here()).context()
            if caller is not None:
                self.putheader("traceparent", caller.traceparent)
        return _failing(self, lambda: original(self, *args, **kwargs))

    return endheaders


def _failing(connection: Any, send: Callable[[], Any]) -> Any:
    try:
        return send()
    except BaseException as e:
        strand = _take(connection)
        if strand is not None:
            strand.end(e)
        raise


def _end(original: Callable[..., Any]) -> Callable[..., Any]:
    def getresponse(self: Any, *args: Any, **kwargs: Any) -> Any:
        strand = _take(self)  # must be taken first, because the original may close the connection
        try:
            response = original(self, *args, **kwargs)
        except BaseException as e:
            if strand is not None:
                strand.end(e)
            raise
        if strand is not None:
            strand.attribute("http.status", int(response.status))
            strand.end(is_failed=response.status >= _FAILED_FROM)
        return response

    return getresponse


def _close(original: Callable[..., Any]) -> Callable[..., Any]:
    def close(self: Any) -> Any:
        strand = _take(self)
        if strand is not None:
            strand.end(is_failed=True)
        return original(self)

    return close
