"""The measured systems, one module for each. The modules share `base.py` and `promql.py`.

To add a system, add a module, import its class here and add the class to `SYSTEMS`.
"""

from .base import System
from .graphite import Graphite
from .influxdb import InfluxDB
from .prometheus import Prometheus
from .questdb import QuestDB
from .tacho import Tacho, TachoBefore
from .victoriametrics import VictoriaMetrics

SYSTEMS: tuple[type[System], ...] = (Tacho, TachoBefore, VictoriaMetrics, InfluxDB, Prometheus, QuestDB, Graphite)
