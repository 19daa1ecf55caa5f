"""Calibration: compares a judge's grades with people's blind grades, on sessions of the random slice only.

Sessions that a rule put into the queue are no random sample, so they do not show how good the judge is. A grader is an
identity (model, route, rubric, digest version); figures of two graders are never averaged.

The figures over all use only sessions whose turn in the random order has come (`random_slice`). Other sessions of the
slice were answered because of their impact: they are valid within an arm and flag, but over all, what looked worst
would be over-represented. They count over all as soon as their turn comes.
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
from grading.monitoring.judges import ENOUGH, IDENTITY_COLUMNS, WINDOW, JudgeInstrument, blind_compared_verdicts
from grading.review.agreement import Agreement, JudgeHumanPair, MeanEstimate, agreement
from grading.review.ppi import ArmMean, GradeSums, arm_mean

# The name of the stored reading.
ARM_MEANS = "means of arms by judges and people"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindPair:
    """One session of the slice: `judge` is the grade by `grader`, `human` the mean of people's blind grades, in [0, 1].

    `stratum` is (arm, "flagged" or ""), empty if unknown. `probability` in (0, 1] is that of being in the slice.
    `drawn`: the session's turn in the random order has come.
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
    """One grader and people: `whole` is over the pairs whose turn has come, `strata` by (arm, flag) over all pairs.

    `early` is the number of pairs whose turn has not come.
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
        calibrations = [_calibration(grader, pairs) for grader, pairs in self.by_grader.items()]
        calibrations.sort(key=lambda calibration: (-calibration.whole.n, str(calibration.grader)))
        return {calibration.grader: calibration for calibration in calibrations}

    def of(self, grader: JudgeInstrument) -> Calibration:
        """One grader compared with people; without pairs if it never was."""
        return self.calibrations.get(grader) or _calibration(grader, ())


def pairs() -> BlindPairs:
    """Every blind pair. Two queries.

    Verdicts that came after the person's grade (a new rubric, a second opinion) count too, because the person had not
    seen them either. Of several verdicts of one grader on a session, the latest in the chain counts, else the latest.
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
    for session, value, *identity in verdicts.order_by("-parallel", "pk").values_list(
        "session", "value", *IDENTITY_COLUMNS
    ):
        if session in first:
            judged[session, tuple(identity)] = value
    blind_pairs = []
    for session, identity in sorted(judged):
        arm, stratum, probability, is_drawn = first[session]
        pair = BlindPair(
            session=session,
            grader=JudgeInstrument(**dict(zip(IDENTITY_COLUMNS, identity, strict=True))),
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
    """The graders of the current verdicts on sessions of the last WINDOW, the latest first. One query."""
    recent = Session.objects.yours().filter(ended_at__gt=now - WINDOW, verdict__isnull=False).order_by()
    rows = recent.values_list(*(f"verdict__{name}" for name in IDENTITY_COLUMNS)).annotate(latest=Max("verdict"))
    return [
        JudgeInstrument(**dict(zip(IDENTITY_COLUMNS, identity, strict=True)))
        for *identity, _latest in rows.order_by("-latest")
    ]


def for_grader(grader: JudgeInstrument) -> Calibration:
    """One grader compared with people. Two queries."""
    return pairs().of(grader)


def verdict_sums() -> dict[tuple[JudgeInstrument, str], GradeSums]:
    """The sums of verdicts by grader and arm, one verdict per session, which is chosen as in `pairs`. One query."""
    verdicts = Grade.objects.verdicts().first_readings().filter(yours())
    is_better = Q(parallel__lt=OuterRef("parallel")) | Q(parallel=OuterRef("parallel"), pk__gt=OuterRef("pk"))
    same_grader = {name: OuterRef(name) for name in IDENTITY_COLUMNS}
    better = verdicts.filter(is_better, session=OuterRef("session"), **same_grader)
    rows = verdicts.filter(~Exists(better)).order_by().values_list("session__category__name", *IDENTITY_COLUMNS)
    sums = {"n": Count("pk"), "s": Sum("value"), "q": Sum(F("value") * F("value"))}
    return {
        (JudgeInstrument(**dict(zip(IDENTITY_COLUMNS, identity, strict=True))), arm or ""): GradeSums(n=n, s=s, q=q)
        for arm, *identity, n, s, q in rows.annotate(**sums)
    }


def arm_means(blind_pairs: BlindPairs) -> dict[JudgeInstrument, dict[str, ArmMean]]:
    """The mean of each arm by grader, from the drawn pairs and the grader's verdicts on the arm's other sessions. One
    query.
    """
    all_sums = verdict_sums()
    means: dict[JudgeInstrument, dict[str, ArmMean]] = {}
    for grader, grader_pairs in blind_pairs.by_grader.items():
        drawn_by_arm: dict[str, list[JudgeHumanPair]] = defaultdict(list)
        for pair in grader_pairs:
            arm_pairs = drawn_by_arm[pair.stratum[0]]  # an arm without drawn pairs is listed too
            if pair.drawn:
                arm_pairs.append(pair.compared)
        means[grader] = {}
        for arm, arm_pairs in sorted(drawn_by_arm.items()):
            values = [pair.judge for pair in arm_pairs]
            sums = all_sums.get((grader, arm), GradeSums())
            rest = GradeSums(
                n=max(sums.n - len(values), 0),
                s=sums.s - sum(values),
                q=sums.q - sum(value**2 for value in values),
            )
            means[grader][arm] = arm_mean(arm_pairs, rest)
    return means


def store_arm_means(now: dt.datetime) -> None:
    """Compute and store the means of arms for the calibration page, if grades, answers or categories have changed. At
    200,000 sessions the sums take a second.

    A change of a judged session's category shows in the ledger, because its reward moves.
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
    """The stored means of arms and when they were computed; if there are none, those of `blind_pairs` and None."""
    stored = StoredReading.objects.filter(name=ARM_MEANS).first()
    if stored is None:
        return arm_means(blind_pairs), None
    means: dict[JudgeInstrument, dict[str, ArmMean]] = defaultdict(dict)
    for grader, arm, columns in stored.value:
        estimate = None if columns["mean"] is None else MeanEstimate(**columns["mean"])
        means[JudgeInstrument(**grader)][arm] = ArmMean(**{**columns, "mean": estimate})
    return means, stored.read_at


def narrow(sessions: SessionQuerySet, grader: JudgeInstrument) -> SessionQuerySet:
    """The sessions that `for_grader(grader)` compares."""
    identity = {name: getattr(grader, name) for name in IDENTITY_COLUMNS}
    return sessions.filter(pk__in=blind_compared_verdicts().filter(**identity).values("session"))


def _calibration(grader: JudgeInstrument, pairs: Sequence[BlindPair]) -> Calibration:
    strata: dict[tuple[str, str], list[JudgeHumanPair]] = defaultdict(list)
    for pair in pairs:
        strata[pair.stratum].append(pair.compared)
    drawn = [pair.compared for pair in pairs if pair.drawn]
    return Calibration(
        grader=grader,
        whole=agreement(drawn),
        early=len(pairs) - len(drawn),
        strata={stratum: agreement(compared_pairs) for stratum, compared_pairs in sorted(strata.items())},
    )
