"""Calibration: what a judge said against what a person said before seeing it, on the random slice and nowhere else.

Sessions that a rule put up are no sample of anything: they say what shocked somebody, not how good the judge is.
A grader is an identity (model, route, rubric, digest version); figures of two are never averaged.

Over all, only sessions count whose turn in the random order has come (`random_slice`). Others of the slice were
answered for their impact: within an arm and flag they say as much, but over all what looked worst would count too
often. They count there as soon as their turn comes.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from django.db.models import Count, Exists, F, Max, OuterRef, Q, Sum

from bandit.models import Erasure, LedgerEntry
from grading.models import Grade, ReviewAnswer, Session, StoredReading
from grading.models.readings import last_keys
from grading.models.sessions import SessionQuerySet, yours
from grading.monitoring.judges import ENOUGH, IDENTITY, CalibrationStatus, JudgeInstrument, compared, in_use
from grading.review.agreement import Agreement, JudgeHumanPair, MeanEstimate, agreement
from grading.review.ppi import ArmMean, GradeSums, arm_mean

__all__ = [
    "ENOUGH",
    "BlindPair",
    "BlindPairs",
    "Calibration",
    "CalibrationStatus",
    "JudgeInstrument",
    "arm_means",
    "calibrations",
    "for_grader",
    "in_use",
    "latest_arm_means",
    "narrow",
    "pairs",
    "recent_graders",
    "store_arm_means",
    "verdict_sums",
]

# The name of the stored reading.
ARM_MEANS = "means of arms by judges and people"
RECENT_DAYS = 14


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


@dataclass(frozen=True, kw_only=True, eq=False)
class BlindPairs:
    """Every blind pair of every grader: one for each session and grader, in the order of the sessions."""

    all: Sequence[BlindPair]

    @cached_property
    def by_grader(self) -> Mapping[JudgeInstrument, Sequence[BlindPair]]:
        by_grader: dict[JudgeInstrument, list[BlindPair]] = defaultdict(list)
        for pair in self.all:
            by_grader[pair.grader].append(pair)
        return by_grader

    @cached_property
    def calibrations(self) -> Mapping[JudgeInstrument, Calibration]:
        """Every grader that was ever compared with people; the one with the most pairs first."""
        calibrations = [_calibration(grader, own) for grader, own in self.by_grader.items()]
        return {each.grader: each for each in sorted(calibrations, key=lambda each: (-each.whole.n, str(each.grader)))}

    def of(self, grader: JudgeInstrument) -> Calibration:
        """One grader against people, also one that was never compared with them."""
        return self.calibrations.get(grader) or _calibration(grader, ())


def pairs() -> BlindPairs:
    """Every blind pair. Two queries.

    A verdict that a grader gave later (a new rubric, a second opinion) counts too: no person had seen it either. Of
    several verdicts of one grader on a session the latest that entered the chain counts, or else the latest.
    """
    blind = ReviewAnswer.objects.blind()
    values: dict[int, list[float]] = defaultdict(list)
    first: dict[int, tuple[str, str, float, bool]] = {}
    columns = ("session", "blind_value", "session__category__name", "stratum", "slice_probability", "is_drawn")
    answers = blind.annotate(is_drawn=Q(session__review_item__drawn_at__isnull=False)).order_by("pk")
    for session, value, arm, stratum, probability, is_drawn in answers.values_list(*columns):
        values[session].append(value)
        first.setdefault(session, (arm or "", stratum, probability, is_drawn))
    verdicts = Grade.objects.verdicts().first_readings().filter(session__in=blind.order_by().values("session"))
    judged: dict[tuple[int, tuple[str, ...]], float] = {}
    # The verdict that counts comes last and replaces the others.
    for session, value, *identity in verdicts.order_by("-parallel", "pk").values_list("session", "value", *IDENTITY):
        if session in first:
            judged[session, tuple(identity)] = value
    blind_pairs = []
    for session, identity in sorted(judged):
        arm, stratum, probability, is_drawn = first[session]
        pair = BlindPair(
            session=session,
            grader=JudgeInstrument(**dict(zip(IDENTITY, identity, strict=True))),
            stratum=(arm, stratum),
            judge=judged[session, identity],
            human=sum(values[session]) / len(values[session]),
            probability=probability,
            drawn=is_drawn,
        )
        blind_pairs.append(pair)
    return BlindPairs(all=blind_pairs)


def calibrations() -> list[Calibration]:
    """Every grader that was ever compared with people, the one with the most pairs first. Two queries."""
    return list(pairs().calibrations.values())


def recent_graders(now: dt.datetime) -> list[JudgeInstrument]:
    """The graders that decided a session of the last RECENT_DAYS, the latest first. One query."""
    recent = Session.objects.yours().filter(ended_at__gt=now - dt.timedelta(days=RECENT_DAYS), verdict__isnull=False)
    rows = recent.order_by().values_list(*(f"verdict__{name}" for name in IDENTITY)).annotate(latest=Max("verdict"))
    return [JudgeInstrument(**dict(zip(IDENTITY, row, strict=False))) for row in rows.order_by("-latest")]


def for_grader(grader: JudgeInstrument) -> Calibration:
    """One grader against people. Two queries."""
    return pairs().of(grader)


def verdict_sums() -> dict[tuple[JudgeInstrument, str], GradeSums]:
    """By grader and arm, the sums of the verdicts that count: one a session, as in `pairs`. One query."""
    verdicts = Grade.objects.verdicts().first_readings().filter(yours())
    is_better = Q(parallel__lt=OuterRef("parallel")) | Q(parallel=OuterRef("parallel"), pk__gt=OuterRef("pk"))
    same_grader = {name: OuterRef(name) for name in IDENTITY}
    better = verdicts.filter(is_better, session=OuterRef("session"), **same_grader)
    rows = verdicts.filter(~Exists(better)).order_by().values_list("session__category__name", *IDENTITY)
    sums = {"n": Count("pk"), "s": Sum("value"), "q": Sum(F("value") * F("value"))}
    return {
        (JudgeInstrument(**dict(zip(IDENTITY, identity, strict=True))), arm or ""): GradeSums(n=n, s=s, q=q)
        for arm, *identity, n, s, q in rows.annotate(**sums)
    }


def arm_means(blind_pairs: BlindPairs) -> dict[JudgeInstrument, dict[str, ArmMean]]:
    """The mean of each arm by each grader and people together: by the pairs that were drawn, and the grader's verdicts
    on all the arm's other sessions. One query.
    """
    every, means = verdict_sums(), dict[JudgeInstrument, dict[str, ArmMean]]()
    for grader, own in blind_pairs.by_grader.items():
        drawn: dict[str, list[JudgeHumanPair]] = defaultdict(list)
        for pair in own:
            arm_pairs = drawn[pair.stratum[0]]
            if pair.drawn:
                arm_pairs.append(pair.compared)
        means[grader] = {}
        for arm, arm_pairs in sorted(drawn.items()):
            values = [each.judge for each in arm_pairs]
            n, s, q = len(values), sum(values), sum(value**2 for value in values)
            sums = every.get((grader, arm), GradeSums())
            rest = GradeSums(n=max(sums.n - n, 0), s=sums.s - s, q=sums.q - q)
            means[grader][arm] = arm_mean(arm_pairs, rest)
    return means


def store_arm_means(now: dt.datetime) -> None:
    """Compute the means of arms for the calibration page, if grades, answers or the sessions of arms changed since: the
    sums of all verdicts take a second at 200,000 sessions.

    A judged session that gets another category moves its reward, so the ledger has new entries.
    """
    inputs = repr((last_keys(Grade, ReviewAnswer, LedgerEntry), Erasure.objects.count()))
    StoredReading.objects.renew(ARM_MEANS, inputs, _arm_means_as_json, now)


def _arm_means_as_json() -> list[Any]:
    return [
        (asdict(grader), arm, asdict(mean))
        for grader, by_arm in arm_means(pairs()).items()
        for arm, mean in by_arm.items()
    ]


def latest_arm_means(
    blind_pairs: BlindPairs,
) -> tuple[dict[JudgeInstrument, dict[str, ArmMean]], dt.datetime | None]:
    """The means of arms as the worker last computed them, and when; from these pairs, and None, if it never did."""
    stored = StoredReading.objects.filter(name=ARM_MEANS).first()
    if stored is None:
        return arm_means(blind_pairs), None
    means: dict[JudgeInstrument, dict[str, ArmMean]] = defaultdict(dict)
    for grader, arm, columns in stored.value:
        estimate = None if columns["mean"] is None else MeanEstimate(**columns["mean"])
        means[JudgeInstrument(**grader)][arm] = ArmMean(**{**columns, "mean": estimate})
    return means, stored.read_at


def narrow(sessions: SessionQuerySet, grader: JudgeInstrument) -> SessionQuerySet:
    """The sessions behind `for_grader(grader)`."""
    identity = {name: getattr(grader, name) for name in IDENTITY}
    return sessions.filter(pk__in=compared().filter(**identity).values("session"))


def _calibration(grader: JudgeInstrument, own: Sequence[BlindPair]) -> Calibration:
    strata: dict[tuple[str, str], list[JudgeHumanPair]] = defaultdict(list)
    for pair in own:
        strata[pair.stratum].append(pair.compared)
    drawn = [pair.compared for pair in own if pair.drawn]
    return Calibration(
        grader=grader,
        whole=agreement(drawn),
        early=len(own) - len(drawn),
        strata={stratum: agreement(compared_pairs) for stratum, compared_pairs in sorted(strata.items())},
    )
