"""Data sets in Python packages, whose wheels are downloaded but not installed."""

import csv
import gzip
from array import array
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from ..common.install import run
from .files import Group
from .generated import SECOND_NS, START_NS

PACKAGES = {
    "statsmodels": ("statsmodels==0.15.0", "statsmodels/datasets/"),
    "sklearn": ("scikit-learn==1.9.1", "sklearn/datasets/data/"),
    "sktime": ("sktime==1.2.0", "sktime/datasets/data/"),
    "river": ("river==0.26.1", "river/"),
    "vega": ("vega-datasets==0.9.0", "vega_datasets/_data/"),
}
"""By name of the set: the requirement, and the place of the data in the package."""
ROWS_MIN = 100
COLUMNS_MAX = 64


def package(cache: Path, name: str) -> Iterator[Group]:
    """The tables and series of numbers with at least `ROWS_MIN` rows, as groups of at most `COLUMNS_MAX` columns."""
    requirement, place = PACKAGES[name]
    folder = cache / name
    if not list(folder.glob("*.whl")):
        run(["python3", "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(folder), requirement])
    with ZipFile(next(folder.glob("*.whl"))) as wheel:
        for file in sorted(wheel.namelist()):
            if file.startswith(place) and file.endswith((".csv", ".csv.gz", ".ts")):
                content = wheel.read(file)
                text = (gzip.decompress(content) if file.endswith(".gz") else content).decode("utf-8", "replace")
                yield from series(text) if file.endswith(".ts") else table(text)


def table(text: str) -> Iterator[Group]:
    """The columns of numbers of a CSV file. An empty cell, `?` and `NA` become NaN. The first line is the head. The
    times of the rows are a minute apart."""
    delimiter = "," if "," in text[:1_000] else " "
    rows = list(csv.reader(text.splitlines(), delimiter=delimiter))[1:]
    width = max((len(row) for row in rows), default=0)
    columns = [_numbers([row[place] if place < len(row) else "" for row in rows]) for place in range(width)]
    yield from _group([column for column in columns if column])


def series(text: str) -> Iterator[Group]:
    """A file of the UEA and UCR archives. After `@data`, each line is a case: its dimensions and its class,
    separated by colons. Each dimension becomes a column with all cases one after the other."""
    cases = text.partition("@data")[2].split("\n")
    dimensions = [case.split(":")[:-1] for case in cases if ":" in case]
    joined = [",".join(parts).split(",") for parts in zip(*dimensions)]
    yield from _group([column for cells in joined if (column := _numbers(cells))])


def _numbers(cells: list[str]) -> array | None:
    """Whole numbers if all cells are whole numbers, otherwise floats with NaN for missing values. None if all cells are
    empty, or if a cell is neither a number nor a mark for a missing value."""
    if not any(cells):
        return None
    try:
        return array("q", map(int, cells))
    except (ValueError, OverflowError):
        pass
    try:
        return array("d", (float(cell) if cell.strip() not in ("", "?", "NA") else float("nan") for cell in cells))
    except ValueError:
        return None


def _group(columns: list[array]) -> Iterator[Group]:
    for place in range(0, len(columns), COLUMNS_MAX):
        part = columns[place : place + COLUMNS_MAX]
        if (count := min(map(len, part))) >= ROWS_MIN:
            times = array("q", (START_NS + n * 60 * SECOND_NS for n in range(count)))
            yield Group(times, [column[:count] for column in part])
