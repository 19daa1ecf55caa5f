"""A simulated site: grades come, the site's own chain decides, buckets add up, and people review."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from bandit.core.machine_human import MachineHumanPair, fit
from bandit.core.offsets import Stratum
from bandit.core.policy import Policy
from bandit.core.posterior import Posterior, fold
from benchmarks.simulation.buckets import Buckets, to_date
from benchmarks.simulation.regimes import Regime
from benchmarks.simulation.world import ARMS, SLICE, Facts, clip
from grading.reward import journal
from grading.reward.decide import ChainPolicy, GradeView, decide
from grading.reward.grade import checked_value
from grading.vocabulary import Reason, Source, Status

# The policy of all regimes: an evidence scale that is right here, and nothing that reacts to change.
PLAIN = Policy(weights={}, half_life=21.0, evidence_scale=6.0, floor=0.01)
# The site's defaults.
CHAIN_FLOOR, CHAIN_THRESHOLD, VETO_CAP = 0.1, 0.1, 0.2
# What every session's journal claims, worth .32.
JOURNAL_VALUE = journal.grade("Submitted a pull request.").value or 0.0
# The stratum of sessions that a rule flags: only a claim, or nothing, accounts for a pull request that the caller saw.
FLAGGED = "flagged"
UNPROVEN_SOURCES = frozenset({Source.JOURNAL, Source.FLOOR})
# The standard deviations of a careful and of a careless person's errors. A careless person starts from the machine's
# value and goes three tenths of the way to the truth.
CAREFUL_ERROR, CARELESS_ERROR, CARELESS_ANCHOR = 0.05, 0.25, 0.7


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """What the bandit learns of one session: a value in [0, 1] from a source, in a stratum."""

    value: float
    source: Source
    stratum: str


@dataclass(slots=True, kw_only=True)
class SimulatedSession:
    """A finished session with its grades, and the credit that the bandit has for it now."""

    facts: Facts
    grades: list[GradeView]
    awaits_verdict: bool = False
    credit: Credit | None = None
    reviewed: bool = False

    def add_grade(self, source: Source, value: float) -> None:
        self.grades.append(scored(len(self.grades), source, value))


class SimulatedSite:
    """One regime in one world."""

    def __init__(self, regime: Regime) -> None:
        self.regime = regime
        self.chain = ChainPolicy(
            version=regime.name,
            floor=CHAIN_FLOOR,
            threshold=CHAIN_THRESHOLD,
            veto_cap=VETO_CAP,
            weights=regime.weights,
        )
        self.policy = replace(PLAIN, weights=regime.weights, caps=regime.caps, version=regime.name)
        self.sessions: list[SimulatedSession] = []
        self._buckets = Buckets()
        self._unjudged: deque[SimulatedSession] = deque()

    def finish(self, facts: Facts) -> None:
        """A session ends. It has the judge's grade, or the reason for having none and the grades that stand in."""
        if self.regime.loses and facts.fault:
            awaits_verdict = self.regime.rejudged_after is not None
            session = SimulatedSession(facts=facts, grades=self._stand_ins(facts), awaits_verdict=awaits_verdict)
        else:
            value = facts.quality if self.regime.truth else facts.judge
            session = SimulatedSession(facts=facts, grades=[scored(0, Source.JUDGE, value)])
        self.sessions.append(session)
        self.settle(session)
        if session.awaits_verdict:
            self._unjudged.append(session)

    def judge_again(self, last_day: int) -> None:
        """The judge is back for the sessions up to this day."""
        while self._unjudged and self._unjudged[0].facts.day <= last_day:
            session = self._unjudged.popleft()
            session.awaits_verdict = False
            session.add_grade(Source.JUDGE, session.facts.judge)
            self.settle(session)

    def settle(self, session: SimulatedSession) -> None:
        """Replace the session's credit by that of its grades."""
        decision = decide(session.grades, self.chain, judge_open=session.awaits_verdict)
        credit = None
        if decision.value is not None and decision.decider is not None and decision.weight:
            is_flagged = decision.decider in UNPROVEN_SOURCES and session.facts.contradicted
            credit = Credit(value=decision.value, source=decision.decider, stratum=FLAGGED if is_flagged else "")
        if credit != session.credit:
            self._add(session, session.credit, -1)
            self._add(session, credit, 1)
            session.credit = credit

    def review(self) -> list[MachineHumanPair]:
        """A week's reviews of the random slice, flagged sessions first as in the queue, then the newest. Returns the
        pairs of a machine's and a person's grade.
        """
        waiting = [session for session in self.sessions if session.facts.in_slice and not session.reviewed]
        waiting.sort(key=lambda session: (not is_flagged(session), -session.facts.day))
        pairs = [self._review(session) for session in waiting[: self.regime.reviews]]
        return [pair for pair in pairs if pair is not None]

    def fit_offsets(self, pairs: Iterable[MachineHumanPair]) -> None:
        """Fit offsets to all pairs so far and use them from now on."""
        self.policy = replace(self.policy, offsets=fit_offsets(pairs))

    def posterior(self, day: int) -> Posterior:
        return fold(self._buckets.rows, arms=ARMS, policy=self.policy, today=to_date(day))

    def _stand_ins(self, facts: Facts) -> list[GradeView]:
        trajectory, journal = scored(1, Source.TRAJECTORY, facts.trajectory), scored(2, Source.JOURNAL, JOURNAL_VALUE)
        if facts.is_stub:
            trajectory = unscored(1, Source.TRAJECTORY, Reason.STUB_NO_TOOL_CALLS)
        if not self.regime.journal:
            journal = unscored(2, Source.JOURNAL, Reason.NO_JOURNAL)
        return [unscored(0, Source.JUDGE, facts.fault), trajectory, journal]

    def _add(self, session: SimulatedSession, credit: Credit | None, sign: int) -> None:
        if credit is not None:
            self._buckets.add(
                credit.value,
                arm=ARMS[session.facts.arm],
                source=credit.source,
                day=session.facts.day,
                sign=sign,
                stratum=credit.stratum,
            )

    def _review(self, session: SimulatedSession) -> MachineHumanPair | None:
        """A person's grade outranks the machine's. None if no machine had given a reward."""
        machine, facts = session.credit, session.facts
        anchor = 0.0 if machine is None or self.regime.careful else CARELESS_ANCHOR
        start = 0.0 if machine is None else machine.value
        error = facts.human * (CAREFUL_ERROR if self.regime.careful else CARELESS_ERROR)
        human = clip(anchor * start + (1 - anchor) * facts.quality + error)
        session.add_grade(Source.HUMAN, human)
        session.reviewed = True
        self.settle(session)
        if machine is None:
            return None
        return MachineHumanPair(
            arm=ARMS[facts.arm],
            source=machine.source,
            stratum=machine.stratum,
            machine=machine.value,
            human=human,
            probability=SLICE,
        )


def fit_offsets(pairs: Iterable[MachineHumanPair]) -> Mapping[Stratum, float]:
    """The site's offsets for every arm, with every source and stratum that was reviewed."""
    pairs = list(pairs)
    kinds = {(pair.source, pair.stratum) for pair in pairs}
    return {each.key: each.offset for each in fit(pairs, {(arm, *kind) for arm in ARMS for kind in kinds})}


def is_flagged(session: SimulatedSession) -> bool:
    return session.credit is not None and session.credit.stratum == FLAGGED


def scored(number: int, source: Source, value: float) -> GradeView:
    return GradeView(id=number, source=source, status=Status.SCORED, value=checked_value(value))


def unscored(number: int, source: Source, reason: Reason) -> GradeView:
    return GradeView(id=number, source=source, status=Status.UNSCORED, reason=reason)
