"""The work `queries`: questions that repeat or slide, a question on all cores and on one, and a light one beside heavy ones."""

from .report import report, verdicts
from .work import run

__all__ = ["report", "run", "verdicts"]
