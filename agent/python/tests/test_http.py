"""Incoming requests (WSGI, ASGI), outgoing requests (http.client) and statements of sqlite3 are recorded. Tests in one process,
without a tacho server."""

from __future__ import annotations

import asyncio
import functools
import http.client
import io
import sqlite3
import sys
import threading
import unittest
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, Optional
from wsgiref.simple_server import WSGIRequestHandler, make_server
from wsgiref.util import FileWrapper, setup_testing_defaults

import tachograph
from tachograph.probes import frameworks

from .inside import Recording, tree

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@tachograph.record(name="work")
def work() -> bytes:
    return b"work"


def whole(_environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [work()]


def streamed(_environ: Any, start_response: Any) -> Iterator[bytes]:
    start_response("201 Created", [])
    yield work()
    yield work()


def refuses(_environ: Any, start_response: Any) -> list[bytes]:
    start_response("503 Busy", [])
    return []


def raises(_environ: Any, _start_response: Any) -> list[bytes]:
    raise KeyError("page")


def raises_late(_environ: Any, start_response: Any) -> Iterator[bytes]:
    start_response("200 OK", [])
    yield work()
    raise KeyError("page")


def ask(application: Any, path: str = "/ads/17", **environ: Any) -> list[bytes]:
    """Calls the application for one request, as a server does. Returns the body; it is empty after a KeyError."""
    asked: dict[str, Any] = {"PATH_INFO": path, **environ}
    setup_testing_defaults(asked)
    body: Any = ()
    try:
        body = application(asked, lambda _status, _headers, *_exc_info: None)
        return list(body)
    except KeyError:
        return []
    finally:
        if hasattr(body, "close"):
            body.close()


class Raising:
    """An object of a framework that is used outside of its context: reading an attribute raises."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(f"{name} outside of a context")


class Wsgi(unittest.TestCase):
    def check(self, application: Any, *lines: str, **environ: Any) -> None:
        self.assertEqual(tree(lambda: ask(tachograph.wsgi(application), **environ)), list(lines))

    def test_requests_are_recorded_with_their_status(self) -> None:
        head = "GET /ads/{id}"
        failed = "http.status=500 exception=KeyError: 'page'"
        for application, lines in [
            (whole, [f"|{head} http.path=/ads/17 http.status=200", "  work"]),
            (streamed, [f"|{head} http.path=/ads/17 http.status=201", "  work", "  work"]),
            (refuses, [f"|{head}! http.path=/ads/17 http.status=503"]),
            (raises, [f"|{head}! http.path=/ads/17 {failed}"]),
            (raises_late, [f"|{head}! http.path=/ads/17 {failed}", "  work"]),
        ]:
            with self.subTest(application.__name__):
                self.check(application, *lines)

    def test_path_method_and_request_id_are_recorded(self) -> None:
        self.check(
            whole,
            "|POST /größe http.path=/größe request.id=r1 http.status=200",
            "  work",
            path="/größe".encode().decode("latin-1"),
            REQUEST_METHOD="POST",
            HTTP_X_REQUEST_ID="r1",
            QUERY_STRING="secret=1",
        )
        self.check(whole, "|OTHER / http.path=/ http.status=200", "  work", path="/", REQUEST_METHOD="BREW")

    def test_the_route_function_of_the_program_names_requests(self) -> None:
        application = tachograph.wsgi(whole, route=lambda environ: environ["PATH_INFO"].replace("17", "<number>"))
        self.assertEqual(tree(lambda: ask(application))[0], "|GET /ads/<number> http.path=/ads/17 http.status=200")
        application = tachograph.wsgi(whole, route=lambda environ: environ["missing"])
        self.assertEqual(tree(lambda: ask(application))[0], "|GET /ads/{id} http.path=/ads/17 http.status=200")

    def test_the_outermost_of_two_wrappers_records(self) -> None:
        self.check(tachograph.wsgi(whole), "|GET /ads/{id} http.path=/ads/17 http.status=200", "  work")

    def test_an_open_call_of_the_server_is_not_the_parent_of_a_request(self) -> None:
        def run() -> None:
            with tachograph.span("server"):
                ask(tachograph.wsgi(whole))

        self.assertEqual(tree(run), ["|server", "|GET /ads/{id} http.path=/ads/17 http.status=200", "  work"])

    def test_the_remote_caller_is_the_parent(self) -> None:
        with Recording() as recording:
            ask(tachograph.wsgi(whole), HTTP_TRACEPARENT=f"00-{TRACE}-{SPAN}-01")
            self.assertEqual(recording.calls()[0].parent, int(SPAN, 16))

    def test_streamed_bodies_that_overlap_are_separate_traces(self) -> None:
        def run() -> None:
            def environ() -> dict[str, Any]:
                one: dict[str, Any] = {}
                setup_testing_defaults(one)
                return one

            application = tachograph.wsgi(streamed)
            a = application(environ(), lambda *_: None)
            b = application(environ(), lambda *_: None)
            self.assertEqual([next(a), next(b), next(a)], [b"work"] * 3)
            a.close()
            a.close()
            self.assertEqual(list(b), [b"work"])

        request = "|GET / http.path=/ http.status=201"
        self.assertEqual(tree(run), [request, "  work", "  work", request, "  work", "  work"])

    def test_an_invalid_environ_is_passed_on(self) -> None:
        self.check(whole, "|work", REQUEST_METHOD=b"GET", SCRIPT_NAME=17)

    def test_objects_of_a_framework_may_raise(self) -> None:
        for key in ("werkzeug.request", "bottle.route", "route"):
            for body, lines in ((whole, ["  work"]), (streamed, ["  work", "  work"])):
                status = "200" if body is whole else "201"
                self.check(body, f"|GET /ads/{{id}} http.path=/ads/17 http.status={status}", *lines, **{key: Raising()})

    def test_an_answer_with_an_invalid_status_is_recorded_without_it(self) -> None:
        for status in (None, 200, "", "\u00b2\u00b2\u00b2"):

            def odd(_environ: Any, start_response: Any, status: Any = status) -> list[bytes]:
                start_response(status, [])
                return [work()]

            self.check(odd, "|GET /ads/{id} http.path=/ads/17", "  work")

    def test_the_mount_point_of_the_application_precedes_the_route(self) -> None:
        found = type("Request", (), {"url_rule": type("Rule", (), {"rule": "/users/<name>"})()})()
        for place, name in [
            ("/shop", "/shop/users/<name>"),
            ("/shop/", "/shop/users/<name>"),
            ("/", "/users/<name>"),
            ("/of/17", "/of/{id}/users/<name>"),
            ("/größe".encode().decode("latin-1"), "/größe/users/<name>"),
        ]:

            def mounted(environ: Any, start_response: Any, place: str = place) -> list[bytes]:
                environ.update({"SCRIPT_NAME": place, "werkzeug.request": found})
                return whole(environ, start_response)

            self.check(mounted, f"|GET {name} http.path=/ads/17 http.route={name} http.status=200", "  work")

    def test_mount_points_are_bounded(self) -> None:
        self.addCleanup(frameworks._mounts.clear)
        frameworks._mounts.clear()
        route = type("Route", (), {"rule": "/users"})()
        found = [frameworks.route_of({"SCRIPT_NAME": f"/of/name{at}", "bottle.route": route}) for at in range(66)]
        self.assertEqual(found[62:], ["/of/name62/users", "/of/name63/users", "/{mount}/users", "/{mount}/users"])
        self.assertEqual(frameworks.route_of({"SCRIPT_NAME": "/of/name63", "bottle.route": route}), "/of/name63/users")

    def test_file_bodies_stay_unchanged(self) -> None:
        wrapper = FileWrapper(io.BytesIO(b"file"))
        found: list[Any] = []
        asked: dict[str, Any] = {"wsgi.file_wrapper": FileWrapper}
        setup_testing_defaults(asked)
        tree(lambda: found.append(tachograph.wsgi(lambda _e, _s: wrapper)(asked, lambda *_: None)))
        self.assertIs(found[0], wrapper)


async def asgi_app(scope: Any, _receive: Any, send: Any) -> None:
    await asyncio.sleep(0)
    scope["route"] = type("Route", (), {"path": "/ads/{ad}"})()
    work()
    if scope["path"] == "/fails":
        raise KeyError("page")
    await send({"type": "http.response.start", "status": 200 if scope["path"] != "/busy" else 503, "headers": []})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


class Asgi(unittest.TestCase):
    def check(self, paths: list[str], *lines: str, **scope: Any) -> None:
        application = tachograph.asgi(asgi_app)

        async def receive() -> dict[str, Any]:
            return {"type": "http.request"}

        async def send(_message: Any) -> None:
            await asyncio.sleep(0)

        async def run() -> None:
            scopes = [{"type": "http", "method": "GET", "path": path, "headers": [], **scope} for path in paths]
            await asyncio.gather(*(application(one, receive, send) for one in scopes), return_exceptions=True)

        self.assertEqual(tree(lambda: asyncio.run(run())), list(lines))

    def test_requests_that_overlap_are_separate_traces(self) -> None:
        self.check(
            ["/ads/17", "/fails", "/busy"],
            "|GET /ads/{ad} http.path=/ads/17 http.route=/ads/{ad} http.status=200",
            "  work",
            "|GET /ads/{ad}! http.path=/fails http.route=/ads/{ad} http.status=500 exception=KeyError: 'page'",
            "  work",
            "|GET /ads/{ad}! http.path=/busy http.route=/ads/{ad} http.status=503",
            "  work",
        )

    def test_path_route_and_request_id_are_recorded(self) -> None:
        headers = [(b"X-Request-ID", b"r1"), (b"traceparent", f"00-{TRACE}-{SPAN}-01".encode())]
        facts = "http.path=/shop/ads request.id=r1 http.route=/ads/{ad} http.status=200"
        self.check(["/ads"], f"|GET /ads/{{ad}} {facts}", "  work", headers=headers, root_path="/shop")

    def test_a_trace_without_the_sampled_flag_is_recorded(self) -> None:
        for flag in ("01", "00"):
            told: list[Optional[str]] = []

            async def application(_scope: Any, _receive: Any, _send: Any, told: list[Optional[str]] = told) -> None:
                told.append(tachograph.traceparent())

            headers = [(b"traceparent", f"00-{TRACE}-{SPAN}-{flag}".encode())]
            scope = {"type": "http", "method": "GET", "path": "/", "headers": headers}
            with Recording() as recording:
                asyncio.run(tachograph.asgi(application)(scope, None, None))
                (call,) = recording.calls()
            self.assertEqual((call.parent, told), (int(SPAN, 16), [f"00-{TRACE}-{call.span:016x}-01"]), flag)

    def test_objects_of_a_framework_may_raise(self) -> None:
        for status in (200, None, "busy"):
            sent: list[Any] = []

            async def application(scope: Any, _receive: Any, send: Any, status: Any = status) -> None:
                scope["route"] = Raising()
                await send({"type": "http.response.start", "status": status, "headers": []})
                await send(None)

            async def send(message: Any, sent: list[Any] = sent) -> None:
                sent.append(message)

            scope = {"type": "http", "method": "GET", "path": "/ads/17", "headers": []}
            told = " http.status=200" if status == 200 else ""
            watched = tachograph.asgi(application)(scope, None, send)
            found = tree(functools.partial(asyncio.run, watched))
            self.assertEqual((found, len(sent)), ([f"|GET /ads/{{id}} http.path=/ads/17{told}"], 2), status)

    def test_an_invalid_scope_is_passed_on(self) -> None:
        self.check(["/ads"], "|work", headers=[("text", "is no bytes")])

    def test_other_scopes_are_ignored(self) -> None:
        seen: list[str] = []

        async def lifespan(scope: Any, _receive: Any, _send: Any) -> None:
            seen.append(scope["type"])

        lines = tree(lambda: asyncio.run(tachograph.asgi(lifespan)({"type": "lifespan"}, None, None)))
        self.assertEqual((lines, seen), ([], ["lifespan"]))


class Silent(WSGIRequestHandler):
    def log_message(self, *_arguments: Any) -> None:
        pass


class Client(unittest.TestCase):
    def setUp(self) -> None:
        self.heard: list[dict[str, Any]] = []

        def application(environ: Any, start_response: Any) -> list[bytes]:
            self.heard.append(environ)
            start_response("500 No" if environ["PATH_INFO"] == "/fails" else "200 OK", [])
            return [b"answer"]

        self.server = make_server("127.0.0.1", 0, application, handler_class=Silent)
        self.address = f"127.0.0.1:{self.server.server_port}"
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)

    def test_requests_are_children_of_their_caller(self) -> None:
        def run() -> None:
            with tachograph.span("caller"):
                urllib.request.urlopen(f"http://{self.address}/ads?secret=1").read()
                self.assertRaises(urllib.error.HTTPError, urllib.request.urlopen, f"http://{self.address}/fails")

        name = f"GET {self.address}"
        path = ["http.path=/ads http.status=200", "http.path=/fails http.status=500"]
        self.assertEqual(tree(run), ["|caller", f"  |{name} {path[0]}", f"  |{name}! {path[1]}"])

    def test_the_trace_context_is_sent_to_the_server(self) -> None:
        with Recording() as recording:
            urllib.request.urlopen(f"http://{self.address}/").read()
            told = self.heard[0]["HTTP_TRACEPARENT"]
            self.assertEqual(int(told.split("-")[2], 16), recording.calls()[0].span)
            request = urllib.request.Request(f"http://{self.address}/", headers={"Traceparent": f"00-{TRACE}-{SPAN}-00"})
            urllib.request.urlopen(request).read()
            self.assertEqual(self.heard[1]["HTTP_TRACEPARENT"], f"00-{TRACE}-{SPAN}-00", "the program's own header stays")

    def test_a_refused_connection_is_a_failed_request(self) -> None:
        def run() -> None:
            connection = http.client.HTTPConnection("127.0.0.1", 1)
            self.assertRaises(ConnectionError, connection.request, "GET", "/")

        lines = tree(run)
        self.assertRegex(lines[0], r"\|GET 127\.0\.0\.1:1! http\.path=/ exception=ConnectionRefusedError: ")

    def test_overlapping_requests_are_separate_and_abandoned_ones_fail(self) -> None:
        def run() -> None:
            a, b, c = (http.client.HTTPConnection(self.address) for _ in range(3))
            a.request("GET", "/a")
            b.request("POST", "/b", body=b"b")
            c.request("GET", "/c")
            a.getresponse().read()
            b.getresponse().read()
            for connection in (a, b, c):
                connection.close()

        lines = [f"|GET {self.address} http.path=/a http.status=200", f"|POST {self.address} http.path=/b http.status=200"]
        self.assertEqual(tree(run), [*lines, f"|GET {self.address}! http.path=/c"])

    def test_nothing_is_added_when_the_agent_is_off(self) -> None:
        urllib.request.urlopen(f"http://{self.address}/").read()
        self.assertNotIn("HTTP_TRACEPARENT", self.heard[0])


# The name of the error is available since Python 3.11.
CODE = " (SQLITE_ERROR)" if sys.version_info >= (3, 11) else ""


class Sqlite(unittest.TestCase):
    def check(self, run: Any, *lines: str) -> None:
        self.assertEqual(tree(run), ["|sqlite3.connect", *lines])

    def test_statements_and_fetches_are_recorded(self) -> None:
        def run() -> None:
            connection = sqlite3.connect(":memory:")
            cursor = connection.cursor()
            cursor.execute("create table ad (id, text)")
            cursor.executemany("insert into ad values (?, ?)", [(1, "a"), (2, "b"), (3, "c")])
            rows = connection.execute("select * from ad where id > 1")
            self.assertEqual((rows.fetchone(), rows.fetchmany(1), rows.fetchall()), ((2, "b"), [(3, "c")], []))
            self.assertRaises(sqlite3.OperationalError, cursor.execute, "select 'x' from nowhere")
            connection.executescript("select 1; select 2;")
            self.assertIsInstance(connection, sqlite3.Connection)
            self.assertIsInstance(cursor, sqlite3.Cursor)

        select = "select * from ad where id > ?"
        self.check(
            run,
            "|create table ad (id, text)",
            "|insert into ad values (?, ?) db.batch=3",
            f"|{select}",
            f"|fetch {select}",
            f"|fetch {select}",
            f"|select ? from nowhere! exception=sqlite3.OperationalError{CODE}",
            "|select ?; select ?",
        )

    def test_no_data_of_an_exception_is_recorded(self) -> None:
        class WrappedError(Exception):
            pass

        def wrapping() -> None:
            try:
                sqlite3.connect(":memory:").execute("select 1 where x = 's3cret")
            except sqlite3.Error as e:
                raise WrappedError(f"{e} in a statement") from e

        def run() -> None:
            with self.assertRaisesRegex(WrappedError, "s3cret"), tachograph.span("wrapping"):
                wrapping()

        self.assertEqual(
            tree(run),
            [
                f"|wrapping! exception={__name__}.Sqlite.test_no_data_of_an_exception_is_recorded.<locals>.WrappedError{CODE}",
                "  sqlite3.connect",
                f"  select ? where x = ?...! exception=sqlite3.OperationalError{CODE}",
            ],
        )

    def test_classes_of_the_program_are_kept(self) -> None:
        class Own(sqlite3.Connection):
            def execute(self, *arguments: Any) -> Any:
                return ("own", super().execute(*arguments))

        class OwnCursor(sqlite3.Cursor):
            own = True

        def run() -> None:
            connection = sqlite3.connect(":memory:", factory=Own)
            self.assertIsInstance(connection, Own)
            self.assertEqual(connection.execute("select 1")[0], "own")
            self.assertTrue(connection.cursor(OwnCursor).execute("select 2").own)

        self.assertIn("|select ?", tree(run))

    def test_an_enormous_statement_works_and_its_name_is_cut(self) -> None:
        def run() -> None:
            text = "select " + ", ".join(f"'{number}' as c{number}" for number in range(1_500)) + " -- " + "x" * 500_000
            self.assertEqual(len(sqlite3.connect(":memory:").execute(text).fetchone()), 1_500)

        lines = tree(run)
        self.assertEqual((len(lines), len(lines[1]), lines[1][-3:]), (2, 1_001, "..."))


if __name__ == "__main__":
    unittest.main()
