"""Does the extractor find what a session did, and nothing else? Comparison with labels made by reading the logs.

For each harness and kind: how many effects were labelled, how many found, how many of those are true, precision and
recall. Below, each disagreement with its file and line. `benchmarks/labels/README.md` says what counts. The logs are
those of GRADING_DATA_DIR, else of `../shared/data` beside the checkout, else the few in the repository.

Then the ends of the sessions in tests/data/final_states: the state of their tests, low grades of sessions that did not
fail, and failures with a low grade; the sessions that the rules were written with, and those held out.

    python benchmarks/signals.py [--quick | --smoke]
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.labelled import final_states
from benchmarks.scratch import Size
from grading.formats import EmptyTranscript, UnknownFormat, read
from grading.signals import EffectKind, extract

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from grading.formats import TranscriptReader
    from grading.formats.events import Event

LABELS = scratch.ROOT / "benchmarks" / "labels"
UNNAMED = "unnamed commit"
RED_RUN = "red_run"
KINDS = ("commit", UNNAMED, "push", "pr", "merge", "review", "comment", "tests_fixed", RED_RUN)
LISTS = {
    "commits": "commit",
    "pushes": "push",
    "prs": "pr",
    "merges": "merge",
    "reviews": "review",
    "comments": "comment",
    "tests_fixed": "tests_fixed",
    "red_runs": RED_RUN,
}
EFFECTS = {
    EffectKind.PUSH: "push",
    EffectKind.PR_OPENED: "pr",
    EffectKind.PR_MERGED: "merge",
    EffectKind.PR_REVIEWED: "review",
    EffectKind.COMMENT: "comment",
    EffectKind.TESTS_FIXED: "tests_fixed",
}
BUNDLED_FOLDER = scratch.ROOT / "tests" / "data" / "transcripts"
BUNDLED = {
    "claude-code/DRMacIver__claude-reliability/snapshot-tests__tests__hello-world-script__transcript.jsonl": (
        "claude-code-hello-world.jsonl"
    ),
    "claude-code/entireio__cli/2026-01-19-1b3e6441-62e3-4b41-8a0c-9d252f531f7a.jsonl": "claude-code-1b3e6441.jsonl",
    "codex/entireio__git-sync/019ed628-d519-7dc0-89a8-67c8c823ceaf.jsonl": "codex-019ed628.jsonl",
    "gptme/replayed/2026-replay-00-hello-patch/conversation.jsonl": "gptme-replay-00.jsonl",
    "gptme/replayed/2026-replay-08-implement-class/conversation.jsonl": "gptme-replay-08.jsonl",
}
SMOKE_SESSIONS = 12
SMOKE_BYTES = 100_000
# How far apart the lines of the same unnamed effect, and of the same failed test run, may be.
MAX_DISTANCE, MAX_RED_RUN_DISTANCE = 40, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEffect:
    """One effect, labelled or found. `key`: its hash, address, number, ref or runner, or "" if nothing names it.

    `line` is its line in the log, approximately if it was found. `also`: earlier hashes of the same commit.
    """

    kind: str
    key: str
    line: int
    subject: str = ""
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A session's labels and findings: pairs of the same effect, labels without a finding, findings without a label."""

    pairs: tuple[tuple[LoggedEffect, LoggedEffect], ...]
    missed: tuple[LoggedEffect, ...]
    false: tuple[LoggedEffect, ...]


def main() -> None:
    parser = scratch.parser(__doc__, quick="the same: it takes seconds", smoke=f"{SMOKE_SESSIONS} small sessions")
    comparisons = {}
    for session, path in labelled_sessions(is_smoke=parser.parse_args().size is Size.SMOKE):
        effects = find_effects(path)
        if "red_runs" not in session:
            effects = [effect for effect in effects if effect.kind != RED_RUN]
        comparisons[session["file"]] = compare(labelled(session), effects)
    print_report(comparisons)
    print(json.dumps(figures(list(comparisons.values())) | report_final_states()))


def report_final_states() -> dict[str, float]:
    """Print how the product sees the labelled ends of sessions, and each error; returns the figures by name."""
    sessions = final_states.load_sessions()
    rows, values = [], {}
    for split in ("train", "held_out"):
        part = [each for each in sessions if each.label["split"] == split]
        found = final_states.figures(part)
        rows.append([split, len(part), *found.values()])
        values |= {f"{name}_{split}": value for name, value in found.items()}
    print(scratch.table(["final states", "sessions", "false lows", "true lows", "graded", "tests at end"], rows))
    for each in sessions:
        label = each.label
        if each.is_low != each.is_failure and (each.is_low or each.is_failure):
            grade = "no grade" if each.grade is None else f"graded {each.grade:.2f}"
            print(f"{label['split']:8} {label['label']:7} {grade:12} {label['name']}: {label['reason']}")
        if not each.is_state_right:
            print(
                f"{label['split']:8} tests {label['tests_at_end']}, found {each.signals.tests_at_end}: {label['name']}"
            )
    return values


def labelled_sessions(*, is_smoke: bool) -> list[tuple[dict[str, Any], Path]]:
    """Each labelled session whose log is available, with the path of its log."""
    folder = scratch.data_folder() / "transcripts"
    has_data = folder.is_dir()
    if not has_data:
        print(f"{folder} is not there: only the logs in the repository are read. Set GRADING_DATA_DIR to read all.")
    sessions = []
    for labels in sorted(LABELS.glob("*.json")):
        for session in json.loads(labels.read_text()):
            name = session["file"]
            log = folder / name if has_data else BUNDLED_FOLDER / BUNDLED.get(name, "none")
            if log.is_file() and not (is_smoke and log.stat().st_size > SMOKE_BYTES):
                sessions.append((session, log))
    return sessions[:SMOKE_SESSIONS] if is_smoke else sessions


def labelled(session: dict[str, Any]) -> list[LoggedEffect]:
    """The effects in a session's labels."""
    effects = []
    for name, kind in LISTS.items():
        for label in session.get(name, ()):
            key = label.get("hash") or label.get("url") or label.get("ref") or label.get("runner") or ""
            effects.append(
                LoggedEffect(
                    kind=kind if kind != "commit" or key else UNNAMED,
                    key=key,
                    line=label["line"],
                    subject=label.get("subject", ""),
                    also=tuple(label.get("was", ())),
                )
            )
    return effects


def find_effects(path: Path) -> list[LoggedEffect]:
    """The effects that the product's reader and extractor find in a log, without undone commits."""
    lines: list[int] = []
    with path.open("rb") as stream:
        try:
            reader = read(stream, path.name)
        except (EmptyTranscript, UnknownFormat):
            return []
        # No reading ahead: an event's line is the number of lines read when it comes.
        with patch("grading.formats.reader.BATCH_SIZE", 1):
            signals = extract(_numbered(reader, lines))
    commits = [
        LoggedEffect(kind="commit", key=commit.hash, line=_line(lines, commit.at), subject=commit.subject)
        for commit in signals.commits
        if not any(commit.is_same(hash_) for hash_ in signals.undone)
    ]
    effects = [
        LoggedEffect(kind=EFFECTS[effect.kind], key=effect.key, line=_line(lines, effect.at))
        for effect in signals.effects
        if effect.kind in EFFECTS
    ]
    reds = [
        LoggedEffect(kind=RED_RUN, key=run.runner, line=_line(lines, run.at))
        for run in signals.test_runs
        if not run.passed
    ]
    return commits + effects + reds


def _numbered(reader: TranscriptReader, lines: list[int]) -> Iterator[Event]:
    """Passes the events through, and appends the line of each event number to `lines`."""
    for event in reader:
        lines.extend([reader.report.lines] * (event.number - len(lines)))
        yield event


def _line(lines: Sequence[int], number: int) -> int:
    return lines[number - 1] if 0 < number <= len(lines) else 0


def compare(labels: Iterable[LoggedEffect], finds: Iterable[LoggedEffect]) -> Comparison:
    """Pair each label with one finding that may be the same: the surest first, then the nearest line."""
    missed, false = list(labels), list(finds)
    pairs = []
    for is_same in (_by_key, _by_number, _by_subject, _by_nearness):
        for label in list(missed):
            like = [find for find in false if is_same(label, find)]
            if like:
                nearest = min(like, key=lambda find: abs(find.line - label.line))
                pairs.append((label, nearest))
                missed.remove(label)
                false.remove(nearest)
    return Comparison(pairs=tuple(pairs), missed=tuple(missed), false=tuple(false))


def _by_key(label: LoggedEffect, find: LoggedEffect) -> bool:
    if label.kind != find.kind or not label.key or not find.key:
        return False
    if label.kind == RED_RUN:
        return label.line == find.line
    if label.kind == "commit":
        return any(find.key.startswith(hash_) or hash_.startswith(find.key) for hash_ in (label.key, *label.also))
    # The extractor's key of a push says what moved after the ref, that of a test run how the runner was called.
    return label.key == (find.key.split()[0] if label.kind in ("push", "tests_fixed") else find.key)


def _by_number(label: LoggedEffect, find: LoggedEffect) -> bool:
    """A pull request or issue by its number, if one of the two has only a number: "#7" and an address."""
    if label.kind != find.kind or label.kind not in ("pr", "merge", "review", "comment"):
        return False
    one, other = _number(label.key), _number(find.key)
    is_partial = not (label.key.startswith("http") and find.key.startswith("http"))
    return one == other != "" and (is_partial or label.kind != "pr")


def _number(key: str) -> str:
    match = re.search(r"(?:pull|pulls|issues|merge_requests|#)/?(\d+)", key) or re.fullmatch(r"(\d+)", key)
    return match[1] if match else ""


def _by_subject(label: LoggedEffect, find: LoggedEffect) -> bool:
    """A commit whose hash is not in the log, by the first line of its message."""
    return label.kind == UNNAMED and find.kind == "commit" and label.subject[:60] == find.subject[:60] != ""


def _by_nearness(label: LoggedEffect, find: LoggedEffect) -> bool:
    """An effect without a name, by its line."""
    if label.kind == RED_RUN:
        return find.kind == RED_RUN and abs(label.line - find.line) <= MAX_RED_RUN_DISTANCE
    is_nameless = not _number(label.key) or not _number(find.key)
    may_lack_name = label.kind in ("merge", "review", "comment") and is_nameless
    return label.kind == find.kind and may_lack_name and abs(label.line - find.line) <= MAX_DISTANCE


def counts(results: Iterable[Comparison], kind: str) -> tuple[int, int, int]:
    """(labelled, found, true) of one kind."""
    true = missed = false = 0
    for result in results:
        true += sum(label.kind == kind for label, _ in result.pairs)
        missed += sum(label.kind == kind for label in result.missed)
        false += sum(find.kind == kind for find in result.false)
    return true + missed, true + false, true


def share(part: int, whole: int) -> float | None:
    """None if the whole is 0: there is no precision without findings, and no recall without labels."""
    return round(part / whole, 3) if whole else None


def figures(results: Sequence[Comparison]) -> dict[str, Any]:
    """The figures by name."""
    values: dict[str, Any] = {}
    for kind in KINDS:
        labels, reported, true = counts(results, kind)
        name = kind.replace(" ", "_")
        values[f"{name}_precision"], values[f"{name}_recall"] = share(true, reported), share(true, labels)
    named, unnamed = counts(results, "commit"), counts(results, UNNAMED)
    return {
        "commit_precision": values.pop("commit_precision"),
        "commit_recall": values.pop("commit_recall"),
        "false_merges": sum(find.kind == "merge" for result in results for find in result.false) if results else None,
        "false_reviews": sum(find.kind == "review" for result in results for find in result.false) if results else None,
        "sessions": len(results),
        "commit_recall_with_unnamed": share(named[2] + unnamed[2], named[0] + unnamed[0]),
        **{name: value for name, value in values.items() if not name.startswith("unnamed")},
    }


def print_report(comparisons: dict[str, Comparison]) -> None:
    """Print the table, then each disagreement. `comparisons` are by file."""
    harnesses = Counter(file.split("/")[0] for file in comparisons)
    rows = []
    for harness in (*harnesses, "all"):
        results = [each for file, each in comparisons.items() if harness in {"all", file.split("/")[0]}]
        for kind in KINDS:
            labels, reported, true = counts(results, kind)
            if labels or reported or harness == "all":
                shares = (share(true, reported), share(true, labels))
                rows.append(
                    [harness, kind, labels, reported, true, *("–" if each is None else each for each in shares)]
                )
    print(scratch.table(["harness", "kind", "labelled", "found", "true", "precision", "recall"], rows))
    print(f"{len(comparisons)} sessions: {dict(harnesses)}")
    for file, result in comparisons.items():
        wrong = [("missed", effect) for effect in result.missed] + [("false", effect) for effect in result.false]
        for how, effect in sorted(wrong, key=lambda pair: pair[1].line):
            name = effect.key or "(no hash)"
            print(f"{how:6} {effect.kind:14} {name:50.50} {file}:{effect.line} {effect.subject[:60]}")


if __name__ == "__main__":
    main()
