"""History: sessions that ended before the site knew their agent, which a new agent's owner hands in all at once.

Of these, and of these alone, whoever hands them in may say when they ended, and that no judge is to be asked. Whoever
is graded could else date a bad session away or keep it from the judge. So the door is open for a week after a person
made the token, for sessions that ended before the agent's very first one; and never to a token that the agent holds.
"""

import datetime as dt
from dataclasses import dataclass

from django.db.models import Min

from grading.evidence.reading import EvidenceReading
from grading.intake.first_word import Speaker
from grading.intake.submission import Problem, SubmittedSession
from grading.models import Agent, ApiToken, Session
from grading.vocabulary import JudgeChoice
from grading.witness import Witness

OPEN_FOR = dt.timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What may be handed in as history with a token: what ended `before`, and `until` when."""

    before: dt.datetime
    until: dt.datetime

    def lets(self, ended_at: dt.datetime, now: dt.datetime) -> bool:
        return ended_at < self.before and now <= self.until


def door(token: ApiToken) -> Door | None:
    """None for a token with which nothing is. One query."""
    if token.witness is Witness.CLAIMED:
        return None
    first = ApiToken.objects.filter(agent=token.agent_id).aggregate(first=Min("created_at"))["first"]
    return Door(before=first, until=token.created_at + OPEN_FOR)


def choice(
    speaker: Speaker, said: SubmittedSession, log: EvidenceReading | None, now: dt.datetime
) -> JudgeChoice | str:
    """What is wanted of the judge for a new session, where that is history by what is said of it and by its own log;
    else "".
    """
    if said.judge is None or speaker.token is None:
        return ""
    found = door(speaker.token)
    ends = [moment for moment in (said.ended_at, log.ended_at if log else None) if moment is not None]
    if found is None or not ends or not all(found.lets(end, now) for end in ends):
        return ""
    return said.judge


def goes_on(session: Session) -> None:
    """More came of a session: it is no history any more, and is judged as any other."""
    if session.history:
        session.history = ""
        session.save(update_fields=["history"])


def refused(agent: Agent, speaker: Speaker, wanted: JudgeChoice) -> Problem:
    """That a session is not history, and is treated as any other."""
    found = None if speaker.token is None else door(speaker.token)
    expected = "a token that is not held by the agent itself"
    if found is not None:
        expected = (
            f"a new session that ended before {found.before:%Y-%m-%d %H:%M} UTC, when the first token of {agent} was "
            f"made, sent by {found.until:%Y-%m-%d %H:%M} UTC, a week after this token was made"
        )
    return Problem(
        part="judge",
        code="not_history",
        expected=expected,
        got=repr(wanted.value),
        todo="nothing: it is taken in as any other session",
        is_error=False,
    )
