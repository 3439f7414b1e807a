"""Tests how data sets are read, generated, and written as files for `codec_gain`."""

from array import array
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import TestCase

from ..files import Group, write
from ..packages import series, table
from ..sets import sets


class Files(TestCase):
    def test_a_group_is_a_csv_file_and_texts_are_a_log_file(self):
        group = Group(array("q", [1, 2]), [array("d", [0.1, float("nan")]), array("Q", [2**64 - 1, 0])])
        with TemporaryDirectory() as folder:
            self.assertEqual(2, write(Path(folder) / "set", [group, "up\ndown\n"]))
            self.assertEqual("time,f64,u64\n1,0.1,18446744073709551615\n2,nan,0\n", (Path(folder) / "set/0000.csv").read_text())
            self.assertEqual("up\ndown\n", (Path(folder) / "set/0001.log").read_text())
            self.assertEqual(0, write(Path(folder) / "set", []))
            self.assertEqual([], list((Path(folder) / "set").iterdir()), "files of an earlier run must be removed")

    def test_columns_of_numbers_are_read_from_a_table(self):
        rows = "".join(f"2026-01-01,{n},{n / 4},{'' if n % 2 else n}\n" for n in range(100))
        (group,) = table("day,whole,quarter,gaps\n" + rows)
        self.assertEqual(["q", "d", "d"], [column.typecode for column in group.columns])
        self.assertEqual([0, 1, 2], list(group.columns[0][:3]))
        self.assertEqual([], list(table("a,b\n1,2\n")), "a short table must be ignored")

    def test_cases_of_an_archive_are_joined_in_order(self):
        (group,) = series("@classLabel true\n@data\n" + "1.5,2.5:7,8:left\n" * 60)
        self.assertEqual([1.5, 2.5, 1.5], list(group.columns[0][:3]))
        self.assertEqual([7, 8, 7], list(group.columns[1][:3]))
        self.assertEqual(120, len(group.times_ns))

    def test_generated_sets_have_ascending_times(self):
        made = sets(Path("nowhere"), None, [], 0.01)
        for name in ("devops", "shapes", "counters", "floats", "zabbix", "events"):
            for group in made[name]():
                times = list(group.times_ns)
                self.assertTrue(all(a < b for a, b in zip(times, times[1:])), name)
                self.assertEqual({len(times)}, {len(column) for column in group.columns}, name)
