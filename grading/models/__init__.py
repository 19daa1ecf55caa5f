"""The models: who submitted what, how each source graded it, which reward was settled, and what people did.

In: rows from every other package of `grading`. Out: tables, most of them append-only, with invariants as constraints.
Start with `sessions`, then `grades`: what each source found, and the reward that followed.
"""

from grading.models.agents import Agent, ApiToken, TokenUsage
from grading.models.audit import AuditEvent, Redaction
from grading.models.canary import CanaryRun
from grading.models.categories import CategoryChange, CategoryRule, CategoryWord, SessionTraits
from grading.models.evidence import (
    Artifact,
    ArtifactRule,
    Evidence,
    EvidenceBlob,
    LogInPlace,
    RecordAnchor,
    SessionLog,
    SessionSignals,
)
from grading.models.facts import InstructionKey, SessionFacts
from grading.models.grades import Grade, Settlement
from grading.models.health import BlobProblem, Heartbeat, KeyFingerprint, PeriodicJob
from grading.models.imports import ImportedFile, LogImport
from grading.models.judge_keys import JudgeKey, JudgeKeyTest
from grading.models.judging import JudgeAttempt, JudgeBatch, JudgeJob, JudgeRun, Rubric, RubricActivation
from grading.models.letters import WeeklyLetter
from grading.models.monitoring import Alarm, Flag, RuleRun
from grading.models.notices import Notice, NoticeChannel
from grading.models.outcomes import (
    CommitSighting,
    OutcomeRecord,
    Repository,
    SessionCommit,
    SessionLanding,
    WebhookDelivery,
)
from grading.models.projects import Project
from grading.models.quota import JudgePolicy, Quota, QuotaTransition
from grading.models.readings import StoredReading
from grading.models.review import Comment, Reveal, ReviewAnswer, ReviewItem, SavedView
from grading.models.sampling import AbstentionDraw, SessionShares
from grading.models.sessions import Session, SessionLesson
from grading.models.spending import MessageClaim, ModelPrice, SessionUsage
from grading.models.submissions import Proposal, Submission, SubmissionAddress
