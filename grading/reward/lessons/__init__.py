"""What each lesson is worth: the effect of giving it, causal from its draws or observational, and which of the two.

loading: the queries · figures: what they add up to (pure) · overview: what pages and draws read, stored on large sites
"""

from grading.reward.lessons.figures import LessonFigures
from grading.reward.lessons.loading import DAYS, load_lessons, residuals
from grading.reward.lessons.overview import Overview, decided, load_overview, store_overviews
