"""Records functions of the script itself. The script is not imported, so its functions are decorated in its syntax tree.

Only functions that a pattern selects are decorated; a script without such functions runs unchanged. Line numbers and tracebacks
stay the same. Before: `python -m tachograph run`. After: recorder.record.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import importlib.util
import io
import os
import runpy
import sys
import tokenize
import types
from pathlib import Path
from typing import Any, NoReturn, Union

from .patterns import Selection
from .recorder import record

_RECORD = "__tachograph_record__"

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def run(path: str, selection: Selection) -> None:
    """Runs a script, a directory or a zip file as `__main__`, like the interpreter. Its exceptions propagate."""
    main = _fresh_main()
    if _is_archive(path):
        sys.path[0] = _absolute(path)
        runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]  # the interpreter calls this function, too
        return
    name = Path(path).stem
    file = _absolute(path)
    code = _decorated(file, name, selection) if selection.may_hold(name) else None
    loader: Any = importlib.machinery.SourceFileLoader("__main__", file)
    if code is None:
        try:
            with io.open_code(file) as source:  # raises the audit event that the interpreter raises for a script
                data = source.read()
        except OSError as e:
            _cannot_open(file, e)
        code = _compiled(data, file)
        if file.endswith(".pyc"):
            loader = importlib.machinery.SourcelessFileLoader("__main__", file)
    else:
        main.__dict__[_RECORD] = record
    main.__dict__.update({"__file__": file, "__cached__": None, "__loader__": loader})
    exec(code, main.__dict__)


def run_module(name: str) -> None:
    """Runs a module like `python -m`."""
    _fresh_main()
    sys.argv[0] = "-m"  # as the interpreter does while it searches for the module
    runpy._run_module_as_main(name, True)  # type: ignore[attr-defined]


def _fresh_main() -> types.ModuleType:
    """A new `__main__` module. It stays after the program: threads and exit handlers may still run."""
    main = types.ModuleType("__main__")
    main.__dict__.update({"__builtins__": builtins, "__loader__": importlib.machinery.BuiltinImporter})
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    return main


def _absolute(path: str) -> str:
    """The path as the interpreter shows it: dots and links in the path are not resolved."""
    return os.path.abspath(path) if os.name == "nt" else os.path.join(os.getcwd(), path)


def _is_archive(path: str) -> bool:
    """True for a directory or a zip file: the interpreter runs the module `__main__` in it."""
    return any(_importer(path, hook) for hook in sys.path_hooks)


def _importer(path: str, hook: Any) -> bool:
    try:
        return hook(path) is not None
    except ImportError:
        return False


def _compiled(data: bytes, path: str) -> Any:
    """The code of a script, which may be compiled already."""
    if data[:4] == importlib.util.MAGIC_NUMBER:
        return importlib.machinery.SourcelessFileLoader("__main__", path).get_code("__main__")
    return compile(data, path, "exec", dont_inherit=True)


def _cannot_open(path: str, error: OSError) -> NoReturn:
    """The interpreter's message and exit status."""
    sys.stderr.write(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n")
    sys.exit(2)


def _decorated(path: str, name: str, selection: Selection) -> Union[types.CodeType, None]:
    """None if no function is selected, for a compiled script, and for a file with an error, which the interpreter itself
    reports."""
    try:
        data = Path(path).read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        tree = ast.parse(data.decode(encoding), path)
        if not _decorate(tree, (name,), selection):
            return None
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, OSError, RecursionError):
        return None


def _decorate(owner: Union[ast.Module, ast.ClassDef], names: tuple[str, ...], selection: Selection) -> int:
    """Decorates the functions of a module or class, and of the classes in it; returns their number."""
    count = 0
    for statement in owner.body:
        if isinstance(statement, ast.ClassDef):
            count += _decorate(statement, (*names, f"{names[-1]}.{statement.name}"), selection)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            full = f"{names[-1]}.{statement.name}"
            if selection.is_watchable(statement.name, full) and selection.holds((*names, full)):
                statement.decorator_list.insert(_place(statement), ast.copy_location(ast.Name(_RECORD, ast.Load()), statement))
                count += 1
    return count


def _place(function: Function) -> int:
    """The position for our decorator: inside `@property` and similar decorators, which must be applied last, and outside of all
    other decorators."""
    inner = [at for at, one in enumerate(function.decorator_list) if isinstance(one, (ast.Name, ast.Attribute))]
    outermost = [at for at in inner if ast.unparse(function.decorator_list[at]).split(".")[-1] in _DESCRIPTORS]
    return outermost[-1] + 1 if outermost else 0


_DESCRIPTORS = {"property", "staticmethod", "classmethod", "setter", "getter", "deleter", "overload", "abstractmethod"}
