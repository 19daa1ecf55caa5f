"""Reading sessions and others, and what they are worth where commits are counted and where artifacts are (seed 000).

Every session is graded by the site's own trajectory and consumption graders from what it did, and its chain joins the
two by `max`.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

from benchmarks.simulation.buckets import Credit, credited
from benchmarks.simulation.regimes import SITE
from benchmarks.simulation.sessions import chain_policy
from benchmarks.simulation.world import A_DAY
from grading.reward import consumption, trajectory
from grading.reward.decide import GradeView, decide
from grading.reward.grade import SourceGrade, scored
from grading.reward.production import collect
from grading.signals import Commit, Effect, EffectKind, Signals, artifacts
from grading.signals.changes import FileChange
from grading.signals.facts import ObservedFacts
from grading.vocabulary import Source

# The site's limit of reading sessions a day, by default.
PER_DAY = 2
CHAIN = chain_policy("reading", SITE)
# What a session without a commit is worth where commits are counted. The site abstains there.
WITHOUT_COMMITS = 0.08
NOTHING_TOLD = ObservedFacts()
GLOBS = [rule.path_glob for rule in artifacts.DEFAULT_RULES if rule.path_glob]


class Counts(NamedTuple):
    """What a session did, or (as floats) does on average; Poisson."""

    commits: float = 0
    pulls: float = 0
    files: float = 0
    ideas: float = 0
    tasks: float = 0
    posts: float = 0
    notes: float = 0


PRODUCTION = {
    "code": Counts(commits=1.2, pulls=0.3, files=2),
    "cross-repo": Counts(commits=0.8, pulls=0.8, files=2),
    "infrastructure": Counts(commits=0.9, pulls=0.1, files=2),
    "tests": Counts(commits=0.7, pulls=0.2, files=1),
    "docs": Counts(commits=0.6, pulls=0.1, files=1),
    "triage": Counts(commits=0.3, pulls=0.1, files=0.5),
}
READING = {
    "news": Counts(ideas=2.0, tasks=0.6, posts=0.5, notes=1.0),
    "social": Counts(ideas=1.2, tasks=0.3, posts=1.5, notes=0.4),
}
KINDS = PRODUCTION | READING
# The chance that there is work of a kind on a day.
SUPPLY = dict.fromkeys(PRODUCTION, 0.5) | {"triage": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What is counted: all that the trajectory shows or `commits_only`, and artifacts beside it or not.

    `limit` is how many reading sessions a day there may be.
    """

    name: str
    commits_only: bool = False
    artifacts: bool = False
    limit: int = PER_DAY


COMMITS = Measure(name="commits counted", commits_only=True)
TRAJECTORY = Measure(name="the trajectory alone: files count too")
ARTIFACTS = Measure(name="max with artifacts", artifacts=True)
COMMITS_UNLIMITED = replace(COMMITS, name="commits counted, no limit", limit=A_DAY)
ARTIFACTS_UNLIMITED = replace(ARTIFACTS, name="max with artifacts, no limit", limit=A_DAY)
MEASURES = (COMMITS, TRAJECTORY, ARTIFACTS, COMMITS_UNLIMITED, ARTIFACTS_UNLIMITED)


@cache
def graded(counts: Counts, *, is_reading: bool, measure: Measure) -> Credit | None:
    """What a session that did all this is worth by a measure: through the site's graders and its chain.

    None where the site abstains. Where commits are counted, a session without one is worth a number all the same.
    """
    signals = _signals(counts)
    shown = replace(signals, files=()) if measure.commits_only else signals
    production = collect(shown, artifacts=GLOBS if measure.artifacts else ())
    grade = trajectory.grade(trajectory.TrajectoryInput(signals=shown, production=production, facts=NOTHING_TOLD))
    if measure.commits_only and grade.value is None:
        grade = scored(Source.TRAJECTORY, WITHOUT_COMMITS, version="commits counted")
    grades = [grade]
    if measure.artifacts:
        found = artifacts.find(artifacts.DEFAULT_RULES, signals=signals)
        grades.append(consumption.grade(found, is_consumption=is_reading, readable=True))
    rows = [_view(number, grade) for number, grade in enumerate(grades)]
    return credited(decide(rows, CHAIN, judge_open=False))


def _signals(counts: Counts) -> Signals:
    """A whole transcript that shows so much work."""
    return Signals(
        tool_calls={"run": 20},
        assistant_turns=20,
        commits=tuple(Commit(hash=f"{n:040x}", branch="main", subject="", at=n) for n in range(int(counts.commits))),
        effects=tuple(Effect(kind=EffectKind.PR_OPENED, key=f"#{n}", at=n) for n in range(int(counts.pulls))),
        files=tuple(_files(counts)),
    )


def _files(counts: Counts) -> Iterator[FileChange]:
    folders = {"src": counts.files, "tasks": counts.tasks, "tweets": counts.posts, "knowledge": counts.notes}
    for folder, count in folders.items():
        for n in range(int(count)):
            yield FileChange(path=f"{folder}/{n}.md", at=n, is_new=True, added=(_text(f"{folder} {n}", 40),))
    if counts.ideas:
        rows = tuple(f"| {n} | Idea: {_text(f'idea {n}', 4)} | 7 |" for n in range(int(counts.ideas)))
        yield FileChange(path="idea-backlog.md", at=0, is_new=False, added=rows)


def _text(seed: str, words: int) -> str:
    """So many made-up words, other ones for each seed: what is left behind has substance in this world."""
    return " ".join(hashlib.sha256(f"{seed} {word}".encode()).hexdigest()[:8] for word in range(words))


def _view(number: int, grade: SourceGrade) -> GradeView:
    return GradeView(id=number, source=grade.source, status=grade.status, value=grade.value, reason=grade.reason)
