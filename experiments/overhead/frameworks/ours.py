"""Tachograph's own agent, as built by `make build`."""

import os
from dataclasses import replace
from pathlib import Path

from bench.common.install import run

from ..model import Framework, Place, Setup, Stage, Takes

ROOT = Path(__file__).resolve().parents[3]
AGENT = Path(os.environ.get("TACHO_AGENT", ROOT / "agent/java/target/tachograph-agent.jar")).resolve()
TACHO = Path(os.environ.get("TACHO", ROOT / "target/release/tacho")).resolve()
METHOD = "observed.Monitored.monitoredMethod"

OFF = Setup("ours-off", "switched off", Stage.I, Takes.SINK, ("tachograph", f"off:{METHOD}"), is_lossy=True, switches=True)
COLLECT = Setup("ours-collect", "no writer", Stage.C)
SINK = Setup("ours-sink", "sink", Stage.W, Takes.SINK, ("tachograph",))
DROP = Setup("ours-drop", "sink, may drop", Stage.W, Takes.SINK, ("tachograph",), is_lossy=True)
SERVER = Setup("ours-server", "tacho serve", Stage.W, Takes.SERVER)
AGGREGATE = Setup(
    "ours-aggregate",
    "counts only",
    Stage.W,
    Takes.SINK,
    ("tachograph", f"aggregate:{METHOD}"),
    is_lossy=True,
    switches=True,
)


class Tachograph(Framework):
    name = "ours"
    agent: Path | None = AGENT
    title = "Tachograph"
    setups = (OFF, COLLECT, SINK, DROP, SERVER, AGGREGATE)
    notes = (
        "switched off by a rule of the server at run time, as `tacho probes off` does",
        "no writer: recorded by the program, prepared for sending by the sender, and discarded (`server = discard`)",
        "`when_full = block`, so that nothing is lost, except for the setup `sink, may drop`, which has the default",
    )

    def install(self, cache: Path) -> str:
        if self.agent is None or not self.agent.exists():
            raise FileNotFoundError(f"{self.agent} is missing; run make build")
        version = run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]).strip()
        return f"0.1.0 ({version})"

    def jvm(self, setup: Setup, place: Place) -> list[str]:
        return [f"-javaagent:{self.agent}"]

    def environment(self, setup: Setup, place: Place) -> dict[str, str]:
        return {
            "TACHO_SERVER": "discard" if setup.takes is Takes.NOBODY else place.address,
            "TACHO_SERVICE": "overhead",
            "TACHO_INCLUDE": METHOD,
            "TACHO_WHEN_FULL": "drop" if setup.title == DROP.title else "block",
            "TACHO_BLOCK_MAX": "10s",
            "TACHO_FLUSH_MAX": "30s",
            "TACHO_QUEUE": "16MiB",
            "TACHO_LOG": str(place.work / "agent.log"),
        }


def before(setup: str) -> str:
    """The corresponding setup of the earlier build. Names of other frameworks are returned unchanged."""
    return f"before-{setup.removeprefix('ours-')}" if setup.startswith("ours-") else setup


class TachographBefore(Tachograph):
    """An earlier build of the agent, measured in the same run."""

    name = "before"
    title = "Tachograph before"
    setups = tuple(replace(setup, name=before(setup.name)) for setup in Tachograph.setups)
    notes = ()
    agent = None
    """The path given by `--before-agent`. Without the option this framework is not measured."""

    def install(self, cache: Path) -> str:
        super().install(cache)
        return str(self.agent)
