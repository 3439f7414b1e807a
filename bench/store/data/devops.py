"""Data of `--work a`: the load of a fleet, similar to TSBS cpu-only.

Hosts report ten percentages every ten seconds. A percentage is a random walk with steps from normal(0, 1), limited to
0..100. Percentages are written as whole numbers, so their differences have an entropy of about 2.1 bits. The load has
the shape of TSBS, but comes from another generator.
"""

from array import array
from random import Random

from ..dataset import Dataset, Frame

START_MS = 1_451_606_400_000  # 2016-01-01T00:00:00Z
STEP_MS = 10_000
FIELDS = tuple(
    f"usage_{name}"
    for name in ("user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
)
REGIONS = (
    "us-east-1",
    "us-west-1",
    "us-west-2",
    "eu-west-1",
    "eu-central-1",
    "ap-southeast-1",
    "ap-northeast-1",
    "sa-east-1",
)
SYSTEMS = ("Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10")
ARCHITECTURES = ("x64", "x86")
TEAMS = ("SF", "NYC", "LON", "CHI")
ENVIRONMENTS = ("production", "staging", "test")


def devops(hosts: int, hours: float, seed: int) -> Dataset:
    """One frame per host, with ten fields, over `hours`."""
    random = Random(seed)
    count = int(hours * 3_600_000) // STEP_MS
    times = array("q", range(START_MS, START_MS + count * STEP_MS, STEP_MS))
    frames = [
        Frame(_tags(random, number), ("hostname",), times, {name: _walk(random, count) for name in FIELDS})
        for number in range(hosts)
    ]
    return Dataset(
        name=f"devops-{hosts}-{hours:g}h-{seed}",
        title=f"devops, {hosts} hosts x 10 fields x {hours:g} h at 10 s",
        measurement="cpu",
        frames=frames,
        step_ms=STEP_MS,
    )


def _tags(random: Random, number: int) -> dict[str, str]:
    region = random.choice(REGIONS)
    return {
        "hostname": f"host_{number}",
        "region": region,
        "datacenter": region + random.choice("abc"),
        "rack": str(random.randrange(100)),
        "os": random.choice(SYSTEMS),
        "arch": random.choice(ARCHITECTURES),
        "team": random.choice(TEAMS),
        "service": str(random.randrange(20)),
        "service_version": str(random.randrange(2)),
        "service_environment": random.choice(ENVIRONMENTS),
    }


def _walk(random: Random, count: int) -> array:
    step = random.gauss
    level = random.uniform(0, 100)
    values = array("b", bytes(count))
    for index in range(count):
        level += step(0.0, 1.0)
        level = 0.0 if level < 0.0 else 100.0 if level > 100.0 else level
        values[index] = int(level)
    return values
