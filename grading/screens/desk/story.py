"""What people did on a session, in words: the line after saving, the history in the panel, the answers beside."""

import datetime as dt
from dataclasses import dataclass, replace

from django.contrib.auth.models import User

from grading.models import Evidence, Flag, Grade, ReviewAnswer, Session, Settlement
from grading.models.review import GRADING, Answer
from grading.review.effects import moves_of
from grading.reward.explain import number
from grading.screens import moves
from grading.screens.session import blind, history

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


def flash_message(answer: ReviewAnswer) -> FlashMessage:
    """The line after saving: "Saved .80: cross-repo from .583 to .603"; of a blind grade the judge's too."""
    arm_moves = moves_of(answer.effects)
    did = effects_of(answer)
    first = did[0] if did else ""
    why = f". {moves.why(arm_moves[0], when='now')}" if arm_moves and arm_moves[0].counts_less else ""
    text, judge = describe(answer), answer.judge
    if answer.blind_value is not None and not answer.revealed and judge is not None and judge.value is not None:
        text = f"Saved: you {number(answer.value)}, judge {number(judge.value)}"
    undone = ReviewAnswer.objects.filter(undoes=answer).exists()
    undo = None if undone or answer.answer == Answer.UNDO else answer.pk
    if first:
        text += f": {first}" if ":" not in text else f"; {first}"
    return FlashMessage(text=text + why, more=", ".join(did), undo=undo)


def effects_of(answer: ReviewAnswer) -> list[str]:
    """What an answer did to the bandits' means: "cross-repo from .583 to .603", the category's arm first."""
    return [moves.words(move, shares=False) for move in moves_of(answer.effects)]


def describe(answer: ReviewAnswer) -> str:
    """What was said: "Saved .80", "Skipped"."""
    if answer.answer in GRADING:
        beside = "" if answer.grade_id else ", in addition to the grade in force"
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
    answers: list[ReviewAnswer],
    hides: bool,
) -> list[PanelLine]:
    """The latest of the session's history, newest first; without what is kept from this person."""
    entries = history.of(session, received=received, grades=grades, settlements=settlements, flags=flags, entries=())
    if hides:
        entries = list(blind.history(entries))
    answered = {each.grade_id: each for each in answers if each.grade_id}
    panel_lines = []
    for entry in entries:
        line = PanelLine(at=entry.at, what=entry.what, detail=entry.detail, source=entry.source)
        answer = None if entry.undo is None else answered.get(entry.undo)
        if answer is not None and answer.reviewer == person:
            line = replace(line, undo=answer.pk)
        elif entry.undo is not None:
            line = replace(line, withdraw=entry.undo)
        panel_lines.append(line)
    for each in answers:
        if each.grade_id is not None or each.answer == Answer.UNDO:
            continue
        undone = getattr(each, "undone_by", None) is not None
        line = PanelLine(
            at=each.created_at,
            what=f"{describe(each)} by {each.reviewer.get_username()}" + ", undone later" * undone,
            detail=each.reason,
            source="human",
            undo=each.pk if each.reviewer == person and not undone else None,
        )
        panel_lines.append(line)
    return sorted(panel_lines, key=lambda line: line.at, reverse=True)[:LISTED]
