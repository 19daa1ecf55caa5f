"""`python -m benchmarks.drill.honest`: break the site's code in eight ways. The drill must call each of them BROKEN.

Each sabotage replaces text in a copy of the tree, and fails if that text is not there. The phases that are played for
the sabotages must first go well without them, on both databases. The last line is JSON: how many sabotages were
`called` broken, of how many, and whether the code without any was not (`fine`).
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# Files of the tests that the drill imports.
NEEDED_TESTS = ("tests/postgres.py",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sabotage:
    """One way to break the site: `before` in the file becomes `after`. `phases`: parts of names of phases to play."""

    name: str
    file: str
    before: str
    after: str
    phases: tuple[str, ...]
    on_postgresql: bool = False  # SQLite lets one connection write, and needs no such lock


SABOTAGES = (
    Sabotage(
        name="no sweep",
        file="grading/tasks.py",
        before="    for _job in sweeper.sweep():\n        publish()",
        after="    return",
        phases=("workers killed",),
    ),
    Sabotage(
        name="no fence",
        file="grading/judging/results.py",
        before="        if not _update_job(attempt, decision, now):\n",
        after="        _update_job(attempt, decision, now)\n        if False:\n",
        phases=("replies after their lease",),
    ),
    Sabotage(
        name="early ack",
        file="grading/judging/worker.py",
        before="    outcome = client.send(turn.judge, prompt, turn.job.rubric)",
        after="    job = JudgeJob.objects.filter(pk=turn.job.pk)\n"
        "    job.update(state=JobState.DONE, finished_at=timezone.now())\n"
        "    outcome = client.send(turn.judge, prompt, turn.job.rubric)",
        phases=("workers killed",),
    ),
    Sabotage(
        name="double settle",
        file="grading/judging/results.py",
        before="            _create_verdict(session, attempt, ",
        after="            for _ in range(2):\n                _create_verdict(session, attempt, ",
        phases=("none",),
    ),
    Sabotage(
        name="ledger outside the transaction",
        file="grading/reward/rewards.py",
        before="    ledger.set_rewards(\n        learners(session),",
        after="    import functools\n    import time\n    transaction.on_commit(lambda: time.sleep(0.5))\n"
        "    late = lambda *row, **more: transaction.on_commit(functools.partial(ledger.set_rewards, *row, **more))\n"
        "    late(\n        learners(session),",
        phases=("workers killed",),
    ),
    # Each way to a reward locks the session first, and settling does so again: one lock less changes nothing.
    Sabotage(
        name="no row lock",
        file="grading/apps.py",
        before="        from grading.roles import sync_roles\n",
        after="        from django.db.backends.postgresql.features import DatabaseFeatures\n\n"
        "        from grading.roles import sync_roles\n\n"
        "        DatabaseFeatures.has_select_for_update = False\n",
        phases=("none", "four people", "everything delivered again"),
        on_postgresql=True,
    ),
    Sabotage(
        name="no fsync",
        file="grading/evidence/store.py",
        before="        os.fsync(self.scratch.fileno())\n",
        after="",
        phases=("power cut",),
    ),
    Sabotage(
        name="abandoned jobs",
        file="grading/judging/sweeper.py",
        before='            if not mine.queue_again(next_attempt_at=now + wait, losses=F("losses") + 1):\n',
        after="            if not mine.update(state=JobState.ABANDONED, reason=Reason.TIMEOUT, finished_at=now):\n",
        phases=("workers killed",),
    ),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.drill.honest", description=__doc__)
    parser.add_argument("--only", help="part of a sabotage's name")
    parser.add_argument("--smoke", action="store_true", help="whether each can still be applied, without playing it")
    arguments = parser.parse_args()
    chosen = [each for each in SABOTAGES if not arguments.only or arguments.only in each.name]
    with tempfile.TemporaryDirectory(prefix="gradingsite-honest-") as folder:
        tree = copy_tree(Path(folder) / "none")
        fine = can_start(tree) if arguments.smoke else all(is_fine(tree, chosen, on) for on in (False, True))
    called = 0
    for sabotage in chosen:
        with tempfile.TemporaryDirectory(prefix="gradingsite-honest-") as folder:
            tree = copy_tree(Path(folder) / "tree")
            apply_sabotage(sabotage, tree)
            called += arguments.smoke or is_called_broken(sabotage, tree)
    print(json.dumps({"called": called, "of": len(chosen), "fine": fine}))
    return int(called < len(chosen) or not fine)


def can_start(tree: Path) -> bool:
    """Whether a copy has all files that the drill needs."""
    command = [sys.executable, "-m", "benchmarks.drill", "--help"]
    environment = {**os.environ, "PYTHONPATH": ""}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=False).returncode == 0


def copy_tree(tree: Path) -> Path:
    """Copy all tracked files and link the environment. Returns `tree`."""
    git = ["git", "ls-files", "-z"]
    listed = subprocess.run(git, cwd=ROOT, capture_output=True, check=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        is_needless = name.startswith(("benchmarks/labels", "tests/")) and name not in NEEDED_TESTS
        if is_needless or not (ROOT / name).is_file():
            continue
        target = tree / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    (tree / ".venv").symlink_to((ROOT / ".venv").resolve())
    return tree


def apply_sabotage(sabotage: Sabotage, tree: Path) -> None:
    """Raises SystemExit unless the text to be replaced is there exactly once."""
    path = tree / sabotage.file
    text = path.read_text(encoding="utf-8")
    if text.count(sabotage.before) != 1:
        sys.exit(
            f"“{sabotage.name}” expects this once in {sabotage.file}, so it has to be rewritten:\n{sabotage.before}"
        )
    path.write_text(text.replace(sabotage.before, sabotage.after), encoding="utf-8")


def is_fine(tree: Path, sabotages: Sequence[Sabotage], on_postgresql: bool) -> bool:  # noqa: FBT001 - one of two
    """Whether the phases of these sabotages on one of the databases go well without them."""
    phases = sorted({phase for each in sabotages if each.on_postgresql is on_postgresql for phase in each.phases})
    if not phases:
        return True
    return run_drill(f"nothing, on {'PostgreSQL' if on_postgresql else 'SQLite'}", tree, phases, on_postgresql) is False


def is_called_broken(sabotage: Sabotage, tree: Path) -> bool:
    return run_drill(sabotage.name, tree, sabotage.phases, sabotage.on_postgresql) is True


def run_drill(name: str, tree: Path, phases: Sequence[str], on_postgresql: bool) -> bool | None:  # noqa: FBT001
    """Whether the drill of a tree calls it broken; None if it didn't end properly. Prints a few lines."""
    began = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.drill", "--quick", "--patience", "60"]
    command += [word for phase in phases for word in ("--phase", phase)]
    environment = {**os.environ, "PYTHONPATH": "", "DATABASE_URL": "postgres" if on_postgresql else ""}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False)
    broken = [line for line in done.stdout.splitlines() if line.startswith("BROKEN: ")]
    is_called = bool(broken) if done.returncode == int(bool(broken)) else None
    results = {True: "called broken", False: "not called broken", None: "NO END"}
    print(f"{name}: {results[is_called]}, {time.monotonic() - began:.0f} s")
    last = [*done.stdout.splitlines()[-3:], *done.stderr.splitlines()[-3:]]
    print("\n".join(f"    {line}" for line in broken[:3] or last), flush=True)
    return is_called


if __name__ == "__main__":
    sys.exit(main())
