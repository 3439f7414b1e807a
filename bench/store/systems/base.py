"""What every system can do. An adapter says how."""

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
    """The system's language has no such question; the text says what is missing."""


class System(ABC):
    """One server with a data directory of its own. Started and stopped as often as one likes; the data stays."""

    name: str
    title: str
    wire: str = "line protocol"
    """How it is written to, for the tables."""
    writers: int = 2
    reserves: frozenset[str] = frozenset()
    """Names of files that only keep room free."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures must know."""

    def __init__(self, cache: Path, run: Path, dataset: Dataset):
        """`cache` keeps what was installed; `run` is an empty directory for this system and this dataset."""
        self.cache = cache
        self.run = run
        self.dataset = dataset
        self.port = free_port()
        self.server = Server(run / "log")

    # What an adapter must say.

    @classmethod
    @abstractmethod
    def install(cls, cache: Path) -> str:
        """Makes it runnable from `cache`, without starting a service. The version."""

    @abstractmethod
    def launch(self) -> None:
        """Starts the processes; does not wait."""

    @abstractmethod
    def is_ready(self, client: Client) -> bool:
        """Whether it can be written to; may raise OSError or HttpError when not."""

    @abstractmethod
    def settle(self) -> None:
        """Brings everything to disk in its final form: journals flushed, parts merged."""

    @abstractmethod
    def data(self) -> list[Path]:
        """The directories whose bytes count; caches that can be lost are not among them."""

    @abstractmethod
    def request(self, question: Question) -> Request:
        """The question in the system's own language. Raises NotOffered."""

    @abstractmethod
    def answer(self, question: Question, body: bytes) -> Answer:
        """What it said, in the form of `Reference.answer`."""

    # What adapters share.

    def bodies(self) -> Iterator[bytes]:
        """What is written, request by request."""
        return lines(self.dataset)

    @property
    def bodies_name(self) -> str:
        """Bodies of the same name are the same bytes, and are kept."""
        return f"{self.dataset.name}/lines"

    def write(self, client: Client, body: bytes) -> None:
        """One request, answered when the system answers."""
        client.send(self.write_request(body))

    def write_request(self, body: bytes) -> Request:
        return Request("POST", "/write", body)

    def prepare(self) -> None:
        """What has to be said once before the first write, and cannot be in the configuration."""

    def finish_writes(self) -> None:
        """Returns when what was written can be read; most systems' answers to writes say so already."""

    def quantiles_are_ranks(self) -> bool:
        """Whether quantiles are values that occur (nearest rank), instead of lying between them."""
        return False

    def start(self) -> None:
        """Returns when it is ready."""
        self.launch()
        self.server.wait_until(self._answers, READY_SECONDS_MAX)

    def stop(self) -> None:
        self.server.stop()

    def restart(self) -> None:
        self.stop()
        self.start()

    def client(self) -> Client:
        return Client(self.port)

    def send(self, request: Request) -> bytes:
        """One request on a connection of its own."""
        with self.client() as client:
            return client.send(request)

    def disk_bytes_live(self) -> int:
        """What lies in its directories at this moment."""
        return disk_bytes(*self.data(), reserves=self.reserves)

    def disk_bytes(self) -> int:
        """What the data take once they are settled."""
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
