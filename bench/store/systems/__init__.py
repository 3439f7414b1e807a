"""The measured systems. Each module defines how to start, load, settle and query one system, and how to parse its
responses.

To add a system, add a module and one line here.
"""

from .base import System
from .graphite import Graphite
from .influxdb import InfluxDB
from .prometheus import Prometheus
from .questdb import QuestDB
from .tacho import Tacho, TachoBefore
from .victoriametrics import VictoriaMetrics

SYSTEMS: tuple[type[System], ...] = (Tacho, TachoBefore, VictoriaMetrics, InfluxDB, Prometheus, QuestDB, Graphite)
