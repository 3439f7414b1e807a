"""Records this process if a recorded program has started it.

The interpreter runs this module at its start, since PYTHONPATH begins with this directory (`../children.py`). The program's own
module of this name runs as usual. An interpreter that is too old for the agent (3.6 to 3.8) continues without it, silently.
"""

import importlib.util
import os
import sys

_VERSION_MIN = (3, 9)


def _own() -> None:
    """Runs the module of this name that would have run without this directory, if there is one."""
    spec = importlib.util.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _load(package: str) -> None:
    """Loads the agent without adding its directory to `sys.path`, because other modules there may have names of the standard
    library."""
    file = os.path.join(package, "__init__.py")
    spec = importlib.util.spec_from_file_location("tachograph", file, submodule_search_locations=[package])
    if spec is None or spec.loader is None:
        raise ImportError("cannot be loaded: " + package)
    module = importlib.util.module_from_spec(spec)
    sys.modules["tachograph"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["tachograph"]
        raise


def _watch(home: str) -> None:
    arguments = getattr(sys, "orig_argv", [])  # since 3.10
    starts_itself = any(pair == ("-m", "tachograph") for pair in zip(arguments, arguments[1:]))
    if starts_itself or any("_tracker import main" in argument for argument in arguments):  # trackers of multiprocessing
        return
    if "tachograph" not in sys.modules:
        _load(os.path.join(home, "tachograph"))
    from tachograph import agent  # noqa: PLC0415, importable only now

    service = os.environ.get("TACHO_SERVICE") or os.environ.get("_TACHOGRAPH_SERVICE")
    agent.start(**({"service": service} if service else {}))


def _run() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    if here in sys.path:
        sys.path.remove(here)  # the program gets its original path
    this = sys.modules.pop("sitecustomize", None)
    try:
        _own()
    finally:
        if this is not None:
            sys.modules.setdefault("sitecustomize", this)
    if sys.version_info < _VERSION_MIN:
        return
    try:
        _watch(os.path.dirname(os.path.dirname(here)))
    except Exception as e:  # the program continues
        sys.stderr.write(f"tachograph: this process is not recorded: {type(e).__name__}: {e}\n")


_run()
