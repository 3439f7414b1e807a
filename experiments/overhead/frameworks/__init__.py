"""All frameworks, in the order of the tables."""

from ..model import Framework
from .elastic import Elastic
from .kieker import KiekerAspectJ, KiekerByteBuddy
from .none import Unwatched
from .opentelemetry import OpenTelemetry
from .ours import Tachograph, TachographBefore

FRAMEWORKS: tuple[Framework, ...] = (
    Unwatched(),
    Tachograph(),
    TachographBefore(),
    KiekerByteBuddy(),
    KiekerAspectJ(),
    OpenTelemetry(),
    Elastic(),
)
