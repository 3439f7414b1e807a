"""Builds the Maven module and installs the frameworks."""

import os
import shutil
from pathlib import Path

from bench.common.install import run

from .model import Framework

MODULE = Path(__file__).resolve().parent
JAR = MODULE / "target/overhead.jar"
JAVA = os.environ.get("JAVA", shutil.which("java") or "java")
"""The measured JVM."""


def build() -> None:
    """Builds the jar with the measured process and the sink, unless the jar is newer than its sources and
    `pom.xml`."""
    sources = [MODULE / "pom.xml", *(MODULE / "src/main").rglob("*.java")]
    if not JAR.exists() or JAR.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        run(["mvn", "-B", "-q", "-ntp", "-f", str(MODULE), "-DskipTests", "package"])
        os.utime(JAR)


def versions(frameworks: tuple[Framework, ...], cache: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Installs the frameworks. Returns their versions by name, and the reason for each framework that is not available."""
    cache.mkdir(parents=True, exist_ok=True)
    found, not_measured = {}, {}
    for framework in frameworks:
        try:
            found[framework.name] = framework.install(cache)
        except (RuntimeError, OSError) as failure:
            not_measured[framework.name] = str(failure)
    return found, not_measured
