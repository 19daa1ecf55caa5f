"""Letters: each Monday, five sentences about the week before, as a page and to the channels that get them.

In: the figures of `grading.insight` and the review queue. Out: a row for each week, and notices in the outbox.
Start with `weekly`.
"""

from grading.letters.weekly import LetterDraft, compose, last_week, write_due

__all__ = ["LetterDraft", "compose", "last_week", "write_due"]
