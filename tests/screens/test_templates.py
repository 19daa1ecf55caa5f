"""How the templates are laid out, and the small tags that they are made of. `make format` sees to the indentation."""

import re

import pytest
from django.conf import settings
from django.template import engines

LONGEST = 120
FOLDER = settings.BASE_DIR / "templates"
SOURCES = {path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.html")}


def rendered(source: str, **context) -> str:
    template = engines["django"].from_string("{% load gradingsite_tags %}" + source)
    return re.sub(r"\s+", " ", template.render(context)).strip()


@pytest.mark.pure
def test_no_line_of_a_template_is_longer_than_120_characters():
    lines = [(name, n, line) for name, text in SOURCES.items() for n, line in enumerate(text.splitlines(), 1)]
    assert lines
    assert [f"{name}:{n}" for name, n, line in lines if len(line) > LONGEST] == []


@pytest.mark.pure
def test_every_partial_template_is_used():
    parts = {name for name in SOURCES if name.rpartition("/")[2].startswith("_")}
    code = [path.read_text(encoding="utf-8") for path in (settings.BASE_DIR / "grading").rglob("*.py")]
    assert parts
    assert sorted(name for name in parts if not any(f'"{name}"' in text for text in [*SOURCES.values(), *code])) == []


def test_a_table_head_aligns_the_titles_of_numbers_right():
    assert rendered('{% table_head "Name" ">Mean" "" %}') == (
        '<thead> <tr> <th scope="col">Name</th> <th scope="col" class="right">Mean</th>'
        ' <th scope="col"></th> </tr> </thead>'
    )


def test_crumbs_lead_back():
    assert rendered('{% crumbs "admin:bandit" "category" label=label here="policy" %}', label="A & B") == (
        '<div class="crumbs"><a href="/bandits/category/">A &amp; B</a><span>/</span><span>policy</span></div>'
    )


def test_a_session_without_a_reward_has_a_dash_and_no_source():
    assert rendered("{% graded None None None %}") == (
        '<span class="chip c-none none" title="no reward">–</span>'
        '<svg class="ic c-none" aria-hidden="true"><use href="#i-none"/></svg>'
    )
