"""The benchmark that holds the extractor against labelled sessions: how it matches, and whether the labels hold."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import signals
from benchmarks.signals import UNNAMED, LoggedEffect, compare, figures
from tests.casts import logs

FOLDER = os.environ.get("GRADING_DATA_DIR")
PULL = "https://github.com/owner/repo/pull/7"
REQUIRED = {"file", *signals.LISTS, "does_not_count"} - {"red_runs"}
PROVEN = ("commits", "pushes", "prs", "comments")


def labels():
    return [session for path in signals.LABELS.glob("*.json") for session in json.loads(path.read_text())]


def thing(kind, key="", line=10, subject="", also=()):
    return LoggedEffect(kind=kind, key=key, line=line, subject=subject, also=also)


def counted(labelled, finds):
    compared = compare(labelled, finds)
    return len(compared.pairs), len(compared.missed), len(compared.false)


@pytest.mark.parametrize(
    ("label", "find"),
    [
        (thing("commit", "ab12cd3"), thing("commit", "ab12cd3ef", line=99)),
        (thing("commit", "ab12cd3ef"), thing("commit", "ab12cd3")),
        (thing("commit", "ab12cd3", also=("1111111",)), thing("commit", "1111111")),
        (thing(UNNAMED, subject="Fix the parser"), thing("commit", "ab12cd3", subject="Fix the parser")),
        (thing("push", "main"), thing("push", "main ab12cd3")),
        (thing("pr", PULL), thing("pr", PULL)),
        (thing("pr", "#7"), thing("pr", PULL)),
        (thing("merge", PULL), thing("merge", "7")),
        (thing("merge", PULL), thing("merge", "owner/repo#7")),
        (thing("comment", f"{PULL}#issuecomment-1"), thing("comment", PULL)),
        (thing("review"), thing("review", "the pull request", line=14)),
        (thing("tests_fixed", "go"), thing("tests_fixed", "go test")),
        (thing("red_run", "go", line=10), thing("red_run", "go test", line=11)),
    ],
)
def test_the_same_thing_under_two_names_is_one(label, find):
    assert counted([label], [find]) == (1, 0, 0)


@pytest.mark.parametrize(
    ("label", "find"),
    [
        (thing("commit", "ab12cd3"), thing("commit", "ab12cd4")),
        (thing(UNNAMED, subject="Fix the parser"), thing("commit", "ab12cd3", subject="Fix the lexer")),
        (thing(UNNAMED), thing("commit", "ab12cd3")),
        (thing("push", "main"), thing("push", "mainline ab12cd3")),
        (thing("pr", PULL), thing("pr", "https://github.com/other/repo/pull/7")),
        (thing("merge", PULL), thing("merge", "8")),
        (thing("merge", PULL), thing("pr", PULL)),
        (thing("review"), thing("review", "the pull request", line=400)),
        (thing("tests_fixed", "go"), thing("tests_fixed", "pytest")),
        (thing("red_run", "go", line=10), thing("red_run", "go test", line=14)),
    ],
)
def test_two_things_are_a_miss_and_a_false_find(label, find):
    assert counted([label], [find]) == (0, 1, 1)


def test_a_commit_found_under_two_of_its_hashes_is_one_too_many():
    finds = [thing("commit", "1111111"), thing("commit", "ab12cd3")]
    assert counted([thing("commit", "ab12cd3", also=("1111111",))], finds) == (1, 0, 1)


def test_of_two_pushes_of_a_branch_both_are_wanted():
    labelled = [thing("push", "main", line=10), thing("push", "main", line=20)]
    assert counted(labelled, [thing("push", "main ab12cd3", line=20)]) == (1, 1, 0)


def test_a_commit_that_the_log_never_names_is_counted_apart():
    compared = compare([thing("commit", "ab12cd3"), thing(UNNAMED, subject="Fix it")], [thing("commit", "ab12cd3")])
    said = figures([compared])
    assert (said["commit_recall"], said["commit_recall_with_unnamed"]) == (1.0, 0.5)


def test_nothing_read_is_no_figure():
    said = figures([])
    assert said["sessions"] == 0
    assert {value for name, value in said.items() if name != "sessions"} == {None}


def test_a_false_merge_is_counted():
    assert figures([compare([], [thing("merge", "7")])])["false_merges"] == 1


def test_a_find_has_the_line_of_its_result_however_long_the_log_goes_on(tmp_path):
    """A line with the task, then for each command a line with the call and one with its result."""
    path = tmp_path / "session.jsonl"
    red = ("pytest", "FAILED tests/test_parser.py::test_one\n==== 1 failed, 3 passed in 0.12s ====")
    path.write_bytes(logs.claude("s-1", ("ls", "parser.py"), red, logs.COMMIT, *[("ls", "parser.py")] * 200))
    assert [(find.kind, find.line) for find in signals.find_effects(path)] == [("commit", 7), ("red_run", 5)]


@pytest.mark.slow
def test_the_benchmark_runs_on_small_sessions():
    done = subprocess.run(
        [sys.executable, "benchmarks/signals.py", "--smoke"], capture_output=True, text=True, check=True
    )
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["sessions"] > 0
    assert {"commit_precision", "commit_recall", "false_merges", "false_reviews"} <= set(said)


def test_the_labels_have_the_form_that_their_page_describes():
    files = [session["file"] for session in labels()]
    assert len(files) == len(set(files)) >= 60
    for session in labels():
        assert set(session) - {"note", "red_runs"} == REQUIRED, session["file"]
        for name in signals.LISTS:
            lines = [label["line"] for label in session.get(name, ())]
            assert lines == sorted(lines), (session["file"], name)
        assert all(label["red"] < label["line"] for label in session["tests_fixed"]), session["file"]
        kinds = {label["what"] for label in session["does_not_count"]}
        assert kinds <= set(signals.LISTS.values()), session["file"]
        assert all(label["why"] for label in session["does_not_count"]), session["file"]


@pytest.mark.data
def test_every_labelled_line_is_there_and_holds_what_it_proves():
    if not FOLDER:
        pytest.skip("GRADING_DATA_DIR is not set: the labels were NOT held against the logs that they speak of.")
    for session in labels():
        lines = Path(FOLDER, "transcripts", session["file"]).read_bytes().decode(errors="replace").split("\n")
        for name in (*signals.LISTS, "does_not_count"):
            for label in session.get(name, ()):
                line = lines[label["line"] - 1]
                key = label.get("hash") or label.get("url") or label.get("ref") or ""
                assert line.strip(), (session["file"], name, label)
                assert name not in PROVEN or key.lstrip("#") in line, (session["file"], name, label)
        whole = "\n".join(lines)
        hashes = [hash_ for label in session["commits"] for hash_ in label.get("was", ())]
        assert [hash_ for hash_ in hashes if hash_ not in whole] == [], session["file"]


@pytest.mark.data
def test_every_red_run_is_found_at_its_line_and_no_other():
    if not FOLDER:
        pytest.skip("GRADING_DATA_DIR is not set: red runs were NOT looked for in the labelled sessions.")
    for session in labels():
        if "red_runs" not in session:
            continue
        reds = [thing for thing in signals.labelled(session) if thing.kind == signals.RED_RUN]
        finds = [
            find
            for find in signals.find_effects(Path(FOLDER, "transcripts", session["file"]))
            if find.kind == signals.RED_RUN
        ]
        compared = compare(reds, finds)
        assert (compared.missed, compared.false) == ((), ()), session["file"]
