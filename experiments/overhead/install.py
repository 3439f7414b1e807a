"""Builds the Maven module, and asks the frameworks for what they need."""

import os
import shutil
from pathlib import Path

from bench.common.install import run

from .model import Framework

MODULE = Path(__file__).resolve().parent
JAR = MODULE / "target/overhead.jar"
JAVA = os.environ.get("JAVA", shutil.which("java") or "java")
"""The JVM that is measured."""


def build() -> None:
    """The jar with the measured process and the sink, if it is not newer than its sources."""
    sources = [MODULE / "pom.xml", *(MODULE / "src/main").rglob("*.java")]
    if not JAR.exists() or JAR.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        run(["mvn", "-B", "-q", "-ntp", "-f", str(MODULE), "-DskipTests", "package"])
        os.utime(JAR)


def versions(frameworks: tuple[Framework, ...], cache: Path) -> tuple[dict[str, str], dict[str, str]]:
    """By name the version, and why what cannot be had is left out."""
    cache.mkdir(parents=True, exist_ok=True)
    found, left_out = {}, {}
    for framework in frameworks:
        try:
            found[framework.name] = framework.install(cache)
        except (RuntimeError, OSError) as failure:
            left_out[framework.name] = str(failure)
    return found, left_out
