"""The files of a data set, as `codec_gain` reads them: `.csv` for a group of series, `.log` for texts."""

import shutil
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

TYPES = {"b": "i64", "q": "i64", "Q": "u64", "d": "f64"}
"""Name of the type in the file, by type code of the array."""


@dataclass(frozen=True)
class Group:
    """Series with the same times."""

    times_ns: array
    """Times in strictly ascending order."""
    columns: list[array]


def write(folder: Path, data: Iterable[Group | str]) -> int:
    """Replaces the content of the folder by these groups and texts. Returns the number of files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    number = -1
    for number, part in enumerate(data):
        if isinstance(part, str):
            (folder / f"{number:04}.log").write_text(part)
        else:
            (folder / f"{number:04}.csv").write_text(_csv(part))
    return number + 1


def _csv(group: Group) -> str:
    head = ",".join(["time", *(TYPES[column.typecode] for column in group.columns)])
    rows = (",".join(map(repr, row)) for row in zip(group.times_ns, *group.columns, strict=True))
    return "\n".join([head, *rows, ""])
