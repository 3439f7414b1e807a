"""The text of an exception: `class: message`. For a database exception it is `class (code)`, because the message contains data.
If the setting `database_messages` is true, it is `class: message` for database exceptions, too.

Messages of drivers quote values (`invalid input syntax for type integer: "s3cret"`). Wrappers repeat these messages (Django)
and may add the statement with its parameters (SQLAlchemy). Classes, metaclasses and properties of the program are read without
running their code. `str` is called only if `__str__` is the interpreter's own and all arguments are of simple types. Before:
track. After: the words of a track.
"""

from __future__ import annotations

import re
import sys
import types
from typing import Any, Optional

# The setting `database_messages`, set at the start of the agent.
database_messages = False

_TEXT_CHARS_MAX = 4_096
_SIMPLE = {str, int, float, bool, bytes, type(None)}

# Packages with exceptions of databases. Other drivers are recognised by the requirements of PEP 249: names of classes, and a
# module with `apilevel`.
_DRIVERS = frozenset(
    (
        "sqlite3", "_sqlite3", "apsw", "psycopg2", "psycopg", "_psycopg", "psycopg_c", "psycopg_binary", "asyncpg",
        "pg8000", "psqlpy", "redshift_connector", "pymysql", "aiomysql", "asyncmy", "MySQLdb", "mysql",
        "_mysql_connector", "mariadb", "oracledb", "cx_Oracle", "pyodbc", "aioodbc", "turbodbc", "pymssql", "_mssql",
        "pytds", "ibm_db", "ibm_db_dbi", "duckdb", "_duckdb", "snowflake", "clickhouse_driver", "clickhouse_connect",
        "hdbcli", "teradatasql", "vertica_python", "trino", "firebirdsql", "fdb", "pymongo", "bson", "redis", "cassandra",
        "neo4j", "elasticsearch", "elastic_transport", "opensearchpy", "couchbase", "arango",
    )
)  # fmt: skip
# Modules of libraries that wrap drivers.
_WRAPPERS = frozenset(("sqlalchemy.exc", "django.db.utils", "peewee", "pony.orm.dbapiprovider", "tortoise.exceptions"))
# A module is also a driver if it has all of these attributes, or exception classes with all of these names (PEP 249).
_OF_DRIVERS = ("apilevel", "paramstyle")
_CLASSES = ("Error", "DatabaseError", "IntegrityError", "OperationalError", "ProgrammingError")

# Limit on the exceptions that are checked: the thrown one and its causes. If there are more, the message is not recorded.
_CHAIN_MAX = 16

_CODES = ("pgcode", "sqlstate", "sqlite_errorname")
_CODE = re.compile(r"[A-Za-z0-9_]{1,64}")

# The interpreter's own descriptors. They are used because a class or metaclass of the program may override these names.
_mro_of = type.__dict__["__mro__"].__get__
_dict_of = type.__dict__["__dict__"].__get__
_module_of = type.__dict__["__module__"].__get__
_name_of = type.__dict__["__name__"].__get__
_qualname_of = type.__dict__["__qualname__"].__get__
_members_of = types.ModuleType.__dict__["__dict__"].__get__
_own_of = BaseException.__dict__["__dict__"].__get__
_args_of = BaseException.__dict__["args"].__get__
_cause_of = BaseException.__dict__["__cause__"].__get__
_context_of = BaseException.__dict__["__context__"].__get__


def exception_text(thrown: BaseException) -> str:
    try:
        return _exception_text(thrown)
    except Exception:  # a stack overflow, or a class with inconsistent attributes
        return "(exception)"


def _exception_text(thrown: BaseException) -> str:
    kind = type(thrown)
    module, name = _module_of(kind), _qualname_of(kind)
    if type(module) is str and module != "builtins":
        name = f"{module}.{name}"
    if not database_messages:
        is_of_database, code = _database(thrown)
        if is_of_database:
            return f"{name} ({code})"[:_TEXT_CHARS_MAX] if code else name[:_TEXT_CHARS_MAX]
    arguments = _args_of(thrown)
    message = ""
    if _has_builtin_text(kind) and all(type(one) in _SIMPLE for one in arguments):
        message = str(thrown)
    elif arguments and type(arguments[0]) is str:
        message = arguments[0]
    return f"{name}: {message}"[:_TEXT_CHARS_MAX] if message else name


def _has_builtin_text(kind: type) -> bool:
    """True if the class has the `__str__` of an exception class of the interpreter."""
    method = _of_class(kind, "__str__")
    if type(method) is not types.WrapperDescriptorType:
        return False
    owner = method.__objclass__
    return _module_of(owner) == "builtins" and _is_exception(owner)


def _database(thrown: BaseException) -> tuple[bool, str]:
    """Returns whether the exception or one of its causes is a database exception, and the first code found."""
    seen: list[BaseException] = []
    ahead: list[Any] = [thrown]
    is_found = False
    while ahead:
        one = ahead.pop(0)
        if not issubclass(type(one), BaseException) or any(one is other for other in seen):
            continue
        if len(seen) == _CHAIN_MAX:
            return True, ""
        seen.append(one)
        if _is_of_driver(type(one)):
            is_found = True
            code = _code(one)
            if code:
                return True, code
        ahead += (_read(one, "orig"), _cause_of(one), _context_of(one))
    return is_found, ""


def _is_of_driver(kind: type) -> bool:
    is_below = False
    for base in _mro_of(kind):
        module = _module_of(base)
        if type(module) is not str or module == "builtins":
            continue
        if module.partition(".")[0] in _DRIVERS or module in _WRAPPERS or _is_driver(module):
            return True
        name = _name_of(base)
        if type(name) is not str:
            continue
        if name == "Error" and is_below:
            return True
        is_below = is_below or name == "DatabaseError"
    return False


def _is_driver(name: str) -> bool:
    """True if a module, or a package around it, is a driver according to PEP 249."""
    is_first = True
    while name:
        module = sys.modules.get(name)
        if module is not None and issubclass(type(module), types.ModuleType):
            members = _members_of(module)
            if all(one in members for one in _OF_DRIVERS):
                return True
            if is_first and all(_is_exception(members.get(one)) for one in _CLASSES):
                return True
        name, is_first = name.rpartition(".")[0], False
    return False


def _is_exception(member: Any) -> bool:
    return issubclass(type(member), type) and any(base is BaseException for base in _mro_of(member))


def _code(thrown: BaseException) -> str:
    for name in _CODES:
        value = _read(thrown, name)
        if type(value) is str and _CODE.fullmatch(value):
            return value
    return ""


def _read(thrown: BaseException, name: str) -> Optional[Any]:
    """An attribute of the exception or its class; of a property, the property object, so that no code of the program runs."""
    own = dict.get(_own_of(thrown), name)
    if own is not None:
        return own
    found = _of_class(type(thrown), name)
    if type(found) is types.MemberDescriptorType:
        try:
            return found.__get__(thrown)
        except AttributeError:  # an empty slot
            return None
    return found


def _of_class(kind: type, name: str) -> Optional[Any]:
    """The object that a class or one of its base classes defines with this name; descriptors are not called."""
    for base in _mro_of(kind):
        found = _dict_of(base).get(name)
        if found is not None:
            return found
    return None
