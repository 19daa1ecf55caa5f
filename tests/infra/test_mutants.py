"""The mutants that the cores' tests are tested by: what is changed, and what is said to be equivalent."""

from pathlib import Path

import pytest

from tests.mutants.changes import source
from tests.mutants.cores import CORES
from tests.mutants.equivalents import EQUIVALENTS

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parent.parent.parent


def mutants(text: str, *only: str) -> set[str]:
    whole = source(text, only)
    return {whole.mutant(change).strip() for change in whole.changes}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MOST = 0.5", {"MOST = 0.525", "MOST = None"}),
        ("MOST = 3", {"MOST = 4", "MOST = None"}),
        ("return_ = a < b", {"return_ = a <= b", "return_ = None"}),
        ("f(a, k=1)", {"f(None, k=1)", "f(a, k=None)", "f(k=1)", "f(a, )", "f(a, k=2)"}),
        ("if a:\n    pass", {"if not (a):\n    pass"}),
        ("f('key')", {"f(None)", "f('XXkeyXX')"}),
    ],
)
def test_numbers_decisions_and_keys_are_changed(text, expected):
    assert mutants(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "raise ValueError('no')",
        "from a import b",
        "@dataclass(frozen=True)\nclass A: pass",
        "Key = tuple[str, str]",
        "T = TypeVar('T')",
    ],
)
def test_what_decides_nothing_is_not(text):
    assert not mutants(text)


def test_a_sentence_and_a_guard_stay_as_they_are():
    assert "f('a sentence', XX)" not in mutants("f('a sentence', x)")
    assert not any("strict=False" in text or "strict=None" in text for text in mutants("zip(a, b, strict=True)"))


def test_a_pattern_that_ignores_case_is_not_put_into_another():
    assert "f = re.compile(r'NO', re.A)" in mutants("f = re.compile(r'no', re.A)")
    made = mutants("f = re.compile(r'no', re.IGNORECASE | re.A)")
    assert "f = re.compile(r'XXnoXX', re.IGNORECASE | re.A)" in made
    assert "f = re.compile(r'NO', re.IGNORECASE | re.A)" not in made


def test_of_some_sources_only_the_pure_part_is_changed():
    text = "A = 1\ndef f(): return 2\ndef g(): return {}\ndef h(): return 3"
    assert mutants(text.format(5), "g") == {text.format(6), text.format(None)}


@pytest.mark.parametrize("core", CORES.values(), ids=CORES)
def test_the_files_of_a_core_are_there(core):
    assert [path for path in (*core.sources, *core.tests) if not (ROOT / path).is_file()] == []


def test_a_mutant_that_is_called_equivalent_is_still_one_of_its_source():
    """Else its reason speaks of code that is gone."""
    for path, rows in EQUIVALENTS.items():
        lines = {line.strip() for line in (ROOT / path).read_text().splitlines()}
        for gone, come, reason in rows:
            missing = [line for line in gone.splitlines() if line not in lines]
            assert not missing, f"{path} has no such line any more; delete its row from tests/mutants/equivalents.py"
            assert come != gone
            assert reason
