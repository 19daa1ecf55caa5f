"""What the graded says of a session after its first word (A42)."""

import datetime as dt
from collections.abc import Iterable, Sequence

from grading.models import Session
from grading.models.submissions import ProposedField
from grading.monitoring.flag_rule import Flagged, FlagRule, too_often_by_agent
from grading.monitoring.rule import Finding, Severity
from grading.reward.decide import CurrentGrades
from grading.reward.rewards import LATE_WORD

SHOWN = 200


class LateWord(FlagRule):
    """Whoever is graded tries to take a session out, move it or date it once it is known what it is worth."""

    id = LATE_WORD
    title = "An agent changes its story about a session"
    means = (
        "Flags a session about which its agent, or the hook beside it, says something new after a verdict or "
        "after the first hour: another outcome or category, other facts, dates or lessons. Also one whose end is "
        "dated before its decision or more than a week back. None of it counts until somebody adopts it. Opens at "
        "an agent’s third in seven days."
    )
    todo = "On each session’s page, adopt what is true and reject the rest."
    severity = Severity.ALARM
    settled = "all of it has been answered"

    def finding(self, session: Session, holds: CurrentGrades, now: dt.datetime) -> str:  # noqa: ARG002 - every rule is asked alike
        open_ = [row for row in session.proposals.all() if row.answered_at is None]
        said = [f"{ProposedField(row.field).words}: {row.summary}" for row in open_ if row.field != ProposedField.TITLE]
        return f"said afterwards, not adopted: {'; '.join(said)[:SHOWN]}" if said else ""

    def told(self, flags: Sequence[Flagged]) -> Iterable[Finding]:
        for agent, count in too_often_by_agent(flags):
            yield Finding(
                about=agent,
                detail=f"{agent} said something new of {count} of its sessions in seven days, after they had been "
                "graded or dated out of bounds. None of it counts. An agent that learns what it earns will try this: "
                "compare what it wanted changed with what those sessions are worth.",
            )
