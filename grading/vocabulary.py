"""The enums of the reward chain, with labels: sources, statuses, outcomes, kinds of work, and reasons."""

from enum import StrEnum


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


class WorkKind(StrEnum):
    """The kind of work of a session. Each kind has its own rubric."""

    PRODUCTION = "production"
    CONSUMPTION = "consumption"
    LOOKING = "looking"

    @property
    def words(self) -> str:
        return "reading" if self is WorkKind.CONSUMPTION else self.value


class JudgeChoice(StrEnum):
    """Whether sessions submitted as history are judged: not at all, or after new sessions."""

    NONE = "none"
    BACKLOG = "backlog"


# Sessions with these outcomes say nothing about an arm. They have no reward and aren't judged.
NO_REWARD = frozenset({Outcome.INFRASTRUCTURE, Outcome.REFUSED})


class Reason(StrEnum):
    """Why a source gave no value, or a reward is provisional or missing. `words` is the label on pages."""

    NONE = ""
    # the judge
    NOT_CONFIGURED = "not_configured"
    AWAITING_JUDGE = "awaiting_judge"
    QUOTA_EXHAUSTED = "quota_exhausted"
    BUDGET_SPENT = "budget_spent"
    PAUSED = "paused"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    AUTH = "auth"
    REFUSED = "refused"
    UNPARSABLE_VERDICT = "unparsable_verdict"
    INPUT_TOO_LARGE = "input_too_large"
    NEEDS_ATTENTION = "needs_attention"
    DECLINED = "declined"
    # the transcript
    NO_TRANSCRIPT = "no_transcript"
    LOG_TOO_SMALL = "log_too_small"
    LOG_OVERWRITTEN = "log_overwritten"
    LOG_SHARED = "log_shared"
    STUB_NO_TOOL_CALLS = "stub_no_tool_calls"
    FORMAT_UNKNOWN = "format_unknown"
    FORMAT_BLIND = "format_blind"
    UNREADABLE = "unreadable"
    NOTHING_OBSERVABLE = "nothing_observable"
    CARRIED = "carried"
    # the journal, artifacts
    NO_JOURNAL = "no_journal"
    NO_SIGNAL = "no_signal"
    NO_ARTIFACTS = "no_artifacts"
    NOT_CONSUMPTION = "not_consumption"
    NO_EVIDENCE = "no_evidence"
    # people, and sessions without a reward
    EXCLUDED = "excluded"
    WITHDRAWN = "withdrawn"
    INFRASTRUCTURE = "infrastructure"

    @property
    def words(self) -> str:
        return REASON_WORDS[self]


REASON_WORDS: dict[Reason, str] = {
    Reason.NONE: "",
    Reason.NOT_CONFIGURED: "No judge is configured",
    Reason.AWAITING_JUDGE: "Waiting for the judge",
    Reason.QUOTA_EXHAUSTED: "Quota exhausted",
    Reason.BUDGET_SPENT: "Today's budget is spent",
    Reason.PAUSED: "An operator paused the judge",
    Reason.RATE_LIMITED: "Rate limited",
    Reason.OVERLOADED: "The judge's service is overloaded",
    Reason.TIMEOUT: "The judge did not answer in time",
    Reason.CONNECTION: "The judge could not be reached",
    Reason.AUTH: "The judge's key was refused",
    Reason.REFUSED: "The judge declined to grade this session",
    Reason.UNPARSABLE_VERDICT: "The judge's reply was not a verdict",
    Reason.INPUT_TOO_LARGE: "Too much evidence for one request",
    Reason.NEEDS_ATTENTION: "An answer nobody expected; a person must look",
    Reason.DECLINED: "Nobody has asked for a verdict",
    Reason.NO_TRANSCRIPT: "No transcript was submitted",
    Reason.LOG_TOO_SMALL: "The log is too small for a session this long",
    Reason.LOG_OVERWRITTEN: "The log belongs to another session",
    Reason.LOG_SHARED: "The same log was submitted for another session",
    Reason.STUB_NO_TOOL_CALLS: "Stub transcript: no tool calls in it",
    Reason.FORMAT_UNKNOWN: "The transcript's format is unknown",
    Reason.FORMAT_BLIND: "Nothing in the transcript was recognised",
    Reason.UNREADABLE: "The evidence could not be read",
    Reason.NOTHING_OBSERVABLE: "No effect and no failure to see",
    Reason.CARRIED: "All of it was carried over from another session",
    Reason.NO_JOURNAL: "No journal was submitted",
    Reason.NO_SIGNAL: "The journal names no outcome",
    Reason.NO_ARTIFACTS: "No ideas, tasks, posts or notes",
    Reason.NOT_CONSUMPTION: "Not a reading session, and nothing was left behind",
    Reason.NO_EVIDENCE: "No source could grade this session",
    Reason.EXCLUDED: "A person excluded this session",
    Reason.WITHDRAWN: "The correction was undone",
    Reason.INFRASTRUCTURE: "The session died of infrastructure",
}
