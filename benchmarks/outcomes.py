"""Does the site find out what became of 10,000 sessions' commits in 40 repositories, and whose?

Each session made one or two commits on a branch of its own, and its work was merged, squashed, rebased, reverted by the
number of its pull request or by the inverse difference, restored or abandoned; or it was amended before anybody saw the
hash that the session claims. People commit to the default branch in between. After the first of two rounds, forgers
submit sessions that cite commits of people and of other agents, with times that fit.

`wrong`: honest sessions with another state than what happened. `unknown_share`: the share of honest sessions with an
unknown state; a tenth were amended and cannot be found. `foreign_owned`: forged sessions that own a commit.
`round_cpu_s`: processor seconds of the larger round, with git's. `calls_per_round`: git commands that contact a
repository.

    python benchmarks/outcomes.py [--quick | --smoke]
"""

import datetime as dt
import hashlib
import itertools
import json
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size

# Repositories, and honest sessions in each.
SIZES = {Size.FULL: (40, 250), Size.QUICK: (4, 100), Size.SMOKE: (1, 20)}
START = 1_774_958_400  # 2026-03-31 12:00 UTC
# Seconds from one session of a repository to the next, and the length of a session.
EVERY, LENGTH = 600, 300
LINES = 12


class Fate(StrEnum):
    MERGED = "merged"
    SQUASHED = "squashed"
    REBASED = "rebased"
    REVERTED_BY_NUMBER = "reverted by number"
    REVERTED_BY_DIFFERENCE = "reverted by difference"
    RESTORED = "restored"
    ABANDONED = "abandoned"
    AMENDED = "amended"


CYCLE = (
    *(Fate.MERGED, Fate.SQUASHED, Fate.REBASED, Fate.SQUASHED, Fate.ABANDONED),
    *(Fate.REVERTED_BY_NUMBER, Fate.MERGED, Fate.RESTORED, Fate.AMENDED, Fate.REVERTED_BY_DIFFERENCE),
)
EXPECTED = {
    Fate.MERGED: "landed",
    Fate.SQUASHED: "landed",
    Fate.REBASED: "landed",
    Fate.RESTORED: "landed",
    Fate.REVERTED_BY_NUMBER: "reverted",
    Fate.REVERTED_BY_DIFFERENCE: "reverted",
    Fate.ABANDONED: "open",
    Fate.AMENDED: "unknown",
}


@dataclass(slots=True, kw_only=True)
class PlannedSession:
    """A session to submit: its end as a timestamp, the commits that it made, and what became of them."""

    end: int
    fate: Fate
    commits: list[str]


@dataclass(slots=True)
class History:
    """Writes a repository by `git fast-import`. A commit is named by its mark until `finish`."""

    folder: Path
    stream: list[str] = field(default_factory=list)
    marks: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    now: int = START
    tips: dict[str, str] = field(default_factory=dict)
    # Commits of people by when they were made, and the sessions that forgers may cite.
    human_commits: dict[str, int] = field(default_factory=dict)
    citable: list[PlannedSession] = field(default_factory=list)

    def commit(self, branch: str, message: str, files: dict[str, str | None], *, at: int = 0, parents: str = "") -> str:
        """A commit of these files; None deletes one. `at`: by default a second after the one before."""
        self.now = at or self.now + 1
        mark = f":{next(self.marks)}"
        who = f"Ada <ada@example.test> {self.now} +0000"
        lines = [f"commit refs/heads/{branch}", f"mark {mark}", f"author {who}", f"committer {who}", _data(message)]
        if branch in self.tips and "from " not in parents:
            lines.append(f"from {self.tips[branch]}")
        lines += parents.splitlines()
        self.tips[branch] = mark
        for name, text in files.items():
            lines += [f"D {name}"] if text is None else [f"M 100644 inline {name}", _data(text)]
        self.stream += lines
        return mark

    def finish(self) -> dict[str, str]:
        """Write what was added since the last time. Returns the hash of each mark."""
        marks = self.folder.with_suffix(".marks")
        command = ["git", "fast-import", "--quiet", f"--import-marks-if-exists={marks}", f"--export-marks={marks}"]
        text = "\n".join([*self.stream, "done", ""])
        subprocess.run([*command, "--done"], cwd=self.folder, input=text, text=True, check=True)
        self.stream.clear()
        return dict(line.split() for line in marks.read_text().splitlines())


def _data(text: str) -> str:
    return f"data {len(text.encode())}\n{text}"


def main() -> None:
    parser = scratch.parser(__doc__, quick="4 repositories of 100 sessions", smoke="1 repository of 20 sessions")
    repositories, sessions = SIZES[parser.parse_args().size]
    with tempfile.TemporaryDirectory() as state:
        scratch.site(state)
        print(json.dumps(measure(Path(state), repositories, sessions)))


def measure(state: Path, repositories: int, sessions: int) -> dict[str, Any]:
    from grading.models import SessionCommit, SessionLanding
    from grading.models.outcomes import Authorship
    from grading.outcomes import following

    followed = [follow(state / "repositories" / f"engine-{number}") for number in range(repositories)]
    following.run_due(_time(START))
    calls = count_remote_calls()
    honest: dict[int, PlannedSession] = {}
    forged: list[int] = []
    rounds = []
    for half in (range(sessions // 2), range(sessions // 2, sessions)):
        for row, history in followed:
            planned = [plan_session(history, number) for number in half]
            if half.start:
                forged += [submit(row, session, agent="mallory") for session in forge(history)]
            names = history.finish()
            for session in planned:
                session.commits = [names.get(mark, mark) for mark in session.commits]
                honest[submit(row, session, agent=f"bob-{row.pk}")] = session
            history.citable += planned
            history.human_commits = {names.get(mark, mark): at for mark, at in history.human_commits.items()}
        calls_before, cpu_before = calls["remote"], _cpu()
        end = _time(START + (half.stop + 2) * EVERY)
        # Nothing is looked up twice: the forged sessions are due with the second half.
        SessionLanding.objects.filter(next_check_at__lte=end).update(next_check_at=None)
        following.run_due(end)
        rounds.append((_cpu() - cpu_before, calls["remote"] - calls_before))
    states = dict(SessionLanding.objects.filter(session__in=honest).values_list("session", "state"))
    wrong = Counter(
        f"{session.fate}: {states.get(pk)}"
        for pk, session in honest.items()
        if states.get(pk) != EXPECTED[session.fate]
    )
    for text, count in wrong.most_common():
        print(f"wrong: {count} x {text}")
    owned = SessionCommit.objects.filter(session__in=forged, authorship=Authorship.OWN)
    cpu, remote_calls = max(rounds)
    return {
        "sessions": len(honest),
        "forged": len(forged),
        "wrong": wrong.total(),
        "unknown_share": round(sum(state == "unknown" for state in states.values()) / len(honest), 4),
        "foreign_owned": owned.values("session").distinct().count(),
        "round_cpu_s": round(cpu, 2),
        "calls_per_round": remote_calls,
    }


def follow(folder: Path) -> tuple[Any, History]:
    """A repository with one commit, which the site follows."""
    from grading.models import Project, Repository

    folder.mkdir(parents=True)
    command = ["git", "init", "-q", "--bare", "-b", "main"]
    subprocess.run(command, cwd=folder, check=True)
    history = History(folder)
    history.commit("main", "Start", {"start.txt": f"{folder.name}\n"})
    history.finish()
    project = Project.objects.for_key(f"forge.example/ada/{folder.name}")
    return Repository.objects.create(name=folder.name, url=str(folder), project=project), history


def plan_session(history: History, number: int) -> PlannedSession:
    """Write what a session commits and what becomes of it. A person commits to the default branch before it."""
    fate, start = CYCLE[number % len(CYCLE)], START + number * EVERY
    human = history.commit("main", f"Improve {number}", {f"h{number}.txt": _lines(f"h{number}")}, at=start)
    history.human_commits[human] = history.now
    branch, file = f"b{number}", f"s{number}.txt"
    files = [{file: _lines(f"s{number}", 0)}, {file: _lines(f"s{number}", 3)}][: 1 + number % 2]
    commits = []
    for step, content in enumerate(files):
        parent = f"from {human}" if not commits else f"from {commits[-1]}"
        at = start + 30 + step
        commits.append(history.commit(branch, f"Part {number}.{step}", content, at=at, parents=parent))
    _finish_work(history, fate, number, commits, files)
    return PlannedSession(end=start + LENGTH, fate=fate, commits=commits)


def _finish_work(history: History, fate: Fate, number: int, commits: list[str], files: list[dict[str, str]]) -> None:
    """Write what becomes of a session's commits on the default branch."""
    branch, squashed = f"b{number}", f"Add {number} (#{number + 1000})"
    name, text = next(iter(files[-1].items()))
    if fate is Fate.AMENDED:
        # The session claims a hash that was pushed over before anybody saw it.
        commits[:] = [hashlib.sha1(f"{history.folder.name} {number}".encode(), usedforsecurity=False).hexdigest()]
    elif fate is Fate.MERGED:
        history.commit("main", f"Merge {branch}", {name: text}, parents=f"merge {commits[-1]}")
    elif fate is Fate.REBASED:
        for step, content in enumerate(files):
            history.commit("main", f"Part {number}.{step}", content)
    elif fate is not Fate.ABANDONED:
        history.commit("main", squashed, {name: text})
        if fate is Fate.REVERTED_BY_NUMBER:
            history.commit("main", f"Take it out\n\nReverts #{number + 1000}", {name: "something else\n"})
        elif fate is not Fate.SQUASHED:
            history.commit("main", "It was too slow", {name: None})
        if fate is Fate.RESTORED:
            history.commit("main", "It was not", {name: text})


def forge(history: History) -> list[PlannedSession]:
    """Sessions that cite a person's commit, or an honest session's, of the first half, with times that fit."""
    cited = list(history.human_commits.items())[:3]
    forged = [PlannedSession(end=at + 60, fate=Fate.MERGED, commits=[sha]) for sha, at in cited]
    others = [each for each in history.citable if each.fate is not Fate.AMENDED][:3]
    return forged + [PlannedSession(end=each.end, fate=Fate.MERGED, commits=each.commits) for each in others]


def submit(row: Any, planned: PlannedSession, *, agent: str) -> int:
    """Store a session that claims these commits. The site receives a forger's an EVERY after the first half."""
    from grading.models import Agent, Artifact, Evidence, Session
    from grading.models.evidence import ArtifactKind, EvidenceKind, Origin

    ended = _time(planned.end)
    received = ended if agent != "mallory" else ended + dt.timedelta(days=30)
    session = Session.objects.create(
        agent=Agent.objects.get_or_create(name=agent)[0],
        external_id=f"{agent} {planned.end} {planned.commits[0][:12]}",
        project=row.project,
        started_at=ended - dt.timedelta(seconds=LENGTH),
        ended_at=ended,
    )
    evidence = Evidence.objects.create(
        session=session, kind=EvidenceKind.FACTS, sha256="ab" * 32, size=1, received_at=received
    )
    for sha in planned.commits:
        fields = {"lookup": sha[:7], "receipt": evidence.pk, "origin": Origin.FACTS}
        owner = Artifact.objects.filter(kind=ArtifactKind.COMMIT, key=sha, owned_by=None).first()
        fields["owned_by"] = owner.session if owner else None  # as the owner rule decides for the later claim
        Artifact.objects.create(session=session, kind=ArtifactKind.COMMIT, key=sha, **fields)
    return session.pk


def count_remote_calls() -> Counter[str]:
    """Count, from now on, the git commands that contact a repository."""
    from grading.outcomes import git, mirror

    calls = Counter[str]()
    run = git.run

    def counted(folder: Path, *arguments: str, access: Any = git.OFFLINE, **options: Any) -> bytes:
        calls["remote"] += bool(access.protocol)
        return run(folder, *arguments, access=access, **options)

    mirror.git.run = counted
    return calls


def _lines(name: str, changed: int = -1) -> str:
    return "".join(f"{name} {line}{' changed' if line == changed else ''}\n" for line in range(LINES))


def _time(timestamp: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(timestamp, dt.UTC)


def _cpu() -> float:
    """Processor seconds of this process and of those that it waited for."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usage)


if __name__ == "__main__":
    main()
