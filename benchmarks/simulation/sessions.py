"""A simulated session's grade rows, and what the site's own chain makes of them (as `grading/rewards.py` does)."""

from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.simulation.buckets import Credit, credited
from benchmarks.simulation.regimes import Regime
from benchmarks.simulation.world import Facts
from grading.reward import journal
from grading.reward.decide import ChainPolicy, GradeView, decide
from grading.reward.grade import checked_value
from grading.vocabulary import Reason, Source, Status

# What every session says of itself: worth the founding document's .32.
WRITTEN = "Submitted a pull request."
JOURNAL_VALUE = journal.grade(WRITTEN).value or 0.0
FLOOR, THRESHOLD, VETO_CAP = 0.1, 0.1, 0.2
# The stratum of sessions that a rule flagged: only words, or nothing, account for a pull request that the caller saw.
FLAGGED = "flagged"
WORDS_OR_NOTHING = frozenset({Source.JOURNAL, Source.FLOOR})


@dataclass(slots=True, kw_only=True)
class Session:
    """A finished session: its facts, its grade rows, whether a verdict is to come, and the credit that holds."""

    facts: Facts
    grades: list[GradeView]
    waits: bool = False
    credit: Credit | None = None
    reviewed: bool = False

    @property
    def is_flagged(self) -> bool:
        return self.credit is not None and self.credit.stratum == FLAGGED

    def add(self, source: Source, value: float) -> None:
        """Append a grade with a value: a late verdict, a person's."""
        self.grades.append(scored(len(self.grades), source, value))


def finished(facts: Facts, regime: Regime) -> Session:
    """A session with the grades of its first hour: the judge's, or why there is none with what stands in."""
    if regime.loses and facts.fault:
        return Session(facts=facts, grades=_stand_ins(facts, regime), waits=regime.rejudged_after is not None)
    return Session(facts=facts, grades=[scored(0, Source.JUDGE, facts.quality if regime.truth else facts.judge)])


def _stand_ins(facts: Facts, regime: Regime) -> list[GradeView]:
    return [
        unscored(0, Source.JUDGE, facts.fault),
        unscored(1, Source.TRAJECTORY, Reason.STUB_NO_TOOL_CALLS)
        if facts.is_stub
        else scored(1, Source.TRAJECTORY, facts.trajectory),
        scored(2, Source.JOURNAL, JOURNAL_VALUE) if regime.journal else unscored(2, Source.JOURNAL, Reason.NO_JOURNAL),
    ]


def chain_policy(version: str, weights: Mapping[str, float]) -> ChainPolicy:
    """The chain's policy, with the site's numbers by its settings' defaults."""
    return ChainPolicy(version=version, floor=FLOOR, threshold=THRESHOLD, veto_cap=VETO_CAP, weights=weights)


def credit(session: Session, policy: ChainPolicy) -> Credit | None:
    """What the chain makes of the rows."""
    decision = decide(session.grades, policy, judge_open=session.waits)
    is_flagged = decision.decider in WORDS_OR_NOTHING and session.facts.contradicted
    return credited(decision, FLAGGED if is_flagged else "")


def scored(number: int, source: Source, value: float) -> GradeView:
    return GradeView(id=number, source=source, status=Status.SCORED, value=checked_value(value))


def unscored(number: int, source: Source, reason: Reason) -> GradeView:
    return GradeView(id=number, source=source, status=Status.UNSCORED, reason=reason)
