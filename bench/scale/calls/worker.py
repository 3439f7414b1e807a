"""Runs the statements of a peer in its own process, inside the peer's environment. Not imported by the benchmark.

Each line of stdin is a statement, as a JSON text. Each line of stdout is its answer: rows or a failure, wall and processor time,
peak memory.
"""

import json
import sys
import time


def chdb(folder: str):
    from chdb.session import Session

    session = Session(folder)

    def ask(statement: str) -> list:
        text = str(session.query(statement, "JSONCompactEachRow"))
        return [json.loads(line) for line in text.splitlines()]

    return ask


def duckdb(folder: str):
    import duckdb as module

    connection = module.connect()
    connection.execute(f"SET temp_directory = '{folder}/spill'")

    def ask(statement: str) -> list:
        return connection.execute(statement).fetchall()

    return ask


def peak_bytes() -> int:
    """The peak of resident memory since the last call of this function."""
    with open("/proc/self/status", encoding="ascii") as status:
        peak = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM"))
    with open("/proc/self/clear_refs", "w", encoding="ascii") as refs:
        refs.write("5")
    return peak


def main() -> None:
    ask = {"chdb": chdb, "duckdb": duckdb}[sys.argv[1]](sys.argv[2])
    peak_bytes()
    for line in sys.stdin:
        wall, cpu = time.monotonic(), time.process_time()
        try:
            answer = {"rows": ask(json.loads(line))}
        except Exception as failure:  # the peers have their own classes of errors
            answer = {"failure": str(failure)[:500]}
        answer |= {"wall": time.monotonic() - wall, "cpu": time.process_time() - cpu, "peak": peak_bytes()}
        print(json.dumps(answer, default=str), flush=True)


main()
