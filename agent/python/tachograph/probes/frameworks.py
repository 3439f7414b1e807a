"""Which route has the program's framework found? It is kept in the environ or scope of the request, where wsgi and asgi look
at the end.

| framework | how |
|---|---|
| Flask, and what else is Werkzeug with `url_rule` | it keeps its request in the environ |
| Bottle | it keeps the route in the environ |
| Django | the resolver's match is kept when it has been found |
| Starlette, FastAPI | a route that matches is kept, behind those of its mounts; of what is mounted and has no routes, `/{path}` |

Before: wsgi, asgi. After: http_server.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any, Optional

from .late import when_imported

_ROUTE = "tachograph.route"
_MOUNT = "tachograph.mount"
_NOT_FOUND = 404

_installed: list[bool] = []


def install() -> None:
    """When the first application is wrapped."""
    if not _installed:
        _installed.append(True)
        when_imported("django.core.handlers.base", _watch_django)
        when_imported("starlette.routing", _watch_starlette)


def route_of(request: Mapping[str, Any], status: int = 0) -> Optional[str]:
    """`request`: an environ or a scope, when it is over."""
    route = request.get(_ROUTE)
    if route is None:
        route = getattr(getattr(request.get("werkzeug.request"), "url_rule", None), "rule", None)
    if route is None:
        route = getattr(request.get("bottle.route"), "rule", None)
    if route is None:
        route = getattr(request.get("route"), "path", None)
    if route is None and request.get(_MOUNT) and status != _NOT_FOUND:
        route = f"{request[_MOUNT]}/{{path}}"
    return route if isinstance(route, str) and route else None


def _watch_django(module: types.ModuleType) -> None:
    resolve = getattr(module.BaseHandler, "resolve_request", None)
    if resolve is None:  # before 3.1
        return

    @functools.wraps(resolve)
    def resolve_request(self: Any, request: Any) -> Any:
        match = resolve(self, request)
        route = getattr(match, "route", None)
        if isinstance(route, str):
            kept = request.scope if hasattr(request, "scope") else request.META
            kept[_ROUTE] = f"/{route}" if not route.startswith(("/", "^")) else route
        return match

    module.BaseHandler.resolve_request = resolve_request


def _watch_starlette(module: types.ModuleType) -> None:
    for kind, key in ((module.Route, _ROUTE), (module.Mount, _MOUNT)):
        kind.matches = _keeping(kind.matches, key, module.Match.NONE)


def _keeping(matches: Any, key: str, none: Any) -> Any:
    @functools.wraps(matches)
    def kept(self: Any, scope: Any) -> Any:
        match, child = matches(self, scope)
        if match != none and isinstance(child, dict) and isinstance(getattr(self, "path", None), str):
            child[key] = scope.get(_MOUNT, "") + self.path
        return match, child

    return kept
