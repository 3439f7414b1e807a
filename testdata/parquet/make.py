"""Writes the Parquet files in this directory, in the forms that data frame libraries write.

Needs pyarrow: python3 -m pip install pyarrow==26.0.1

The committed files are never regenerated: other versions of pyarrow write other bytes.
"""

import datetime
import decimal
import pathlib

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

HERE = pathlib.Path(__file__).parent
BEGIN = 1_767_225_600  # 2026-01-01


def long():
    """One record per row, labels as categories; two row groups, with nulls."""
    time = pa.array([BEGIN, BEGIN, BEGIN + 1, BEGIN + 2, None, BEGIN + 3])
    time = pc.multiply(time, 1_000_000).cast(pa.timestamp("us", "UTC"))
    return pa.table(
        {
            "metric": pa.array(["cpu", "cpu", "cpu", "cpu", "cpu", "memory"]).dictionary_encode(),
            "time": time,
            "host": pa.array(["a", "b", "b", "a", "a", None]).dictionary_encode(),
            "value": pa.array([0.5, 1.5, None, 0.25, 9.0, 7.0]),
        }
    )


def wide():
    """One series per column, the index at the end, as written by pandas."""
    time = pa.array([BEGIN * 1_000_000_000 + 123_456_789, (BEGIN + 1) * 1_000_000_000])
    return pa.table(
        {
            "cpu": pa.array([0.5, -1.5], pa.float32()),
            "used": pa.array([2**53 + 1, None], pa.int64()),
            "up": [True, False],
            "host": ["a", "b"],
            "tags": pa.array([["x"], []], pa.list_(pa.string())),
            "__index_level_0__": time.cast(pa.timestamp("ns")),
        }
    )


def types():
    """Columns of many types. Most of them can be used as times, values or labels."""
    moments = [datetime.datetime(2026, 1, 1), datetime.datetime(1969, 12, 31, 23, 59, 59)]
    seconds = [BEGIN, -1]
    return pa.table(
        {
            "s": pa.array(seconds, pa.int32()),
            "ms": pa.array(moments, pa.timestamp("ms", "UTC")),
            "local": pa.array(moments, pa.timestamp("us")),
            "day": pa.array([moment.date() for moment in moments]),
            "text": ["2026-01-01T00:00:00Z", "1969-12-31T23:59:59Z"],
            "float": pa.array([BEGIN + 0.5, -1.0]),
            "i8": pa.array([-128, 127], pa.int8()),
            "u32": pa.array([2**32 - 1, 0], pa.uint32()),
            "u64": pa.array([2**64 - 1, 0], pa.uint64()),
            "f32": pa.array([0.1, float("inf")], pa.float32()),
            "flag": [True, None],
            "decimal": pa.array([decimal.Decimal("-1.10"), decimal.Decimal("0.05")], pa.decimal128(9, 2)),
            "bytes": [b"raw", b"plain"],
            "clock": pa.array([datetime.time(1), None]),
        }
    )


def main():
    pq.write_table(long(), HERE / "long.parquet", row_group_size=3)
    pq.write_table(wide(), HERE / "wide.parquet", compression="zstd", data_page_version="2.0")
    pq.write_table(types(), HERE / "types.parquet", compression="gzip")


main()
