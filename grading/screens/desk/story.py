"""What people did on a session, in words: the line after saving, the history in the panel, the answers beside."""

import datetime as dt
from dataclasses import dataclass, replace

from django.contrib.auth.models import User

from grading.models import Evidence, Flag, Grade, ReviewAnswer, Session, Settlement
from grading.models.review import GRADING, Answer
from grading.reward.explain import number
from grading.screens.desk import blind
from grading.screens.session import history
from grading.templatetags.gradingsite_tags import mean3

LISTED = 14
VERBS = {
    Answer.EXCLUDE: "Excluded",
    Answer.CANNOT_JUDGE: "Could not judge",
    Answer.SKIP: "Skipped",
    Answer.UNDO: "Undid",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelLine:
    """A line of the panel's history. `undo` is an answer that this person can take back, `withdraw` a grade's row."""

    at: dt.datetime
    what: str
    detail: str = ""
    source: str = ""
    undo: int | None = None
    withdraw: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlashMessage:
    """What the page says of what was just done, or refused (`grave`).

    `then`, `now` and `added`: what the page had shown, what holds, what came since. `more`: all that it did. `at`: the
    field to mend. `undo` is an answer's id.
    """

    text: str
    grave: bool = False
    then: str = ""
    now: str = ""
    added: str = ""
    more: str = ""
    at: str = ""
    undo: int | None = None


def said(answer: ReviewAnswer) -> FlashMessage:
    """The line after saving: "Saved .80: cross-repo .583 → .603"."""
    did = effects_of(answer)
    first = did[0] if did else ""
    undone = ReviewAnswer.objects.filter(undoes=answer).exists()
    undo = None if undone or answer.answer == Answer.UNDO else answer.pk
    return FlashMessage(text=words(answer) + (f": {first}" if first else ""), more=", ".join(did), undo=undo)


def effects_of(answer: ReviewAnswer) -> list[str]:
    """What an answer did to the bandits' means: "cross-repo .583 → .603", the category's arm first."""
    return [
        f"{each['arm']} {mean3(each['mean_before'])} → {mean3(each['mean_after'])}"
        for each in answer.effects.get("bandits", [])
        if each.get("mean_before") is not None and each.get("mean_after") is not None
    ]


def words(answer: ReviewAnswer) -> str:
    """What was said: "Saved .80", "Skipped"."""
    if answer.answer in GRADING:
        beside = "" if answer.grade_id else ", beside the grade that holds"
        verb = "Accepted" if answer.answer == Answer.ACCEPT else "Saved"
        return f"{verb} {number(answer.value)}{beside}"
    return VERBS[Answer(answer.answer)]


def lines(
    session: Session,
    person: User,
    *,
    received: list[Evidence],
    grades: list[Grade],
    settlements: list[Settlement],
    flags: list[Flag],
    said: list[ReviewAnswer],
    hides: bool,
) -> list[PanelLine]:
    """The latest of the session's history, newest first; without what is kept from this person."""
    found = history.of(session, received=received, grades=grades, settlements=settlements, flags=flags, entries=())
    if hides:
        found = list(blind.history(found))
    answered = {each.grade_id: each for each in said if each.grade_id}
    told = [_of_entry(entry, answered, person) for entry in found]
    told += [_of_answer(each, person) for each in said if each.grade_id is None and each.answer != Answer.UNDO]
    return sorted(told, key=lambda line: line.at, reverse=True)[:LISTED]


def _of_entry(entry: history.HistoryLine, answered: dict[int, ReviewAnswer], person: User) -> PanelLine:
    told = PanelLine(at=entry.at, what=entry.what, detail=entry.detail, source=entry.source)
    if entry.undo is None:
        return told
    answer = answered.get(entry.undo)
    if answer is not None and answer.reviewer == person:
        return replace(told, undo=answer.pk)
    return replace(told, withdraw=entry.undo)


def _of_answer(answer: ReviewAnswer, person: User) -> PanelLine:
    undone = getattr(answer, "undone_by", None) is not None
    mine = answer.reviewer == person and not undone
    return PanelLine(
        at=answer.created_at,
        what=f"{words(answer)} by {answer.reviewer.get_username()}" + ", undone later" * undone,
        detail=answer.reason,
        source="human",
        undo=answer.pk if mine else None,
    )
