"""Records database statements: `connect` of sqlite3, psycopg2 and psycopg returns connections with recorded cursors.

`execute`, `executescript` and `executemany` are recorded as calls of kind database, named by the statement's shape (see sql);
`executemany` has the attribute `db.batch`, if its parameters are a list or tuple. SQLite computes rows as they are fetched, so
its `fetchall` and `fetchmany` are recorded, too.
Connections are instances of their original classes or of subclasses of them. Before: the drivers (PEP 249). After: recorder.
"""

from __future__ import annotations

import functools
import sys
import types
from typing import Any, Callable, Optional

from .. import operations
from ..config import Settings
from ..log import Log
from ..recorder import Span
from . import sql
from .late import when_imported

# Limits on the number and the length of texts whose operation is cached. A program that writes values into its statements has an
# unlimited number of texts.
_TEXTS_MAX = 4_096
_TEXT_CHARS_MAX = 4_096

_operations: dict[tuple[str, str, Any], int] = {}
_subclasses: dict[type, type] = {}


def install(_settings: Settings, _log: Log) -> None:
    for name, watch in (("sqlite3.dbapi2", _watch_sqlite), ("psycopg2", _watch_psycopg2), ("psycopg", _watch_psycopg)):
        when_imported(name, watch)


def statement(dialect: str, text: Any, cursor: Any = None, prefix: str = "") -> Span:
    try:
        if not isinstance(text, (str, bytes)):
            text = _text_of(text, cursor)
        id_ = _operations.get((dialect, prefix, text))
        if id_ is None:
            id_ = operations.SHARED.id(operations.DATABASE, prefix + sql.shape(text, dialect))
            if len(_operations) < _TEXTS_MAX and len(text) <= _TEXT_CHARS_MAX:
                _operations[dialect, prefix, text] = id_
    except Exception:
        id_ = operations.SHARED.id(operations.DATABASE, "(statement)")
    return Span(id_)


def _text_of(query: Any, cursor: Any) -> str:
    """The text of a statement that is a `sql` object of psycopg or a t-string, with `?` in place of the t-string's values. Raises
    TypeError for an object of another type, because its `str` is not a statement."""
    modules = {kind.__module__ for kind in type(query).__mro__}
    if not modules.isdisjoint(("psycopg.sql", "psycopg2.sql")):
        return str(query.as_string(cursor))
    if "string.templatelib" in modules:
        return "?".join(query.strings)
    raise TypeError("not the text of a statement")


def _batch(span: Span, parameters: Any) -> None:
    if isinstance(parameters, (list, tuple)):  # `len` of other types may run code of the program
        span.attribute("db.batch", len(parameters))


def _replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(make(original)))


def _waiting(name: str) -> Span:
    return Span(operations.SHARED.id(operations.CONNECTION_WAIT, name))


def _subclass(base: type, make: Callable[[type], type]) -> type:
    """The recorded subclass of `base`, created once. If `base` is already a recorded subclass: `base` itself."""
    if base in _subclasses.values():
        return base
    found = _subclasses.get(base)
    if found is None:
        found = make(base)
        found.__name__, found.__qualname__, found.__module__ = base.__name__, base.__qualname__, base.__module__
        _subclasses[base] = found
    return found


def _watched_cursor(dialect: str, base: type) -> type:
    class Cursor(base):  # type: ignore[misc, valid-type]
        def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
            with statement(dialect, query, self):
                return super().execute(query, *args, **kwargs)

        def executemany(self, query: Any, parameters: Any, *args: Any, **kwargs: Any) -> Any:
            with statement(dialect, query, self) as span:
                _batch(span, parameters)
                return super().executemany(query, parameters, *args, **kwargs)

    return Cursor


# ---- sqlite3 ----

_SQLITE_FACTORY_AT = 5


def _watch_sqlite(module: types.ModuleType) -> None:
    def connect_of(original: Callable[..., Any]) -> Callable[..., Any]:
        def connect(*args: Any, **kwargs: Any) -> Any:
            given = list(args)
            at_position = len(given) > _SQLITE_FACTORY_AT
            factory = given[_SQLITE_FACTORY_AT] if at_position else kwargs.get("factory", module.Connection)
            if isinstance(factory, type):
                watched = _subclass(factory, _sqlite_connection)
                if at_position:
                    given[_SQLITE_FACTORY_AT] = watched
                else:
                    kwargs["factory"] = watched
            with _waiting("sqlite3.connect"):
                return original(*given, **kwargs)

        return connect

    _replace(module, "connect", connect_of)
    package = sys.modules.get("sqlite3")
    if package is not None and hasattr(package, "connect"):
        package.connect = module.connect  # type: ignore[attr-defined]


def _sqlite_connection(base: type) -> type:
    default = sys.modules["sqlite3.dbapi2"].Cursor

    class Connection(base):  # type: ignore[misc, valid-type]
        def cursor(self, factory: Any = None) -> Any:
            wanted = default if factory is None else factory
            return super().cursor(_subclass(wanted, _sqlite_cursor) if isinstance(wanted, type) else wanted)

    # Since Python 3.11 these methods create a cursor without calling `cursor`. If a class of the program overrides them, its own
    # methods stay.
    for name in ("execute", "executemany", "executescript"):
        if getattr(base, name) is getattr(sys.modules["sqlite3.dbapi2"].Connection, name):
            setattr(Connection, name, _with_new_cursor(name))
    return Connection


def _with_new_cursor(name: str) -> Callable[..., Any]:
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.cursor(), name)(*args, **kwargs)

    run.__name__ = name
    return run


def _sqlite_cursor(base: type) -> type:
    class Cursor(_watched_cursor("sqlite", base)):  # type: ignore[misc]
        last: Optional[str] = None

        def execute(self, query: Any, *args: Any, **kwargs: Any) -> Any:
            self.last = query
            return super().execute(query, *args, **kwargs)

        def executescript(self, script: Any) -> Any:
            with statement("sqlite", script, self):
                return super().executescript(script)

        def fetchall(self) -> Any:
            with statement("sqlite", self.last or "", prefix="fetch "):
                return super().fetchall()

        def fetchmany(self, *args: Any, **kwargs: Any) -> Any:
            with statement("sqlite", self.last or "", prefix="fetch "):
                return super().fetchmany(*args, **kwargs)

    return Cursor


# ---- psycopg2 ----


def _watch_psycopg2(module: types.ModuleType) -> None:
    plain = module.extensions.connection

    def connect_of(original: Callable[..., Any]) -> Callable[..., Any]:
        def connect(dsn: Any = None, connection_factory: Any = None, *args: Any, **kwargs: Any) -> Any:
            factory = plain if connection_factory is None else connection_factory
            watched = _subclass(factory, _psycopg2_connection) if isinstance(factory, type) else factory
            with _waiting("psycopg2.connect"):
                connection = original(dsn, watched, *args, **kwargs)
            if watched is not factory:
                # The default class of cursors; creating a cursor sends nothing to the server.
                connection.cursor_factory = _own_cursor(connection)
            return connection

        return connect

    _replace(module, "connect", connect_of)


_postgresql_cursor = functools.partial(_watched_cursor, "postgresql")


def _own_cursor(connection: Any) -> type:
    cursor = connection.cursor()
    cursor.close()
    return _subclass(type(cursor), _postgresql_cursor)


def _psycopg2_connection(base: type) -> type:
    class Connection(base):  # type: ignore[misc, valid-type]
        def cursor(self, name: Any = None, cursor_factory: Any = None, *args: Any, **kwargs: Any) -> Any:
            if isinstance(cursor_factory, type):
                kwargs["cursor_factory"] = _subclass(cursor_factory, _postgresql_cursor)
            elif cursor_factory is not None:
                kwargs["cursor_factory"] = cursor_factory
            return super().cursor(name, **kwargs) if not args else super().cursor(name, kwargs.pop("cursor_factory", None), *args)

    return Connection


# ---- psycopg 3: its classes are written in Python, so their methods are replaced ----


def _watch_psycopg(module: types.ModuleType) -> None:
    def connect_of(original: Any) -> Any:
        function = original.__func__

        def connect(cls: type, *args: Any, **kwargs: Any) -> Any:
            with _waiting("psycopg.connect"):
                return function(cls, *args, **kwargs)

        return classmethod(functools.wraps(function)(connect))

    module.Connection.connect = connect_of(module.Connection.connect)
    module.connect = module.Connection.connect
    for cursor in (module.Cursor, module.ServerCursor):
        _replace(cursor, "execute", _execute_of)
        _replace(cursor, "executemany", _executemany_of)
    for cursor in (module.AsyncCursor, module.AsyncServerCursor):
        _replace(cursor, "execute", _execute_async_of)
        _replace(cursor, "executemany", _executemany_async_of)


def _execute_of(original: Callable[..., Any]) -> Callable[..., Any]:
    def execute(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        with statement("postgresql", query, self):
            return original(self, query, *args, **kwargs)

    return execute


def _executemany_of(original: Callable[..., Any]) -> Callable[..., Any]:
    def executemany(self: Any, query: Any, parameters: Any, *args: Any, **kwargs: Any) -> Any:
        with statement("postgresql", query, self) as span:
            _batch(span, parameters)
            return original(self, query, parameters, *args, **kwargs)

    return executemany


def _execute_async_of(original: Callable[..., Any]) -> Callable[..., Any]:
    async def execute(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        with statement("postgresql", query, self):
            return await original(self, query, *args, **kwargs)

    return execute


def _executemany_async_of(original: Callable[..., Any]) -> Callable[..., Any]:
    async def executemany(self: Any, query: Any, parameters: Any, *args: Any, **kwargs: Any) -> Any:
        with statement("postgresql", query, self) as span:
            _batch(span, parameters)
            return await original(self, query, parameters, *args, **kwargs)

    return executemany
