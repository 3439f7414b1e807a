"""Kieker, the origin of this benchmark: one OperationExecutionRecord per call, by Byte Buddy or AspectJ."""

from pathlib import Path

from bench.common.install import maven

from ..model import Framework, Place, Setup, Stage, Takes

VERSION = "2.0.2"
CONTROLLER = "kieker.monitoring.core.controller.WriterController"
TCP_WRITER = "kieker.monitoring.writer.tcp.SingleSocketTcpWriter"
FILE_WRITER = "kieker.monitoring.writer.filesystem.FileWriter"
AOP = """<!DOCTYPE aspectj PUBLIC "-//AspectJ//DTD//EN" "http://www.aspectj.org/dtd/aspectj_1_5_0.dtd">
<aspectj>
  <weaver options=""><include within="observed..*"/></weaver>
  <aspects><aspect name="kieker.monitoring.probe.aspectj.operationExecution.OperationExecutionAspectFull"/></aspects>
</aspectj>
"""


def _setups(name: str) -> tuple[Setup, ...]:
    return (
        Setup(f"{name}-off", "switched off", Stage.I),
        Setup(f"{name}-collect", "no writer", Stage.C),
        Setup(f"{name}-tcp", "TCP", Stage.W, Takes.SINK, ("kieker",)),
        Setup(f"{name}-file", "binary file", Stage.W, Takes.FILES, ("kieker-files",)),
    )


class _Kieker(Framework):
    classifier: str
    notes = (
        "switched off: `kieker.monitoring.enabled=false`; no writer: `DumpQueue`, as in MooBench",
        "blocks the program when its queue of 10,000 records is full (its default); the program then yields instead of sleeping",
        "the connection timeout is raised from 1 ms to 5 s, because with the default the writer often fails at the start",
    )

    def install(self, cache: Path) -> str:
        self._jar(cache)
        return VERSION

    def _jar(self, cache: Path) -> Path:
        return maven(cache, "net.kieker-monitoring", "kieker", VERSION, self.classifier)

    def jvm(self, setup: Setup, place: Place) -> list[str]:
        options = [f"-javaagent:{self._jar(place.cache)}", "-Dslf4j.internal.verbosity=ERROR"]
        stage = setup.name.rpartition("-")[2]
        return options + self._writer(stage, place)

    @staticmethod
    def _writer(stage: str, place: Place) -> list[str]:
        if stage in ("off", "collect"):
            return [
                f"-Dkieker.monitoring.enabled={'false' if stage == 'off' else 'true'}",
                "-Dkieker.monitoring.writer=kieker.monitoring.writer.dump.DumpWriter",
                f"-D{CONTROLLER}.RecordQueueFQN=kieker.monitoring.writer.dump.DumpQueue",
            ]
        queue = f"-D{CONTROLLER}.QueuePutStrategy=kieker.monitoring.queue.putstrategy.YieldPutStrategy"
        if stage == "tcp":
            return [
                queue,
                f"-Dkieker.monitoring.writer={TCP_WRITER}",
                f"-D{TCP_WRITER}.hostname=127.0.0.1",
                f"-D{TCP_WRITER}.port={place.port}",
                f"-D{TCP_WRITER}.connectionTimeoutInMs=5000",
            ]
        return [
            queue,
            f"-Dkieker.monitoring.writer={FILE_WRITER}",
            f"-D{FILE_WRITER}.customStoragePath={place.work}",
            f"-D{FILE_WRITER}.logStreamHandler=kieker.monitoring.writer.filesystem.BinaryLogStreamHandler",
        ]


class KiekerByteBuddy(_Kieker):
    name = "kieker"
    title = "Kieker, Byte Buddy"
    classifier = "bytebuddy"
    setups = _setups("kieker")

    def environment(self, setup: Setup, place: Place) -> dict[str, str]:
        return {"KIEKER_SIGNATURES_INCLUDE": "observed.Monitored"}


class KiekerAspectJ(_Kieker):
    name = "kieker-aspectj"
    title = "Kieker, AspectJ"
    notes = ()
    classifier = "aspectj"
    setups = _setups("kieker-aspectj")

    def jvm(self, setup: Setup, place: Place) -> list[str]:
        configuration = place.work / "aop.xml"
        configuration.write_text(AOP)
        return super().jvm(setup, place) + [
            "-Dkieker.monitoring.skipDefaultAOPConfiguration=true",
            f"-Dorg.aspectj.weaver.loadtime.configuration={configuration.as_uri()}",
        ]
