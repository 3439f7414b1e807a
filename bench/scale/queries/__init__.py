"""The workload `queries`: repeated and sliding questions, a question on all cores and on one, a light question beside heavy
ones, 20 panels over one range, and writes on all cores and on one."""

from .report import report, verdicts
from .work import run

__all__ = ["report", "run", "verdicts"]
