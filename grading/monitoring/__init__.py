"""Is the reward true? Validity rules flag sessions on the spot and raise alarms; coverage is another number (L10)."""

from grading.monitoring.alarms import acknowledge, open_alarms
from grading.monitoring.flags import (
    ImpossiblePair,
    clear_flags,
    flagged_sessions,
    independent_work,
    recent_flags,
)
from grading.monitoring.judges import JudgeOut
from grading.monitoring.rule import Rule, Severity
from grading.monitoring.watch import RULES, inspect, refresh, reopen_flags, watch

IMPOSSIBLE_PAIR, JUDGE_OUT = ImpossiblePair.id, JudgeOut.id

__all__ = [
    "IMPOSSIBLE_PAIR",
    "JUDGE_OUT",
    "RULES",
    "Rule",
    "Severity",
    "acknowledge",
    "clear_flags",
    "flagged_sessions",
    "independent_work",
    "inspect",
    "open_alarms",
    "recent_flags",
    "refresh",
    "reopen_flags",
    "watch",
]
