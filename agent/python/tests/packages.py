"""Real packages from PyPI, for the tests only. They are installed once next to the agent, outside of the interpreter's own
packages."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

_LIST = Path(__file__).with_name("requirements.txt")
_FOLDER = Path(__file__).resolve().parents[1] / ".packages"


def packages() -> str:
    """The directory of the packages, for PYTHONPATH. A changed `requirements.txt` creates a new directory."""
    version = f"{sys.version_info[0]}.{sys.version_info[1]}-{hashlib.sha256(_LIST.read_bytes()).hexdigest()[:12]}"
    folder = _FOLDER / version
    if not folder.is_dir():
        _FOLDER.mkdir(exist_ok=True)
        fresh = tempfile.mkdtemp(dir=_FOLDER)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
        subprocess.run([*command, "--target", fresh, "-r", str(_LIST)], check=True, stdout=subprocess.DEVNULL)
        try:
            os.rename(fresh, folder)
        except OSError:  # another test run was faster
            shutil.rmtree(fresh)
    return str(folder)
