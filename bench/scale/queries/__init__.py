"""Part C of the scale benchmark: questions that repeat or slide, one question on all cores, and a light one beside heavy ones."""

from .report import report, verdicts
from .work import run

__all__ = ["report", "run", "verdicts"]
