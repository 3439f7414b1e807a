"""Measures the CPU time of naming one statement, without the cache of `probes/dbapi.py`.

Prints a table: `python3 bench/statements.py`. The measured code is `tachograph/probes/sql.py`.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tachograph.probes.sql import shape

ROUNDS = 15
ROUND_CHARS = 50_000

TEXTS = {
    "short select": 'select "a", "b" from "t" inner join "u" on "u"."t_id" = "t"."id" where "t"."a" = %s and "u"."x" in (%s, %s)',
    "insert, 100 rows": "insert into t (a, b, c) values " + ",".join(f"({at},'x{at}',null)" for at in range(100)),
    "insert, 1300 rows": "insert into t (a, b, c) values " + ",".join(f"({at},'x{at}',null)" for at in range(1_300)),
    "insert, 500 rows with a function": "insert into t (a, b) values " + ", ".join(f"({at}, now())" for at in range(500)),
    "list of 2500 values": "select * from t where a in (" + ",".join(f"'{at}'" for at in range(2_500)) + ")",
}


def cost(text: str) -> float:
    """CPU time of naming one text, in us."""
    count = -(-ROUND_CHARS // len(text))
    times = []
    for _ in range(ROUNDS):
        before = time.process_time_ns()
        for _ in range(count):
            shape(text, "postgresql")
        times.append((time.process_time_ns() - before) / count / 1e3)
    return statistics.median(times)


if __name__ == "__main__":
    print("\n| statement | characters | CPU us |\n|---|---|---|")
    for name, text in TEXTS.items():
        print(f"| {name} | {len(text)} | {cost(text):.1f} |")
