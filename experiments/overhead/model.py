"""The terms of the experiments."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path


class Stage(Enum):
    """The work of a setup that costs time: program (T), instrumentation (I), creation (C) and writing (W) of records."""

    T = "T"
    """The program without an agent."""
    I = "T+I"  # noqa: E741
    """The program is instrumented, but recording is switched off."""
    C = "T+I+C"
    """Records are created; the writer discards them."""
    W = "T+I+C+W"
    """Records are written."""


class Takes(Enum):
    """The receiver of the records."""

    NOBODY = "nobody"
    SINK = "sink"
    """The sink process, which counts and discards calls."""
    FILES = "files"
    """A directory. The calls in its files are counted after the process has ended."""
    SERVER = "server"
    """A real `tacho serve` with an empty data directory."""


@dataclass(frozen=True)
class Setup:
    """One configuration of a framework."""

    name: str
    title: str
    stage: Stage
    takes: Takes = Takes.NOBODY
    sink: tuple[str, ...] = ()
    """Arguments of the sink: the protocol and its parameters."""
    is_lossy: bool = False
    """Whether our agent may drop calls, or gets a rule (`switches`). Then dropped calls do not change the exit code.
    False for other agents, whose losses never change the exit code."""
    switches: bool = False
    """Whether the sink sends the agent a rule that switches the method off or to counting only. The agent must confirm the
    rule."""
    note: str = ""


@dataclass(frozen=True)
class Place:
    """Paths and addresses for a setup while a process runs."""

    cache: Path
    work: Path
    """A new directory for this process and its receiver."""
    address: str
    """host:port of the receiver; empty if there is no receiver."""

    @property
    def port(self) -> str:
        return self.address.rpartition(":")[2]


class Framework(ABC):
    """One framework. To add a framework, add a file in `frameworks/`, and import and list it in
    `frameworks/__init__.py`."""

    name: str
    title: str
    setups: tuple[Setup, ...]
    notes: tuple[str, ...] = ()
    """Notes for readers of the figures."""

    @abstractmethod
    def install(self, cache: Path) -> str:
        """Installs the framework. Returns the version. Raises RuntimeError or OSError if the framework is not
        available."""

    def jvm(self, setup: Setup, place: Place) -> list[str]:
        """Options of the measured JVM."""
        return []

    def environment(self, setup: Setup, place: Place) -> dict[str, str]:
        """Variables of the measured process."""
        return {}


@dataclass(frozen=True)
class Workload:
    """The work of the measured process."""

    seconds: float
    warm_up_seconds: float
    threads: int = 1
    depth: int = 10
    method_us: float = 0.0
    pace: int = 0
    """Traces per second; 0 means unlimited."""
    load: int = 0
    """Number of other processes that each keep a core busy."""

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
    """Cells that are compared with each other. Their processes alternate."""

    name: str
    title: str
    forks: int
    cells: tuple[Cell, ...] = field(default_factory=tuple)
