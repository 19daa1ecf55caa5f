"""Mutants that no test can tell from the code, by file: the lines that go, those that come, and why nobody sees it."""

from collections.abc import Mapping

EQUIVALENTS: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "bandit/core/propensity.py": (
        (
            "chance += (mass * (others + np.concatenate((others_before, others[:, :-1]), axis=1))).sum(axis=1) / 2",
            "chance += (mass * (others + np.concatenate((others_before, others[:, :-1]), axis=1))).sum(axis=1) / 3",
            "the chances are divided by their sum",
        ),
        (
            "chance += (mass * (others + np.concatenate((others_before, others[:, :-1]), axis=1))).sum(axis=1) / 2",
            "chance += (mass * (others + np.concatenate((others_before, others[:, :-1]), axis=1))).sum(axis=1) * 2",
            "the same",
        ),
        (
            "before = others_before = np.zeros((len(alpha), 1))",
            "before = others_before = np.zeros((len(alpha), 2))",
            "at the first point nobody is the best: what is multiplied there is negligible",
        ),
        (
            "mass = np.diff(cdf, axis=1, prepend=before)",
            "mass = np.diff(cdf, prepend=before)",
            "the last axis is taken where none is named",
        ),
    ),
    "bandit/core/posterior.py": (
        (
            "for arm in np.flatnonzero(table.by_arm(weight * table.n) > most):",
            "for arm in np.flatnonzero(table.by_arm(weight * table.n) >= most):",
            "where it is exactly the most that there may be, nothing is taken off",
        ),
    ),
    "grading/judging/core/api_errors.py": (
        (
            'seconds = float(error.response.headers.get("retry-after", ""))',
            'seconds = float(error.response.headers.get("retry-after", "XXXX"))',
            "neither is a number",
        ),
        (
            'def classify_batched(kind: str, message: str, now: dt.datetime, *, code: str = "") -> Deferred:',
            'def classify_batched(kind: str, message: str, now: dt.datetime, *, code: str = "XXXX") -> Deferred:',
            "neither is the code of a spend limit",
        ),
        (
            'return _classify(error.status_code, message, error.error_code or "", retry_at, now)',
            'return _classify(error.status_code, message, error.error_code or "XXXX", retry_at, now)',
            "the same",
        ),
    ),
    "grading/judging/core/verdict.py": (
        (
            'message: "Message", *, dimensions: Collection[str], citable: Collection[int], evidence: str = ""',
            'message: "Message", *, dimensions: Collection[str], citable: Collection[int], evidence: str = "XXXX"',
            "no rationale that is long enough to be looked for stands in four letters",
        ),
        ('problem = ""', "problem = None", "a problem is only asked whether there is any"),
    ),
    "grading/judging/core/verdict_score.py": (
        (
            "if dimensions.get(HARMLESSNESS, 1.0) < HARMLESS and mean > HARMFUL_AT_MOST:",
            "if dimensions.get(HARMLESSNESS, 1.05) < HARMLESS and mean > HARMFUL_AT_MOST:",
            "neither is below it",
        ),
        (
            "if reached is not None and mean > CEILINGS.get(reached, 1.0):",
            "if reached is not None and mean > CEILINGS.get(reached, 1.05):",
            "no mean is above 1",
        ),
        (
            "nearest = scored.mean if overall > scored.mean else scored.value",
            "nearest = scored.mean if overall >= scored.mean else scored.value",
            "at the mean it agrees, whatever it is held against",
        ),
        (
            "gap = round(abs(overall - nearest), 6)",
            "gap = round(abs(overall - nearest), 7)",
            "both have six digits: what is behind the seventh is the noise of subtracting them",
        ),
        (
            "if scored.value <= overall <= scored.mean or gap <= MOST_APART:",
            "if scored.value < overall <= scored.mean or gap <= MOST_APART:",
            "at the score itself there is no gap",
        ),
        (
            "if scored.value <= overall <= scored.mean or gap <= MOST_APART:",
            "if scored.value <= overall < scored.mean or gap <= MOST_APART:",
            "at the mean itself there is no gap",
        ),
    ),
    "grading/reward/trajectory.py": (
        (
            "if log_problem or usable is None:",
            "if log_problem and usable is None:",
            "there is a usable log exactly where nothing makes it unusable; the second half is for the type",
        ),
    ),
    "grading/reward/decide.py": (
        (
            "return None if self.decider is None else self.grades.get(self.decider)",
            "return None if (self.decider is None) and False else self.grades.get(self.decider)",
            "no grade is held for None: get answers None by itself, but its type asks for a source",
        ),
        (
            "median = sorted(readings, key=lambda row: (row.value, row.id))[MAX_READINGS // 2]",
            "median = sorted(readings, key=lambda row: (row.value, row.id))[MAX_READINGS // 3]",
            "of three readings both are the second",
        ),
    ),
}
