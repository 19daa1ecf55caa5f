"""The bodies of the API's requests and replies. The API's page shows these docstrings."""

import datetime as dt
from typing import Annotated, Any

from ninja import Field, Schema
from pydantic import ConfigDict

from grading.api.uploads import EVIDENCE_PARTS
from grading.intake.submission import LESSONS_LIMIT, Line, SubmittedSession
from grading.models.sessions import CategoryOrigin
from grading.outcomes.recording import ReportedOutcome


class ProblemOut(Schema):
    """A problem with one part of a submission. If `is_error`, the reply is a 4xx; otherwise it is a remark."""

    part: str
    code: str
    expected: str
    got: str
    todo: str
    is_error: bool


class Reward(Schema):
    """The current reward. `value` in [0, 1], or null for no reward; `weight` is how much a bandit learns from it."""

    value: float | None
    source: str
    final: bool
    weight: float
    reason: str
    sentence: str
    revision: int


class ReadReward(Reward):
    """The current reward, and what the bandits read it as.

    `value` is the settled one. If a trajectory or a journal decided it, `calibrated` is its value on the judge's scale,
    in [0, 1], by version `calibration_version` of the calibration of the session's category. Both are null if another
    source decided, if no similar session was judged yet, or if no calibration is in force. `weight` is the chain's: for
    an arm with verdicts, a fallback counts less than that.
    """

    calibrated: float | None = None
    calibration_version: int | None = None


class ReceiptOut(Schema):
    """The result of a submission. `added` names the parts that were new: sending the same again adds none."""

    id: int
    session_id: str
    created: bool
    added: list[str]
    reward: Reward
    problems: list[ProblemOut]


class TokenOut(Schema):
    """A token: its agent, its scope, a description of who has it, and whether it may submit sessions."""

    agent: str
    scope: str
    held_by: str
    may_submit: bool
    expires_at: dt.datetime | None
    hook_sha256: str


class JudgingOut(Schema):
    """What judging costs, and what counts as history.

    `verdict_usd` is the expected cost of one verdict of the backlog, by the last `measured` verdicts or, if there are
    none, for the longest possible prompt; null if no judge is configured. `budget_usd` is the site's daily budget, null
    for no limit. Sessions that ended before `history_before` may be submitted as history until `history_until`; both
    are null for a token that may submit no history.
    """

    verdict_usd: float | None
    measured: int
    budget_usd: float | None
    history_before: dt.datetime | None
    history_until: dt.datetime | None


class ErrorOut(Schema):
    """What was wrong. `stored` names the parts that were stored nevertheless, for session `id`."""

    error: str
    expected: str
    got: str
    todo: str
    stored: list[str] = []
    id: int | None = None
    problems: list[ProblemOut] = []


class SessionOutcomeIn(ReportedOutcome):
    """An outcome, with the agent's own id of the session, or the id of its receipt."""

    session: Line = Field(min_length=1, max_length=200)


class OutcomesIn(Schema):
    """Outcomes of many sessions."""

    outcomes: list[SessionOutcomeIn] = Field(max_length=1000)


class OutcomeOut(Schema):
    """A reported outcome. `result` is pass, fail, unknown or number; only a number has a `number`, from 0 to 1."""

    kind: str
    result: str
    number: float | None
    observed_at: dt.datetime
    url: str
    detail: str
    source: str
    witness: str


class OutcomesOut(Schema):
    """How many outcomes are new, how many were known already, and why others were not stored."""

    new: int
    known: int
    problems: list[str]


class GradeOut(Schema):
    """One grade by one source. `value` is null unless `status` is scored.

    `parallel` grades (a repeated verdict, or one by a judge of another model family) never enter the reward.
    `calibrated` is a trajectory's or a journal's `value` on the judge's scale, in [0, 1], by version
    `calibration_version` of the calibration in force; both are null if there is no calibration for it.
    """

    id: int
    source: str
    status: str
    parallel: bool
    value: float | None
    calibrated: float | None = None
    calibration_version: int | None = None
    reason: str
    detail: str
    version: str
    model: str
    route: str
    rubric: str
    inputs_sha256: str
    evidence: dict[str, Any]
    created_at: dt.datetime


class EvidenceOut(Schema):
    kind: str
    sha256: str
    size: int
    format: str
    coverage: float | None
    problem: str
    detail: str


class CategoryGivenOut(Schema):
    """Where a session's category came from, and why. `inferred`: nobody submitted it for this session."""

    by: CategoryOrigin
    why: str
    inferred: bool


class FactsOut(Schema):
    """What a session ran with, and its vitals (their definitions are on the page of each session). Null is unknown.

    `sources` names where each value that it ran with comes from: log, hook or caller. `model_calls` are the responses
    by model, null for a model that the log names without its responses. `instruction_files` have a name, a length in
    bytes and a keyed hash, which is the same for the same text on this site.
    """

    harness_version: str
    model_calls: dict[str, int | None]
    reasoning_effort: str
    permission_mode: str
    mcp_servers: list[str] | None
    skills: list[str] | None
    subagents: list[str] | None
    instruction_files: list[dict[str, Any]] | None
    sources: dict[str, str]
    minutes: float | None
    active_minutes: float | None
    user_turns: int | None
    interruptions: int | None
    refusals: int | None
    tool_calls: int | None
    known_calls: int | None
    failed_calls: int | None
    failed_share: float | None
    reads_before_edit: int | None
    unread_edits: int | None
    test_runs: int | None
    suites: list[dict[str, str]] | None
    retries: int | None
    compactions: int | None
    claimed_without_green: bool | None


class UsageOut(Schema):
    """The tokens that a session used of a model on a day, and their cost in millionths of a dollar; null is unknown.

    The four counts do not overlap. `basis` is "tokens"; or "reported" for the part of a reported cost that the tokens
    do not explain.
    """

    model: str
    day: dt.date
    basis: str
    input_tokens: int | None
    cached_tokens: int | None
    cache_write_tokens: int | None
    output_tokens: int | None
    cost_micro: int | None


class SessionOut(Schema):
    """A session with its grades. `chain` explains the reward source by source. `facts` is null if nothing was read.

    `cost_micro` is what it cost in millionths of a dollar, or null, and then `cost_unknown` says why. If
    `has_subscription`, its agent's models are paid by a subscription, and it is what the session would have cost.
    `reported_cost_usd` is what the caller or the log stated. `tokens` are all of `usage`.
    """

    id: int
    session_id: str
    title: str
    category: str | None
    category_given: CategoryGivenOut | None
    harness: str | None
    model: str
    started_at: dt.datetime | None
    ended_at: dt.datetime
    outcome: str
    outcome_reason: str
    history: str
    project: str | None
    task: str
    facts: FactsOut | None
    tokens: int | None
    cost_micro: int | None
    cost_unknown: str
    has_subscription: bool
    reported_cost_usd: float | None
    outcomes: list[OutcomeOut]
    usage: list[UsageOut]
    reward: ReadReward
    chain: list[dict[str, Any]]
    grades: list[GradeOut]
    evidence: list[EvidenceOut]


class SelectionIn(Schema):
    """`decision_id` is chosen by the caller: a retry with the same id gets the same answer. `supply` is the number of
    pieces of work that each arm has (null: all have some); `override` is an arm that the caller insists on. `context`
    is what the arm is to work on, such as the category for the bandit `harness`: arms on probation are tried only in
    contexts with low stakes.
    """

    model_config = ConfigDict(extra="forbid")

    decision_id: Line = Field(min_length=1, max_length=200)
    bandit: Line = Field(default="category", max_length=50)
    supply: dict[Line, int] | None = Field(default=None, max_length=1000)
    override: Line | None = Field(default=None, max_length=100)
    context: Line = Field(default="", max_length=100)


class SelectionOut(Schema):
    """The decision. `eligible` maps each arm to its chance, or to the reason why it was left out."""

    decision_id: str
    bandit: str
    arm: str
    propensity: float
    eligible: dict[str, float | str]
    explanation: dict[str, Any]
    posterior_version: str
    created: dt.datetime


class AssignmentIn(Schema):
    """`decision_id` is chosen by the caller, a new one for each session, whose metadata have it as
    `lessons_decision_id`.

    `lessons` are those that match the work; `context` is its category, if it is known.
    """

    model_config = ConfigDict(extra="forbid")

    decision_id: Line = Field(min_length=1, max_length=200)
    lessons: list[Annotated[Line, Field(max_length=100)]] = Field(min_length=1, max_length=LESSONS_LIMIT)
    context: Line = Field(default="", max_length=100)


class LessonOut(Schema):
    """If `taken`, give the lesson to the session, otherwise don't. `asked` is the name in the request.

    `chance` is the probability of being taken, null if nothing was drawn.
    """

    lesson: str
    asked: str
    taken: bool
    chance: float | None
    why: str


class AssignmentOut(Schema):
    """All lessons of the decision, including those of earlier requests."""

    decision_id: str
    lessons: list[LessonOut]


class SourceOut(Schema):
    """An arm's evidence from one source: `n` rewards with the mean `mean`, as the bandit reads them, which are worth
    `pseudo` observations after decay.

    `counts` is the weight of one of them relative to a verdict. If `is_estimated`, the rewards are not the sessions'
    own grades: they are estimated from similar judged sessions, and add no evidence. The source `unscored` stands for
    sessions that no source could grade.
    """

    source: str
    n: int
    pseudo: float
    mean: float
    counts: float
    is_estimated: bool


class ArmOut(Schema):
    """One arm's posterior Beta(alpha, beta): its mean, the central 90 % interval, and the arm's share of the next
    hundred selections.

    `since` is the day of a break in its level, before which no reward counts; null if there was none.
    """

    arm: str
    alpha: float
    beta: float
    mean: float
    low: float
    high: float
    share_of_next_100: float
    since: dt.date | None
    evidence: list[SourceOut]


class BanditOut(Schema):
    bandit: str
    posterior_version: str
    arms: list[ArmOut]


PARTS = {
    "transcript": "The harness's own log file, unchanged.",
    "journal": "What the agent wrote about the session.",
    "patch": "The session's changes, as git diff or git format-patch write them.",
    "facts": 'What you observed yourself: {"commits": [{"sha": "…"}], "pull_requests": ["https://…"], "exit_code": 0, '
    '"checks": [{"name": "ci", "passed": false, "detail": "…", "mandatory": true}]}. A mandatory check that failed '
    "caps the grade until later facts say that it passed, or a person grades the session. A check is mandatory by "
    "default. Sending the same bytes again changes nothing.",
}


def multipart() -> dict[str, Any]:
    """The OpenAPI description of a submission."""
    metadata = SubmittedSession.model_json_schema()
    parts = metadata.pop("$defs")
    metadata["properties"]["outcome"] = {"anyOf": [parts["Outcome"], {"type": "null"}]}
    metadata["properties"]["judge"]["anyOf"] = [parts["JudgeChoice"], {"type": "null"}]
    metadata["properties"]["lessons"]["items"] = parts["SubmittedLesson"]
    parts["RanWith"]["properties"]["instruction_files"]["items"] = parts["SubmittedInstructions"]
    metadata["properties"]["ran_with"]["anyOf"] = [parts["RanWith"], {"type": "null"}]
    files = {part: {"type": "string", "format": "binary", "description": PARTS[part]} for part in EVIDENCE_PARTS}
    schema = {"type": "object", "required": ["metadata"], "properties": {"metadata": metadata, **files}}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}
