"""What each lesson is worth: the effect of giving it, causal from its draws or observational, and which of the two."""

from grading.reward.lessons.lesson import InCategory, Lesson
from grading.reward.lessons.reading import DAYS, Readings, decided, read

__all__ = ["DAYS", "InCategory", "Lesson", "Readings", "decided", "read"]
