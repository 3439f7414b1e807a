"""Bodies of requests, generated once and kept in the cache, so that generation does not affect measurements."""

from collections.abc import Iterator
from pathlib import Path


def kept(cache: Path, name: str, bodies: Iterator[bytes]) -> list[Path]:
    """One file per body, in order. `bodies` is used only if the cache is incomplete."""
    folder = cache / "bodies" / name
    complete = folder / "complete"
    if not complete.exists():
        print(f"generating {name}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        for number, body in enumerate(bodies):
            (folder / f"{number:06}.body").write_bytes(body)
        complete.touch()
    return sorted(folder.glob("*.body"))
