"""Records a program without changes to it: `python -m tachograph run app.py ...` or `run -m shop.server ...`.

Before: the shell. After: agent.start, then the program as `__main__`.
"""

from __future__ import annotations

import os
import sys

from . import agent, script

HELP = """\
usage: python -m tachograph run [-m] PROGRAM [ARGUMENT ...]

Runs a script, or with -m a module, and records the functions in TACHO_INCLUDE and the calls of the probes.
Settings come from the environment: TACHO_SERVER, TACHO_SERVICE, TACHO_INCLUDE ... (README.md lists all).

example: TACHO_INCLUDE='shop..*' python -m tachograph run app.py --port 8080
"""


def main(arguments: list[str]) -> int:
    """Returns the exit status, which is used unless the program sets its own."""
    if arguments[:1] in (["-h"], ["--help"]):
        sys.stdout.write(HELP)
        return 0
    is_module = arguments[1:2] == ["-m"]
    program = arguments[2:] if is_module else arguments[1:]
    if arguments[:1] != ["run"] or not program:
        sys.stderr.write(HELP)
        return 2
    sys.argv = program
    # The first entry of `sys.path`, as the interpreter sets it: the directory of the script, with links followed, or the current
    # directory for a module. With `-P` or `-I` there is no such entry.
    if not getattr(sys.flags, "safe_path", False) and not sys.flags.isolated:
        sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.realpath(program[0]))
    if is_module:
        agent.start(**_service(program[0].split(".")[0]))
        agent.watch_children()
        script.run_module(program[0], agent.recording())
    else:
        agent.start()
        agent.watch_children()
        script.run(program[0], agent.recording())
    return 0


def _service(name: str) -> dict[str, str]:
    """Names the service after the top-level package of the module, unless TACHO_SERVICE is set. Without this name,
    `identity.service_of` would take the module's name in `sys.argv` for the path of a script."""
    return {} if os.environ.get("TACHO_SERVICE") else {"service": name}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
