"""Sessions with a verdict and a fallback, or a fallback alone, as calibrations are fitted to and read by."""

import datetime as dt
from random import Random

from grading.models import Rubric, Session
from grading.reward import calibrating
from grading.vocabulary import Source
from tests.site import NOON, Site

site = Site()

DAY = dt.timedelta(days=1)
# Means of fallback and verdict of each arm.
ARMS = {"code": (0.2, 0.5), "cross-repo": (0.36, 0.7), "infra": (0.52, 0.9), "triage": (0.28, 0.6)}


def fell_back(
    value: float | None, *, arm: str = "code", ago: dt.timedelta = DAY, source: Source = Source.TRAJECTORY, **said
) -> Session:
    """A settled session without a verdict; `value` None: its trajectory abstained."""
    return _session(arm, ago, source, value, None, **said)


def judged(
    value: float | None,
    verdict: float,
    *,
    arm: str = "code",
    ago: dt.timedelta = DAY,
    source: Source = Source.TRAJECTORY,
    **said,
) -> Session:
    """The same with a verdict of the rubric in force."""
    return _session(arm, ago, source, value, verdict, **said)


def _session(arm, ago, source, value, verdict, view="full", **fields) -> Session:
    session = site.session(arm, ago=ago, **fields)
    if value is None:
        session.abstained(version="trajectory/2")
    else:
        version = {Source.TRAJECTORY: "trajectory/2", Source.JOURNAL: "journal/2"}[source]
        evidence = {"view": view, "stands": True} if source == Source.TRAJECTORY else {}
        session.graded(source, value, version=version, evidence=evidence)
    if verdict is not None:
        rubric = Rubric.objects.filter(is_active=True).first()
        session.judged(verdict, model="m-1", rubric=rubric.sha256, detail="Solid work [3].")
    return session.settle()


def pairs(each: int = 12, *, ago: dt.timedelta = DAY, seed: int = 1, **arms: tuple[float, float]) -> None:
    """So many judged sessions of each arm about its means; what scatters is of the session, and so in both grades."""
    random = Random(seed)
    for arm, (x, y) in (arms or ARMS).items():
        for number in range(each):
            off = random.uniform(-0.12, 0.12)
            noise = random.uniform(-0.06, 0.06)
            at = ago + (number % 5) * DAY
            judged(_unit(x + off), _unit(y + off + noise), arm=arm.replace("_", "-"), ago=at)


def moves_a_lot():
    """An arm with many abstentions, which by its judged ones are worth much less than its other sessions."""
    pairs(12, code=(0.15, 0.85), triage=(0.2, 0.9))
    for number in range(12):
        judged(None, 0.1, arm="triage", ago=DAY * (1 + number % 5))
    for number in range(60):
        fell_back(None, arm="triage", ago=DAY * (1 + number % 5))


def put(by, now=NOON, name="category"):
    """Put what the pairs propose in force, as the page's button does."""
    found = calibrating.proposal(name, now)
    return calibrating.put_in_force(found, by, version=found.version, fingerprint=found.fingerprint)


def _unit(value: float) -> float:
    return min(max(value, 0.0), 1.0)
