"""Is this process one that a watched program has started? Then it is watched, too. The interpreter runs this module at its
start, since PYTHONPATH begins with this folder (`../children.py`). A module of this
name that the program has itself runs as ever.
"""

import importlib.util
import os
import sys


def _own() -> None:
    """What would have run if this folder were not there."""
    spec = importlib.util.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _watch(home: str) -> None:
    arguments = getattr(sys, "orig_argv", [])  # since 3.10
    starts_itself = any(pair == ("-m", "tachograph") for pair in zip(arguments, arguments[1:]))
    if starts_itself or any("_tracker import main" in argument for argument in arguments):  # of multiprocessing
        return
    sys.path.insert(0, home)
    try:
        from tachograph import agent  # noqa: PLC0415, the folder is in the path only now
    finally:
        sys.path.remove(home)
    service = os.environ.get("TACHO_SERVICE") or os.environ.get("_TACHOGRAPH_SERVICE")
    agent.start(**({"service": service} if service else {}))


def _run() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    if here in sys.path:
        sys.path.remove(here)  # the program finds the path that it would have
    this = sys.modules.pop("sitecustomize", None)
    try:
        _own()
    finally:
        if this is not None:
            sys.modules.setdefault("sitecustomize", this)
    try:
        _watch(os.path.dirname(os.path.dirname(here)))
    except Exception as e:  # the program goes on
        sys.stderr.write(f"tachograph: this process is not watched: {type(e).__name__}: {e}\n")


_run()
