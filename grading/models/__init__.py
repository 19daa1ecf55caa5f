"""The rows of a reward: who submitted what, what each source said of it, what was settled, and what people did.

In: nothing; every door above writes them. Out: tables, most of them append-only, with what may never be as constraints.
Start with `sessions`, then `grades`: what one source said, and what the chain made of it.
"""

from grading.models.agents import Agent, ApiToken
from grading.models.audit import AuditEvent
from grading.models.categories import CategoryChange, CategoryRule, CategoryWord, SessionTraits
from grading.models.checklist import HiddenChecklist
from grading.models.evidence import (
    Artifact,
    ArtifactMark,
    ArtifactRule,
    ArtifactSketch,
    Evidence,
    RecordAnchor,
    SessionLog,
    SessionSignals,
)
from grading.models.grades import Grade, Settlement
from grading.models.health import BlobProblem, Heartbeat, PeriodicJob
from grading.models.imports import ImportedFile, LogImport
from grading.models.judge_keys import JudgeKey, JudgeKeyTest
from grading.models.judging import JudgeAttempt, JudgeBatch, JudgeJob, JudgeRun
from grading.models.lessons import SessionLesson
from grading.models.monitoring import Alarm, Flag, RuleRun
from grading.models.notice_channels import NoticeChannel
from grading.models.notices import Notice
from grading.models.person_zones import PersonZone
from grading.models.quota import JudgePolicy, Quota, QuotaTransition
from grading.models.readings import StoredReading
from grading.models.redaction import Redaction
from grading.models.reserving import AbstentionDraw, SessionShares
from grading.models.review import Comment, Reveal, ReviewAnswer, ReviewItem, SavedView
from grading.models.rubrics import Rubric, RubricActivation
from grading.models.sessions import Session
from grading.models.submissions import Proposal, Submission, SubmissionAddress
from grading.models.usage import TokenUsage

__all__ = [
    "AbstentionDraw",
    "Agent",
    "Alarm",
    "ApiToken",
    "Artifact",
    "ArtifactMark",
    "ArtifactRule",
    "ArtifactSketch",
    "AuditEvent",
    "BlobProblem",
    "CategoryChange",
    "CategoryRule",
    "CategoryWord",
    "Comment",
    "Evidence",
    "Flag",
    "Grade",
    "Heartbeat",
    "HiddenChecklist",
    "ImportedFile",
    "JudgeAttempt",
    "JudgeBatch",
    "JudgeJob",
    "JudgeKey",
    "JudgeKeyTest",
    "JudgePolicy",
    "JudgeRun",
    "LogImport",
    "Notice",
    "NoticeChannel",
    "PeriodicJob",
    "PersonZone",
    "Proposal",
    "Quota",
    "QuotaTransition",
    "RecordAnchor",
    "Redaction",
    "Reveal",
    "ReviewAnswer",
    "ReviewItem",
    "Rubric",
    "RubricActivation",
    "RuleRun",
    "SavedView",
    "Session",
    "SessionLesson",
    "SessionLog",
    "SessionShares",
    "SessionSignals",
    "SessionTraits",
    "Settlement",
    "StoredReading",
    "Submission",
    "SubmissionAddress",
    "TokenUsage",
]
