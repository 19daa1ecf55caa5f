"""The rows of a reward: who submitted what, what each source said of it, what was settled, and what people did."""

from grading.models.agents import Agent, ApiToken
from grading.models.evidence import Artifact, ArtifactRule, Evidence
from grading.models.grades import Grade, Settlement
from grading.models.judging import JudgeAttempt, JudgeJob, Quota, QuotaTransition, Rubric
from grading.models.monitoring import Alarm, Flag
from grading.models.sessions import Session

__all__ = [
    "Agent",
    "Alarm",
    "ApiToken",
    "Artifact",
    "ArtifactRule",
    "Evidence",
    "Flag",
    "Grade",
    "JudgeAttempt",
    "JudgeJob",
    "Quota",
    "QuotaTransition",
    "Rubric",
    "Session",
    "Settlement",
]
