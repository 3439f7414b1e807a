"""The work `queries`: repeated and sliding questions, a question on all cores and on one, and a light question beside
heavy ones."""

from .report import report, verdicts
from .work import run

__all__ = ["report", "run", "verdicts"]
