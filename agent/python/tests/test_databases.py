"""The texts of exceptions contain data of a database only if `database_messages` is true. The tests in `Sent` search all
bytes that a program sends."""

from __future__ import annotations

import sys
import types
import unittest

from tachograph import thrown

from .packages import packages
from .postgres import Postgres
from .server import ROOT, ServerTest
from .wiretap import Wiretap

HEAD = """
import tachograph
tachograph.start()
faults = []
@tachograph.record
def run(statement):
    statement()
@tachograph.record
def fails(statement):
    try:
        run(statement)
    except Exception as e:
        faults.append(e)
        raise RuntimeError(f"given up: {e}")
def check(*statements):
    for statement in statements:
        try:
            fails(statement)
        except RuntimeError:
            pass
    for fault in faults:
        assert "s3cret" in str(fault), fault
    assert len(faults) == len(statements), faults
    print(*(f"{type(fault).__module__}.{type(fault).__qualname__}" for fault in faults))
"""
SQLALCHEMY = """
import sqlalchemy as sa
engine = sa.create_engine(URL)
ad = sa.Table("ad", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("on", sa.Date))
ad.metadata.create_all(engine)
def execute(*what):
    with engine.begin() as connection:
        connection.execute(*what)
check(
    lambda: execute(sa.text("select * from nowhere where title = :title"), {"title": "s3cret"}),
    lambda: execute(sa.text("select 's3cret' from nowhere")),
    lambda: execute(sa.text("select :a, :b"), {"a": "s3cret"}),
    lambda: execute(ad.insert(), [{"id": 1, "on": None}, {"id": 1, "on": "s3cret"}]),
    lambda: execute(sa.text("insert into ad (id) values (:id)"), [{"id": 5}, {"id": "s3cret"}, {"id": 5}]),
)
"""
DJANGO = """
from django.conf import settings
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
import django
django.setup()
from django.db import connection, models
class Ad(models.Model):
    title = models.TextField(unique=True)
    class Meta: app_label = "shop"
with connection.schema_editor() as editor: editor.create_model(Ad)
with connection.cursor() as cursor:
    cursor.execute("create trigger strict before insert on shop_ad begin select raise(abort, 's3cret is taken'); end")
check(lambda: Ad.objects.create(title="s3cret"), lambda: Ad.objects.bulk_create([Ad(title="a"), Ad(title="b")]))
"""
# A driver that `_DRIVERS` in thrown.py does not list.
PYSQLITE3 = """
import pysqlite3
connection = pysqlite3.connect(":memory:")
connection.execute("create table ad (title)")
connection.execute("create trigger strict before insert on ad begin select raise(abort, 's3cret is taken'); end")
check(lambda: connection.execute("insert into ad values (1)"), lambda: connection.execute("select s3cret"))
"""


def module(name: str, **members: object) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(members)
    return made


def classes(name: str, **bases: str) -> dict[str, type]:
    """Classes with these names and base classes, as if the module `name` had defined them."""
    made: dict[str, type] = {}
    for one, base in bases.items():
        made[one] = type(one, (made.get(base, Exception),), {"__module__": name})
    return made


class Shapes(unittest.TestCase):
    def put(self, made: types.ModuleType) -> None:
        sys.modules[made.__name__] = made
        self.addCleanup(sys.modules.pop, made.__name__)

    def told(self, kind: type) -> bool:
        return "s3cret" in thrown.exception_text(kind("s3cret"))

    def test_drivers_are_recognised_by_pep_249(self) -> None:
        # By base classes: there is no module of this name.
        found = classes("gone.errors", Error="", DatabaseError="Error", DataError="DatabaseError", Own="DataError", Other="Error")
        self.assertEqual([name for name, kind in found.items() if self.told(kind)], ["Error", "Other"])
        # By `apilevel` of the package, for any names of classes.
        self.put(module("leveldriver", apilevel="2.0", paramstyle="qmark"))
        found = classes("leveldriver.inner.pool", Error="", PoolTimeout="", DataError="Error")
        self.assertEqual([name for name, kind in found.items() if self.told(kind)], [])
        # By the other classes in its module, which has no `apilevel`.
        names = {"Warning": "", "Error": "", "DatabaseError": "Error", "InterfaceError": "Error"}
        below = dict.fromkeys(("IntegrityError", "OperationalError", "ProgrammingError"), "DatabaseError")
        found = classes("_inner", **names, **below)
        self.put(module("_inner", **found))
        self.assertEqual([name for name, kind in found.items() if self.told(kind)], [])

    def test_classes_that_only_resemble_a_driver_keep_their_messages(self) -> None:
        found = classes("shop.errors", Error="", DataError="Error", IntegrityError="", DatabaseError="")
        self.put(module("shop.errors", **found))
        self.put(module("shop", apilevel="3"))
        self.assertEqual([name for name, kind in found.items() if not self.told(kind)], [])

    def test_inspecting_a_module_runs_no_code_of_the_program(self) -> None:
        class Loud(types.ModuleType):
            def __getattribute__(self, name: str) -> object:
                raise AssertionError("code of the program")

        class Meta(type):
            def __eq__(cls, other: object) -> bool:
                raise AssertionError("code of the program")

            def __hash__(cls) -> int:
                raise AssertionError("code of the program")

        kind = Meta("Error", (Exception,), {"__module__": "loudmodule"})
        loud = Loud("loudmodule")
        for name in ("Error", "DatabaseError", "IntegrityError", "OperationalError", "ProgrammingError"):
            types.ModuleType.__dict__["__dict__"].__get__(loud)[name] = kind
        sys.modules["loudmodule"] = loud
        self.addCleanup(sys.modules.pop, "loudmodule")
        self.assertEqual(thrown.exception_text(kind("s3cret")), "loudmodule.Error")


class Sent(ServerTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.postgres = Postgres()
        cls.addClassCleanup(cls.postgres.close)

    def environment(self, **settings: str) -> dict[str, str]:
        return {**super().environment(**settings), "PYTHONPATH": f"{ROOT}:{packages()}"}

    def check(self, source: str, *kinds: str) -> None:
        """The program catches exceptions of these classes. Their messages are sent only if `database_messages` is true."""
        for messages in ("false", "true"):
            with Wiretap(self.server.address) as wire:
                settings = {"database_messages": messages, "server": wire.address, "samplers": "false"}
                out, err = self.run_program(HEAD + source, **settings)
                self.assertEqual((out.split(), err), (list(kinds), ""))
                self.assertIn(kinds[0].encode(), wire.heard)
                self.assertIn(b"RuntimeError", wire.heard)
                self.assertEqual(b"s3cret" in wire.heard, messages == "true", bytes(wire.heard))

    def test_sqlalchemy_on_sqlite(self) -> None:
        kinds = ("OperationalError", "OperationalError", "StatementError", "StatementError", "IntegrityError")
        self.check("URL = 'sqlite://'\n" + SQLALCHEMY, *(f"sqlalchemy.exc.{kind}" for kind in kinds))

    def test_sqlalchemy_on_postgresql(self) -> None:
        url = f"postgresql+pg8000://board@127.0.0.1:{self.postgres.port}/postgres"
        kinds = ("ProgrammingError", "ProgrammingError", "StatementError", "ProgrammingError", "ProgrammingError")
        self.check(f"URL = {url!r}\n" + SQLALCHEMY, *(f"sqlalchemy.exc.{kind}" for kind in kinds))

    def test_django(self) -> None:
        self.check(DJANGO, "django.db.utils.IntegrityError", "django.db.utils.IntegrityError")

    def test_a_driver_that_is_in_no_list(self) -> None:
        self.check(PYSQLITE3, "pysqlite3.dbapi2.IntegrityError", "pysqlite3.dbapi2.OperationalError")


if __name__ == "__main__":
    unittest.main()
