"""Records functions of the script itself. The script is not imported, and it may run until the program ends (a server). So its
functions are changed as soon as they are defined: each selected function gets an outermost decorator in the syntax tree, which
changes the function in place and returns the same object (only an asynchronous generator is wrapped). So calls through references
that the function's own decorators keep (the routes of Flask, a table of functions) are recorded.

A script without selected functions runs unchanged. The added decorators do not change line numbers.
Before: `python -m tachograph run`. After: imports.
"""

from __future__ import annotations

import ast
import builtins
import importlib.machinery
import importlib.util
import inspect
import io
import os
import runpy
import sys
import tokenize
import types
from pathlib import Path
from typing import Any, Callable, NoReturn, Optional, Union

from . import recorder
from .imports import Imports
from .patterns import Selection

_RECORD = "__tachograph_record__"

# Names of the module, of the classes around a function, and of the function.
Names = tuple[str, ...]
# The code of a script with the added decorators, and the function that they call.
Decorated = tuple[types.CodeType, Callable[[int], Any]]


def run(path: str, imports: Optional[Imports]) -> None:
    """Runs a script, a directory or a zip file as `__main__`, like the interpreter. Its exceptions propagate."""
    main = _fresh_main()
    if _is_archive(path):
        sys.path[0] = _absolute(path)
        _run_as_main("__main__", False, imports)
        return
    name = Path(path).stem
    file = _absolute(path)
    try:
        with io.open_code(file) as source:  # raises the audit event that the interpreter raises for a script
            data = source.read()
    except OSError as e:
        _cannot_open(file, e)
    decorated = _decorated(data, file, name, imports) if imports else None
    loader: Any = importlib.machinery.SourceFileLoader("__main__", file)
    if decorated:
        code, main.__dict__[_RECORD] = decorated
    else:
        code = _compiled(data, file)
        if file.endswith(".pyc"):
            loader = importlib.machinery.SourcelessFileLoader("__main__", file)
    main.__dict__.update({"__file__": file, "__cached__": None, "__loader__": loader})
    exec(code, main.__dict__)


def run_module(name: str, imports: Optional[Imports]) -> None:
    """Runs a module like `python -m`."""
    _fresh_main()
    sys.argv[0] = "-m"  # as the interpreter does while it searches for the module
    _run_as_main(name, True, imports)


def _run_as_main(name: str, is_option: bool, imports: Optional[Imports]) -> None:
    """Calls the function of `runpy` that the interpreter itself calls. It searches for the module and passes its code to
    `runpy._run_code`. If functions are selected, a replacement of `_run_code` runs the code with the added decorators."""
    library: Any = runpy
    execute = library._run_code

    def execute_decorated(code: Any, names: dict[str, Any], init: Any, main: str, spec: Any, *more: Any) -> Any:
        library._run_code = execute
        decorated = _decorated_module(code, spec, imports) if imports else None
        if decorated:
            code, names[_RECORD] = decorated
        return execute(code, names, init, main, spec, *more)

    library._run_code = execute_decorated
    try:
        library._run_module_as_main(name, is_option)
    finally:
        library._run_code = execute


def _fresh_main() -> types.ModuleType:
    """A new `__main__` module. It stays in `sys.modules` after the script, because threads and exit handlers may still use it."""
    main = types.ModuleType("__main__")
    main.__dict__.update({"__builtins__": builtins, "__loader__": importlib.machinery.BuiltinImporter})
    if sys.version_info < (3, 14):
        main.__annotations__ = {}
    sys.modules["__main__"] = main
    return main


def _absolute(path: str) -> str:
    """The path as the interpreter shows it. Links are not resolved. Parts `.` and `..` are resolved only on Windows."""
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
    """The code of a script. `data`: the source, or the content of a `.pyc` file."""
    if data[:4] == importlib.util.MAGIC_NUMBER:
        return importlib.machinery.SourcelessFileLoader("__main__", path).get_code("__main__")
    return compile(data, path, "exec", dont_inherit=True)


def _cannot_open(path: str, error: OSError) -> NoReturn:
    """The interpreter's message and exit status."""
    sys.stderr.write(f"{sys.executable}: can't open file {path!r}: [Errno {error.errno}] {error.strerror}\n")
    sys.exit(2)


def _decorated_module(code: types.CodeType, spec: Any, imports: Imports) -> Optional[Decorated]:
    """Like `_decorated`, for a module that is run as `__main__`."""
    try:
        source = spec.loader.get_source(spec.name)
    except Exception:  # the loader has no source, or cannot read it
        return None
    return _decorated(source, code.co_filename, recorder.name_of_main(spec), imports) if source else None


def _decorated(data: Union[bytes, str], path: str, name: str, imports: Imports) -> Optional[Decorated]:
    """The code of the script with the added decorators, and the function that they call. None if no function is selected, for a
    compiled script, and for a file with an error. The interpreter itself reports the error."""
    if not imports.selection.may_hold(name):
        return None
    try:
        if isinstance(data, bytes):
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
            data = data.decode(encoding)
        tree = ast.parse(data, path)
        selected: list[Names] = []
        _decorate(tree, (name,), imports.selection, selected)
        if not selected:
            return None
        code = compile(tree, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return code, _recorder(imports, selected, code, tree)


def _decorate(owner: Union[ast.Module, ast.ClassDef], names: Names, selection: Selection, selected: list[Names]) -> None:
    """Adds an outermost decorator to each selected function directly in a module or class (not in an `if` or `try`), and in the
    classes directly in it. The decorator gets the position of the function's names in `selected`."""
    for statement in owner.body:
        if isinstance(statement, ast.ClassDef):
            _decorate(statement, (*names, f"{names[-1]}.{statement.name}"), selection, selected)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            full = f"{names[-1]}.{statement.name}"
            if selection.is_watchable(statement.name, full) and selection.holds((*names, full)):
                call = ast.Call(ast.Name(_RECORD, ast.Load()), [ast.Constant(len(selected))], [])
                first = statement.decorator_list[0] if statement.decorator_list else statement  # `co_firstlineno` stays the same
                for node in ast.walk(call):
                    ast.copy_location(node, first)
                statement.decorator_list.insert(0, call)
                selected.append((*names, full))


def _recorder(imports: Imports, selected: list[Names], code: types.CodeType, tree: ast.Module) -> Callable[[int], Any]:
    """The function that the added decorators call while the script runs. It never raises."""
    later = _defined_later(code, tree)

    def record(position: int) -> Callable[[Any], Any]:
        return lambda member: imports.watch_function_of_script(member, selected[position], later)

    return record


def _defined_later(code: types.CodeType, tree: ast.Module) -> dict[str, Any]:
    """The functions at the top level of the script, by name. A function of the script may call functions that are defined below
    it, and whether it is changed depends on them."""
    defaults: dict[str, tuple[Any, ...]] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            values = (*node.args.defaults, *node.args.kw_defaults)
            defaults[node.name] = tuple(one.value for one in values if isinstance(one, ast.Constant))
    found: dict[str, Any] = {}
    for one in code.co_consts:
        if isinstance(one, types.CodeType) and one.co_name in defaults and one.co_flags & inspect.CO_OPTIMIZED:
            if not one.co_freevars:
                found[one.co_name] = types.FunctionType(one, found, one.co_name, defaults[one.co_name])
    return found
