"""Acts: what one person did at one moment, read from the row that it left. Nothing is stored here."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from django.contrib.admin.models import LogEntry

from bandit.models import CalibrationVersion
from grading.models import (
    Alarm,
    AuditEvent,
    CategoryChange,
    Comment,
    Flag,
    JudgePolicy,
    JudgeRun,
    QuotaTransition,
    Reveal,
    ReviewAnswer,
    RubricActivation,
    Session,
)
from grading.models.audit import AuditKind
from grading.models.review import Answer
from grading.monitoring import title_of
from grading.reward.explain import number
from grading.vocabulary import Source


class HistoryKind(StrEnum):
    """What sort of act it was."""

    ANSWER = "answer"
    UNDO = "undo"
    REVEAL = "reveal"
    COMMENT = "comment"
    FLAG = "flag"
    ALARM = "alarm"
    RUBRIC = "rubric"
    RUN = "run"
    QUOTA = "quota"
    CALIBRATION = "calibration"
    CATEGORY = AuditKind.CATEGORY.value
    PROJECT = AuditKind.PROJECT.value
    PRICE = AuditKind.PRICE.value
    SETTING = "setting"
    SIGN_IN = AuditKind.SIGN_IN.value
    TOKEN = AuditKind.TOKEN.value
    PERSON = AuditKind.PERSON.value
    DOWNLOAD = AuditKind.DOWNLOAD.value
    RAW = AuditKind.RAW.value

    @property
    def words(self) -> str:
        return _KINDS[self]


_KINDS = {
    HistoryKind.ANSWER: "answers",
    HistoryKind.UNDO: "undone",
    HistoryKind.REVEAL: "reveals",
    HistoryKind.COMMENT: "comments",
    HistoryKind.FLAG: "flags by people",
    HistoryKind.ALARM: "alarms acknowledged",
    HistoryKind.RUBRIC: "rubrics put in force",
    HistoryKind.RUN: "judged again",
    HistoryKind.QUOTA: "quota and its policy",
    HistoryKind.CALIBRATION: "calibration versions",
    HistoryKind.CATEGORY: "categories and their rules",
    HistoryKind.PROJECT: "names of projects",
    HistoryKind.PRICE: "prices of models",
    HistoryKind.SETTING: "other settings",
    HistoryKind.SIGN_IN: "signing in",
    HistoryKind.TOKEN: "tokens and keys",
    HistoryKind.PERSON: "people and roles",
    HistoryKind.DOWNLOAD: "downloads",
    HistoryKind.RAW: "raw text looked at",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One act. `what` is a short clause ("graded .80"), `why` the person's own words.

    `answer` is the row of an answer or undo, with everything that was on the screen; `effects` is what it changed.
    """

    at: dt.datetime
    kind: HistoryKind
    pk: int
    who: str
    what: str
    why: str = ""
    session: Session | None = None
    answer: ReviewAnswer | None = None
    effects: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reward(self) -> Mapping[str, Any]:
        """{"before", "after", "source_before"}, values in [0, 1] or None; empty where no reward was in question."""
        reward = self.effects.get("reward") or {}
        if reward.get("source_before") == Source.FLOOR:
            return {**reward, "before": None}  # answers of earlier versions stored the floor
        return reward

    @property
    def arm(self) -> str:
        return self.session.category.name if self.session and self.session.category else ""


_SAID = {
    Answer.EXCLUDE: "excluded it",
    Answer.CANNOT_JUDGE: "could not judge it",
    Answer.SKIP: "skipped it",
}


def describe(answer: ReviewAnswer) -> str:
    """An answer as a clause."""
    kind = Answer(answer.answer)
    if kind is Answer.UNDO:
        return f"undid “{describe(answer.undoes)}”" if answer.undoes else "undid"
    if kind in _SAID:
        return _SAID[kind]
    verb = "accepted" if kind is Answer.ACCEPT else "graded"
    beside = "" if answer.grade_id else ", beside the grade"
    return f"{verb} {number(answer.value)}{beside}"


def of_answer(row: ReviewAnswer) -> HistoryEntry:
    kind = HistoryKind.UNDO if row.answer == Answer.UNDO else HistoryKind.ANSWER
    return HistoryEntry(
        at=row.created_at,
        kind=kind,
        pk=row.pk,
        who=str(row.reviewer),
        what=describe(row),
        why=row.reason,
        session=row.session,
        answer=row,
        effects=row.effects or {},
    )


def of_reveal(row: Reveal) -> HistoryEntry:
    timing = "before saying anything" if row.value is None else f"after saying {number(row.value)}"
    what = f"looked at the judge’s answer {timing}"
    return HistoryEntry(
        at=row.created_at, kind=HistoryKind.REVEAL, pk=row.pk, who=str(row.reviewer), what=what, session=row.session
    )


def of_comment(row: Comment) -> HistoryEntry:
    return HistoryEntry(
        at=row.created_at,
        kind=HistoryKind.COMMENT,
        pk=row.pk,
        who=str(row.author),
        what="commented",
        why=row.text,
        session=row.session,
    )


def of_flag(row: Flag) -> HistoryEntry:
    return HistoryEntry(
        at=row.raised_at,
        kind=HistoryKind.FLAG,
        pk=row.pk,
        who=str(row.raised_by),
        what="flagged it",
        why=row.detail,
        session=row.session,
    )


def of_unflag(row: Flag) -> HistoryEntry:
    what = f"took the flag “{title_of(row.rule)}” off" if row.rule != Flag.BY_A_PERSON else "took the flag off"
    return HistoryEntry(
        at=row.cleared_at or row.raised_at,
        kind=HistoryKind.FLAG,
        pk=row.pk,
        who=str(row.cleared_by),
        what=what,
        why=row.cleared_why,
        session=row.session,
    )


def of_alarm(row: Alarm) -> HistoryEntry:
    what, at = f"acknowledged the alarm “{title_of(row.rule)}”", row.acknowledged_at or row.opened_at
    return HistoryEntry(
        at=at, kind=HistoryKind.ALARM, pk=row.pk, who=str(row.acknowledged_by), what=what, why=row.detail
    )


def of_activation(row: RubricActivation) -> HistoryEntry:
    return HistoryEntry(
        at=row.at, kind=HistoryKind.RUBRIC, pk=row.pk, who=str(row.by), what=f"put rubric {row.rubric} in force"
    )


def of_run(row: JudgeRun) -> HistoryEntry:
    what = f"had {row.total} session{'' if row.total == 1 else 's'} judged again"
    return HistoryEntry(at=row.created_at, kind=HistoryKind.RUN, pk=row.pk, who=str(row.by), what=what, why=row.why)


def of_cancel(row: JudgeRun) -> HistoryEntry:
    at = row.cancelled_at or row.created_at
    return HistoryEntry(
        at=at, kind=HistoryKind.RUN, pk=row.pk, who=str(row.cancelled_by), what="cancelled judging again", why=row.why
    )


def of_policy(row: JudgePolicy) -> HistoryEntry:
    budget = "no budget" if row.daily_budget_usd is None else f"${row.daily_budget_usd:.2f} a day"
    text = (
        f"{budget}; {number(row.reserved_share)} kept for new sessions; "
        f"{number(row.abstention_share)} of abstentions judged first; {number(row.repeat_share)} asked twice; "
        f"{number(row.second_share)} second opinion; batches {'on' if row.use_batches else 'off'}"
    )
    return HistoryEntry(
        at=row.created_at, kind=HistoryKind.QUOTA, pk=row.pk, who=str(row.by), what="set the judge’s policy", why=text
    )


def of_transition(row: QuotaTransition) -> HistoryEntry:
    return HistoryEntry(
        at=row.at,
        kind=HistoryKind.QUOTA,
        pk=row.pk,
        who=str(row.by),
        what=f"set the judge to {row.state}",
        why=row.detail,
    )


def of_calibration(row: CalibrationVersion) -> HistoryEntry:
    act = "put a calibration in force for" if row.enabled else "switched calibration off for"
    why = f"version {row.version}" + (f": {row.note}" if row.note else "")
    what = f"{act} the {row.bandit.name} bandit"
    return HistoryEntry(at=row.created_at, kind=HistoryKind.CALIBRATION, pk=row.pk, who=row.by, what=what, why=why)


def of_setting(row: LogEntry) -> HistoryEntry:
    verb = {1: "added", 2: "changed", 3: "deleted"}.get(row.action_flag, "changed")
    name = row.content_type.name if row.content_type else "row"
    return HistoryEntry(
        at=row.action_time,
        kind=HistoryKind.SETTING,
        pk=row.pk,
        who=str(row.user),
        what=f"{verb} the {name} {row.object_repr}",
        why=row.get_change_message(),
    )


def of_category_change(row: CategoryChange) -> HistoryEntry:
    return HistoryEntry(
        at=row.created_at, kind=HistoryKind.CATEGORY, pk=row.pk, who=str(row.by), what=row.summary, why=row.reason
    )


def of_category_undone(row: CategoryChange) -> HistoryEntry:
    at = row.undone_at or row.created_at
    return HistoryEntry(
        at=at,
        kind=HistoryKind.CATEGORY,
        pk=row.pk,
        who=str(row.undone_by),
        what=f"undid “{row.summary}”",
        why=row.undone_why,
    )


def of_edit(row: AuditEvent) -> HistoryEntry:
    """An edit of a category rule or of a project's name, which everybody may see, without the address."""
    return HistoryEntry(at=row.at, kind=HistoryKind(row.kind), pk=row.pk, who=row.who, what=row.what, why=row.detail)


def of_event(row: AuditEvent) -> HistoryEntry:
    details = [row.detail, f"from {row.address}" if row.address else ""]
    return HistoryEntry(
        at=row.at,
        kind=HistoryKind(row.kind),
        pk=row.pk,
        who=row.who or "nobody",
        what=row.what,
        why="; ".join(filter(None, details)),
    )
