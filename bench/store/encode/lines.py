"""InfluxDB's line protocol: one line per row of a frame. Times are in nanoseconds; whole numbers are written as
`58i`."""

from collections.abc import Iterator

from ..dataset import Dataset, Frame


def lines(dataset: Dataset) -> Iterator[bytes]:
    """Bodies of `ROWS_A_BODY` lines, in order of time."""
    templates = [_template(dataset.measurement, frame) for frame in dataset.frames]
    columns = [list(frame.columns.values()) for frame in dataset.frames]
    for piece in dataset.bodies():
        yield "".join(
            templates[frame] % (*(column[row] for column in columns[frame]), time_ms) for time_ms, frame, row in piece
        ).encode()


def _template(measurement: str, frame: Frame) -> str:
    tags = "".join(f",{name}={_escape(value)}" for name, value in frame.tags.items())
    fields = ",".join(f"{name}=%r" if column.typecode == "d" else f"{name}=%di" for name, column in frame.columns.items())
    return f"{measurement}{tags.replace('%', '%%')} {fields} %d000000\n"


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=").replace(" ", "\\ ")
