"""The interface of all systems."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path

from ...common.client import Client, HttpError, Request, free_port
from ..dataset import Dataset
from ..encode.lines import lines
from ...common.process import Memory, Server, disk_bytes
from ..questions import Question
from ..reference import Answer

READY_SECONDS_MAX = 120


class NotOffered(Exception):
    """The system cannot express a query in its language, or cannot store the data. The text names the reason."""


class System(ABC):
    """One server with its own data directory, which may be started and stopped repeatedly."""

    name: str
    title: str
    wire: str = "line protocol"
    """The write protocol, as shown in the tables."""
    writers: int = 2
    reserves: frozenset[str] = frozenset()
    """Names of files that reserve space and hold no data."""
    notes: tuple[str, ...] = ()
    """Notes for readers of the figures."""

    def __init__(self, cache: Path, run: Path, dataset: Dataset):
        """`cache` holds installed packages and the cached bodies. `run` is the directory for the data and the log of this
        system with this dataset; it must be empty at the first start."""
        self.cache = cache
        self.run = run
        self.dataset = dataset
        self.port = free_port()
        self.server = Server(run / "log")

    # Implemented by adapters.

    @classmethod
    @abstractmethod
    def install(cls, cache: Path) -> str:
        """Installs the system into `cache`, without starting a service. Returns the version."""

    def stage(self) -> None:
        """Puts files that the system needs into `run`, which is empty. The time of the start does not include it."""

    @abstractmethod
    def launch(self) -> None:
        """Starts the processes, without waiting until they are ready."""

    @abstractmethod
    def is_ready(self, client: Client) -> bool:
        """Whether the system accepts writes. May raise OSError or HttpError if it does not."""

    @abstractmethod
    def settle(self) -> None:
        """Writes all data to disk in its final form: journals are flushed, parts are merged."""

    @abstractmethod
    def data(self) -> list[Path]:
        """The directories whose bytes are counted, without caches that may be lost."""

    @abstractmethod
    def request(self, question: Question) -> Request:
        """Raises NotOffered if the language of the system cannot express the query."""

    @abstractmethod
    def answer(self, question: Question, body: bytes) -> Answer:
        """Parses the response into the form of `Reference.answer`."""

    # Shared by adapters.

    def bodies(self) -> Iterator[bytes]:
        """The data to write, request by request."""
        return lines(self.dataset)

    @property
    def bodies_name(self) -> str:
        """The name of the bodies in the cache. The same name must mean the same bytes."""
        return f"{self.dataset.name}/lines"

    def write(self, client: Client, body: bytes) -> None:
        """Waits for the response."""
        client.send(self.write_request(body))

    def write_request(self, body: bytes) -> Request:
        return Request("POST", "/write", body)

    def prepare(self) -> None:
        """The steps before the first write that cannot be part of the configuration."""

    def finish_writes(self) -> None:
        """Waits until the system has processed all writes, if its protocol has no responses."""

    def quantiles_are_ranks(self) -> bool:
        """Whether quantiles are nearest ranks or approximations, instead of exact interpolations."""
        return False

    def start(self) -> None:
        """Returns when the system is ready."""
        self.launch()
        self.server.wait_until(self._answers, READY_SECONDS_MAX)

    def stop(self) -> None:
        self.server.stop()

    def kill(self) -> None:
        """Simulates a crash."""
        self.server.kill()

    def restart(self) -> None:
        self.stop()
        self.start()

    def client(self) -> Client:
        return Client(self.port)

    def send(self, request: Request) -> bytes:
        """Sends one request on its own connection."""
        with self.client() as client:
            return client.send(request)

    def disk_bytes_live(self) -> int:
        """Current bytes in the directories of the system."""
        return disk_bytes(*self.data(), reserves=self.reserves)

    def disk_bytes(self) -> int:
        """Bytes of the settled data."""
        return self.disk_bytes_live()

    def cpu_seconds(self) -> float:
        return self.server.cpu_seconds()

    def memory(self) -> Memory:
        return self.server.memory()

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return self.is_ready(client)
        except (OSError, HttpError):
            return False
