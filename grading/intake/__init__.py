"""Intake of finished sessions: the files are stored first, then one transaction does everything else.

In: metadata and up to four files, from the API, a folder of logs, or the samples. Out: a session that is graded and
settled, and a receipt that lists every problem.
Start with `submit`; `assessment` runs after every change of what counts for a session.
"""

from grading.intake.submission import Problem, Receipt, SubmittedSession
from grading.intake.submit import submit

__all__ = ["Problem", "Receipt", "SubmittedSession", "submit"]
