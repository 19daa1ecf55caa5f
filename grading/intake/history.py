"""History: sessions that ended before the site knew their agent, which a new agent's owner submits all at once.

Only for these may the submitter choose when they ended and that no judge is asked; otherwise a graded agent could
backdate a bad session or keep it from the judge. So history is accepted for a week after a person made the token, for
sessions that ended before the agent's first token was made, and never with a token that the agent itself holds.
"""

import datetime as dt
from dataclasses import dataclass

from django.db.models import Min

from grading.evidence.receiving import EvidenceReading
from grading.intake.first_word import Speaker
from grading.intake.submission import Problem, SubmittedSession
from grading.models import Agent, ApiToken, Session
from grading.vocabulary import JudgeChoice
from grading.witness import Witness

UPLOAD_PERIOD = dt.timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryWindow:
    """What a token may submit as history: sessions that ended before `before`, until the moment `until`."""

    before: dt.datetime
    until: dt.datetime

    def allows(self, ended_at: dt.datetime, now: dt.datetime) -> bool:
        return ended_at < self.before and now <= self.until


def history_window(token: ApiToken) -> HistoryWindow | None:
    """The window of a token, or None if it may submit no history. One query."""
    if token.witness is Witness.CLAIMED:
        return None
    first = ApiToken.objects.filter(agent=token.agent_id).aggregate(first=Min("created_at"))["first"]
    return HistoryWindow(before=first, until=token.created_at + UPLOAD_PERIOD)


def judge_choice(
    speaker: Speaker, metadata: SubmittedSession, log: EvidenceReading | None, now: dt.datetime
) -> JudgeChoice | str:
    """The submitted choice of judging if a new session is history by both its metadata and its own log; else ""."""
    if metadata.judge is None or speaker.token is None:
        return ""
    window = history_window(speaker.token)
    ends = [moment for moment in (metadata.ended_at, log.ended_at if log else None) if moment is not None]
    if window is None or not ends or not all(window.allows(end, now) for end in ends):
        return ""
    return metadata.judge


def clear_history(session: Session) -> None:
    """New evidence came for a session: it isn't history any more, and is judged like any other."""
    if session.history:
        session.history = ""
        session.save(update_fields=["history"])


def not_history(agent: Agent, speaker: Speaker, wanted: JudgeChoice) -> Problem:
    """The remark that a session isn't history and is treated like any other."""
    window = None if speaker.token is None else history_window(speaker.token)
    expected = "a token that is not held by the agent itself"
    if window is not None:
        expected = (
            f"a new session that ended before {window.before:%Y-%m-%d %H:%M} UTC, when the first token of {agent} was "
            f"made, sent by {window.until:%Y-%m-%d %H:%M} UTC, a week after this token was made"
        )
    return Problem(
        part="judge",
        code="not_history",
        expected=expected,
        got=repr(wanted.value),
        todo="nothing: it is taken in as any other session",
        is_error=False,
    )
