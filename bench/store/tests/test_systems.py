"""Tests that queries are translated to the languages of Prometheus, VictoriaMetrics, InfluxDB and QuestDB, that their
responses are parsed, and that the reserved space of Tachograph is not counted."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import TestCase
from urllib.parse import parse_qs, urlsplit

from ..questions import Grouped, Outliers, Question, Range, Trend
from ..reference import Answer, Reference
from ..systems import InfluxDB, Prometheus, QuestDB, System, Tacho, VictoriaMetrics
from ..systems.base import NotOffered
from .small import START_MS, small

H0 = (("hostname", "h0"),)
START_S = START_MS // 1_000
GROUPED = Grouped("max", ("user",), ("h0", "h1"), START_MS, START_MS + 60_000, 60_000)
MEAN = Grouped("mean", ("user",), (), START_MS, START_MS + 60_000, 60_000, by_frame=True)
RANGE = Range(H0, "user", START_MS + 5_000, START_MS + 25_000)
TREND = Trend(H0, "user", START_MS - 5_000, START_MS + 55_000)
OUTLIERS = Outliers(H0, "user", START_MS - 5_000, START_MS + 65_000)


class Systems(TestCase):
    def check(self, kind: type[System], question: Question, parameter: str, asked: str, body: object) -> None:
        """`parameter` of the request must have the text `asked`, and the parsed response `body` must be correct."""
        system = kind(Path("cache"), Path("run"), small())
        parameters = parse_qs(urlsplit(system.request(question).path).query)
        self.assertEqual(asked, parameters[parameter][0])
        text = body if isinstance(body, str) else json.dumps(body)
        self.assertEqual(_plain(Reference(small()).answer(question)), _plain(system.answer(question, text.encode())))

    def test_prometheus(self):
        series = {"metric": {}, "values": [[START_S + 55, "9"]]}
        asked = 'max(max_over_time(cpu_user{hostname=~"h0|h1"}[60000ms]))'
        self.check(Prometheus, GROUPED, "query", asked, _prometheus(series))
        hosts = [
            {"metric": {"hostname": name}, "values": [[START_S + 55, value]]}
            for name, value in (("h0", "3.5"), ("h1", "6.5"))
        ]
        self.check(Prometheus, MEAN, "query", "avg(avg_over_time(cpu_user{}[60000ms])) by (hostname)", _prometheus(*hosts))
        rows = {"metric": {}, "values": [[START_S + 10, "2"], [START_S + 20, "3"]]}
        self.check(Prometheus, RANGE, "query", 'cpu_user{hostname="h0"}[20000ms]', _prometheus(rows))
        slope = {"metric": {}, "value": [START_S + 55, "0.1"]}
        self.check(Prometheus, TREND, "query", 'deriv(cpu_user{hostname="h0"}[60000ms])', _prometheus(slope))

    def test_victoriametrics(self):
        both = Grouped("max", ("user", "idle"), ("h0", "h1"), START_MS, START_MS + 60_000, 60_000)
        series = [
            {"metric": {"__name__": name}, "values": [[START_S + 55, value]]}
            for name, value in (("cpu_user", "9"), ("cpu_idle", "4"))
        ]
        asked = 'max(max_over_time({__name__=~"cpu_user|cpu_idle",hostname=~"h0|h1"}[60000ms])) by (__name__)'
        self.check(VictoriaMetrics, both, "query", asked, _prometheus(*series))
        lines = json.dumps({"metric": {}, "values": [2, 3], "timestamps": [START_MS + 10_000, START_MS + 20_000]}) + "\n"
        self.check(VictoriaMetrics, RANGE, "match[]", 'cpu_user{hostname="h0"}', lines)
        rows = [
            {"metric": {"bench_place": place}, "value": [0, value]}
            for place, value in (("1", "9"), ("0.25", "2.5"), ("0.75", "5.5"))
        ]
        asked = 'quantiles_over_time("bench_place",0.25,0.75,1,cpu_user{hostname="h0"}[70000ms])'
        self.check(VictoriaMetrics, OUTLIERS, "query", asked, _prometheus(*rows))

    def test_reserved_space_is_not_counted(self):
        with TemporaryDirectory() as folder:
            data = Path(folder) / "data/store"
            data.mkdir(parents=True)
            (data / "00000001.segment").write_bytes(b"x" * 5_000)
            (data / "RESERVE").write_bytes(b"x" * 70_000)
            self.assertEqual(5_000, Tacho(Path("cache"), Path(folder), small()).disk_bytes())

    def test_influxdb(self):
        between = f"time >= {START_MS}ms AND time < {START_MS + 60_000}ms"
        asked = f'SELECT max("user") FROM cpu WHERE {between} AND ("hostname"=\'h0\' OR "hostname"=\'h1\') GROUP BY time(60000ms)'
        self.check(InfluxDB, GROUPED, "q", asked, _influxdb({"values": [[START_MS, 9]]}))
        series = [{"tags": {"hostname": name}, "values": [[START_MS, value]]} for name, value in (("h0", 3.5), ("h1", 6.5))]
        asked = f'SELECT mean("user") FROM cpu WHERE {between} GROUP BY time(60000ms),"hostname"'
        self.check(InfluxDB, MEAN, "q", asked, _influxdb(*series))
        with self.assertRaises(NotOffered):
            InfluxDB(Path("cache"), Path("run"), small()).request(TREND)

    def test_questdb(self):
        between = f"timestamp >= {START_MS * 1_000} AND timestamp < {(START_MS + 60_000) * 1_000}"
        asked = (
            f"SELECT timestamp,max(user) FROM cpu WHERE {between} AND hostname IN ('h0','h1') SAMPLE BY 1m ALIGN TO CALENDAR"
        )
        self.check(QuestDB, GROUPED, "query", asked, {"dataset": [["2016-01-01T00:00:00.000000Z", 9]]})
        between = f"timestamp >= {(START_MS + 5_000) * 1_000} AND timestamp < {(START_MS + 25_000) * 1_000}"
        rows = [["2016-01-01T00:00:10.000000Z", 2], ["2016-01-01T00:00:20.000000Z", 3]]
        self.check(
            QuestDB, RANGE, "query", f"SELECT timestamp,user FROM cpu WHERE hostname='h0' AND {between}", {"dataset": rows}
        )


def _prometheus(*result: dict) -> dict:
    return {"status": "success", "data": {"result": list(result)}}


def _influxdb(*series: dict) -> dict:
    return {"results": [{"series": list(series)}]}


def _plain(answer: Answer) -> object:
    """Columns of any type are compared as lists."""
    return answer if isinstance(answer, dict) else [list(part) if hasattr(part, "__len__") else part for part in answer]
