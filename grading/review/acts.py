"""Acts: what a person did at one moment, described from the row that it wrote. Nothing is stored here."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.contrib.admin.models import LogEntry
from django.db.models import TextChoices

from bandit.models import CalibrationVersion
from grading.models import AuditEvent, Flag, JudgePolicy, JudgeRun, Reveal, ReviewAnswer, Session
from grading.models.audit import AuditKind
from grading.models.review import Answer
from grading.monitoring.rule import title_of
from grading.plain import counted
from grading.reward.explain import number
from grading.vocabulary import Source


class HistoryKind(TextChoices):
    """The kind of an act."""

    ANSWER = "answer", "answers"
    UNDO = "undo", "undone"
    REVEAL = "reveal", "reveals"
    COMMENT = "comment", "comments"
    FLAG = "flag", "flags by people"
    ALARM = "alarm", "alarms acknowledged"
    RUBRIC = "rubric", "rubrics put in force"
    RUN = "run", "judged again"
    QUOTA = "quota", "quota and its policy"
    CALIBRATION = "calibration", "calibration versions"
    CATEGORY = AuditKind.CATEGORY.value, "categories and their rules"
    PROJECT = AuditKind.PROJECT.value, "names of projects"
    PRICE = AuditKind.PRICE.value, "prices of models"
    SETTING = "setting", "other settings"
    SIGN_IN = AuditKind.SIGN_IN.value, "signing in"
    TOKEN = AuditKind.TOKEN.value, "tokens and keys"
    PERSON = AuditKind.PERSON.value, "people and roles"
    DOWNLOAD = AuditKind.DOWNLOAD.value, "downloads"
    RAW = AuditKind.RAW.value, "raw text viewed"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One act. `what` is a short clause ("graded .80"), `why` the person's own words.

    `session` is the session that the act is about, if any. For an answer or an undo, `answer` is its row.
    """

    at: dt.datetime
    kind: HistoryKind
    pk: int
    who: str
    what: str
    why: str = ""
    session: Session | None = None
    answer: ReviewAnswer | None = None

    @property
    def effects(self) -> Mapping[str, Any]:
        """What the answer changed; empty for other acts."""
        return (self.answer.effects if self.answer else None) or {}

    @property
    def reward(self) -> Mapping[str, Any]:
        """The reward's {"before", "after", "source_before"}; empty if the act changed no reward. Values may be None."""
        reward = self.effects.get("reward") or {}
        if reward.get("source_before") == Source.FLOOR:
            return {**reward, "before": None}  # answers of earlier versions stored the floor
        return reward


_WITHOUT_GRADE = {
    Answer.EXCLUDE: "excluded it",
    Answer.CANNOT_JUDGE: "could not judge it",
    Answer.SKIP: "skipped it",
}


def describe_answer(answer: ReviewAnswer) -> str:
    """An answer as a clause."""
    kind = Answer(answer.answer)
    if kind is Answer.UNDO:
        return f"undid “{describe_answer(answer.undoes)}”" if answer.undoes else "undid"
    if kind in _WITHOUT_GRADE:
        return _WITHOUT_GRADE[kind]
    verb = "accepted" if kind is Answer.ACCEPT else "graded"
    is_opinion = not answer.grade_id
    return f"{verb} {number(answer.value)}" + (", in addition to the grade in force" if is_opinion else "")


def describe_reveal(row: Reveal) -> str:
    timing = "before grading" if row.value is None else f"after grading {number(row.value)}"
    return f"revealed the judge’s grade {timing}"


def describe_unflag(row: Flag) -> str:
    return "removed the flag" if row.rule == Flag.BY_A_PERSON else f"removed the flag “{title_of(row.rule)}”"


def describe_run(row: JudgeRun) -> str:
    return f"had {counted(row.total, 'session')} judged again"


def describe_policy(row: JudgePolicy) -> str:
    """The numbers of a judge's policy, as text."""
    budget = "no budget" if row.daily_budget_usd is None else f"${row.daily_budget_usd:.2f} a day"
    return (
        f"{budget}; {number(row.reserved_share)} kept for new sessions; "
        f"{number(row.abstention_share)} of abstentions judged first; {number(row.repeat_share)} asked twice; "
        f"{number(row.second_share)} second opinion; batches {'on' if row.use_batches else 'off'}"
    )


def describe_calibration(row: CalibrationVersion) -> str:
    act = "put a calibration in force for" if row.enabled else "switched calibration off for"
    return f"{act} the {row.bandit.name} bandit"


def describe_setting(row: LogEntry) -> str:
    verb = {1: "added", 2: "changed", 3: "deleted"}.get(row.action_flag, "changed")
    name = row.content_type.name if row.content_type else "row"
    return f"{verb} the {name} {row.object_repr}"


def event_details(row: AuditEvent) -> str:
    """The details of an event, and the address that it came from if it is known."""
    return "; ".join(filter(None, [row.detail, f"from {row.address}" if row.address else ""]))
