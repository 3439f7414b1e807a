"""The nouns: a workload, a setup (one way to watch), a cell (a setup under a workload), an experiment."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path


class Stage(Enum):
    """What a trace's time is made of. Each stage has all of the one before."""

    T = "T"
    """The program alone."""
    I = "T+I"  # noqa: E741
    """Instrumented, but switched off."""
    C = "T+I+C"
    """Records are made; the writer throws them away."""
    W = "T+I+C+W"
    """Records are written."""


class Takes(Enum):
    """Who takes the records."""

    NOBODY = "nobody"
    SINK = "sink"
    """The sink process, which counts calls and throws them away."""
    FILES = "files"
    """A folder, counted and deleted afterwards."""
    SERVER = "server"
    """A real `tacho serve` with an empty data directory."""


@dataclass(frozen=True)
class Setup:
    """One way to watch."""

    name: str
    title: str
    stage: Stage
    takes: Takes = Takes.NOBODY
    sink: tuple[str, ...] = ()
    """Arguments of the sink: the protocol, and what it wants to know."""
    is_lossy: bool = False
    """The framework may leave calls out by its own setting: told, but no fault."""
    switches: bool = False
    """The sink tells the agent to switch the method; it has to say that it did."""
    note: str = ""


@dataclass(frozen=True)
class Place:
    """Where a setup finds things while a process runs."""

    cache: Path
    work: Path
    """An empty folder of this process."""
    address: str
    """host:port of who takes the records; empty for nobody."""

    @property
    def port(self) -> str:
        return self.address.rpartition(":")[2]


class Framework(ABC):
    """One framework. One more is one file in `frameworks/` and one line in its `__init__.py`."""

    name: str
    title: str
    setups: tuple[Setup, ...]
    notes: tuple[str, ...] = ()
    """What a reader of the figures must know."""

    @abstractmethod
    def install(self, cache: Path) -> str:
        """Makes it runnable. The version. Raises RuntimeError or OSError where it cannot be had."""

    def jvm(self, setup: Setup, place: Place) -> list[str]:
        """Options of the measured JVM."""
        return []

    def environment(self, setup: Setup, place: Place) -> dict[str, str]:
        """Variables of the measured process."""
        return {}


@dataclass(frozen=True)
class Workload:
    """What the measured process does."""

    seconds: float
    warm_up_seconds: float
    threads: int = 1
    depth: int = 10
    method_us: float = 0.0
    pace: int = 0
    """Traces a second; 0 is as many as possible."""
    load: int = 0
    """Other processes that each keep a core busy."""

    def arguments(self) -> list[str]:
        return [
            f"millis={self.seconds * 1e3:.0f}",
            f"warm-up-millis={self.warm_up_seconds * 1e3:.0f}",
            f"threads={self.threads}",
            f"depth={self.depth}",
            f"method-ns={self.method_us * 1e3:.0f}",
            f"pace={self.pace}",
        ]


@dataclass(frozen=True)
class Cell:
    """A setup under a workload."""

    framework: Framework
    setup: Setup
    workload: Workload

    def plain(self) -> dict:
        return {
            "framework": self.framework.title,
            "setup": self.setup.name,
            "title": self.setup.title,
            "stage": self.setup.stage.value,
            "takes": self.setup.takes.value,
            "is_lossy": self.setup.is_lossy,
            "switches": self.setup.switches,
            "workload": asdict(self.workload),
        }


@dataclass(frozen=True)
class Experiment:
    """Cells that are compared with each other: their processes run in turns."""

    name: str
    title: str
    forks: int
    cells: tuple[Cell, ...] = field(default_factory=tuple)
