"""Data of `--work b`: the published data set P4 of Chronix, from the files in a folder of the user.

Files are `<source>_<group>_<kind>_<source>_<date>_<time>--<metric>.csv.gz`. The first column is a German date in UTC
with milliseconds, the second column a number with thousands separators: `12.08.2015 17:25:41.389;2,555,904`. A series
is written as floats if any value has a decimal point or an exponent, otherwise as whole numbers. Floats and whole
numbers are fields of different names, because most systems allow one type per field.
"""

import gzip
import hashlib
from array import array
from datetime import UTC, datetime
from pathlib import Path

from ..dataset import Dataset, Frame

MIDNIGHTS: dict[str, int] = {}


def p4(folder: Path) -> Dataset:
    """One frame per file with rows. Raises ValueError if there is no file, or if a row is invalid."""
    files = sorted(folder.glob("*.csv.gz"))
    if not files:
        raise ValueError(f"no *.csv.gz in {folder}")
    digest = hashlib.sha256("\n".join(f"{file.name} {file.stat().st_size}" for file in files).encode()).hexdigest()[:12]
    frames = [frame for file in files if (frame := _frame(file)).times_ms]
    return Dataset(
        name=f"p4-{len(frames)}-{digest}", title=f"Chronix P4, {len(frames)} JMX series", measurement="jmx", frames=frames
    )


def _frame(file: Path) -> Frame:
    """A series. Refuses a row that is not later than the previous row; the published files have no such rows."""
    run, _, metric = file.name.removesuffix(".csv.gz").partition("--")
    times, texts = array("q"), []
    with gzip.open(file, "rt", encoding="utf-8") as rows:
        next(rows, None)
        for number, row in enumerate(rows, start=2):
            date, separator, text = row.strip().partition(";")
            if not separator or not text:
                raise ValueError(f"{file}:{number}: expected <date>;<number>, got {row.strip()!r}")
            moment = _milliseconds(date)
            if times and moment <= times[-1]:
                raise ValueError(f"{file}:{number}: {date} is not after the previous row")
            times.append(moment)
            texts.append(text.replace(",", ""))
    whole = not any("." in text or "E" in text for text in texts)
    values = array("q", map(int, texts)) if whole else array("d", map(float, texts))
    return Frame({"run": run, "metric": metric}, ("run", "metric"), times, {"whole" if whole else "real": values})


def _milliseconds(date: str) -> int:
    """Converts `12.08.2015 17:25:41.389` to Unix milliseconds."""
    day, clock = date[:10], date[11:]
    if day not in MIDNIGHTS:
        midnight = datetime.strptime(day, "%d.%m.%Y").replace(tzinfo=UTC)
        MIDNIGHTS[day] = int(midnight.timestamp()) * 1_000
    return MIDNIGHTS[day] + (int(clock[0:2]) * 3_600 + int(clock[3:5]) * 60) * 1_000 + round(float(clock[6:]) * 1_000)
