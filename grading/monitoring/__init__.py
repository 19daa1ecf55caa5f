"""Is the reward true? Rules flag implausible sessions and raise alarms.

In: each session as it is settled, and all rows at intervals. Out: flags (for the review queue), alarms, notices.
Start with `rule` (what a rule is) and `watch` (when rules run). The rules are in `sessions`, `rewards`, `arms`,
`judges` and `operation`; docs/laws.md has a line for each.
"""

# Each registers its rules.
from grading.monitoring import arms, judges, log_formats, operation, rewards, sessions, worse  # noqa: F401
