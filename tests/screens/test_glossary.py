"""The glossary: docs/words.md is the only source, and a word of ours on a page leads to its line."""

import re

import pytest
from django.template import Context, Template
from django.utils.html import escape

from grading.screens import glossary
from tests.casts.page import flat

pytestmark = pytest.mark.django_db


def rendered(text: str) -> str:
    return Template("{% load gradingsite_tags %}" + text).render(Context())


def test_the_page_lists_every_word_in_use_and_none_that_is_retired(site, client):
    client.force_login(site.person("vera", "viewer"))
    html = flat(client.get("/words/"))
    assert len(glossary.terms()) > 80
    for term in glossary.terms():
        assert f'id="{term.anchor}"' in html
    assert "doorbell" not in html
    assert 'id="keys"' in html


def test_each_term_is_under_its_letter(site, client):
    """A phone shows one letter at a time."""
    client.force_login(site.person("vera", "viewer"))
    html = flat(client.get("/words/"))
    links = re.findall(r'href="#letter-(.)"', html)
    assert links == sorted({term.word[0].lower() for term in glossary.terms()})
    letter_p = html.partition('id="letter-p"')[2].partition("</dl>")[0]
    assert [f'id="{name}"' in letter_p for name in ("posterior", "quota")] == [True, False]
    assert "#letter-" not in flat(client.get("/words/?q=posterior")), "a search shows all that it finds"


def test_each_term_has_a_place_of_its_own():
    anchors = [term.anchor for term in glossary.terms()]
    assert len(set(anchors)) == len(anchors)


@pytest.mark.parametrize("words", ["arm", "Arm", "Arms", "unscored"])
def test_a_word_of_ours_leads_to_its_line(words):
    found = glossary.find(words)
    html = rendered(f'{{% term "{words}" %}}')
    assert f'href="/words/#{found.anchor}"' in html
    assert f">{words}</a>" in html
    assert escape(found.meaning) in html


def test_any_other_word_stays_as_it_is():
    assert Template("{% load gradingsite_tags %}{% term words %}").render(Context({"words": "A & b"})) == "A &amp; b"


def test_heads_of_tables_lead_to_their_words():
    html = rendered('{% table_head "Arm" ">Cost" %}')
    assert 'href="/words/#arm"' in html
    assert "Cost</a>" not in html


def test_a_filter_keeps_the_terms_that_contain_its_text(site, client):
    client.force_login(site.person("vera", "viewer"))
    page = client.get("/words/", {"q": "Bandit"})
    assert {"bandit", "arm"} <= {term.word.lower() for term in page.context["terms"]}
    assert all("bandit" in f"{term.word} {term.meaning}".lower() for term in page.context["terms"])
    assert "No term contains that text." in flat(client.get("/words/", {"q": "doorbell"}))
