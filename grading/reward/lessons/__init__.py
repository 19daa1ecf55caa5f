"""What each lesson is worth: the effect of giving it, causal from its draws or observational, and which of the two."""

from grading.reward.lessons.figures import LessonFigures
from grading.reward.lessons.lesson import Lesson
from grading.reward.lessons.reading import DAYS, Readings, read, residuals
from grading.reward.lessons.shown import Overview, decided, overview, read_large

__all__ = [
    "DAYS",
    "Lesson",
    "LessonFigures",
    "Overview",
    "Readings",
    "decided",
    "overview",
    "read",
    "read_large",
    "residuals",
]
