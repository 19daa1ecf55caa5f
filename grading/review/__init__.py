"""Review: the queue of sessions that wait for a person, people's answers, and their effects.

In: flags, the random slice, people's answers. Out: people's grades, which are settled by `rewards.settle`.
Start with `queue` (entering, order, claims), then `answers` (answering and undoing) and `corrections`, through which
every verdict of a person goes.

random_slice, places: sessions that are asked about by chance · calibration, progress: how good judges and people are ·
unheard: sessions of arms whose abstentions nobody has graded
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
from grading.review.queue import (
    Counts,
    QueueFilters,
    add,
    assign,
    count,
    dismiss,
    in_order,
    next_for,
    prioritise,
    recheck,
    release,
    require_answers,
    take,
    waiting,
)
from grading.review.random_slice import take_turns
from grading.review.seen import awaits_blind_grade, evidence_version
from grading.review.unheard import flag_unheard as ask_about_silence

__all__ = [
    "REASON_NEEDED_ABOVE",
    "ClaimLost",
    "CorrectionError",
    "Counts",
    "QueueFilters",
    "StaleReview",
    "add",
    "adopt",
    "ask_about_silence",
    "assign",
    "awaits_blind_grade",
    "comment",
    "count",
    "dismiss",
    "evidence_version",
    "flag",
    "hides_judge",
    "in_order",
    "last_of",
    "next_for",
    "prioritise",
    "recheck",
    "record_correction",
    "release",
    "require_answers",
    "reveal",
    "submit",
    "take",
    "take_turns",
    "undo",
    "unflag",
    "waiting",
]
