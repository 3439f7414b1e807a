"""Requests are named by the routes of real frameworks, for any number of paths, and never by unknown paths."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from tachograph.operations import HTTP_SERVER, SHARED
from tachograph.probes import server_names
from tachograph.probes.http_server import Request
from tachograph.recorder import span

from .inside import Recording
from .packages import packages
from .server import PATIENCE_S, ROOT, ServerTest, free_port

ASK = """
for at in range(USERS): get(f"/users/name{at}"); get(f"/scanned/by/name{at}")
for at in range(3): get(f"/missing/name{at}"); get(f"/broken/name{at}")
get("/shops/5/inner/name1?x=1")
"""
WSGI = """
import io, tachograph
tachograph.start()
%s
watched = tachograph.wsgi(application)
def get(path):
    path, _, query = path.partition("?")
    environ = {"REQUEST_METHOD": "GET", "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": query, "SERVER_NAME": "x",
        "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "wsgi.version": (1, 0), "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(), "wsgi.errors": io.StringIO(), "wsgi.multithread": False, "wsgi.multiprocess": False,
        "wsgi.run_once": False}
    body = watched(environ, lambda status, headers, exc_info=None: None)
    list(body)
    getattr(body, "close", int)()
"""
ASGI = """
import asyncio, tachograph
tachograph.start()
%s
watched = tachograph.asgi(application)
loop = asyncio.new_event_loop()
def get(path):
    path, _, query = path.partition("?")
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "path": path,
        "raw_path": path.encode(),
        "root_path": "", "scheme": "http", "query_string": query.encode(), "headers": [(b"host", b"x")], "server": ("x", 80)}
    async def receive(): return {"type": "http.request", "body": b"", "more_body": False}
    async def send(message): pass
    async def run():
        try: await watched(scope, receive, send)
        except ZeroDivisionError: pass
    loop.run_until_complete(run())
"""
FLASK = """
from flask import Blueprint, Flask, abort
application = Flask("x")
inner = Blueprint("inner", "x")
import time  # for /slow: a part of the trace is sent before the route is known
application.add_url_rule("/slow/<name>", "slow", lambda name: time.sleep(1.5) or name)
application.add_url_rule("/users/<name>", "user", lambda name: name)
application.add_url_rule("/missing/<name>", "missing", lambda name: abort(404))
application.add_url_rule("/broken/<name>", "broken", lambda name: 1 / 0)
inner.add_url_rule("/inner/<name>", "inner", lambda shop, name: name)
application.register_blueprint(inner, url_prefix="/shops/<shop>")
outer, nested = Blueprint("outer", "x", url_prefix="/outer/<of>"), Blueprint("nested", "x", url_prefix="/nested")
nested.add_url_rule("/<path:rest>", "rest", lambda of, rest: rest)
outer.register_blueprint(nested)
application.register_blueprint(outer)
application.logger.disabled = True
"""
DJANGO = """
import logging
logging.disable(logging.CRITICAL)
from django.conf import settings
settings.configure(ROOT_URLCONF=__name__, SECRET_KEY="x", ALLOWED_HOSTS=["*"], LOGGING_CONFIG=None)
import django
from django.http import Http404, HttpResponse
from django.urls import include, path, re_path
django.setup()
def missing(request, name): raise Http404
def nested(request, of, rest): return HttpResponse(rest)
urlpatterns = [
    path("users/<str:name>", lambda request, name: HttpResponse(name)),
    path("missing/<str:name>", missing),
    path("broken/<str:name>", lambda request, name: 1 / 0),
    path("shops/<int:shop>/", include([path("inner/<str:name>", lambda request, shop, name: HttpResponse(name))])),
    path("outer/<of>/", include(([path("nested/", include([re_path(r"^(?P<rest>.*)$", nested)]))], "nested"))),
]
"""
DJANGO_WSGI = DJANGO + "from django.core.wsgi import get_wsgi_application\napplication = get_wsgi_application()\n"
DJANGO_ASGI = DJANGO + "from django.core.asgi import get_asgi_application\napplication = get_asgi_application()\n"
FASTAPI = """
from fastapi import APIRouter, FastAPI, HTTPException
application, inner = FastAPI(), APIRouter()
@application.get("/users/{name}")
async def user(name: str): return name
@application.get("/missing/{name}")
async def missing(name: str): raise HTTPException(404)
@application.get("/broken/{name}")
async def broken(name: str): return 1 / 0
@inner.get("/inner/{name}")
async def inside(name: str): return name
application.include_router(inner, prefix="/shops/{shop}")
nested, sub = APIRouter(prefix="/nested"), FastAPI()
@nested.get("/{rest:path}")
async def rest(rest: str): return rest
sub.include_router(nested)
application.mount("/outer/{of}", sub)
"""
STARLETTE = """
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route
async def user(request): return PlainTextResponse("x")
async def missing(request): raise HTTPException(404)
async def broken(request): return 1 / 0
application = Starlette(routes=[
    Route("/users/{name}", user), Route("/missing/{name}", missing), Route("/broken/{name}", broken),
    Mount("/shops/{shop}", routes=[Route("/inner/{name}", user)]),
    Mount("/outer/{of}", routes=[Mount("/nested", app=Starlette(routes=[Route("/{rest:path}", user)]))]),
    Mount("/plain", app=PlainTextResponse("x")),
    Mount("/closed", app=PlainTextResponse("none", 404)),
])
"""
# Programs with an unknown version of a library, with a module of their own that has the name of a library, or with code that
# raises.
ODD_IMPORT = """
import sys, tachograph
tachograph.wsgi(lambda environ, start: [])
sys.path.insert(0, "odd")
for name in ("starlette.routing", "django.core.handlers.base"):
    __import__(name)
    print(sys.modules[name].__file__.split("/odd/")[1])
tachograph.start()
"""
ODD_ROUTES = """
import tachograph
tachograph.wsgi(lambda environ, start: [])
from starlette.routing import Match, Route
class Without(Route):
    @property
    def path(self): raise RuntimeError("outside of a context")
    @path.setter
    def path(self, value): pass
    @path.deleter
    def path(self): pass
route = Without("/users/{name}", lambda request: None)
scope = {"type": "http", "method": "GET", "path": "/users/a", "headers": []}
match, child = route.matches(scope)
print(match is Match.FULL, sorted(child))
from django.core.handlers.base import BaseHandler
from django.conf import settings
settings.configure(ROOT_URLCONF=__name__)
import django.urls.resolvers, types
urlpatterns = []
class Odd:
    @property
    def route(self): raise RuntimeError("outside of a context")
    def __iter__(self): return iter(("view", (), {}))
django.urls.resolvers.URLResolver.resolve = lambda self, path: Odd()
handler = BaseHandler()
print(handler.resolve_request(types.SimpleNamespace(path_info="/", META={})).__class__.__name__)
"""
MOUNTED = """
from werkzeug.middleware.dispatcher import DispatcherMiddleware
from flask import Flask
def of(name):
    flask = Flask(name)
    flask.add_url_rule("/users/<name>", "user", lambda name: name)
    return flask
application = DispatcherMiddleware(of("root"), {"/admin": of("admin"), "/shop": of("shop")})
"""
MOUNTED_DJANGO = """
from werkzeug.middleware.dispatcher import DispatcherMiddleware
application = DispatcherMiddleware(application, {"/admin": application})
"""
UNDER_STARLETTE = """
from starlette.applications import Starlette
from starlette.routing import Mount
application = Starlette(routes=[Mount("/of/{customer}", app=application)])
"""
ANGLE = ("/users/<name>", "/missing/<name>", "/broken/<name>", "/shops/<shop>/inner/<name>")
TYPED = ("/users/<str:name>", "/missing/<str:name>", "/broken/<str:name>", "/shops/<int:shop>/inner/<str:name>")
BRACED = ("/users/{name}", "/missing/{name}", "/broken/{name}", "/shops/{shop}/inner/{name}")
# More than the limit on names that the agent forms from paths without a route (`GUESSES_MAX`).
MANY = 1_100


class Renamed(unittest.TestCase):
    def test_a_request_is_named_when_it_ends(self) -> None:
        for at in range(200):  # so the ids of later names have two bytes on the wire
            SHARED.id(HTTP_SERVER, f"GET /known/{at}")
        for is_read_before in (False, True):
            with Recording() as recording:
                request = Request("GET", f"/early/{is_read_before}", None, None, None)
                with request.strand, span("inner"):
                    pass
                if is_read_before:
                    recording.sender.step()
                request.finish(200, None, f"/late/{is_read_before}")
                request.finish(404, None)
                names = [call.operation for call in recording.calls()]
            self.assertEqual(names, [f"GET /late/{is_read_before}", "inner"])


class Odd(unittest.TestCase):
    """Programs with frameworks of unknown versions, or with routes that raise. They print their results; there is no server."""

    def run_program(self, source: str, **files: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                *parents, last = name.split("__")
                place = Path(folder, "odd")
                for parent in parents:
                    place /= parent
                    place.mkdir(parents=True, exist_ok=True)
                    (place / "__init__.py").touch()
                (place / f"{last}.py").write_text(text)
            environment = {
                **os.environ,
                "PYTHONPATH": os.pathsep.join([str(ROOT), packages()]),
                "TACHO_SERVER": f"127.0.0.1:{free_port()}",
                "TACHO_FLUSH_MAX": "0s",
            }
            return subprocess.run(
                [sys.executable, "-c", source],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )

    def test_an_unknown_version_of_a_library_is_imported_and_logged(self) -> None:
        odd = {"starlette__routing": "class Route: pass\n", "django__core__handlers__base": "BaseHandler = None\n"}
        done = self.run_program(ODD_IMPORT, **odd)
        self.assertEqual(done.stdout.splitlines(), ["starlette/routing.py", "django/core/handlers/base.py"], done.stderr)
        self.assertIn("tachograph: starlette.routing is not recorded: AttributeError", done.stderr)

    def test_routes_that_raise_do_not_change_the_answers_of_the_frameworks(self) -> None:
        done = self.run_program(ODD_ROUTES)
        self.assertEqual(done.stdout.splitlines(), ["True ['endpoint', 'path_params']", "Odd"], done.stderr)


class Routes(ServerTest):
    def check_routes(self, source: str, routes: tuple[str, ...], nested: str, **asked: str) -> None:
        """`nested`: the route of paths that begin with `/outer/5/nested/a/name`. `asked`: beginnings of further requested paths,
        without the first `/`, and their routes. For each beginning, `MANY` paths are requested."""
        asks = {"outer/5/nested/a/name": nested, **asked}
        more = "".join(f'for at in range({MANY}): get(f"/{path}{{at}}")\n' for path in asks)
        process = self.launch(source + ASK.replace("USERS", str(MANY)) + more + "tachograph.flush(30)\n", samplers="false")
        _, err = process.communicate()
        self.assertEqual(process.returncode, 0, err)
        counts = dict(zip((f"GET {route}" for route in routes), (MANY, 3, 3, 1)))
        for route in asks.values():
            counts[f"GET {route}"] = counts.get(f"GET {route}", 0) + MANY
        counts["GET (not found)"] = counts.get("GET (not found)", 0) + MANY
        found = {name: count for name, count in self.server.counts(self.service).items() if name.startswith("GET")}
        self.assertEqual(found, counts)

    def test_flask_if_a_part_of_the_trace_is_sent_before_the_route_is_known(self) -> None:
        self.run_program(WSGI % FLASK + 'get("/slow/name1")\ntachograph.flush(30)\n', samplers="false")
        self.assertEqual(self.server.counts(self.service), {"GET /slow/<name>": 1})

    def check_names(self, source: str, *names: str) -> None:
        """Requests four paths that end in `/users/a`, and checks the names of the requests."""
        asks = "".join(f"get({name!r})\n" for name in ("/users/a", "/admin/users/a", "/shop/users/a", "/of/name/users/a"))
        self.run_program(source + asks + "tachograph.flush(30)\n", samplers="false")
        self.assertEqual(set(self.server.counts(self.service)), {f"GET {name}" for name in names})

    def test_applications_of_flask_that_are_mounted(self) -> None:
        found = [f"{mount}/users/<name>" for mount in ("", "/admin", "/shop")]
        self.check_names(WSGI % MOUNTED, *found, "(not found)")

    def test_an_application_of_django_that_is_mounted(self) -> None:
        source = DJANGO_WSGI + MOUNTED_DJANGO
        self.check_names(WSGI % source, "/users/<str:name>", "/admin/users/<str:name>", "(not found)")

    def test_django_below_starlette(self) -> None:
        self.check_names(ASGI % (DJANGO_ASGI + UNDER_STARLETTE), "/of/{customer}/users/<str:name>", "(not found)")

    def environment(self, **settings: str) -> dict[str, str]:
        return {**super().environment(**settings), "PYTHONPATH": f"{ROOT}:{packages()}"}

    def test_flask(self) -> None:
        self.check_routes(WSGI % FLASK, ANGLE, "/outer/<of>/nested/<path:rest>")

    def test_django(self) -> None:
        self.check_routes(WSGI % DJANGO_WSGI, TYPED, "/outer/<of>/nested/(?P<rest>.*)$")

    def test_django_asgi(self) -> None:
        self.check_routes(ASGI % DJANGO_ASGI, TYPED, "/outer/<of>/nested/(?P<rest>.*)$")

    def test_fastapi(self) -> None:
        self.check_routes(ASGI % FASTAPI, BRACED, "/outer/{of}/nested/{rest:path}")

    def test_starlette(self) -> None:
        plain = {"plain/name": "/plain/{path}", "closed/name": "(not found)"}
        self.check_routes(ASGI % STARLETTE, BRACED, "/outer/{of}/nested/{rest:path}", **plain)


class Scans(unittest.TestCase):
    @mock.patch.dict(server_names._guesses, clear=True)
    @mock.patch.dict(server_names._early, clear=True)
    def test_a_scan_of_unknown_paths_does_not_use_up_the_names_of_answered_paths(self) -> None:
        for at in range(1_000):
            server_names.early("GET", f"/scanned-x{at}", None)
            server_names.final("GET", f"/scanned-x{at}", 404, None)
        found = set()
        for at in range(1_000):
            found.add(server_names.final("GET", f"/real-x{at}", 200, None))
            self.assertIn(server_names.early("GET", f"/real-x{at}", None), found)
        self.assertEqual(1_000, len(found))
        self.assertEqual(server_names.EARLY_MAX, len(server_names._early))
