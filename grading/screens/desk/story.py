"""What people did with a session, as text: the message after saving, and the history in the panel."""

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
    """The message about what was just done, or refused (`is_error`).

    `then` is the settlement that the page had shown, `now` the current one, `added` the evidence received since. `more`
    lists all effects on bandits. `field_id` is the element to correct. `undo` is the id of an answer to undo.
    """

    text: str
    is_error: bool = False
    then: str = ""
    now: str = ""
    added: str = ""
    more: str = ""
    field_id: str = ""
    undo: int | None = None


def flash_message(answer: ReviewAnswer) -> FlashMessage:
    """The message after saving: "Saved .80: cross-repo from .583 to .603"; for a blind grade also the judge's value."""
    arm_moves = moves_of(answer.effects)
    effects = effects_of(answer)
    why = f". {moves.why(arm_moves[0], when='now')}" if arm_moves and arm_moves[0].counts_less else ""
    text, judge = describe(answer), answer.judge
    if answer.blind_value is not None and not answer.revealed and judge is not None and judge.value is not None:
        text = f"Saved: you {number(answer.value)}, judge {number(judge.value)}"
    undone = ReviewAnswer.objects.filter(undoes=answer).exists()
    undo = None if undone or answer.answer == Answer.UNDO else answer.pk
    if effects:
        text += f"; {effects[0]}" if ":" in text else f": {effects[0]}"
    return FlashMessage(text=text + why, more=", ".join(effects), undo=undo)


def effects_of(answer: ReviewAnswer) -> list[str]:
    """An answer's effects on arms' means, such as "cross-repo from .583 to .603", the category's arm first."""
    return [moves.words(move, shares=False) for move in moves_of(answer.effects)]


def describe(answer: ReviewAnswer) -> str:
    """An answer as text: "Saved .80", "Skipped"."""
    if answer.answer in GRADING:
        beside = "" if answer.grade_id else ", in addition to the current grade"
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
    """The latest lines of the session's history, newest first. `hides`: hide the grades of judges and people."""
    entries = history.lines(session, received=received, grades=grades, settlements=settlements, flags=flags, entries=())
    if hides:
        entries = list(blind.history(entries))
    answered = {each.grade_id: each for each in answers if each.grade_id}
    panel_lines = []
    for entry in entries:
        line = PanelLine(at=entry.at, what=entry.what, detail=entry.detail, source=entry.source)
        # `entry.undo` is a grade. The person who gave it undoes their answer; anybody else withdraws the grade.
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
            what=f"{describe(each)} by {each.reviewer.get_username()}{', undone later' if undone else ''}",
            detail=each.reason,
            source="human",
            undo=each.pk if each.reviewer == person and not undone else None,
        )
        panel_lines.append(line)
    return sorted(panel_lines, key=lambda line: line.at, reverse=True)[:LISTED]
