"""The measures of `benchmarks/house.py` get no worse than `house.json` records, and who raises one says why."""

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from django.db import connection

from benchmarks import house

WRITE = "`python benchmarks/house.py --write`"


def git(folder: Path, *arguments: str) -> str | None:
    """The output of a command of git's; None where it fails, or there is no git."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, check=False, capture_output=True, text=True)
    except FileNotFoundError:
        return None
    return done.stdout if done.returncode == 0 else None


@pytest.fixture
def checkout() -> None:
    if git(house.ROOT, "ls-files", "--error-unmatch", "manage.py") is None:
        pytest.skip("not a checkout by git, which says what belongs to the repository")


def worse(recorded: Mapping[str, int], measured: Mapping[str, int]) -> list[str]:
    """A sentence for each measure that is above its record."""
    return [
        f"{name}: expected {recorded[name]} or less, measured {number}. Make it {recorded[name]} again, or run {WRITE} "
        f'and say under "raised" in {house.RECORD.name} what the rise buys.'
        for name, number in measured.items()
        if number > recorded[name]
    ]


def unexplained(before: Mapping, now: Mapping) -> list[str]:
    """A sentence for each number that `now` has raised without a sentence of its own."""
    earlier, reasons = house.numbers(before), now["raised"]
    return [
        f'{name}: raised from {earlier[name]} to {number}. Say under "raised" what that buys in this change.'
        for name, number in house.numbers(now).items()
        if number > earlier.get(name, number)
        and reasons.get(name, "").strip() in {"", before["raised"].get(name, "").strip()}
    ]


def previous_record(root: Path) -> dict | None:
    """The record that this one replaces: the last commit's where it was changed since, otherwise that of the commit
    before it (a merge's first parent). None where there was none. Skips where git does not know.
    """
    path = house.RECORD.relative_to(house.ROOT).as_posix()
    text = git(root, "show", f"HEAD:./{path}")
    if text is not None and text == (root / path).read_text(encoding="utf-8"):
        is_shallow = git(root, "rev-parse", "--is-shallow-repository") == "true\n"
        if is_shallow and git(root, "rev-parse", "--verify", "HEAD^1") is None:
            pytest.skip("a shallow clone: the previous commit is not here")
        text = git(root, "show", f"HEAD^1:./{path}")
    return None if text is None else json.loads(text)


@pytest.mark.pure
def test_code_is_no_worse_than_recorded(checkout):
    recorded, measured = house.numbers(house.read_record()), house.measure_code()
    assert set(recorded) == set(measured) | {name for name in recorded if name.startswith("requests.")}
    assert worse(recorded, measured) == [], "`python benchmarks/house.py --list MEASURE` shows what is counted"


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL takes other statements: recorded for SQLite")
@pytest.mark.django_db(transaction=True)
def test_requests_touch_no_more_than_recorded(checkout, settings):
    settings.ALLOWED_HOSTS = ["testserver"]
    recorded, measured = house.numbers(house.read_record()), house.measure_requests()
    assert {name for name in recorded if name.startswith("requests.")} == set(measured)
    assert worse(recorded, measured) == []


@pytest.mark.pure
def test_raised_numbers_are_explained(checkout):
    before = previous_record(house.ROOT)
    assert before is None or unexplained(before, house.read_record()) == []


MODULE = """
from django.db.models import QuerySet
def _twice(count): return 2 * count
def _doubled(): return _twice(1) + _twice(2)
class Row: pass
value = _doubled
"""
CASES = [
    ("names.vague", "found = 1"),
    ("names.vague", "def load(given): pass"),
    ("names.vague", "_look = 1"),
    ("names.homonyms", "class Outer:\n    class Row: pass"),
    ("structure.once_helpers", "def _helper(): pass\n_helper()"),
    ("structure.private_django", "QuerySet()._result_cache"),
    ("structure.private_django", "from django.db.models.sql import InsertQuery"),
    ("structure.private_django", "from django.utils.functional import _lazy"),
    ("structure.private_django", "QuerySet.first = None"),
    ("structure.process_caches", "@cache\ndef policy(): pass"),
    ("structure.process_caches", "@functools.lru_cache(maxsize=8)\ndef policy(): pass"),
    ("structure.process_caches", "policies: dict[str, int] = {}"),
    ("structure.process_caches", "policies = remembered.Memory[str, int](8)"),
    ("structure.process_caches", "class Page:\n    rows = {}"),
    (None, "def fold(rows):\n    sums = {}\n    rows._meta = sums"),
    (None, "@cached_property\ndef finding(self): self.found_at = {'a': 1}"),
    (None, "class Meta: pass\nclass Options:\n    class Meta: pass"),
]


def counts(source: str) -> dict[str, int]:
    return {measure: len(places) for measure, places in house.code_places({"made_up.py": source}).items()}


@pytest.mark.pure
@pytest.mark.parametrize(("measure", "addition"), CASES)
def test_each_addition_raises_its_own_measure(measure, addition):
    """Where the measure is None, nothing is counted."""
    before = counts(MODULE)
    assert counts(f"{MODULE}{addition}\n") == before | ({} if measure is None else {measure: before[measure] + 1})


@pytest.mark.pure
def test_module_is_named_with_each_place():
    assert house.code_places({"a.py": "\nheld = 1"})["names.vague"] == ["a.py:2 held"]


@pytest.mark.pure
def test_caches_of_no_rows_are_not_counted():
    module = {"grading/screens/glossary.py": "@cache\ndef terms(): pass"}
    assert house.code_places(module)["structure.process_caches"] == []


@pytest.mark.pure
def test_higher_number_is_worse_and_lower_is_not():
    messages = worse(
        {"names.vague": 5, "lines.css": 5, "lines.tests": 5}, {"names.vague": 6, "lines.css": 4, "lines.tests": 5}
    )
    assert [message.split(".")[:2] for message in messages] == [["names", "vague: expected 5 or less, measured 6"]]


def record(number: int, **raised: str) -> dict:
    """A record with one measure."""
    measure = {"number": number, "counts": "lines"}
    return {
        "about": "",
        "lines": {"css": measure},
        "raised": {name.replace("_", "."): why for name, why in raised.items()},
    }


@pytest.mark.pure
@pytest.mark.parametrize(
    ("before", "now", "count"),
    [
        (record(5), record(5), 0),
        (record(5), record(4), 0),
        (record(5), record(6), 1),
        (record(5), record(6, lines_css=" "), 1),
        (record(5), record(6, lines_css="Dark pages."), 0),
        (record(5, lines_css="Dark pages."), record(6, lines_css="Dark pages."), 1),
        (record(5, lines_css="Dark pages."), record(6, lines_css="Printed pages."), 0),
        (record(5, lines_css="Dark pages."), record(5, lines_css="Dark pages."), 0),
        ({"about": "", "raised": {}}, record(5), 0),
    ],
)
def test_raised_number_needs_new_sentence(before, now, count):
    assert len(unexplained(before, now)) == count


@pytest.fixture
def repository(tmp_path):
    """A function that commits a record of this number, or none, in a repository of its own; and its folder."""
    path = tmp_path / house.RECORD.relative_to(house.ROOT)
    path.parent.mkdir(parents=True)
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]

    def commit(number: int | None) -> None:
        if number is not None:
            path.write_text(json.dumps(record(number)), encoding="utf-8")
        git(tmp_path, "add", ".")
        assert git(tmp_path, *who, "commit", "--allow-empty", "-m", "change") is not None

    assert git(tmp_path, "init", "-b", "main") is not None
    return commit, tmp_path, path


@pytest.mark.pure
def test_record_is_compared_with_the_commit_before(repository):
    commit, root, path = repository
    commit(5)
    assert previous_record(root) is None
    commit(6)
    assert previous_record(root) == record(5)
    commit(None)
    assert previous_record(root) == record(6)
    path.write_text(json.dumps(record(7)))
    assert previous_record(root) == record(6)


@pytest.mark.pure
def test_first_record_is_compared_with_nothing(repository):
    commit, root, path = repository
    commit(None)
    path.write_text(json.dumps(record(5)))
    assert previous_record(root) is None
    commit(5)
    assert previous_record(root) is None


@pytest.mark.pure
def test_merge_is_compared_with_its_first_parent(repository):
    commit, root, _path = repository
    commit(5)
    git(root, "checkout", "-b", "branch")
    commit(6)
    commit(7)
    git(root, "checkout", "main")
    assert (
        git(root, "-c", "user.name=a", "-c", "user.email=a@b.c", "merge", "--no-ff", "-m", "merge", "branch")
        is not None
    )
    assert previous_record(root) == record(5)


@pytest.mark.pure
def test_shallow_clone_is_not_compared(repository, tmp_path_factory):
    commit, root, _path = repository
    commit(5)
    commit(6)
    clone = tmp_path_factory.mktemp("clone")
    assert git(clone, "clone", "--depth", "1", root.as_uri(), ".") is not None
    with pytest.raises(pytest.skip.Exception, match="shallow"):
        previous_record(clone)
