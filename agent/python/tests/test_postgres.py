"""Statements to a real PostgreSQL are recorded, for both psycopg2 and psycopg."""

from __future__ import annotations

import json
import unittest

from .postgres import Postgres, python
from .server import ServerTest


class Drivers(ServerTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.postgres = Postgres()
        cls.addClassCleanup(cls.postgres.close)

    def check(self, source: str, *lines: str) -> None:
        head = f"import tachograph\ntachograph.start()\nDSN = {self.postgres.dsn!r}\n"
        _, err = self.run_program(head + source, python=python())
        self.assertEqual(err, "")
        expected = [f"{line[: -len(line.lstrip())]}{self.service}: {line.lstrip()}" for line in lines]
        self.assertEqual(self.only_tree(facts=("db.batch", "exception")), expected)

    def test_psycopg2(self) -> None:
        self.check(
            """
import psycopg2, psycopg2.extras, psycopg2.sql
with tachograph.span("outer"):
    connection = psycopg2.connect(DSN)
    assert type(connection).__mro__[1] is psycopg2.extensions.connection
    cursor = connection.cursor()
    cursor.execute("create temporary table ad (id int, text text)")
    cursor.executemany("insert into ad values (%s, %s)", [(1, "a"), (2, "b")])
    psycopg2.extras.execute_values(cursor, "insert into ad values %s", [(3, "c"), (4, "d")])
    rows = connection.cursor(cursor_factory=psycopg2.extras.RealDictCursor)
    rows.execute(psycopg2.sql.SQL("select * from {} where id = 2").format(psycopg2.sql.Identifier("ad")))
    assert rows.fetchall() == [{"id": 2, "text": "b"}]
    named = connection.cursor("named")
    named.execute("select id from ad")
    assert len(named.fetchall()) == 4
    connection.commit()
    other = psycopg2.connect(DSN, connection_factory=psycopg2.extras.DictConnection)
    with other.cursor() as cursor:
        cursor.execute("select 17 as n")
        assert cursor.fetchone()["n"] == 17
    psycopg2.extras.register_uuid(conn_or_curs=connection)
    try:
        other.cursor().execute("select nothing")
    except psycopg2.errors.UndefinedColumn:
        pass
""",
            "outer",
            "  psycopg2.connect",
            "  create temporary table ad (id int, text text)",
            "  insert into ad values (?, ?) db.batch=2",
            "  insert into ad values (?, ?), ...",
            '  select * from "ad" where id = ?',
            "  select id from ad",
            "  psycopg2.connect",
            "  select ? as n",
            "  select nothing! exception=psycopg2.errors.UndefinedColumn (42703)",
        )

    def test_psycopg(self) -> None:
        self.check(
            """
import asyncio, psycopg
with tachograph.span("outer"):
    with psycopg.connect(DSN) as connection:
        connection.execute("create temporary table ad (id int)")
        with connection.cursor() as cursor:
            cursor.executemany("insert into ad values (%s)", [(1,), (2,)])
            cursor.execute(b"select id from ad where id = %(id)s", {"id": 2})
            assert cursor.fetchall() == [(2,)]
        with connection.cursor("named") as cursor:
            assert len(cursor.execute("select id from ad").fetchall()) == 2

    @tachograph.record(name="asynchronous")
    async def asynchronous():
        async with await psycopg.AsyncConnection.connect(DSN) as connection:
            cursor = await connection.execute("select 17")
            assert await cursor.fetchone() == (17,)

    asyncio.run(asynchronous())
""",
            "outer",
            "  psycopg.connect",
            "  create temporary table ad (id int)",
            "  insert into ad values (?) db.batch=2",
            "  select id from ad where id = ?",
            "  select id from ad",
            "  asynchronous",
            "    select ?",
        )

    def test_no_data_of_a_database_is_recorded(self) -> None:
        self.check(
            """
import psycopg, psycopg2

class Wrapped(Exception):
    def __init__(self, statement, values, orig):
        super().__init__(f"{orig} in {statement} with {values}")
        self.orig = orig

@tachograph.record(name="wrapping")
def wrapping(connection, statement, values):
    try:
        connection.cursor().execute(statement, values)
    except Exception as e:
        fault = e
    else:
        raise AssertionError(statement)
    raise Wrapped(statement, values, fault)

def fails(*arguments):
    try:
        wrapping(*arguments)
    except Wrapped as e:
        assert "s3cret" in str(e)

with tachograph.span("outer"):
    for driver in (psycopg2, psycopg):
        fails(driver.connect(DSN), "select 's3cret'::int", None)
        fails(driver.connect(DSN), "select %s::text::int", ("s3cret",))
""",
            "outer",
            *(
                line
                for driver in ("psycopg2", "psycopg")
                for statement in ("select ?::int", "select ?::text::int")
                for line in (
                    f"  {driver}.connect",
                    "  wrapping! exception=__main__.Wrapped (22P02)",
                    f"    {statement}! exception={driver}.errors.InvalidTextRepresentation (22P02)",
                )
            ),
        )
        (trace,) = self.server.traces(self.service)
        told = [trace, self.server.counts(self.service), self.server.get(f"/api/traces/{trace['trace_id']}")]
        self.assertNotIn("s3cret", json.dumps(told))


if __name__ == "__main__":
    unittest.main()
