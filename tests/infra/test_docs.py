"""What is written for people is true of the repository: paths and names exist, codes are explained, pages are fresh."""

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

from benchmarks import house
from benchmarks.watched import rules as watched
from benchmarks.watched.evidence import find_evidence
from grading.monitoring.rule import RULES
from gradingsite.settings import CHAIN_SCALE

pytestmark = pytest.mark.pure

ROOT = Path(__file__).resolve().parent.parent.parent
FRONT = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
PAGES = [*FRONT, *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = ("bandit", "benchmarks", "bin", "docs", "grading", "gradingsite", "templates", "tests")
# `a/path.py: name` in backticks, or a path alone.
QUOTED = re.compile(r"`([^`]+)`")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
PATH = re.compile(rf"(?:{'|'.join(FOLDERS)})/[\w./-]*")
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
# A row of a table of settings: | `NAME`, `NAME` | default | meaning |
SETTING = re.compile(r"^\| (`[A-Z_]+`(?:, `[A-Z_]+`)*) \|", re.MULTILINE)
ROW = re.compile(r"^\| (A\d+) \|(?P<says>[^|]+)\|(?P<why>[^|]+)\|(?P<test>[^|]+)\|$", re.MULTILINE)
QUESTIONS = 10


def told(path):
    return path.read_text(encoding="utf-8")


@cache
def names_in(path):
    """What a module defines: functions, classes, their methods, and constants."""
    names = set()
    for node in ast.walk(ast.parse(told(path))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            if isinstance(node, ast.ClassDef):
                names |= {f"{node.name}.{own.name}" for own in node.body if isinstance(own, ast.FunctionDef)}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def missing(page):
    """What the page names that is not there."""
    for found in QUOTED.findall(FENCED.sub("", told(page))):
        quoted = " ".join(found.split())
        where, _, name = quoted.partition(": ")
        if not PATH.fullmatch(where):
            continue
        path = ROOT / where
        if not path.exists():
            yield where
        elif name and name not in names_in(path):
            yield quoted


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_path_and_name_on_a_page_exists(page):
    assert list(missing(page)) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_link_between_pages_leads_somewhere(page):
    """To a file that exists and, where the link names one, to a heading in it."""
    dead = []
    for path, anchor in LINK.findall(told(page)):
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(f"{path}#{anchor}")
    assert dead == []


def anchors(page):
    """What links to a page's headings are called: lower case, hyphens for spaces, no punctuation."""
    headings = HEADING.findall(FENCED.sub("", told(page)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(("name", "most"), [("README.md", 1200), ("SECURITY.md", 600)])
def test_a_front_page_stays_short(name, most):
    """A newcomer reads the README in four minutes."""
    assert len(told(ROOT / name).split()) <= most


def test_the_newest_release_fits_on_a_screen():
    """The changelog tells users what changed; it has no room for internals."""
    newest = told(ROOT / "CHANGELOG.md").split("\n## ")[1]
    assert len(newest.splitlines()) <= 60


def test_every_environment_variable_of_the_settings_is_on_the_page_of_settings():
    """And the page names no variable that the settings don't read."""
    listed = {name for row in SETTING.findall(told(ROOT / "docs" / "configure.md")) for name in re.findall(r"\w+", row)}
    assert listed == set(variables())


def variables():
    """The environment variables that the settings read; those with a source in their name once for each source."""
    for node in ast.walk(ast.parse(told(ROOT / "gradingsite" / "settings.py"))):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith("env")):
            continue
        name = node.args[0]
        if isinstance(name, ast.Constant):
            yield name.value
        elif isinstance(name, ast.JoinedStr):
            template = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in name.values)
            yield from (template.format(source.upper()) for source in CHAIN_SCALE)


def test_every_word_on_the_page_of_words_is_one_of_the_code_or_the_screens():
    text = told(ROOT / "docs" / "words.md")
    rows = [row for row in re.findall(r"^\| (.+?) \| (.+?) \|$", text, re.MULTILINE) if row[0] != "word"]
    product = said()
    assert [word for group, _ in rows for word in group.split(", ") if word.lower() not in product] == []
    assert [word for word, _ in rows] == sorted({word for word, _ in rows}, key=str.lower)


def said():
    """All that the product's modules and templates say."""
    folders = ("bandit", "grading", "gradingsite", "templates")
    files = [path for folder in folders for glob in ("*.py", "*.html") for path in (ROOT / folder).rglob(glob)]
    return "\n".join(told(path) for path in files).lower()


def test_every_code_and_page_that_is_named_anywhere_is_explained():
    assert house.unresolved() == {}


def test_every_alarm_rule_has_its_line_with_its_reason_and_its_test():
    rows = {row[1]: row for row in ROW.finditer(told(ROOT / "docs" / "laws.md"))}
    assert list(rows) == sorted(RULES, key=lambda rule: int(rule[1:]))
    for row in rows.values():
        assert all(row[part].strip() for part in ("says", "why"))
        assert "tests/" in row["test"]


def test_the_page_of_incidents_is_what_the_tests_say():
    """Where this fails: `python docs/incidents.py`."""
    spec = importlib.util.spec_from_file_location("incidents", ROOT / "docs" / "incidents.py")
    incidents = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(incidents)
    assert told(incidents.PAGE) == incidents.page()


def test_the_page_of_formats_is_what_the_registry_says():
    """Where this fails: `python docs/formats.py`."""
    spec = importlib.util.spec_from_file_location("formats_page", ROOT / "docs" / "formats.py")
    formats_page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(formats_page)
    assert told(formats_page.PAGE) == formats_page.page()


def test_each_of_a_newcomers_questions_has_an_answer_in_two_look_ups():
    section = told(ROOT / "CONTRIBUTING.md").split("## Ten questions")[1].split("\n## ")[0]
    answers = [line.split("|")[2] for line in section.splitlines() if line.startswith("| ") and "?" in line]
    assert len(answers) == QUESTIONS
    for answer in answers:
        assert 1 <= len([each for each in QUOTED.findall(answer) if "/" in each]) <= 2


def test_every_door_says_what_comes_in_what_goes_out_and_where_to_start():
    django = {"management", "migrations", "templatetags"}
    doors = [each.parent for each in (ROOT / "grading").glob("*/__init__.py") if each.parent.name not in django]
    for door in [*doors, ROOT / "bandit", ROOT / "bandit" / "core"]:
        text = ast.get_docstring(ast.parse(told(door / "__init__.py"))) or ""
        came, _, start = text.partition("Start with ")
        assert "In: " in came, door
        assert "Out: " in came, door
        first = [quoted.split(".")[0] for quoted in QUOTED.findall(start.split("\n\n")[0])]
        assert first, door
        assert [name for name in first if not ((door / f"{name}.py").exists() or (door / name).is_dir())] == [], door


def test_every_alarm_rule_has_a_figure_a_drill_an_attack_or_an_incident():
    """Those with none are removed."""
    assert [rule for rule, text in find_evidence(watched.RULES).items() if not text] == []
