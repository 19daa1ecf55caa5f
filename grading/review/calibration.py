"""Calibration: compares a judge's grades with people's blind grades, on sessions of the random slice only.

Sessions that a rule put into the queue are no random sample, so they do not show how good the judge is. A grader is
identified by model, route, rubric and digest version. Figures of two graders are never averaged.

Overall figures use only sessions whose turn in the random order has come (`random_slice`). Other sessions of the slice
were answered because of their impact. Within an arm and flag they can be used. In overall figures they would
over-represent the sessions that looked worst, so they count there only once their turn comes.
"""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from django.db.models import Count, Exists, F, Max, OuterRef, Q, Sum

from bandit.models import Erasure, LedgerEntry
from grading.models import Grade, ReviewAnswer, Session, StoredReading
from grading.models.readings import last_keys
from grading.models.sessions import SessionQuerySet, yours
from grading.monitoring.judges import ENOUGH, IDENTITY_COLUMNS, WINDOW, JudgeInstrument, blind_compared_verdicts
from grading.review.agreement import Agreement, JudgeHumanPair, MeanEstimate, measure_agreement
from grading.review.ppi import ArmMean, GradeSums, arm_mean

# The name of the stored reading.
ARM_MEANS = "means of arms by judges and people"


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindPair:
    """A session of the slice, with its grade by `grader` (`judge`) and the mean of people's blind grades (`human`).

    Both are in [0, 1]. `stratum` is (arm, flag): the arm is empty if unknown, the flag is "flagged" or "".
    `probability`, in (0, 1], is that of being in the slice. `drawn`: the session's turn in the random order has come.
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
    """How far a grader agrees with people.

    `whole` is over the pairs whose turn has come; `early` is the number of the other pairs. `strata` has the agreement
    for each (arm, flag), over all pairs.
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
        """The calibration of every grader that was ever compared with people, the most pairs first."""
        calibrations = [_calibration(grader, pairs) for grader, pairs in self.by_grader.items()]
        calibrations.sort(key=lambda calibration: (-calibration.whole.n, str(calibration.grader)))
        return {calibration.grader: calibration for calibration in calibrations}

    def calibration_of(self, grader: JudgeInstrument) -> Calibration:
        """The calibration of a grader. Its figures have no pairs if the grader was never compared with people."""
        return self.calibrations.get(grader) or _calibration(grader, ())


def load_blind_pairs() -> BlindPairs:
    """Every blind pair. Two queries.

    Verdicts that came after the person's grade (a new rubric, a second opinion) count too, because the person had not
    seen them either. If a grader gave several verdicts on a session, the latest verdict of the chain counts; without
    one, the latest of all.
    """
    blind = ReviewAnswer.objects.blind()
    # Both by session: people's grades, and what is read from the session's first answer.
    values: dict[int, list[float]] = defaultdict(list)
    first: dict[int, tuple[str, str, float, bool]] = {}
    columns = ("session", "blind_value", "session__category__name", "stratum", "slice_probability", "is_drawn")
    answers = blind.annotate(is_drawn=Q(session__review_item__drawn_at__isnull=False)).order_by("pk")
    for session, value, arm, stratum, probability, is_drawn in answers.values_list(*columns):
        values[session].append(value)
        first.setdefault(session, (arm or "", stratum, probability, is_drawn))
    verdicts = Grade.objects.verdicts().first_readings().filter(session__in=blind.order_by().values("session"))
    verdicts = verdicts.order_by("-parallel", "pk")  # the verdict that counts comes last and replaces the others
    latest: dict[tuple[int, tuple[str, ...]], float] = {}  # by session and grader
    for session, value, *identity in verdicts.values_list("session", "value", *IDENTITY_COLUMNS):
        if session in first:
            latest[session, tuple(identity)] = value
    blind_pairs = []
    for session, identity in sorted(latest):
        arm, stratum, probability, is_drawn = first[session]
        pair = BlindPair(
            session=session,
            grader=_grader(identity),
            stratum=(arm, stratum),
            judge=latest[session, identity],
            human=sum(values[session]) / len(values[session]),
            probability=probability,
            drawn=is_drawn,
        )
        blind_pairs.append(pair)
    return BlindPairs(all=blind_pairs)


def calibrations() -> list[Calibration]:
    """The calibration of every grader that was ever compared with people, the most pairs first. Two queries."""
    return list(load_blind_pairs().calibrations.values())


def recent_graders(now: dt.datetime) -> list[JudgeInstrument]:
    """The graders of the current verdicts on sessions of the last WINDOW, most recently used first. One query."""
    recent = Session.objects.yours().filter(ended_at__gt=now - WINDOW, verdict__isnull=False).order_by()
    rows = recent.values_list(*(f"verdict__{name}" for name in IDENTITY_COLUMNS)).annotate(latest=Max("verdict"))
    return [_grader(identity) for *identity, _latest in rows.order_by("-latest")]


def for_grader(grader: JudgeInstrument) -> Calibration:
    """The calibration of a grader. Two queries."""
    return load_blind_pairs().calibration_of(grader)


def verdict_sums() -> dict[tuple[JudgeInstrument, str], GradeSums]:
    """The sums of verdicts by (grader, arm). Each session counts once, as in `load_blind_pairs`. One query."""
    verdicts = Grade.objects.verdicts().first_readings().filter(yours())
    is_better = Q(parallel__lt=OuterRef("parallel")) | Q(parallel=OuterRef("parallel"), pk__gt=OuterRef("pk"))
    same_grader = {name: OuterRef(name) for name in IDENTITY_COLUMNS}
    better = verdicts.filter(is_better, session=OuterRef("session"), **same_grader)
    rows = verdicts.filter(~Exists(better)).order_by().values_list("session__category__name", *IDENTITY_COLUMNS)
    sums = {"n": Count("pk"), "s": Sum("value"), "q": Sum(F("value") * F("value"))}
    return {
        (_grader(identity), arm or ""): GradeSums(n=n, s=s, q=q) for arm, *identity, n, s, q in rows.annotate(**sums)
    }


def arm_means(blind_pairs: BlindPairs) -> dict[JudgeInstrument, dict[str, ArmMean]]:
    """The mean of each arm, by grader and then arm. One query.

    It is estimated from the drawn pairs and the grader's verdicts on the arm's other sessions.
    """
    all_sums = verdict_sums()
    means: dict[JudgeInstrument, dict[str, ArmMean]] = {}
    for grader, grader_pairs in blind_pairs.by_grader.items():
        drawn_by_arm: dict[str, list[JudgeHumanPair]] = defaultdict(list)
        for pair in grader_pairs:
            arm, _flag = pair.stratum
            arm_pairs = drawn_by_arm[arm]  # an arm without drawn pairs is listed too
            if pair.drawn:
                arm_pairs.append(pair.compared)
        means[grader] = {}
        for arm, arm_pairs in sorted(drawn_by_arm.items()):
            values = [pair.judge for pair in arm_pairs]
            sums = all_sums.get((grader, arm), GradeSums())
            sums_without_pairs = GradeSums(
                n=max(sums.n - len(values), 0),
                s=sums.s - sum(values),
                q=sums.q - sum(value**2 for value in values),
            )
            means[grader][arm] = arm_mean(arm_pairs, sums_without_pairs)
    return means


def store_arm_means(now: dt.datetime) -> None:
    """Compute and store the means of arms for the calibration page, if grades, answers or categories have changed.

    They are stored because the sums take a second at 200,000 sessions. A change of a judged session's category shows in
    the ledger, because the session's reward moves.
    """
    inputs = repr((last_keys(Grade, ReviewAnswer, LedgerEntry), Erasure.objects.count()))
    StoredReading.objects.renew(ARM_MEANS, inputs, _arm_means_as_json, now)


def _arm_means_as_json() -> list[Any]:
    return [
        (asdict(grader), arm, asdict(mean))
        for grader, by_arm in arm_means(load_blind_pairs()).items()
        for arm, mean in by_arm.items()
    ]


def latest_arm_means(
    blind_pairs: BlindPairs,
) -> tuple[dict[JudgeInstrument, dict[str, ArmMean]], dt.datetime | None]:
    """The stored means of arms (as in `arm_means`), and when they were computed.

    If none are stored, the means are computed from `blind_pairs`, and the time is None.
    """
    stored = StoredReading.objects.filter(name=ARM_MEANS).first()
    if stored is None:
        return arm_means(blind_pairs), None
    means: dict[JudgeInstrument, dict[str, ArmMean]] = defaultdict(dict)
    for grader, arm, columns in stored.value:
        estimate = None if columns["mean"] is None else MeanEstimate(**columns["mean"])
        means[JudgeInstrument(**grader)][arm] = ArmMean(**{**columns, "mean": estimate})
    return means, stored.read_at


def compared_sessions(sessions: SessionQuerySet, grader: JudgeInstrument) -> SessionQuerySet:
    """Those of the sessions that `for_grader(grader)` compares."""
    identity = {name: getattr(grader, name) for name in IDENTITY_COLUMNS}
    return sessions.filter(pk__in=blind_compared_verdicts().filter(**identity).values("session"))


def _grader(identity: Iterable[str]) -> JudgeInstrument:
    """The grader with these values of the IDENTITY_COLUMNS."""
    return JudgeInstrument(**dict(zip(IDENTITY_COLUMNS, identity, strict=True)))


def _calibration(grader: JudgeInstrument, pairs: Sequence[BlindPair]) -> Calibration:
    strata: dict[tuple[str, str], list[JudgeHumanPair]] = defaultdict(list)
    for pair in pairs:
        strata[pair.stratum].append(pair.compared)
    drawn = [pair.compared for pair in pairs if pair.drawn]
    return Calibration(
        grader=grader,
        whole=measure_agreement(drawn),
        early=len(pairs) - len(drawn),
        strata={stratum: measure_agreement(compared_pairs) for stratum, compared_pairs in sorted(strata.items())},
    )
