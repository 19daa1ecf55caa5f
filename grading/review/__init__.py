"""Review: what waits for a person, what people say of it, and what that does. Every verdict of a person goes through
`corrections`; the reward itself takes the one path of `rewards.settle`.
"""

from grading.review.corrections import (
    REASON_NEEDED_ABOVE,
    CorrectionError,
    Preview,
    StaleReview,
    preview,
    record_correction,
    undo,
)

__all__ = [
    "REASON_NEEDED_ABOVE",
    "CorrectionError",
    "Preview",
    "StaleReview",
    "preview",
    "record_correction",
    "undo",
]
