"""Calibration: what a judge said against what a person said before seeing it, on the random slice and nowhere else.

Sessions that a rule put up are no sample of anything: they say what shocked somebody, not how good the judge is.
A grader is an identity (model, route, rubric, digest version); figures of two are never averaged.

Over all, only sessions count whose turn in the random order has come (`random_slice`). Others of the slice were
answered for their impact: within an arm and flag they say as much, but over all what looked worst would count too
often. They count there as soon as their turn comes.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property

from bandit.prepared import Prepared
from grading.models import Grade, ReviewAnswer, ReviewItem
from grading.models.sessions import SessionQuerySet
from grading.monitoring.calibration import ENOUGH, CalibrationStatus, JudgeInstrument, compared, in_use
from grading.monitoring.graders import IDENTITY
from grading.remembered import Memory, upto
from grading.review import kept
from grading.review.agreement import Agreement, JudgeHumanPair, agreement
from grading.review.judged import judged_sums
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


@dataclass(frozen=True, kw_only=True, eq=False)
class BlindPairs:
    """Every blind pair of every grader: one a session and grader, in the order of the sessions."""

    all: Sequence[BlindPair]

    @cached_property
    def by_grader(self) -> Mapping[JudgeInstrument, Sequence[BlindPair]]:
        found: dict[JudgeInstrument, list[BlindPair]] = defaultdict(list)
        for pair in self.all:
            found[pair.grader].append(pair)
        return found

    @cached_property
    def calibrations(self) -> Mapping[JudgeInstrument, Calibration]:
        """Every grader that was ever compared with people, the best known first."""
        found = [_calibration(grader, own) for grader, own in self.by_grader.items()]
        return {each.grader: each for each in sorted(found, key=lambda each: (-each.whole.n, str(each.grader)))}


Said = tuple[float, float, str, int | None]
Verdicts = Mapping[tuple[str, ...], float]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Held:
    """By session what people said blind, in the order in which they did (the value, its probability and stratum, and
    the session's arm), and what each grader said; answers and verdicts up to these keys are among them. `arms` are
    names, and `drawn` the sessions whose turn has come.
    """

    answers: int
    verdicts: int
    said: Mapping[int, Sequence[Said]]
    judged: Mapping[int, Verdicts]
    arms: Mapping[int, str]
    drawn: AbstractSet[int]
    pairs: BlindPairs


_DRAWN: Prepared[tuple[int]] = Prepared(
    lambda: ReviewItem.objects.filter(drawn_at__isnull=False).order_by().values_list("session")
)
_memory = Memory[kept.Version, _Held](1)


def pairs() -> BlindPairs:
    """Every blind pair: read once, and from then on kept up. Five queries, and two more where somebody said more of
    their sessions.

    A verdict that a grader gave later (a new rubric, a second opinion) counts too: no person had seen it either. Of
    several verdicts of one grader the latest that entered the chain counts, or else the latest.
    """
    key = kept.version()
    held = _memory.get(key)
    found = (held and _kept_up(held)) or _whole()
    _memory.put(key, found)
    return found.pairs


def calibrations() -> list[Calibration]:
    """Every grader that was ever compared with people, the best known first; queries as for `pairs`."""
    return list(pairs().calibrations.values())


def of(grader: JudgeInstrument) -> Calibration:
    """One grader against people; queries as for `pairs`."""
    return pairs().calibrations.get(grader) or _calibration(grader, ())


def arm_means(held: BlindPairs) -> dict[JudgeInstrument, dict[str, ArmMean]]:
    """The mean of each arm by each grader and people together: by the pairs that were drawn, and the grader's verdicts
    on all the arm's other sessions. As many queries as `judged_sums`.
    """
    judged, means = judged_sums(), dict[JudgeInstrument, dict[str, ArmMean]]()
    for grader, own in held.by_grader.items():
        drawn: dict[str, list[JudgeHumanPair]] = defaultdict(list)
        for each in own:
            found = drawn[each.stratum[0]]
            if each.drawn:
                found.append(each.compared)
        means[grader] = {
            arm: _arm_mean(found, judged.get((grader, arm), GradeSums())) for arm, found in sorted(drawn.items())
        }
    return means


def narrow(sessions: SessionQuerySet, grader: JudgeInstrument) -> SessionQuerySet:
    """The sessions behind `of(grader)`."""
    return sessions.filter(pk__in=compared().filter(**_identity(grader)).values("session"))


def _calibration(grader: JudgeInstrument, held: Sequence[BlindPair]) -> Calibration:
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


def _arm_mean(drawn: Sequence[JudgeHumanPair], every: GradeSums) -> ArmMean:
    said = [pair.judge for pair in drawn]
    n, s, q = len(said), sum(said), sum(value**2 for value in said)
    return arm_mean(drawn, GradeSums(n=max(every.n - n, 0), s=every.s - s, q=every.q - q))


def _whole() -> _Held:
    upto_verdicts, upto_answers = upto(Grade.objects.all()), upto(ReviewAnswer.objects.all())
    said, judged = _read(None)
    return _held(said, judged, None, answers=upto_answers, verdicts=upto_verdicts)


def _kept_up(held: _Held) -> _Held | None:
    """With what was said since; None where that is much."""
    verdicts, answers = kept.verdicts(held.verdicts), kept.answers(held.answers)
    if verdicts is None or answers is None:
        return None
    said, judged = held.said, held.judged
    if again := answers.sessions | (verdicts.sessions & said.keys()):
        more, theirs = _read(again)
        said = {**{session: own for session, own in said.items() if session not in again}, **more}
        judged = {**{session: own for session, own in judged.items() if session not in again}, **theirs}
    return _held(said, judged, held, answers=answers.upto, verdicts=verdicts.upto)


def _read(sessions: AbstractSet[int] | None) -> tuple[dict[int, list[Said]], dict[int, dict[tuple[str, ...], float]]]:
    """What people and graders said of these sessions, or of all: two queries."""
    blind = ReviewAnswer.objects.blind()
    if sessions is not None:
        blind = blind.filter(session__in=sessions)
    said: dict[int, list[Said]] = defaultdict(list)
    judged: dict[int, dict[tuple[str, ...], float]] = defaultdict(dict)
    columns = ("session", "blind_value", "slice_probability", "stratum", "session__category")
    for session, *own in blind.order_by("pk").values_list(*columns):
        said[session].append(tuple(own))
    verdicts = Grade.objects.verdicts().first_readings().filter(session__in=blind.order_by().values("session"))
    for session, value, *identity in verdicts.order_by("-parallel", "pk").values_list("session", "value", *IDENTITY):
        judged[session][tuple(identity)] = value
    return said, judged


def _held(
    said: Mapping[int, Sequence[Said]],
    judged: Mapping[int, Verdicts],
    before: _Held | None,
    *,
    answers: int,
    verdicts: int,
) -> _Held:
    """With the pairs that these make; they are as `before` where nothing is otherwise. Two queries."""
    arms = kept.arm_names()
    drawn = {session for (session,) in _DRAWN.rows()}
    if before is not None and (said, judged, arms, drawn) == (before.said, before.judged, before.arms, before.drawn):
        return replace(before, answers=answers, verdicts=verdicts)
    graders = dict[tuple[str, ...], JudgeInstrument]()
    found = []
    for session, identity in sorted((pk, each) for pk in said for each in judged.get(pk, ())):
        if identity not in graders:
            graders[identity] = JudgeInstrument(**dict(zip(IDENTITY, identity, strict=True)))
        _value, probability, stratum, arm = said[session][0]
        values = [value for value, *_ in said[session]]
        pair = BlindPair(
            session=session,
            grader=graders[identity],
            stratum=(arms.get(arm or 0, ""), stratum),
            judge=judged[session][identity],
            human=sum(values) / len(values),
            probability=probability,
            drawn=session in drawn,
        )
        found.append(pair)
    return _Held(
        answers=answers,
        verdicts=verdicts,
        said=said,
        judged=judged,
        arms=arms,
        drawn=drawn,
        pairs=BlindPairs(all=found),
    )


def _identity(grader: JudgeInstrument) -> dict[str, str]:
    return {name: getattr(grader, name) for name in IDENTITY}
