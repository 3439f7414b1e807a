"""How are functions of the script itself watched? It is no import, so its functions are decorated in its syntax tree.

Only where a pattern selects them; a script of which nothing is selected runs as it is. Line numbers stay, so tracebacks are the
same. Before: `python -m tachograph run`. After: recorder.record.
"""

from __future__ import annotations

import ast
import builtins
import io
import runpy
import sys
import tokenize
import types
from pathlib import Path
from typing import Union

from .patterns import Selection
from .recorder import record

_RECORD = "__tachograph_record__"

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]


def run(path: str, selection: Selection) -> None:
    """Runs a script as `__main__`. What it raises comes through."""
    name = Path(path).stem
    code = _decorated(path, name, selection) if Path(path).is_file() and selection.may_hold(name) else None
    if code is None:
        runpy.run_path(path, run_name="__main__")
        return
    main = types.ModuleType("__main__")
    main.__dict__.update({"__file__": path, "__builtins__": builtins, "__cached__": None, _RECORD: record})
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _decorated(path: str, name: str, selection: Selection) -> Union[types.CodeType, None]:
    """None for what is no text (a zip file), or has a fault that the interpreter itself had better name."""
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
    """The functions of a module or class, and of the classes in it; how many."""
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
    """Inside `@property` and its like, which have to come last; outside of all others."""
    inner = [at for at, one in enumerate(function.decorator_list) if isinstance(one, (ast.Name, ast.Attribute))]
    outermost = [at for at in inner if ast.unparse(function.decorator_list[at]).split(".")[-1] in _DESCRIPTORS]
    return outermost[-1] + 1 if outermost else 0


_DESCRIPTORS = {"property", "staticmethod", "classmethod", "setter", "getter", "deleter", "overload", "abstractmethod"}
