"""The schema of submissions and replies: a session's metadata, its facts, and the receipt with its problems."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import IO, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StrictBool,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from bandit.models import UnknownArm
from grading import formats
from grading.evidence.receiving import plausible
from grading.formats.values import MAX_USD
from grading.models import Session, Settlement
from grading.models.facts import MAX_INSTRUCTION_FILES, MAX_NAMES
from grading.plain import UNSTORABLE, plain_text
from grading.signals.links import pull_request
from grading.vocabulary import JudgeChoice, Outcome, Reason

FACTS_LIMIT = 1_000
METADATA_LIMIT = 65_536
LESSONS_LIMIT = 200
TOO_LARGE = "too_large"


def _storable(text: str) -> str:
    if UNSTORABLE.search(text) or not text.isprintable():
        raise ValueError("expected printable text on one line, without control characters")
    return text


Moment = Annotated[AwareDatetime, AfterValidator(plausible)]
Line = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(_storable)]


class Strict(BaseModel):
    """Refuses unknown fields, so that a misspelt one is never lost silently, and NaN and infinities."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class SubmittedLesson(Strict):
    """A lesson that the session was given."""

    name: Line = Field(min_length=1, max_length=100, description="A known lesson.")
    salience: float | None = Field(
        default=None, ge=0, le=1, description="How relevant it was to what happened, from 0 to 1."
    )


class SubmittedInstructions(Strict):
    """A file of instructions that the agent was given."""

    name: Line = Field(min_length=1, max_length=200, description="Relative to the repository or to ~.")
    bytes: int = Field(ge=0, lt=2**31)
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$", to_lower=True)] = Field(
        description="Of its bytes. Only a keyed hash of it is stored."
    )
    text: Annotated[str, AfterValidator(plain_text)] = Field(
        default="", max_length=20_000, description="Stored if sent: send it only if people on the site may read it."
    )


Names = Annotated[tuple[Annotated[Line, Field(min_length=1, max_length=120)], ...], Field(max_length=MAX_NAMES)]


class RanWith(Strict):
    """What a session ran with. What its log shows takes precedence, then what a hook sent, then what a caller sent."""

    source: Literal["hook", "caller"] = "caller"
    harness_version: Line = Field(default="", max_length=60)
    reasoning_effort: Line = Field(default="", max_length=40)
    permission_mode: Line = Field(default="", max_length=40)
    mcp_servers: Names | None = Field(default=None, description="Names of the MCP servers that it used.")
    skills: Names | None = Field(default=None, description="Names of the skills that it used.")
    subagents: Names | None = Field(default=None, description="Kinds of the subagents that it started.")
    instruction_files: tuple[SubmittedInstructions, ...] = Field(default=(), max_length=MAX_INSTRUCTION_FILES)


class SubmittedSession(Strict):
    """The metadata of a finished session. Times carry an offset to UTC."""

    session_id: Line = Field(min_length=1, max_length=200, description="The agent's id of the session, as in its log.")
    started_at: Moment | None = Field(default=None, description="By default the transcript's first time.")
    ended_at: Moment | None = Field(default=None, description="By default the transcript's last time, or now.")
    category: Line | None = Field(
        default=None,
        max_length=100,
        description="The kind of work: an arm's name. A runner's takes precedence over rules, an agent's does not.",
    )
    harness: Line | None = Field(default=None, max_length=100, description="If a transcript does not show it.")
    model: Line | None = Field(default=None, max_length=120, description="If a transcript does not show it.")
    title: Line = Field(default="", max_length=300)
    project: Line = Field(
        default="",
        max_length=300,
        description="The URL of the repository's remote, of which user, password and query are not stored, or the name "
        "of its folder. By default as the transcript shows it.",
    )
    task: Line = Field(
        default="", max_length=200, description="Your own id of the piece of work, the same in each session about it."
    )
    ran_with: RanWith | None = Field(
        default=None,
        description="Versions, settings and instructions, which are shown and compared, and never graded. Sent later "
        "than an hour after the first submission, or after a verdict, it counts only with a longer transcript.",
    )
    exit_code: int | None = Field(default=None, ge=-(2**31), lt=2**31, description="Stored, but never a grade.")
    outcome: Outcome | None = Field(
        default=None, description="By default completed, or infrastructure if an API error came before any model turn."
    )
    outcome_reason: Line = Field(default="", max_length=300, description="Required unless completed.")
    selection_id: Line | None = Field(
        default=None, max_length=200, description="The decision_id of the selection that started it."
    )
    cost_usd: float | None = Field(
        default=None, ge=0, le=MAX_USD, description="In dollars. By default the cost in the transcript."
    )
    lessons: tuple[SubmittedLesson, ...] = Field(
        default=(), max_length=LESSONS_LIMIT, description="The lessons that the session was given."
    )
    lessons_decision_id: Line | None = Field(
        default=None, max_length=200, description="The decision_id of the assignment that drew its lessons."
    )

    facts_witness: Literal["claimed"] | None = Field(
        default=None,
        description="claimed if the facts were looked up later, not observed when the session ended: they then count "
        "as claimed by the agent, whatever the token.",
    )
    judge: JudgeChoice | None = Field(
        default=None,
        description="For history only, which `GET /api/v1/judging` defines, and which keeps its dates: none, to have "
        "it judged only if a person asks for it; backlog, after new sessions. By default it is like any session.",
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.started_at and self.ended_at and self.started_at > self.ended_at:
            raise ValueError("expected started_at not to be later than ended_at")
        if self.outcome not in (None, Outcome.COMPLETED) and not self.outcome_reason:
            raise ValueError(f"expected outcome_reason: an outcome of {self.outcome} says why")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """A problem with one part of a submission: what was expected, what came, and what to do.

    If `is_error`, the reply is a 4xx although everything storable was stored; otherwise the problem is a remark.
    """

    part: str
    code: str
    expected: str
    got: str
    todo: str
    is_error: bool = True

    def __str__(self) -> str:
        return f"{self.part}: expected {self.expected}; got {self.got}; {self.todo}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The result of a submission. `created`: whether the session is new; `added`: the parts that were new; `reward`:
    the current settlement; `flagged`: whether a flag went up or down.
    """

    session: Session
    created: bool
    added: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    reward: Settlement | None = None
    flagged: bool = False


# What was expected and what to do, for evidence that was stored but isn't used.
EXPECTED: dict[Reason, tuple[str, str]] = {
    Reason.FORMAT_UNKNOWN: (
        f"a transcript of {formats.titles('or')}",
        "nothing, if it is the harness's own log: its format is not known yet, and it is kept for when it is",
    ),
    Reason.FORMAT_BLIND: (
        "a transcript in which something can be recognised",
        "report the harness's version: its format has changed",
    ),
    Reason.LOG_OVERWRITTEN: (
        "this session's own log",
        "give each session a log path of its own and send that; this one is kept and not used",
    ),
    Reason.LOG_SHARED: (
        "a log of one session only",
        "send each session's own log; this one names no session and is used for none",
    ),
    Reason.LOG_TOO_SMALL: (
        "at least 5,000 bytes of log for a session of more than two minutes",
        "nothing, if the session did nothing; else send its complete log",
    ),
    Reason.UNREADABLE: ("a readable file", "send it again, whole"),
}
# Remarks, because they aren't the caller's fault: on an error, a caller gives up or sends the same again.
REMARKS = frozenset({Reason.FORMAT_UNKNOWN, Reason.LOG_TOO_SMALL})


def evidence_problem(part: str, reason: Reason, detail: str) -> Problem:
    expected, todo = EXPECTED[reason]
    return Problem(
        part=part, code=reason.value, expected=expected, got=detail, todo=todo, is_error=reason not in REMARKS
    )


def too_large(part: str, limit: int) -> Problem:
    return Problem(
        part=part,
        code=TOO_LARGE,
        expected=f"at most {limit:,} bytes",
        got="more",
        todo="send less, or raise EVIDENCE_MAX_BYTES on the site",
    )


def unknown_arm(part: str, name: str, error: UnknownArm, *, is_error: bool = True) -> Problem:
    """The problem that no arm has this name, with the nearest one. A remark if the name is from the log."""
    return Problem(
        part=part,
        code=f"unknown_{part}",
        expected=f"the name of a known {part}",
        got=repr(name),
        todo=f"the session is stored without one: {error}",
        is_error=is_error,
    )


class CommitFact(Strict):
    """A commit that the caller observed. `by` is how it knows that the session made it (trailer, worktree)."""

    sha: Annotated[str, StringConstraints(pattern=r"^([0-9a-fA-F]{40}|[0-9a-fA-F]{64})$", to_lower=True)]
    repo: Line = Field(default="", max_length=300)
    subject: str = Field(default="", max_length=1000)
    at: str = Field(default="", max_length=64)
    by: Line = Field(default="", max_length=64)


class CheckFact(Strict):
    """A check that the caller observed. If a mandatory one failed, grades by machines are capped.

    `passed` and `mandatory` must be true or false: 0 is a good exit status, but would be a false value.
    """

    name: Line = Field(min_length=1, max_length=200)
    passed: StrictBool
    detail: str = ""
    mandatory: StrictBool = True


PullRequest = Annotated[Line, Field(max_length=400), AfterValidator(pull_request)]
CHECK: TypeAdapter[CheckFact] = TypeAdapter(CheckFact)
COMMIT: TypeAdapter[CommitFact] = TypeAdapter(CommitFact)
PULL_REQUEST: TypeAdapter[str] = TypeAdapter(PullRequest)


class Facts(BaseModel):
    """What the caller observed itself, independently of the transcript. Other keys are ignored.

    Entries are validated one by one (`CHECK`, `COMMIT`, `PULL_REQUEST`), so that an invalid one doesn't affect others.
    """

    commits: list[Any] = Field(default_factory=list, max_length=FACTS_LIMIT)
    pull_requests: list[Any] = Field(default_factory=list, max_length=FACTS_LIMIT)
    checks: list[Any] = Field(default_factory=list, max_length=FACTS_LIMIT)
    exit_code: int | None = Field(default=None, ge=-(2**31), lt=2**31)


def read_metadata(part: IO[bytes] | None) -> tuple[SubmittedSession | None, list[Problem]]:
    """The metadata of a submission, from JSON of at most METADATA_LIMIT bytes; or None and the problems."""
    if part is None:
        expected = 'a part named metadata: JSON with at least "session_id"'
        todo = "correct it and send it again"
        return None, [Problem(part="metadata", code="missing", expected=expected, got="none", todo=todo)]
    try:
        return SubmittedSession.model_validate_json(part.read(METADATA_LIMIT)), []
    except ValidationError as error:
        return None, [*refusals("metadata", error)]


def refusals(part: str, error: ValidationError, *, todo: str = "correct it and send it again") -> Iterable[Problem]:
    """The problems of a validation error, one for each field, with the value (truncated)."""
    for item in error.errors(include_url=False, include_context=False):
        where = ".".join(str(step) for step in item["loc"])
        yield Problem(
            part=f"{part}.{where}" if where else part,
            code=item["type"],
            expected=item["msg"].removeprefix("Value error, expected "),
            got=repr(item["input"])[:200],
            todo=todo,
        )
