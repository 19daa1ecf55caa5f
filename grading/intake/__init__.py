"""A finished session comes in with what it left behind: bytes first, then one transaction for all that follows."""

from grading.intake.submission import Problem, Receipt, SubmittedSession
from grading.intake.submit import submit

__all__ = ["Problem", "Receipt", "SubmittedSession", "submit"]
