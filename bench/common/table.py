"""Markdown tables that are also readable in a terminal."""

from collections.abc import Sequence

CELL_MIN = 2
"""Minimum width. The line below the head needs a hyphen and a colon."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns are as wide as their widest cell. The first column is left-aligned, the others are right-aligned."""
    widths = [max(CELL_MIN, *(len(row[column]) for row in (head, *rows))) for column in range(len(head))]
    lines = [
        _line(head, widths),
        _line(["-" * width if not column else "-" * (width - 1) + ":" for column, width in enumerate(widths)], widths),
    ]
    return "\n".join(lines + [_line(row, widths) for row in rows])


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *others = zip(cells, widths)
    return f"| {' | '.join([first[0].ljust(first[1])] + [cell.rjust(width) for cell, width in others])} |"
