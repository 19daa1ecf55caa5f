"""Does the extractor see what a session did, and nothing else? Held against labels made by reading the logs.

Per harness and kind: how many effects were labelled, how many found, how many of those are true, precision and recall;
below, each disagreement with its file and line. `benchmarks/labels/README.md` says what counts. The logs are those of
GRADING_DATA_DIR, else of `../shared/data` beside the checkout, else the few that the repository has.

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
from benchmarks.scratch import Size
from grading.formats import EmptyTranscript, UnknownFormat, read
from grading.signals import EffectKind, extract

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from grading.formats import TranscriptReader
    from grading.formats.events import Event

LABELS = scratch.ROOT / "benchmarks" / "labels"
UNNAMED = "unnamed commit"
RED = "red_run"
KINDS = ("commit", UNNAMED, "push", "pr", "merge", "review", "comment", "tests_fixed", RED)
LISTS = {
    "commits": "commit",
    "pushes": "push",
    "prs": "pr",
    "merges": "merge",
    "reviews": "review",
    "comments": "comment",
    "tests_fixed": "tests_fixed",
    "red_runs": RED,
}
EFFECTS = {
    EffectKind.PUSH: "push",
    EffectKind.PR_OPENED: "pr",
    EffectKind.PR_MERGED: "merge",
    EffectKind.PR_REVIEWED: "review",
    EffectKind.COMMENT: "comment",
    EffectKind.TESTS_FIXED: "tests_fixed",
}
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
NEAR = 40
DRIFT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Thing:
    """One effect, labelled or found. `key`: its hash, address, number, ref or runner; empty where nothing names it.

    `also`: earlier hashes of the same commit. `line` is of the log; where it was found, nearly so.
    """

    kind: str
    key: str
    line: int
    subject: str = ""
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A session's labels beside what was found: pairs of the same thing, what was missed, and what was made up."""

    pairs: tuple[tuple[Thing, Thing], ...]
    missed: tuple[Thing, ...]
    false: tuple[Thing, ...]


def main() -> None:
    parser = scratch.parser(__doc__, quick="the same: it takes seconds", smoke=f"{SMOKE_SESSIONS} small sessions")
    is_smoke = parser.parse_args().size is Size.SMOKE
    compared = []
    for session, path in sessions(is_smoke=is_smoke):
        finds = [find for find in found(path) if find.kind != RED or "red_runs" in session]
        compared.append((session["file"], compare(labelled(session), finds)))
    for line in report(compared):
        print(line)
    print(json.dumps(figures([result for _, result in compared])))


def sessions(*, is_smoke: bool) -> Iterator[tuple[dict[str, Any], Path]]:
    """Each labelled session whose log is at hand, with the path of its log."""
    where, number = locate(), 0
    for path in sorted(LABELS.glob("*.json")):
        for session in json.loads(path.read_text()):
            log = where(session["file"])
            if log is None or not log.is_file() or (is_smoke and log.stat().st_size > SMOKE_BYTES):
                continue
            number += 1
            if is_smoke and number > SMOKE_SESSIONS:
                return
            yield session, log


def locate() -> Callable[[str], Path | None]:
    """Where a session's log is; says so where it is not the folder of real sessions."""
    folder = scratch.data_folder() / "transcripts"
    if folder.is_dir():
        return lambda file: folder / file
    print(f"{folder} is not there: only the logs that the repository has are read. Set GRADING_DATA_DIR to read all.")
    return lambda file: scratch.ROOT / "tests" / "data" / "transcripts" / BUNDLED[file] if file in BUNDLED else None


def labelled(session: dict[str, Any]) -> list[Thing]:
    """The things that a session's labels list."""
    things = []
    for name, kind in LISTS.items():
        for label in session.get(name, ()):
            key = label.get("hash") or label.get("url") or label.get("ref") or label.get("runner") or ""
            things.append(
                Thing(
                    kind=kind if kind != "commit" or key else UNNAMED,
                    key=key,
                    line=label["line"],
                    subject=label.get("subject", ""),
                    also=tuple(label.get("was", ())),
                )
            )
    return things


def found(path: Path) -> list[Thing]:
    """The things that the product's own reader and extractor find in a log. Undone commits count for nothing."""
    lines: list[int] = []
    with path.open("rb") as stream:
        try:
            reader = read(stream, path.name)
        except (EmptyTranscript, UnknownFormat):
            return []
        # Not read ahead: an event's line is how many lines had been read when it came.
        with patch("grading.formats.reader.BATCH_SIZE", 1):
            signals = extract(_numbered(reader, lines))
    commits = [
        Thing(kind="commit", key=commit.hash, line=_line(lines, commit.at), subject=commit.subject)
        for commit in signals.commits
        if not any(commit.is_same(hash_) for hash_ in signals.undone)
    ]
    effects = [
        Thing(kind=EFFECTS[effect.kind], key=effect.key, line=_line(lines, effect.at))
        for effect in signals.effects
        if effect.kind in EFFECTS
    ]
    reds = [Thing(kind=RED, key=run.runner, line=_line(lines, run.at)) for run in signals.test_runs if not run.passed]
    return commits + effects + reds


def _numbered(reader: TranscriptReader, lines: list[int]) -> Iterator[Event]:
    """The events as they are, noting for each number the line that had been read when it came."""
    for event in reader:
        lines.extend([reader.report.lines] * (event.number - len(lines)))
        yield event


def _line(lines: Sequence[int], number: int) -> int:
    return lines[number - 1] if 0 < number <= len(lines) else 0


def compare(labels: Iterable[Thing], finds: Iterable[Thing]) -> Compared:
    """Pairs each label with one find of its kind that may be the same; the surest first, then the nearest line."""
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
    return Compared(pairs=tuple(pairs), missed=tuple(missed), false=tuple(false))


def _by_key(label: Thing, find: Thing) -> bool:
    if label.kind != find.kind or not label.key or not find.key:
        return False
    if label.kind == RED:
        return label.line == find.line
    if label.kind == "commit":
        return any(find.key.startswith(hash_) or hash_.startswith(find.key) for hash_ in (label.key, *label.also))
    # The extractor's key of a push says what moved after the ref, that of a test run how the runner was called.
    return label.key == (find.key.split()[0] if label.kind in ("push", "tests_fixed") else find.key)


def _by_number(label: Thing, find: Thing) -> bool:
    """A pull request or issue by its number, where one of the two has no more: "#7" and its address."""
    if label.kind != find.kind or label.kind not in ("pr", "merge", "review", "comment"):
        return False
    one, other = _number(label.key), _number(find.key)
    is_partial = not (label.key.startswith("http") and find.key.startswith("http"))
    return one == other != "" and (is_partial or label.kind != "pr")


def _number(key: str) -> str:
    match = re.search(r"(?:pull|pulls|issues|merge_requests|#)/?(\d+)", key) or re.fullmatch(r"(\d+)", key)
    return match[1] if match else ""


def _by_subject(label: Thing, find: Thing) -> bool:
    """A commit that the log never names, by the first line of its message."""
    return label.kind == UNNAMED and find.kind == "commit" and label.subject[:60] == find.subject[:60] != ""


def _by_nearness(label: Thing, find: Thing) -> bool:
    """What neither side can name, by the line."""
    if label.kind == RED:
        return find.kind == RED and abs(label.line - find.line) <= DRIFT
    is_nameless = not _number(label.key) or not _number(find.key)
    loose = label.kind in ("merge", "review", "comment") and is_nameless
    return label.kind == find.kind and loose and abs(label.line - find.line) <= NEAR


def counts(results: Iterable[Compared], kind: str) -> tuple[int, int, int]:
    """(labelled, found, true) of one kind."""
    true = missed = false = 0
    for result in results:
        true += sum(label.kind == kind for label, _ in result.pairs)
        missed += sum(label.kind == kind for label in result.missed)
        false += sum(find.kind == kind for find in result.false)
    return true + missed, true + false, true


def share(part: int, whole: int) -> float | None:
    """None of nothing: where nothing was found there is no precision, where nothing is there no recall."""
    return round(part / whole, 3) if whole else None


def figures(results: Sequence[Compared]) -> dict[str, Any]:
    """What the last line says."""
    values: dict[str, Any] = {}
    for kind in KINDS:
        there, reported, true = counts(results, kind)
        name = kind.replace(" ", "_")
        values[f"{name}_precision"], values[f"{name}_recall"] = share(true, reported), share(true, there)
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


def report(compared: Sequence[tuple[str, Compared]]) -> Iterator[str]:
    """The table, then each disagreement."""
    if not compared:
        yield "No labelled log is at hand, so nothing was measured."
        return
    yield f"{'':12} {'':15} {'labelled':>9} {'found':>6} {'true':>6} {'precision':>10} {'recall':>7}"
    harnesses = Counter(file.split("/")[0] for file, _ in compared)
    for harness in (*harnesses, ""):
        results = [result for file, result in compared if file.startswith(f"{harness}/" if harness else "")]
        for kind in KINDS:
            there, reported, true = counts(results, kind)
            if there or reported or not harness:
                precision, recall = (_shown(share(true, whole)) for whole in (reported, there))
                name = harness or "all"
                yield f"{name:12} {kind:15} {there:9} {reported:6} {true:6} {precision:>10} {recall:>7}"
    yield f"{len(compared)} sessions ({', '.join(f'{harness} {number}' for harness, number in harnesses.items())})"
    for file, result in compared:
        wrong = [("missed", thing) for thing in result.missed] + [("false", thing) for thing in result.false]
        for how, thing in sorted(wrong, key=lambda pair: pair[1].line):
            yield f"{how:6} {thing.kind:14} {thing.key or '(no hash)':50.50} {file}:{thing.line} {thing.subject[:60]}"


def _shown(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
