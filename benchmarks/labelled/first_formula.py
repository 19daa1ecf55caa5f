"""trajectory/1 as it was released, kept to be compared with: a copy on purpose, never called by the product."""

import math

from grading.signals import EffectKind, Signals
from grading.signals.changes import path_matches

UNITS = {
    EffectKind.PR_MERGED: 1.5,
    EffectKind.PR_OPENED: 1.2,
    EffectKind.CI_FIXED: 0.8,
    EffectKind.ISSUE_CLOSED: 0.4,
    EffectKind.PR_CLOSED: 0.4,
    EffectKind.PR_REVIEWED: 0.4,
    EffectKind.ISSUE_OPENED: 0.3,
    EffectKind.TESTS_FIXED: 0.3,
    EffectKind.COMMENT: 0.2,
    EffectKind.PUSH: 0.1,
}
BOOKKEEPING = (
    "**/{journal,journals,state,memory}/**/*.{md,txt,json,jsonl,yml,yaml}",
    "**/{.claude,.beads}/**",
    "**/{*.log,*.lock,package-lock.json,pnpm-lock.yaml}",
)


def grade(signals: Signals) -> float | None:
    """The old grade; None where it abstained, which it did only without any turn of the model."""
    if not signals.has_model_turn:
        return None
    base = 0.08 + 0.87 * -math.expm1(-units(signals) / 2)
    errors = signals.failed_calls / signals.known_results if signals.known_results else 0.0
    retries = min(1.0, signals.retries / signals.calls) if signals.calls else 0.0
    return max(0.02, base - 0.10 * errors - 0.05 * retries)


def units(signals: Signals) -> float:
    """Its commit-equivalents."""
    minor = sum(_is_minor(commit.paths) for commit in signals.commits)
    paths = {change.path for change in signals.files}
    minor_paths = sum(_is_minor((path,)) for path in paths)
    last = {run.runner: run.passed for run in signals.test_runs}
    green = bool(last) and all(last.values()) and bool(signals.files or signals.commits)
    counts = [
        (len(signals.commits) - minor, 1.0),
        *((signals.count(kind), worth) for kind, worth in UNITS.items()),
        (len(paths) - minor_paths, 0.3),
        (int(green), 0.2),
        (minor, 0.1),
        (minor_paths, 0.03),
    ]
    return math.fsum(worth * math.log2(1 + count) for count, worth in counts)


def _is_minor(paths: tuple[str, ...]) -> bool:
    return bool(paths) and all(any(path_matches(path, glob) for glob in BOOKKEEPING) for path in paths)
