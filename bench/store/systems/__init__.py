"""Who is measured? One module a system: how it is started, written to, settled, asked, and how its answers read.

One more system is one module and one line here.
"""

from .base import System
from .graphite import Graphite
from .influxdb import InfluxDB
from .prometheus import Prometheus
from .questdb import QuestDB
from .tacho import Tacho, TachoBefore
from .victoriametrics import VictoriaMetrics

SYSTEMS: tuple[type[System], ...] = (Tacho, TachoBefore, VictoriaMetrics, InfluxDB, Prometheus, QuestDB, Graphite)
