"""The history of a session's reward: all of its append-only rows, ordered by time."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from bandit.models import LedgerEntry
from grading.models import CategoryWord, Evidence, Flag, Grade, Session, Settlement, Submission
from grading.models.agents import TokenScope
from grading.monitoring.rule import quotes_verdict, title_of
from grading.reward.explain import ABSTAINS, HEADLINES, number
from grading.templatetags.gradingsite_tags import rest, usd
from grading.vocabulary import Reason, Source, Status

NO_VALUE = {Reason.EXCLUDED: "excluded", Reason.WITHDRAWN: "undone"}
NO_SCORE = {Status.SCORED: "", Status.UNSCORED: "no score", Status.SKIPPED: "skipped", Status.FAILED: "failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLine:
    """What happened and when; `source` is its icon, `undo` the id of a grade that can still be withdrawn.

    `while_blind` replaces the text for a person who is to grade the session blind; empty if the line reveals no grade.
    `is_main`: shown before the history is unfolded.
    """

    at: dt.datetime
    what: str
    detail: str = ""
    source: str = ""
    undo: int | None = None
    while_blind: str = ""
    is_main: bool = False


def lines(
    session: Session,
    *,
    received: Iterable[Evidence],
    grades: Iterable[Grade],
    settlements: Iterable[Settlement],
    flags: Iterable[Flag],
    entries: Iterable[LedgerEntry],
    submissions: Iterable[Submission] = (),
    categories: Iterable[CategoryWord] = (),
) -> list[HistoryLine]:
    """The whole history, oldest first. Rows of one second stay in the order of cause and effect: submissions,
    categories, grades, settlements, ledger entries, flags.
    """
    kinds = ", ".join(row.kind for row in received) or "metadata"
    withdrawn_ids = {grade.withdraws_id for grade in grades}
    history = [
        HistoryLine(at=session.received_at, what="Session received", detail=f"stored under hashes: {kinds}"),
        *map(_submission, submissions),
        *map(_category, categories),
        *(_grade(grade, is_withdrawn=grade.pk in withdrawn_ids) for grade in grades),
        *map(_settlement, settlements),
        *map(_ledger_entry, entries),
    ]
    for flag in flags:
        history.append(_flag(flag))
        if flag.cleared_at:
            who = flag.cleared_by.get_username() if flag.cleared_by else "the rule"
            history.append(HistoryLine(at=flag.cleared_at, what=f"Flag cleared by {who}", detail=flag.cleared_why))
    return sorted(history, key=lambda line: line.at.replace(microsecond=0))


def _submission(submission: Submission) -> HistoryLine:
    who = TokenScope(submission.scope).words if submission.scope else "the site itself, or a token without a scope"
    token = "" if submission.token is None else f", token …{submission.token.hint}"
    details = [f"new: {', '.join(submission.added)}"] if submission.added else []
    for name, value in submission.after.items():
        if value not in ("", None):
            details.append(f"{name.replace('_', ' ')} {value}")
    detail = "; ".join(details) or "nothing new"
    return HistoryLine(at=submission.received_at, what=f"Submitted by {who}{token}", detail=detail)


def _category(word: CategoryWord) -> HistoryLine:
    """The line of one decision about the session's category, by a rule or a person."""
    by = "" if word.by is None else f", {word.by.get_username()}"
    undone = "" if word.undone_at is None else "; undone since"
    return HistoryLine(
        at=word.said_at,
        what=f"Category {word.category}: {word.get_origin_display()}{by}",
        detail=f"{word.why}{undone}",
        is_main=word.by is not None,
    )


def _grade(grade: Grade, *, is_withdrawn: bool) -> HistoryLine:
    who = f" by {grade.author.get_username()}" if grade.author else ""
    beside = f", {grade.beside}" if grade.parallel else ""
    is_persons_grade = grade.source == Source.HUMAN and grade.reason != Reason.WITHDRAWN
    details = [grade.detail or Reason(grade.reason).words]
    if not grade.author:
        cost = "" if grade.cost_usd is None else usd(grade.cost_usd)
        rubric = f"rubric {grade.rubric[:4]}" if grade.rubric else ""
        details.append(", ".join(filter(None, [grade.model, rubric, grade.version, cost])))
    if is_withdrawn:
        details.append("undone later")
    return HistoryLine(
        at=grade.created_at,
        what=f"{grade.source.capitalize()}{who}{beside}: {_result(grade)}",
        detail="; ".join(filter(None, details)),
        source=grade.source,
        undo=grade.pk if is_persons_grade and not is_withdrawn else None,
        is_main=is_persons_grade,
        while_blind=grade.source.capitalize() if grade.source in (Source.JUDGE, Source.HUMAN) else "",
    )


def _result(grade: Grade) -> str:
    """The grade's value, or why it has none."""
    reason = Reason(grade.reason)
    if reason in ABSTAINS:
        return HEADLINES[reason].lower()
    if grade.value is not None:
        return number(grade.value)
    return NO_VALUE.get(reason, NO_SCORE[Status(grade.status)])


def _settlement(settlement: Settlement) -> HistoryLine:
    if settlement.value is None:
        how = "without a reward"
    elif settlement.source == Source.FLOOR:
        how = "as not graded yet"
    else:
        how = f"at {number(settlement.value)}"
    return HistoryLine(
        at=settlement.created_at,
        what=f"Settled {how}, {'final' if settlement.final else 'provisional'}",
        detail=rest(settlement.sentence),
        source=settlement.source,
        while_blind="Settled",
        is_main=True,
    )


def _ledger_entry(entry: LedgerEntry) -> HistoryLine:
    """The line of a reward that a bandit learned or unlearned, or of a session that it left out or counts again."""
    is_applied, bandit = entry.op == LedgerEntry.Op.APPLY, f"the {entry.bandit.name} bandit"
    if entry.is_abstention:
        verb = "Left out" if is_applied else "Counted"
        what = f"Left out by {bandit}" if is_applied else f"The {entry.bandit.name} bandit now counts this session"
        view = entry.grader.view
        reason = Reason(view).words if view in set(Reason) else view
        detail = f"{reason}: no reward for {entry.arm}, revision {entry.revision}"
    else:
        verb = "Learned" if is_applied else "Unlearned"
        what = f"{verb} by {bandit}"
        detail = f"{number(entry.value)} on {entry.arm}, revision {entry.revision}"
    return HistoryLine(at=entry.recorded_at, what=what, detail=detail, while_blind=verb)


def _flag(flag: Flag) -> HistoryLine:
    what = f"Flagged: {title_of(flag.rule)}"
    return HistoryLine(
        at=flag.raised_at,
        what=what,
        detail=flag.detail,
        source="alarm",
        while_blind=what if quotes_verdict(flag.rule) else "",
        is_main=True,
    )
