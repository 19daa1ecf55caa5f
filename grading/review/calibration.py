"""Calibration: what a judge said against what a person said before seeing it, on the random slice and nowhere else.

Sessions that a rule put up are no sample of anything: they say what shocked somebody, not how good the judge is.
A grader is an identity (model, route, rubric, digest version); figures of two are never averaged.

Over all, only sessions count whose turn in the random order has come (`random_slice`). Others of the slice were
answered for their impact: within an arm and flag they say as much, but over all what looked worst would count too
often. They count there as soon as their turn comes.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from grading.models import Grade, ReviewAnswer
from grading.models.sessions import SessionQuerySet
from grading.monitoring.calibration import ENOUGH, CalibrationStatus, JudgeInstrument, compared, in_use
from grading.monitoring.graders import IDENTITY
from grading.review.agreement import Agreement, JudgeHumanPair, agreement
from grading.review.judged import judged_sums
from grading.review.ppi import ArmMean, GradeSums, arm_mean

__all__ = [
    "ENOUGH",
    "BlindPair",
    "Calibration",
    "CalibrationStatus",
    "JudgeInstrument",
    "arm_means",
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
    `drawn`: its turn in the random order has come.
    """

    session: int
    grader: JudgeInstrument
    stratum: tuple[str, str]
    judge: float
    human: float
    probability: float
    drawn: bool

    @property
    def compared(self) -> JudgeHumanPair:
        return JudgeHumanPair(judge=self.judge, human=self.human, probability=self.probability)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """One grader against people: over all, by what was drawn; in each stratum by (arm, flag), by all pairs. `early`:
    pairs whose turn has not come, which do not count over all yet.
    """

    grader: JudgeInstrument
    whole: Agreement
    early: int
    strata: Mapping[tuple[str, str], Agreement]

    @property
    def is_calibrated(self) -> bool:
        return self.whole.n >= ENOUGH


def pairs(grader: JudgeInstrument | None = None) -> list[BlindPair]:
    """Every blind pair of every grader, or of one: one a session and grader, in two queries at most.

    A verdict that a grader gave later (a new rubric, a second opinion) counts too: no person had seen it either. Of
    several verdicts of one grader the latest that entered the chain counts, or else the latest.
    """
    blind = ReviewAnswer.objects.blind().order_by("pk")
    verdicts = Grade.objects.verdicts().first_readings().filter(**({} if grader is None else _identity(grader)))
    verdicts = verdicts.filter(session__in=blind.order_by().values("session"))
    rows = list(verdicts.order_by("-parallel", "pk").values_list("session", "value", *IDENTITY))
    if not rows:  # a grader that is new, mostly
        return []
    said: dict[int, list[float]] = defaultdict(list)
    about: dict[int, tuple[float, tuple[str, str], bool]] = {}
    own = ("session", "blind_value", "slice_probability", "stratum")
    for session, value, probability, stratum, arm, drawn_at in blind.values_list(
        *own, "session__category__name", "session__review_item__drawn_at"
    ):
        said[session].append(value)
        about.setdefault(session, (probability, (arm or "", stratum), drawn_at is not None))
    found = {(session, tuple(identity)): value for session, value, *identity in rows if session in said}
    return [
        BlindPair(
            session=session,
            grader=JudgeInstrument(**dict(zip(IDENTITY, identity, strict=True))),
            judge=value,
            human=sum(said[session]) / len(said[session]),
            probability=about[session][0],
            stratum=about[session][1],
            drawn=about[session][2],
        )
        for (session, identity), value in sorted(found.items())
    ]


def calibrations(held: Iterable[BlindPair] | None = None) -> list[Calibration]:
    """Every grader that was ever compared with people, the best known first; by these pairs, or by all: two queries."""
    by_grader: dict[JudgeInstrument, list[BlindPair]] = defaultdict(list)
    for pair in pairs() if held is None else held:
        by_grader[pair.grader].append(pair)
    found = [_calibration(grader, own) for grader, own in by_grader.items()]
    return sorted(found, key=lambda each: (-each.whole.n, str(each.grader)))


def of(grader: JudgeInstrument) -> Calibration:
    """One grader against people: two queries."""
    return _calibration(grader, pairs(grader))


def arm_means(held: Iterable[BlindPair]) -> dict[JudgeInstrument, dict[str, ArmMean]]:
    """The mean of each arm by each grader and people together: by the pairs that were drawn, and the grader's verdicts
    on all the arm's other sessions. As many queries as `judged_sums`.
    """
    drawn: dict[tuple[JudgeInstrument, str], list[JudgeHumanPair]] = defaultdict(list)
    for each in held:
        found = drawn[each.grader, each.stratum[0]]
        if each.drawn:
            found.append(each.compared)
    judged, means = judged_sums(), defaultdict[JudgeInstrument, dict[str, ArmMean]](dict)
    for (grader, arm), own in sorted(drawn.items(), key=lambda item: item[0][1]):
        said = [pair.judge for pair in own]
        n, s, q = len(said), sum(said), sum(value**2 for value in said)
        every = judged.get((grader, arm), GradeSums())
        means[grader][arm] = arm_mean(own, GradeSums(n=max(every.n - n, 0), s=every.s - s, q=every.q - q))
    return dict(means)


def narrow(sessions: SessionQuerySet, grader: JudgeInstrument) -> SessionQuerySet:
    """The sessions behind `of(grader)`."""
    return sessions.filter(pk__in=compared().filter(**_identity(grader)).values("session"))


def _calibration(grader: JudgeInstrument, held: list[BlindPair]) -> Calibration:
    strata: dict[tuple[str, str], list[JudgeHumanPair]] = defaultdict(list)
    for each in held:
        strata[each.stratum].append(each.compared)
    drawn = [each.compared for each in held if each.drawn]
    return Calibration(
        grader=grader,
        whole=agreement(drawn),
        early=len(held) - len(drawn),
        strata={stratum: agreement(found) for stratum, found in sorted(strata.items())},
    )


def _identity(grader: JudgeInstrument) -> dict[str, str]:
    return {name: getattr(grader, name) for name in IDENTITY}
