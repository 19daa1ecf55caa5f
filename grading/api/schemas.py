"""What the API takes and gives, as its page shows it."""

import datetime as dt
from typing import Annotated, Any

from ninja import Field, Schema
from pydantic import ConfigDict

from grading.api.uploads import EVIDENCE_PARTS
from grading.intake.submission import LESSONS_LIMIT, Line, SubmittedSession
from grading.models.sessions import CategoryOrigin


class ProblemOut(Schema):
    """One thing that was wrong: `is_error` makes the reply a 4xx; another is a remark."""

    part: str
    code: str
    expected: str
    got: str
    todo: str
    is_error: bool


class Reward(Schema):
    """The reward that holds. `value` in [0, 1], or null for no reward; `weight` is how much a bandit learns from it."""

    value: float | None
    source: str
    final: bool
    weight: float
    reason: str
    sentence: str
    revision: int


class ReadReward(Reward):
    """The reward that holds, and how the bandits read it.

    `value` is what was settled. Where a trajectory or a journal decides, `calibrated` is what that is worth on the
    judge's scale, in [0, 1], by version `calibration_version` of the calibration of the session's category. Both are
    null if another source decides, no session like it was judged yet, or no calibration is in force. `weight` is the
    chain's own; an arm with verdicts counts a fallback less.
    """

    calibrated: float | None = None
    calibration_version: int | None = None


class ReceiptOut(Schema):
    """What became of a submission. `added` names the parts that were new; sending the same again adds none."""

    id: int
    session_id: str
    created: bool
    added: list[str]
    reward: Reward
    problems: list[ProblemOut]


class TokenOut(Schema):
    """A token: whose it is, who holds it in words, and whether sessions may be submitted with it."""

    agent: str
    scope: str
    held_by: str
    may_submit: bool
    expires_at: dt.datetime | None
    hook_sha256: str


class JudgingOut(Schema):
    """What judging costs, and what counts as history.

    `verdict_usd` is what one verdict of the backlog should cost by the last `measured` ones, with none of them at the
    most that it may read; null while no judge is set up. `budget_usd` is what the site spends in a day at most, null
    for no limit. Sessions that ended before `history_before` may be handed in as history until `history_until`; both
    are null for a token with which that cannot be done.
    """

    verdict_usd: float | None
    measured: int
    budget_usd: float | None
    history_before: dt.datetime | None
    history_until: dt.datetime | None


class ErrorOut(Schema):
    """What was wrong, in words. `stored` names the parts that were stored all the same, under session `id`."""

    error: str
    expected: str
    got: str
    todo: str
    stored: list[str] = []
    id: int | None = None
    problems: list[ProblemOut] = []


class GradeOut(Schema):
    """What one source said, once. `value` is null unless `status` is scored.

    `parallel` opinions (the judge asked a second time, another family's judge) are never part of the reward.
    `calibrated` is what a trajectory's or a journal's `value` is worth on the judge's scale, in [0, 1], by version
    `calibration_version` of the calibration in force; both are null where nothing maps it.
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
    """Whose word a session's category is, and why. `inferred`: nobody said it of this very session."""

    by: CategoryOrigin
    why: str
    inferred: bool


class SessionOut(Schema):
    """A session with its whole chain: `chain` explains the reward source by source."""

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
    reward: ReadReward
    chain: list[dict[str, Any]]
    grades: list[GradeOut]
    evidence: list[EvidenceOut]


class SelectionIn(Schema):
    """`decision_id` is the caller's own, so that a retry gets the same answer. `supply` says how many pieces of work
    each arm has (null: all have some); `override` is an arm that the caller insists on. `context`: what the arm is to
    work on, such as the category for the bandit `harness`; arms on probation are tried in low-stakes ones only.
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
    """`decision_id` is the caller's own, one for a session, and goes into its metadata as `lessons_decision_id`.

    `lessons` are those that match the work; `context` is its category, where that is known.
    """

    model_config = ConfigDict(extra="forbid")

    decision_id: Line = Field(min_length=1, max_length=200)
    lessons: list[Annotated[Line, Field(max_length=100)]] = Field(min_length=1, max_length=LESSONS_LIMIT)
    context: Line = Field(default="", max_length=100)


class LessonOut(Schema):
    """`taken`: give it to the session, else leave it out. `asked` is how the request spelt it.

    `chance` is that of being taken, or null where nothing was drawn.
    """

    lesson: str
    asked: str
    taken: bool
    chance: float | None
    why: str


class AssignmentOut(Schema):
    """Every lesson of the decision, those of earlier requests included."""

    decision_id: str
    lessons: list[LessonOut]


class SourceOut(Schema):
    """What one source adds to an arm: `n` rewards of mean `mean` as the bandit reads them, worth `pseudo` observations,
    decayed.

    `counts` is what one of them counts beside a verdict's 1. `is_estimated`: the sessions' own grades are not read;
    they are estimated from judged sessions like them, and are no evidence of their own. The source `unscored` is
    sessions that nobody could grade.
    """

    source: str
    n: int
    pseudo: float
    mean: float
    counts: float
    is_estimated: bool


class ArmOut(Schema):
    """One arm's Beta(alpha, beta): its mean, its central 90 %, and its share of the next hundred selections.

    `since`: the day on which it broke, before which what it earned counts no more; null where it did not.
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
    "facts": 'What you saw yourself: {"commits": [{"sha": "…"}], "pull_requests": ["https://…"], "exit_code": 0, '
    '"checks": [{"name": "ci", "passed": false, "detail": "…", "mandatory": true}]}. A mandatory check that failed '
    "caps the grade until later facts say that it passed, or a person grades the session. A check is mandatory by "
    "default. The same bytes again are no news.",
}


def multipart() -> dict[str, Any]:
    """The OpenAPI description of a submission."""
    metadata = SubmittedSession.model_json_schema()
    parts = metadata.pop("$defs")
    metadata["properties"]["outcome"] = {"anyOf": [parts["Outcome"], {"type": "null"}]}
    metadata["properties"]["judge"]["anyOf"] = [parts["JudgeChoice"], {"type": "null"}]
    metadata["properties"]["lessons"]["items"] = parts["SubmittedLesson"]
    files = {part: {"type": "string", "format": "binary", "description": PARTS[part]} for part in EVIDENCE_PARTS}
    schema = {"type": "object", "required": ["metadata"], "properties": {"metadata": metadata, **files}}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}
