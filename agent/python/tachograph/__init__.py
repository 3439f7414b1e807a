"""Records what a Python program does and sends it to a Tachograph server. README.md is the guide.

import tachograph
tachograph.start(service="shop")

@tachograph.record
def post(ad): ...
"""

from .agent import entry, flush, sample, start, totals
from .context import Context
from .identity import VERSION
from .probes.asgi import asgi
from .probes.wsgi import wsgi
from .recorder import Span, attribute, record, span, traceparent

__version__ = VERSION

__all__ = [
    "Context",
    "Span",
    "__version__",
    "asgi",
    "attribute",
    "entry",
    "flush",
    "record",
    "sample",
    "span",
    "start",
    "totals",
    "traceparent",
    "wsgi",
]
