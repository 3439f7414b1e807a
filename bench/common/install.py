"""Downloads the peers into the cache with apt-get, Maven and pip.

Nothing is installed into the system, and no service is started. A Debian package is unpacked, a jar is copied, and
Python packages get an environment of their own.
"""

import os
import subprocess
import sys
from pathlib import Path

COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"


def run(command: list[str], directory: Path | None = None, environment: dict[str, str] | None = None) -> str:
    """Raises RuntimeError with the end of the output if the command fails."""
    done = subprocess.run(
        command, cwd=directory, env=os.environ | (environment or {}), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-500:]}")
    return done.stdout


def debian(cache: Path, package: str) -> str:
    """Unpacks a package from the repositories of this machine (Debian or Ubuntu) to `cache`/<package>. Returns its
    version."""
    target = cache / package
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package], directory=cache)
        archive = max(cache.glob(f"{package}_*.deb"), key=lambda file: file.stat().st_mtime)
        run(["dpkg-deb", "-x", str(archive), str(target)])
    archive = max(cache.glob(f"{package}_*.deb"), key=lambda file: file.stat().st_mtime)
    return run(["dpkg-deb", "-f", str(archive), "Version"]).strip()


def maven(cache: Path, group: str, artifact: str, version: str, classifier: str = "") -> Path:
    """Downloads the jar if the cache does not have it."""
    suffix = f"-{classifier}" if classifier else ""
    jar = cache / f"{artifact}-{version}{suffix}.jar"
    if not jar.exists():
        run(
            [
                "mvn",
                "-B",
                "-q",
                "-ntp",
                COPY_GOAL,
                f"-Dartifact={group}:{artifact}:{version}:jar{suffix.replace('-', ':')}",
                f"-DoutputDirectory={cache}",
            ]
        )
    return jar


def python(cache: Path, name: str, packages: list[str]) -> Path:
    """Creates a virtual environment with the packages if the cache does not have it."""
    environment = cache / name
    if not (environment / "ready").exists():
        run([sys.executable, "-m", "venv", "--clear", str(environment)])
        run([str(environment / "bin/pip"), "install", "-q", *packages])
        (environment / "ready").touch()
    return environment
