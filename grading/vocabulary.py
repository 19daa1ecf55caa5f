"""The enums of the reward chain, with labels: sources, statuses, outcomes, kinds of work, and reasons."""

from enum import StrEnum
from typing import Self


class LabelledEnum(StrEnum):
    """An enum of strings with labels: `NAME = "value", "label"`. `words` is the label, or else the value."""

    _value_: str
    words: str

    def __new__(cls, value: str, words: str = "") -> Self:
        member = str.__new__(cls, value)
        member._value_ = value
        member.words = words or value
        return member


class Source(StrEnum):
    """Where a grade comes from. FLOOR is a value for display and never evidence."""

    JUDGE = "judge"
    TRAJECTORY = "trajectory"
    JOURNAL = "journal"
    CONSUMPTION = "consumption"
    FLOOR = "floor"
    HUMAN = "human"


class Status(StrEnum):
    """The result of grading by a source. Only SCORED grades have a value (a database constraint)."""

    SCORED = "scored"
    UNSCORED = "unscored"
    SKIPPED = "skipped"
    FAILED = "failed"


class Outcome(StrEnum):
    """How a session ended. Every outcome but COMPLETED needs a reason (a database constraint)."""

    COMPLETED = "completed"
    FAILED = "failed"
    REFUSED = "refused"
    INFRASTRUCTURE = "infrastructure"


class CostUnknown(LabelledEnum):
    """Why the cost of a session is not known."""

    NOT_READ = "not_read", "its log was not read for tokens yet"
    NO_LOG = "no_log", "it has no readable log, and nobody reported a cost"
    NO_TOKENS = "no_tokens", "its log records no tokens, or impossible ones"
    NO_PRICE = "no_price", "no price is known for a model that it used"
    # Not unknown: the figures of another session include it.
    ELSEWHERE = "elsewhere", "counted in another session"

    @classmethod
    def missing(cls) -> list["CostUnknown"]:
        """The reasons of sessions whose cost is in no figure."""
        return [reason for reason in cls if reason is not cls.ELSEWHERE]


class WorkKind(LabelledEnum):
    """The kind of work of a session. Each kind has its own rubric."""

    PRODUCTION = "production"
    CONSUMPTION = "consumption", "reading"
    LOOKING = "looking"


class JudgeChoice(StrEnum):
    """Whether sessions submitted as history are judged: not at all, or after new sessions."""

    NONE = "none"
    BACKLOG = "backlog"


# Sessions with these outcomes say nothing about an arm. They have no reward and aren't judged.
NO_REWARD = frozenset({Outcome.INFRASTRUCTURE, Outcome.REFUSED})


class Reason(LabelledEnum):
    """Why a source gave no value, or a reward is provisional or missing. `words` is the label on pages."""

    NONE = ""
    # the judge
    NOT_CONFIGURED = "not_configured", "No judge is configured"
    AWAITING_JUDGE = "awaiting_judge", "Waiting for the judge"
    QUOTA_EXHAUSTED = "quota_exhausted", "Quota exhausted"
    BUDGET_SPENT = "budget_spent", "Today's budget is spent"
    PAUSED = "paused", "An operator paused the judge"
    RATE_LIMITED = "rate_limited", "Rate limited"
    OVERLOADED = "overloaded", "The judge's service is overloaded"
    TIMEOUT = "timeout", "The judge did not answer in time"
    CONNECTION = "connection", "The judge could not be reached"
    AUTH = "auth", "The judge's key was refused"
    REFUSED = "refused", "The judge declined to grade this session"
    UNPARSABLE_VERDICT = "unparsable_verdict", "The judge's reply was not a verdict"
    INPUT_TOO_LARGE = "input_too_large", "Too much evidence for one request"
    NEEDS_ATTENTION = "needs_attention", "An answer nobody expected; a person must look"
    DECLINED = "declined", "Nobody has asked for a verdict"
    # the transcript
    NO_TRANSCRIPT = "no_transcript", "No transcript was submitted"
    LOG_TOO_SMALL = "log_too_small", "The log is too small for a session this long"
    LOG_OVERWRITTEN = "log_overwritten", "The log belongs to another session"
    LOG_SHARED = "log_shared", "The same log was submitted for another session"
    STUB_NO_TOOL_CALLS = "stub_no_tool_calls", "Stub transcript: no tool calls in it"
    FORMAT_UNKNOWN = "format_unknown", "The transcript's format is unknown"
    FORMAT_BLIND = "format_blind", "Nothing in the transcript was recognised"
    UNREADABLE = "unreadable", "The evidence could not be read"
    NOTHING_OBSERVABLE = "nothing_observable", "No effect and no failure to see"
    CARRIED = "carried", "All of it was carried over from another session"
    # the journal, artifacts
    NO_JOURNAL = "no_journal", "No journal was submitted"
    NO_SIGNAL = "no_signal", "The journal names no outcome"
    NO_ARTIFACTS = "no_artifacts", "No ideas, tasks, posts or notes"
    NOT_CONSUMPTION = "not_consumption", "Not a reading session, and nothing was left behind"
    NO_EVIDENCE = "no_evidence", "No source could grade this session"
    # people, and sessions without a reward
    EXCLUDED = "excluded", "A person excluded this session"
    WITHDRAWN = "withdrawn", "The correction was undone"
    INFRASTRUCTURE = "infrastructure", "The session died of infrastructure"
