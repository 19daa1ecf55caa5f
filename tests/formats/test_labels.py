"""What the readers find in real logs is what a person found in them: labels.json beside each format's logs."""

import json
from collections import Counter
from pathlib import Path

import pytest

from grading import signals
from grading.formats import read
from grading.signals.model import EffectKind

pytestmark = pytest.mark.pure

FOLDERS = sorted(path.parent for path in Path(__file__).parent.glob("*/labels.json"))
PRECISION, RECALL = 0.95, 0.90


def labels(folder: Path) -> list[dict]:
    return json.loads((folder / "labels.json").read_text())


def labelled(label: dict) -> Counter:
    """What a person found, as countable items."""
    items = [("commit", hash_[:7]) for _line, hash_ in label["commits"]]
    items += [("test", passed) for _line, passed in label["tests"]]
    items += [("push",) for _ in label["pushes"]] + [("pull request",) for _ in label["pull_requests"]]
    return Counter(items)


def extracted(path: Path) -> Counter:
    """What the reader and the signals find, as the same items."""
    with path.open("rb") as stream:
        found = signals.extract(iter(read(stream, path.name)))
    items = [("commit", commit.hash[:7]) for commit in found.commits]
    items += [("test", run.passed) for run in found.test_runs]
    items += [("push",)] * found.count(EffectKind.PUSH) + [("pull request",)] * len(found.pull_requests)
    return Counter(items)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_reader_finds_what_a_person_found(folder: Path):
    """Of all labelled logs of a format together, since one log has few labels."""
    expected, found = Counter(), Counter()
    for label in labels(folder):
        expected += Counter({(label["file"], *item): count for item, count in labelled(label).items()})
        counts = extracted(folder / "logs" / label["file"])
        found += Counter({(label["file"], *item): count for item, count in counts.items()})
    right = (expected & found).total()
    assert right >= PRECISION * found.total(), f"found without a label: {found - expected}"
    assert right >= RECALL * expected.total(), f"labelled and not found: {expected - found}"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_labels_name_the_lines_that_prove_them(folder: Path):
    for label in labels(folder):
        lines = (folder / "logs" / label["file"]).read_bytes().split(b"\n")
        for line, hash_ in label["commits"]:
            assert hash_.encode() in lines[line - 1], label["file"]
        for line, _passed in label["tests"]:
            assert b"test" in lines[line - 1], label["file"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_logs_are_read_whole(folder: Path):
    """Every labelled log is detected as its folder's format, and all of it is recognised."""
    for label in labels(folder):
        with (folder / "logs" / label["file"]).open("rb") as stream:
            reader = read(stream, label["file"])
            events = list(reader)
        assert reader.format == folder.name.replace("_", "-")
        assert events
        assert reader.report.coverage == 1, reader.report.problems
