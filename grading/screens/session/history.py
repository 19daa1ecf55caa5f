"""The history of a session's reward: every row of every kind, in the order of time. Nothing is ever overwritten."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

from bandit.models import LedgerEntry
from grading.models import CategoryWord, Evidence, Flag, Grade, Session, Settlement, Submission
from grading.models.agents import TokenScope
from grading.monitoring import quotes_verdict, title_of
from grading.reward.explain import ABSTAINS, HEADLINES, number
from grading.templatetags.gradingsite_tags import rest, usd
from grading.vocabulary import Reason, Source, Status

UNSAID = {Reason.EXCLUDED: "excluded", Reason.WITHDRAWN: "undone"}
NO_SCORE = {Status.SCORED: "", Status.UNSCORED: "no score", Status.SKIPPED: "skipped", Status.FAILED: "failed"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryLine:
    """One line: when, whose shape, what happened, and the details. `undo` is the grade that can still be withdrawn.

    `while_blind`: all that the line may say to a person who is to grade without knowing the answers of judge and
    people; empty where it tells nothing of them. `is_main`: shown before the history is unfolded.
    """

    at: dt.datetime
    what: str
    detail: str = ""
    source: str = ""
    undo: int | None = None
    while_blind: str = ""
    is_main: bool = False


def of(
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
    """All of it in one list, oldest first; rows of one moment in the order in which one causes the next."""
    kinds = ", ".join(row.kind for row in received) or "metadata"
    lines = [HistoryLine(at=session.received_at, what="Session received", detail=f"stored under hashes: {kinds}")]
    for said in submissions:
        who = TokenScope(said.scope).words if said.scope else "the site itself, or a token without a scope"
        token = "" if said.token is None else f", token …{said.token.hint}"
        changed = [f"{name.replace('_', ' ')} {value}" for name, value in said.after.items() if value not in ("", None)]
        detail = "; ".join([*([f"new: {', '.join(said.added)}"] if said.added else []), *changed]) or "nothing new"
        lines.append(HistoryLine(at=said.received_at, what=f"Submitted by {who}{token}", detail=detail))
    for word in categories:
        by = "" if word.by is None else f", {word.by.get_username()}"
        taken_back = "" if word.undone_at is None else "; taken back since"
        what = f"Category {word.category}: {word.get_origin_display()}{by}"
        lines.append(
            HistoryLine(at=word.said_at, what=what, detail=f"{word.why}{taken_back}", is_main=word.by is not None)
        )
    withdrawn = {grade.withdraws_id for grade in grades}
    lines += [_grade(grade, is_withdrawn=grade.pk in withdrawn) for grade in grades]
    for settlement in settlements:
        how = "without a reward" if settlement.value is None else f"at {number(settlement.value)}"
        if settlement.value is not None and settlement.source == Source.FLOOR:
            how = "as not graded yet"
        line = HistoryLine(
            at=settlement.created_at,
            what=f"Settled {how}, {'final' if settlement.final else 'provisional'}",
            detail=rest(settlement.sentence),
            source=settlement.source,
            while_blind="Settled",
            is_main=True,
        )
        lines.append(line)
    for entry in entries:
        applied, bandit = entry.op == LedgerEntry.Op.APPLY, f"the {entry.bandit.name} bandit"
        if entry.is_abstention:
            verb = "Left out" if applied else "Counted"
            what = f"Left out by {bandit}" if applied else f"The {entry.bandit.name} bandit now counts this session"
            view = entry.grader.view
            reason = Reason(view).words if view in set(Reason) else view
            detail = f"{reason}: no reward for {entry.arm}, revision {entry.revision}"
        else:
            verb = "Learned" if applied else "Unlearned"
            what = f"{verb} by {bandit}"
            detail = f"{number(entry.value)} on {entry.arm}, revision {entry.revision}"
        lines.append(HistoryLine(at=entry.recorded_at, what=what, detail=detail, while_blind=verb))
    for flag in flags:
        what = f"Flagged: {title_of(flag.rule)}"
        while_blind = what * quotes_verdict(flag.rule)
        line = HistoryLine(
            at=flag.raised_at, what=what, detail=flag.detail, source="alarm", while_blind=while_blind, is_main=True
        )
        lines.append(line)
        if flag.cleared_at:
            who = flag.cleared_by.get_username() if flag.cleared_by else "the rule"
            lines.append(HistoryLine(at=flag.cleared_at, what=f"Flag cleared by {who}", detail=flag.cleared_why))
    return sorted(lines, key=lambda line: line.at.replace(microsecond=0))


def _grade(grade: Grade, *, is_withdrawn: bool) -> HistoryLine:
    reason = Reason(grade.reason)
    said = number(grade.value) if grade.value is not None else UNSAID.get(reason, NO_SCORE[Status(grade.status)])
    said = HEADLINES[reason].lower() if reason in ABSTAINS else said
    who = f" by {grade.author.get_username()}" if grade.author else ""
    given = grade.source == Source.HUMAN and grade.reason != Reason.WITHDRAWN
    details = [grade.detail or reason.words]
    if not grade.author:
        # Who answered, by which rubric, at what price.
        identity = [grade.model, f"rubric {grade.rubric[:4]}" if grade.rubric else "", grade.version]
        identity += [usd(grade.cost_usd)] if grade.cost_usd is not None else []
        details.append(", ".join(filter(None, identity)))
    if is_withdrawn:
        details.append("undone later")
    return HistoryLine(
        at=grade.created_at,
        what=f"{grade.source.capitalize()}{who}{f', {grade.beside}' * grade.parallel}: {said}",
        detail="; ".join(filter(None, details)),
        source=grade.source,
        undo=grade.pk if given and not is_withdrawn else None,
        is_main=given,
        while_blind=grade.source.capitalize() if grade.source in (Source.JUDGE, Source.HUMAN) else "",
    )
