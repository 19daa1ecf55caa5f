"""Calibration: what a judge said against what a person said before seeing it, on the random slice and nowhere else.

Sessions that a rule put up are no sample of anything: they say what shocked somebody, not how good the judge is.
A grader is an identity (model, route, rubric, digest version); figures of two are never averaged.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from grading.models import ReviewAnswer
from grading.models.sessions import SessionQuerySet
from grading.monitoring.calibration import ENOUGH, CalibrationStatus, JudgeInstrument, compared, in_use
from grading.monitoring.graders import IDENTITY
from grading.review.agreement import Agreement, JudgeHumanPair, agreement

__all__ = [
    "ENOUGH",
    "BlindPair",
    "Calibration",
    "CalibrationStatus",
    "JudgeInstrument",
    "calibrations",
    "in_use",
    "narrow",
    "of",
    "pairs",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindPair:
    """One session of the slice: `judge` by `grader`, `human` the mean of people's blind grades, all in [0, 1].

    `stratum` is (arm, "flagged" or ""): empty where unknown. `probability` in (0, 1]: how likely the slice took it.
    """

    session: int
    grader: JudgeInstrument
    stratum: tuple[str, str]
    judge: float
    human: float
    probability: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One grader against people: over all strata, and in each by (arm, flag)."""

    grader: JudgeInstrument
    whole: Agreement
    strata: Mapping[tuple[str, str], Agreement]

    @property
    def is_calibrated(self) -> bool:
        return self.whole.n >= ENOUGH


def pairs(grader: JudgeInstrument | None = None) -> list[BlindPair]:
    """Every blind pair of every grader, or of one: one a session and grader, in two queries.

    A verdict that a grader gave later (a new rubric, a second opinion) counts too: no person had seen it either. Of
    several verdicts of one grader the latest that entered the chain counts, or else the latest.
    """
    said: dict[int, list[float]] = defaultdict(list)
    about: dict[int, tuple[float, tuple[str, str]]] = {}
    names = ("session", "blind_value", "slice_probability", "session__category__name", "stratum")
    for session, value, probability, arm, stratum in ReviewAnswer.objects.blind().order_by("pk").values_list(*names):
        said[session].append(value)
        about.setdefault(session, (probability, (arm or "", stratum)))
    verdicts = compared() if grader is None else compared().filter(**_identity(grader))
    rows = verdicts.order_by("-parallel", "pk").values_list("session", "value", *IDENTITY)
    found = {(session, tuple(identity)): value for session, value, *identity in rows if session in said}
    return [
        BlindPair(
            session=session,
            grader=JudgeInstrument(**dict(zip(IDENTITY, identity, strict=True))),
            judge=value,
            human=sum(said[session]) / len(said[session]),
            probability=about[session][0],
            stratum=about[session][1],
        )
        for (session, identity), value in sorted(found.items())
    ]


def calibrations() -> list[Calibration]:
    """Every grader that was ever compared with people, the best known first. Two queries."""
    by_grader: dict[JudgeInstrument, list[BlindPair]] = defaultdict(list)
    for pair in pairs():
        by_grader[pair.grader].append(pair)
    found = [_calibration(grader, held) for grader, held in by_grader.items()]
    return sorted(found, key=lambda each: (-each.whole.n, str(each.grader)))


def of(grader: JudgeInstrument) -> Calibration:
    """One grader against people: two queries."""
    return _calibration(grader, pairs(grader))


def narrow(sessions: SessionQuerySet, grader: JudgeInstrument) -> SessionQuerySet:
    """The sessions behind `of(grader)`."""
    return sessions.filter(pk__in=compared().filter(**_identity(grader)).values("session"))


def _calibration(grader: JudgeInstrument, held: list[BlindPair]) -> Calibration:
    strata: dict[tuple[str, str], list[JudgeHumanPair]] = defaultdict(list)
    for each in held:
        strata[each.stratum].append(JudgeHumanPair(judge=each.judge, human=each.human, probability=each.probability))
    everything = [pair for stratum in strata.values() for pair in stratum]
    return Calibration(
        grader=grader,
        whole=agreement(everything),
        strata={stratum: agreement(found) for stratum, found in sorted(strata.items())},
    )


def _identity(grader: JudgeInstrument) -> dict[str, str]:
    return {name: getattr(grader, name) for name in IDENTITY}
