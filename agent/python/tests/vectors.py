"""Reads `testdata/*/*.vec` (testdata/README.md): cases of (key, value) pairs in order."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "testdata"

Case = list[tuple[str, str]]


def cases(name: str, folder: str = "wire") -> list[Case]:
    found: list[Case] = []
    case: Case = []
    for line in [*(FOLDER / folder / name).read_text("utf-8").splitlines(), ""]:
        if line.startswith("#"):
            continue
        if not line:
            if case:
                found.append(case)
            case = []
        elif line.startswith("case "):
            case.append(("case", line[5:]))
        else:
            key, _, value = line.partition(" =")
            case.append((key, value[1:]))
    return found


def one(case: Case, key: str) -> str:
    """The value of the first key of this name. Raises KeyError if there is none."""
    for found, value in case:
        if found == key:
            return value
    raise KeyError(f"{key} of {case[0][1]}")


def several(case: Case, key: str) -> list[str]:
    return [value for found, value in case if found == key]
