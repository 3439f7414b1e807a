"""Finds the route of the program's framework. The environ or scope of the request has the route. wsgi and asgi read it at the
end of the request, and wsgi also when the response starts.

| framework | how |
|---|---|
| Flask, other users of Werkzeug with `url_rule` | the environ has the request of Werkzeug; SCRIPT_NAME is put before the route |
| Bottle | the environ has the route; SCRIPT_NAME is put before it |
| Django | the route of the resolver's match is stored; SCRIPT_NAME or the mounts of Starlette are put before it |
| Starlette, FastAPI | the path of a matching route is stored behind its mount paths; a mount without routes adds `/{path}` |

Objects of a framework may run code of the program. Exceptions of such code are suppressed here. Before: wsgi, asgi. After:
http_server.
"""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Mapping
from typing import Any, Optional

from .late import when_imported
from .route import guessed

_ROUTE = "tachograph.route"
_MOUNT = "tachograph.mount"
_NOT_FOUND = 404

# Limit on mount points in one process. A program that mounts one application per customer has an unlimited number of mount
# points.
MOUNTS_MAX = 64
_OTHER_MOUNT = "/{mount}"

_installed: list[bool] = []
_mounts: set[str] = set()


def install() -> None:
    """Called for each wrapped application; only the first call has an effect."""
    if not _installed:
        _installed.append(True)
        when_imported("django.core.handlers.base", _watch_django)
        when_imported("starlette.routing", _watch_starlette)


def route_of(request: Mapping[str, Any], status: int = 0) -> Optional[str]:
    """`request`: an environ or a scope, after the framework has found the route. Returns None if the route is unknown, or if
    reading the route raises an exception."""
    try:
        return _route_of(request, status)
    except Exception:  # for example a property that can be read only while the framework handles the request
        return None


def _route_of(request: Mapping[str, Any], status: int) -> Optional[str]:
    route = request.get(_ROUTE)
    if route is None:
        route = getattr(getattr(request.get("werkzeug.request"), "url_rule", None), "rule", None)
    if route is None:
        route = getattr(request.get("bottle.route"), "rule", None)
    if route is None:
        route = getattr(request.get("route"), "path", None)
    if route is None and request.get(_MOUNT) and status != _NOT_FOUND:
        route = f"{request[_MOUNT]}/{{path}}"
    if not isinstance(route, str) or not route:
        return None
    mount = _mount(request.get("SCRIPT_NAME"))
    return f"{mount}/{route.removeprefix('/')}" if mount else route


def _mount(script_name: Any) -> str:
    """The path at which a middleware or the server has mounted the application; empty for the root."""
    if not isinstance(script_name, str) or not script_name.strip("/"):
        return ""
    mount = guessed(utf8(script_name)).rstrip("/")
    if mount not in _mounts:
        if len(_mounts) >= MOUNTS_MAX:
            return _OTHER_MOUNT
        _mounts.add(mount)
    return mount


def utf8(path: str) -> str:
    """Decodes a part of a path of an environ: PEP 3333 stores bytes as characters."""
    try:
        return path.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return path


def _watch_django(module: types.ModuleType) -> None:
    resolve = getattr(module.BaseHandler, "resolve_request", None)
    if resolve is None:  # before 3.1
        return

    @functools.wraps(resolve)
    def resolve_request(self: Any, request: Any) -> Any:
        match = resolve(self, request)
        with contextlib.suppress(Exception):
            _keep_match(request, match)
        return match

    module.BaseHandler.resolve_request = resolve_request


def _keep_match(request: Any, match: Any) -> None:
    route = getattr(match, "route", None)
    if isinstance(route, str):
        kept = request.scope if hasattr(request, "scope") else request.META
        mount = kept.get(_MOUNT, "")
        kept[_ROUTE] = route if route.startswith("^") and not mount else f"{mount}/{route.removeprefix('/')}"


def _watch_starlette(module: types.ModuleType) -> None:
    none = module.Match.NONE
    for kind, key in ((module.Route, _ROUTE), (module.Mount, _MOUNT)):
        kind.matches = _keeping(kind.matches, key, none)


def _keeping(matches: Any, key: str, none: Any) -> Any:
    @functools.wraps(matches)
    def kept(self: Any, scope: Any) -> Any:
        answer = matches(self, scope)
        with contextlib.suppress(Exception):
            match, child = answer
            path = self.path if match != none and isinstance(child, dict) else None
            if isinstance(path, str):
                child[key] = scope.get(_MOUNT, "") + path
        return answer

    return kept
