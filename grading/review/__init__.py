"""Review: what waits for a person, what people say of it, and what that does.

queue (how sessions come in, in which order, who has which) · answers (what people say, and undo) · progress
unheard (five sessions of an arm that nothing speaks for)
Every verdict of a person goes through `corrections`; the reward itself takes the one path of `rewards.settle`.
"""

from grading.review.answers import (
    ClaimLost,
    adopt,
    comment,
    flag,
    hides_judge,
    last_of,
    reveal,
    submit,
    unflag,
)
from grading.review.corrections import (
    REASON_NEEDED_ABOVE,
    CorrectionError,
    StaleReview,
    record_correction,
    undo,
)
from grading.review.promises import ArmEffect, preview
from grading.review.queue import (
    Counts,
    QueueFilters,
    add,
    assign,
    count,
    dismiss,
    next_for,
    prioritise,
    recheck,
    release,
    require_answers,
    take,
    waiting,
)
from grading.review.seen import evidence_version
from grading.review.unheard import ask as ask_about_silence

__all__ = [
    "REASON_NEEDED_ABOVE",
    "ArmEffect",
    "ClaimLost",
    "CorrectionError",
    "Counts",
    "QueueFilters",
    "StaleReview",
    "add",
    "adopt",
    "ask_about_silence",
    "assign",
    "comment",
    "count",
    "dismiss",
    "evidence_version",
    "flag",
    "hides_judge",
    "last_of",
    "next_for",
    "preview",
    "prioritise",
    "recheck",
    "record_correction",
    "release",
    "require_answers",
    "reveal",
    "submit",
    "take",
    "undo",
    "unflag",
    "waiting",
]
