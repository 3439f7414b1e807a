"""The series: pods of web services in three zones. Each pod counts the requests of twenty paths.

A series is `req,pod=...,path=...,zone=...` with the field `n`. Its labels have about 55 bytes without their names. A round
has one sample of every series. About half of the counters do not change in a round, as in real fleets.
"""

from random import Random

MEASUREMENT, FIELD = "req", "n"
METRIC = f"{MEASUREMENT}_{FIELD}"
ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
SERVICES = ("checkout", "catalogue", "payments", "sessions", "shipping", "frontend")
PATHS = tuple(
    f"/api/v1/{noun}/{action}"
    for noun in ("orders", "products", "customers", "baskets", "invoices")
    for action in ("list", "get", "create", "delete")
)
STEPS = bytes(0 if byte < 128 else (byte - 127) % 50 for byte in range(256))
"""The step of a counter by a random byte: about half of all steps are 0."""
POD_NAME_DIGITS = "bcdfghjklmnpqrstvwxz2456789"


class Fleet:
    """The state of all pods in one round."""

    def __init__(self, series: int, seed: int, churn: float = 0.0):
        """`churn` is the share of the pods that new pods replace in each round."""
        self._random = Random(seed)
        self._names_seed = seed
        self.pods = max(1, series // len(PATHS))
        self.lives = [0] * self.pods
        """How often each pod was replaced."""
        self.counts = [0] * self.series
        """The values, pod by pod, in the order of `PATHS`."""
        self.replaced: list[int] = []
        """The pods that are new in this round."""
        self._churned = round(churn * self.pods)
        self._next = 0

    @property
    def series(self) -> int:
        return self.pods * len(PATHS)

    @property
    def series_ever(self) -> int:
        """Includes the series of replaced pods."""
        return (self.pods + sum(self.lives)) * len(PATHS)

    def advance(self) -> None:
        """New pods replace some pods, with counters at zero; then about half of all counters grow."""
        self.replaced = [(self._next + nth) % self.pods for nth in range(self._churned)]
        self._next = (self._next + self._churned) % self.pods
        for pod in self.replaced:
            self.lives[pod] += 1
            self.counts[pod * len(PATHS) : (pod + 1) * len(PATHS)] = [0] * len(PATHS)
        steps = self._random.randbytes(self.series).translate(STEPS)
        self.counts = [count + step for count, step in zip(self.counts, steps)]

    def name(self, pod: int) -> str:
        """For example `checkout-7c9f5b2d-x4k9q`. A new pod has a new name."""
        random = Random(f"{self._names_seed} {pod} {self.lives[pod]}")
        digits = "".join(random.choices(POD_NAME_DIGITS, k=13))
        return f"{SERVICES[pod % len(SERVICES)]}-{digits[:8]}-{digits[8:]}"

    def zone(self, pod: int) -> str:
        return ZONES[pod // len(SERVICES) % len(ZONES)]
