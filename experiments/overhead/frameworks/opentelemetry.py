"""OpenTelemetry's Java agent: one span per call."""

from pathlib import Path

from bench.common.install import maven

from ..model import Framework, Place, Setup, Stage, Takes

VERSION = "2.33.1"


class OpenTelemetry(Framework):
    name = "otel"
    title = "OpenTelemetry"
    setups = (
        Setup("otel-off", "sampler always_off", Stage.I),
        Setup("otel-collect", "exporter none", Stage.C),
        Setup("otel-otlp", "OTLP", Stage.W, Takes.SINK, ("otlp",)),
    )
    notes = (
        "a single method cannot be switched off; `off` uses the sampler `always_off`, which still creates contexts",
        "drops spans by default when its queue of 2,048 is full, and reports little about dropped spans",
    )

    def install(self, cache: Path) -> str:
        self._jar(cache)
        return VERSION

    @staticmethod
    def _jar(cache: Path) -> Path:
        return maven(cache, "io.opentelemetry.javaagent", "opentelemetry-javaagent", VERSION)

    def jvm(self, setup: Setup, place: Place) -> list[str]:
        options = {
            "otel.instrumentation.methods.include": "observed.Monitored[monitoredMethod]",
            "otel.service.name": "overhead",
            "otel.metrics.exporter": "none",
            "otel.logs.exporter": "none",
            "otel.traces.exporter": "otlp" if setup.takes is Takes.SINK else "none",
            "otel.exporter.otlp.endpoint": f"http://{place.address}",
            "otel.traces.sampler": "always_off" if setup.stage is Stage.I else "parentbased_always_on",
            "otel.javaagent.logging": "none",
        }
        return [f"-javaagent:{self._jar(place.cache)}"] + [f"-D{name}={value}" for name, value in options.items()]
