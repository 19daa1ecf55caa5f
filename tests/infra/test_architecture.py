"""docs/architecture.md names the functions that a request runs, in the order in which they run."""

import re
from pathlib import Path

import pytest

from benchmarks import house

pytestmark = pytest.mark.django_db

PAGE = Path(house.ROOT) / "docs" / "architecture.md"
SENTENCES = 10
SECTIONS = {"A session": "upload", "A correction": "correction", "A selection": "selection"}
# `a/path.py: name`
FUNCTION = re.compile(r"`((?:bandit|grading)/[\w/]+\.py: [\w.]+)`")


def section(heading: str) -> str:
    return PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]


def test_each_section_has_ten_numbered_sentences():
    for heading in SECTIONS:
        numbers = re.findall(r"^(\d+)\. ", section(heading), re.MULTILINE)
        assert numbers == [str(number) for number in range(1, SENTENCES + 1)], heading


def test_functions_run_in_the_order_in_which_the_page_names_them():
    """A function may run at other times, too: what counts is that each runs after the one named before it."""
    traces = house.trace_requests()
    for heading, request in SECTIONS.items():
        names = FUNCTION.findall(" ".join(section(heading).split()))
        assert len(names) >= SENTENCES, heading
        calls = iter(traces[request].calls)
        out_of_order = next((name for name in names if name not in calls), None)
        assert out_of_order is None, f"{heading}: {out_of_order} did not run after those named before it"
