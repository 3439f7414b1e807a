"""The program without an agent."""

from pathlib import Path

from ..model import Framework, Setup, Stage

NONE = Setup("none", "none", Stage.T)


class Unwatched(Framework):
    name = "none"
    title = "none"
    setups = (NONE,)

    def install(self, cache: Path) -> str:
        return "-"
