"""Bodies of requests, generated once and kept in the cache, so that generating costs nothing while something is measured."""

from collections.abc import Iterator
from pathlib import Path


def kept(cache: Path, name: str, bodies: Iterator[bytes]) -> list[Path]:
    """One file a body, in order. `bodies` is read only when the cache does not have them whole."""
    folder = cache / "bodies" / name
    complete = folder / "complete"
    if not complete.exists():
        print(f"generating {name}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        for number, body in enumerate(bodies):
            (folder / f"{number:06}.body").write_bytes(body)
        complete.touch()
    return sorted(folder.glob("*.body"))
