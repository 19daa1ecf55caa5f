"""Is the reward true? Rules flag implausible sessions and raise alarms.

In: each session as it is settled, and all rows at intervals. Out: flags (for the review queue), alarms, notices.
Start with `rule` (what a rule is) and `watch` (when rules run). The rules are in `sessions`, `rewards`, `arms`,
`judges` and `operation`; docs/laws.md has a line for each.
"""

from collections.abc import Iterable

from grading.models import Alarm, Flag
from grading.models.judging import JudgeRole
from grading.monitoring.alarms import open_alarms
from grading.monitoring.arms import silent_failure, unheard_arm
from grading.monitoring.attending import attend
from grading.monitoring.flag_rule import FlagRule
from grading.monitoring.flags import (
    DISMISSED,
    GRADED_BY_A_PERSON,
    clear_flags,
    flagged_sessions,
)
from grading.monitoring.judges import about_judge, judge_out
from grading.monitoring.operation import describe_stopped
from grading.monitoring.rule import RULES, Rule, Severity
from grading.monitoring.sessions import impossible_pair, independent_work, overdue
from grading.monitoring.watch import (
    acknowledge,
    inspect,
    refresh,
    refresh_afterwards,
    reopen_flags,
    watch,
    watch_at_night,
)
from grading.monitoring.worse import find_worse_results

IMPOSSIBLE_PAIR, JUDGE_OUT, SILENT_FAILURE, UNHEARD, WORSE_RESULTS = (
    impossible_pair.id,
    judge_out.id,
    silent_failure.id,
    unheard_arm.id,
    find_worse_results.id,
)


def title_of(rule: str) -> str:
    """The title of the rule with this id; also for Flag.BY_A_PERSON."""
    if rule == Flag.BY_A_PERSON:
        return "Flagged by a person"
    return RULES[rule].title if rule in RULES else "A rule that no longer exists"


def is_advisory(rule: str) -> bool:
    """Whether alarms of the rule with this id are shown on the alarms page only."""
    return rule in RULES and RULES[rule].severity is Severity.ADVISORY


def quotes_verdict(rule: str) -> bool:
    """Whether the text of the rule's flags says something about the judge's verdict."""
    return rule in RULES and RULES[rule].quotes_verdict


def says_judge_fails(alarms: Iterable[Alarm]) -> bool:
    """Whether one of these open alarms is about the first judge's calls, which may fail although its quota is open."""
    return any(alarm.rule == JUDGE_OUT and alarm.about == about_judge(JudgeRole.FIRST) for alarm in alarms)


__all__ = [
    "DISMISSED",
    "GRADED_BY_A_PERSON",
    "IMPOSSIBLE_PAIR",
    "JUDGE_OUT",
    "RULES",
    "SILENT_FAILURE",
    "UNHEARD",
    "WORSE_RESULTS",
    "FlagRule",
    "Rule",
    "Severity",
    "acknowledge",
    "attend",
    "clear_flags",
    "describe_stopped",
    "flagged_sessions",
    "independent_work",
    "inspect",
    "is_advisory",
    "open_alarms",
    "overdue",
    "refresh",
    "refresh_afterwards",
    "reopen_flags",
    "says_judge_fails",
    "title_of",
    "watch",
    "watch_at_night",
]
