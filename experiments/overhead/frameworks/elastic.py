"""Elastic's APM agent. The outermost call is a transaction, each nested call is a span."""

from pathlib import Path

from bench.common.install import maven

from ..model import Framework, Place, Setup, Stage, Takes

VERSION = "1.52.0"


class Elastic(Framework):
    name = "elastic"
    title = "Elastic APM"
    setups = (
        Setup("elastic-off", "recording false", Stage.I),
        Setup("elastic-collect", "sending off", Stage.C),
        Setup("elastic-intake", "intake", Stage.W, Takes.SINK, ("elastic",)),
    )
    notes = (
        "drops events by default when its queue of 512 is full; bytes are those of its JSON before compression",
        "on JDK 25 this version instruments no method: all calls are lost, and the times are those of `none`",
        "without sending (`disable_send`), events still pass through its queue",
    )

    def install(self, cache: Path) -> str:
        self._jar(cache)
        return VERSION

    @staticmethod
    def _jar(cache: Path) -> Path:
        return maven(cache, "co.elastic.apm", "elastic-apm-agent", VERSION)

    def jvm(self, setup: Setup, place: Place) -> list[str]:
        options = {
            "service_name": "overhead",
            "trace_methods": "observed.Monitored#monitoredMethod",
            "application_packages": "observed",
            "server_url": f"http://{place.address or '127.0.0.1:1'}",
            "recording": "false" if setup.stage is Stage.I else "true",
            "disable_send": "false" if setup.takes is Takes.SINK else "true",
            "metrics_interval": "0s",
            "central_config": "false",
            "cloud_provider": "NONE",
            "log_level": "OFF",
        }
        return [f"-javaagent:{self._jar(place.cache)}"] + [
            f"-Delastic.apm.{name}={value}" for name, value in options.items()
        ]
