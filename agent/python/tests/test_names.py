"""Parsing of settings, patterns, statements and routes."""

from __future__ import annotations

import os
import random
import re
import unittest
from pathlib import Path

from tachograph import config, identity, operations
from tachograph.config import parse_address
from tachograph.log import Log
from tachograph.patterns import Pattern, Selection
from tachograph.probes import PROBES
from tachograph.probes.dbapi import statement
from tachograph.probes.route import guessed
from tachograph.probes.sql import DIALECTS, NAME_CHARS_MAX, shape

NAMES = "expected * or names, each with or without a leading -; the names are context, http, dbapi"


class Config(unittest.TestCase):
    def test_values_are_parsed(self) -> None:
        for name, text, value in [
            ("SERVER", "a:1", "a:1"),
            ("SAMPLERS", "False", False),
            ("DATABASE_MESSAGES", "true", True),
            ("BUFFER", "2048", 2048),
            ("QUEUE", "2MiB", 2 << 20),
            ("QUEUE", "100000", 100_000),
            ("FLUSH_MAX", "250ms", 0.25),
            ("FLUSH_MAX", "2 s", 2.0),
            ("SAMPLE_INTERVAL", "1m", 60.0),
            ("SAMPLE_INTERVAL", "500", 0.5),
            ("INCLUDE", " a.*, b..* ,", ("a.*", "b..*")),
        ]:
            settings, warnings = config.load({f"TACHO_{name}": text, "TACHO": "/bin/tacho", "TACHO_TEST_QUICK": "1"})
            self.assertEqual((getattr(settings, name.lower()), warnings), (value, []))

    def test_wrong_values_are_reported_with_the_value_used_instead(self) -> None:
        duration = "expected a duration such as 100ms or 5s"
        for name, value, expected in [
            ("BUFFER", "many", "many: expected a whole number; using 65536"),
            ("BUFFER", "1023", "1023: at least 1024 is needed; using 65536"),
            ("BUFFER", "16777217", "16777217: at most 16777216 is allowed; using 65536"),
            ("STRANDS_MAX", "0", "0: at least 1 is needed; using 10000"),
            ("QUEUE", "16 MB", "16 MB: expected a size such as 16MiB; using 16MiB"),
            ("QUEUE", "5", "5: at least 64KiB is needed; using 16MiB"),
            ("QUEUE", "65535", "65535: at least 64KiB is needed; using 16MiB"),
            ("QUEUE", "1025GiB", "1025GiB: at most 1024GiB is allowed; using 16MiB"),
            ("FLUSH_MAX", "-1", f"-1: {duration}; using 1500ms"),
            ("FLUSH_MAX", "1441m", "1441m: at most 1440m is allowed; using 1500ms"),
            ("SAMPLE_INTERVAL", "0", "0: at least 100ms is needed; using 5s"),
            ("SAMPLE_INTERVAL", "1.5s", f"1.5s: {duration}; using 5s"),
            ("SAMPLERS", "yes", "yes: expected true or false; using true"),
            ("DATABASE_MESSAGES", "on", "on: expected true or false; using false"),
            ("LOG_DETAIL", "", ": expected true or false; using false"),
            ("PROBES", "nosuch", f"nosuch: {NAMES}; using *"),
            ("PROBES", "http,-nosuch", f"http,-nosuch: {NAMES}; using http"),
            ("SERVER", "http://a:7071", "http://a:7071: expected host:port; using 127.0.0.1:7071"),
            ("SERVER", "a:65536", "a:65536: expected host:port; using 127.0.0.1:7071"),
        ]:
            settings, warnings = config.load({f"TACHO_{name}": value, "TACHO_SERVICE": "kept"})
            self.assertEqual(warnings, [f"TACHO_{name}={expected}"])
            probes = ("http",) if "using http" in expected else ("*",)
            self.assertEqual(settings, config.Settings(service="kept", probes=probes), f"{name} {value}")

    def test_wrong_arguments_are_reported_too(self) -> None:
        for name, value, expected in [
            ("samplers", 1, "1: expected true or false; using true"),
            ("flush_max", -1, "-1: at least 0 is needed; using 1500ms"),
            ("flush_max", float("nan"), "nan: expected a duration such as 100ms or 5s; using 1500ms"),
            ("sample_interval", 0.05, "0.05: at least 100ms is needed; using 5s"),
            ("queue", float("inf"), "inf: at most 1024GiB is allowed; using 16MiB"),
            ("buffer", True, "true: expected a whole number; using 65536"),
            ("service", 7, "7: expected a text; using the default"),
            ("include", 7, "7: expected a list; using the default"),
            ("probes", ["x", "y"], f"x,y: {NAMES}; using *"),
        ]:
            self.assertEqual(config.load({}, {name: value}), (config.Settings(), [f"{name}={expected}"]))

    def test_a_file_is_given_as_text_path_or_bytes(self) -> None:
        for name in ("tls_ca", "tls_client_cert", "tls_client_key"):
            for value in ["/x/a.pem", " /x/a.pem ", Path("/x/a.pem"), b"/x/a.pem"]:
                settings, warnings = config.load({}, {"tls_ca": "system", name: value})
                self.assertEqual((getattr(settings, name), warnings), ("/x/a.pem", []))

    def test_an_invalid_path_of_a_tls_file_does_not_disable_tls(self) -> None:
        class Nowhere(os.PathLike):
            def __fspath__(self) -> str:
                raise LookupError

        for value in [None, 7, True, [], ["/x/a.pem"], {}, b"", Nowhere(), " ", "\t\n"]:
            for name in ("tls_ca", "tls_client_cert", "tls_client_key"):
                settings, warnings = config.load({"TACHO_TLS_CA": "system"}, {name: value})
                used = "<blank>" if isinstance(value, str) else f"<{type(value).__name__}>"
                self.assertEqual(getattr(settings, name), used)
                self.assertRegex(warnings[0], rf"(?s){name}=.*: expected the path of a file; using {used}$")

    def test_the_bounds_themselves_are_allowed(self) -> None:
        for name, values in [
            ("buffer", ["1024", "16777216"]),
            ("strands_max", ["1", "1048576"]),
            ("queue", ["64KiB", "1024GiB", "65536", "1099511627776"]),
            ("flush_max", ["0", "1440m"]),
            ("sample_interval", ["100", "100ms", "1440m"]),
            ("probes", ["", "*", *config.PROBES, *(f"-{probe}" for probe in config.PROBES)]),
        ]:
            for value in values:
                self.assertEqual(config.load({f"TACHO_{name.upper()}": value})[1], [], f"{name} {value}")
        self.assertEqual(config.PROBES, tuple(PROBES), "PROBES must name all probes")

    def test_unknown_names_are_reported_and_those_of_other_programs_ignored(self) -> None:
        for environment, arguments, expected in [
            ({"TACHO_SERVICES": "x"}, {}, ["TACHO_SERVICES: there is no such setting, did you mean TACHO_SERVICE?"]),
            ({}, {"serv": "x"}, ["serv: there is no such setting, did you mean server?"]),
            ({"TACHO_TRACES_MAX": "9"}, {}, ["TACHO_TRACES_MAX: not a setting of the Python agent"]),
            ({"TACHO_AGENT_JAR": "/a.jar", "TACHO": "/bin/tacho", "TACHO_TEST_QUICK": "1"}, {}, []),
        ]:
            self.assertEqual(config.load(environment, arguments), (config.Settings(), expected))

    def test_arguments_take_precedence(self) -> None:
        settings, warnings = config.load({"TACHO_SERVICE": "a"}, {"service": "b", "include": ["x.*"], "flush_max": 2})
        self.assertEqual((settings.service, settings.include, settings.flush_max, warnings), ("b", ("x.*",), 2.0, []))

    def test_probes_are_selected(self) -> None:
        for probes, expected in [
            ("", False),
            ("*", True),
            ("*,-dbapi", False),
            ("http", False),
            ("dbapi,http", True),
            ("-dbapi", False),
            ("-http", True),
        ]:
            settings, _ = config.load({"TACHO_PROBES": probes})
            self.assertEqual(settings.wants_probe("dbapi"), expected, probes)

    def test_services_are_named_after_the_program(self) -> None:
        for argv, module, expected in [
            (["lib/shop.py", "-x"], "", "shop"),
            (["/x/shop/server.py"], "shop.server", "shop"),
            (["-c"], "", "unknown"),
            ([""], "", "unknown"),
            ([], "", "unknown"),
        ]:
            self.assertEqual(identity.service_of(argv, module), expected)

    def test_addresses_are_parsed(self) -> None:
        for text, expected in [
            ("a:1", ("a", 1)),
            ("a", ("a", 7071)),
            ("[::1]:5", ("::1", 5)),
            ("[::1]", ("::1", 7071)),
            ("::1", ("::1", 7071)),
            ("[fe80::1%eth0]:1", ("fe80::1%eth0", 1)),
        ]:
            self.assertEqual(parse_address(text), expected)
        for text in ["", ":1", "a:0", "a:65536", "a:b", "a:", "a:b:c", "a b", "http://a", "http://a:1", "a:1/", "[::1", "[]:1"]:
            with self.subTest(text), self.assertRaisesRegex(ValueError, "^expected host:port$"):
                parse_address(text)


class Patterns(unittest.TestCase):
    def test_patterns_match_names(self) -> None:
        for pattern, name, expected in [
            ("shop..*", "shop.Board", True),
            ("shop..*", "shop.deep.er.Board", True),
            ("shop..*", "shopping.Board", False),
            ("shop..*", "shop", False),
            ("shop.*", "shop.Board", True),
            ("shop.*", "shop.deep.Board", False),
            ("shop.Board", "shop.Board", True),
            ("shop.Board", "shop.Board2", False),
            ("shop.Board", "shop.Board.post", False),
            ("shop.Board.p*t", "shop.Board.print", True),
            ("shop..*Service.find*", "shop.a.b.UserService.findAll", True),
            ("shop..*Service.find*", "shop.UserService.findAll", True),
            ("shop..*Service.find*", "shop.UserServices.findAll", False),
            ("..*Service", "a.b.UserService", True),
            ("..*Service", "UserService", True),
            ("..Board.*", "shop.Board.post", True),
            ("*", "main", True),
            ("*", "a.main", False),
            ("com..shop..*", "com.a.shop.b.Main", True),
            ("com..shop..*", "com.shop.Main", True),
            ("größe.漢*", "größe.漢字", True),
        ]:
            self.assertEqual(Pattern(pattern).fits(name), expected, f"{pattern} {name}")

    def test_invalid_patterns_are_refused(self) -> None:
        for text in ["", "@", "@shop.watched", "shop.", ".shop", "a...b", "a b", "a/b/*", "a.b(int)"]:
            self.assertRaises(ValueError, Pattern, text)

    def test_modules_that_may_have_selected_functions_are_known(self) -> None:
        for include, exclude, module, expected in [
            ("shop.*", "", "shop", True),
            ("shop.*", "", "shop.board", True),
            ("shop.*", "", "shop.board.deep", False),
            ("shop..*", "", "shop", True),
            ("shop..*", "", "shop.board.deep", True),
            ("shop..*", "", "shopping", False),
            ("shop.board.Board.post", "", "shop.board", True),
            ("shop.board.Board.post", "", "shop.other", False),
            ("..*Service.find*", "", "any.thing", True),
            ("shop..*", "shop.board", "shop.board", False),
            ("", "", "shop", False),
        ]:
            selection = Selection(filter(None, [include]), filter(None, [exclude]), Log())
            self.assertEqual(selection.may_hold(module), expected, f"{include} -{exclude} {module}")


SQL = Path(__file__).resolve().parents[3] / "testdata" / "sql"
# Placeholders in the tables of `testdata/sql`, and the characters that they stand for.
SIGNS = str.maketrans({"⏎": "\n", "⇤": "\r", "␜": "\x1c", "␤": "\x85"})


def table(name: str, dialect: str = "") -> list[list[str]]:
    """The lines of a table in `testdata/sql` without comments, split at the tabs. If a dialect is given, only the lines for it
    or for all dialects (`*`)."""
    whole = (SQL / name).read_text("utf-8").split("\n")
    lines = [line.translate(SIGNS).split("\t") for line in whole if line and line[0] != "#"]
    return [line for line in lines if not dialect or line[0] == "*" or dialect in line[0].split(",")]


class Statements(unittest.TestCase):
    def test_shapes_are_those_of_the_table(self) -> None:
        for dialect in DIALECTS:
            for _, text, expected in table("shapes.tsv", dialect):
                self.assertEqual(shape(text, dialect), expected, f"{dialect}: {text}")
                self.assertEqual(shape(text.encode(), dialect), expected, f"{dialect}: {text}")

    def test_no_literal_is_in_a_shape(self) -> None:
        statements = table("statements.txt")
        for dialect in DIALECTS:
            rng = random.Random(7)
            literals = [literal.replace("§", "s3cret") for _, literal in table("literals.tsv", dialect)]
            for _ in range(5_000):
                text = re.sub(r"\{\}", lambda _: rng.choice(literals), rng.choice(statements)[0])  # noqa: B023
                text = text[: rng.randrange(len(text))] if rng.random() < 0.5 else text
                self.assertNotIn("s3c", shape(text, dialect), f"{dialect}: {text}")

    def test_any_text_has_a_shape(self) -> None:
        signs = [*"'\"`$-/*?(),;: \n\\ab1Eein.[]#%@!q漢\ud83d"]
        for dialect in DIALECTS:
            rng = random.Random(1)
            for _ in range(5_000):
                text = "".join(rng.choices(signs, k=rng.randrange(40)))
                self.assertLessEqual(len(shape(text, dialect)), NAME_CHARS_MAX, text)
            self.assertEqual((shape("", dialect), shape(None, dialect)), ("", ""))

    def test_long_texts_are_cut(self) -> None:
        name = shape("select " + "a, " * 5_000, "postgresql")
        self.assertEqual((len(name), name[-3:]), (NAME_CHARS_MAX, "..."))
        rows = ", ".join(f"({row}, 'x')" for row in range(100_000))
        self.assertEqual(shape(f"insert into t values {rows}", "mysql"), "insert into t values (?, ?), ...")
        values = ", ".join(str(value - 50) for value in range(100_000))
        self.assertEqual(shape(f"select a from t where b in ({values})", "mysql"), "select a from t where b in (?...")


class TextOf(unittest.TestCase):
    """Objects passed to a driver in place of a text."""

    def test_values_of_a_template_are_not_in_the_text(self) -> None:
        # Imitates the object that Python 3.14 creates for t"select {a} from {b}". Older versions lack `string.templatelib`.
        kind = type("Template", (), {"__module__": "string.templatelib", "strings": ("select ", " from ", "")})
        self.assertEqual(statement("postgresql", kind()).operation, operations.SHARED.id(operations.DATABASE, "select ? from ?"))

    def test_other_types_are_not_converted_to_text(self) -> None:
        class Query:
            def __str__(self) -> str:
                return 'Query("O\'Brien")'

            def as_string(self, _cursor: object) -> str:
                return str(self)

        self.assertEqual(statement("postgresql", Query()).operation, operations.SHARED.id(operations.DATABASE, "(statement)"))


class Routes(unittest.TestCase):
    def test_ids_are_replaced(self) -> None:
        for path, expected in [
            ("/", "/"),
            ("", "/"),
            ("/ads", "/ads"),
            ("/ads/", "/ads/"),
            ("/ads/17", "/ads/{id}"),
            ("/ads/-17/edit", "/ads/{id}/edit"),
            ("/ads/2026-11-21", "/ads/{id}"),
            ("/users/550e8400-e29b-41d4-a716-446655440000", "/users/{id}"),
            ("/objects/5f2b8c9d1e3a4b6c8d7e9f01", "/objects/{id}"),
            ("/v2/beef", "/v2/beef"),
            ("/a1b2", "/a1b2"),
            ("/facade/decade", "/facade/decade"),
            ("/ads;jsessionid=17", "/ads"),
            ("/ads?id=17", "/ads"),
            ("/x/" + "a" * 48, "/x/{id}"),
            ("/a/b/c/d/e/f/g/h/i/j", "/a/b/c/d/e/f/g/h/..."),
            ("ads/17", "/ads/{id}"),
        ]:
            self.assertEqual(guessed(path), expected)


if __name__ == "__main__":
    unittest.main()
