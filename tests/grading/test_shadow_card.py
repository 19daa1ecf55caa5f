"""What a policy's variant would have earned, as a card on the page that previews it."""

import pytest
from django.template.loader import render_to_string

from bandit.shadow import shadow
from tests.bandit.test_shadow import NOW, live, variant

pytestmark = pytest.mark.django_db


def card(**numbers):
    return render_to_string("gradingsite/_shadow.html", {"report": shadow(variant(**numbers), NOW)})


def test_the_card_says_the_sentence_and_shows_the_numbers():
    live(32)
    text = card(floor=0.05)
    assert shadow(variant(floor=0.05), NOW).sentence in text
    assert "weighted (SNIPS)" in text
    assert "32 of the last 32 decisions, 1 Mar" in text
    assert "<td>triage</td>" in text


def test_an_empty_log_says_what_to_do():
    text = card()
    assert "Cannot tell yet: none of 0 decisions" in text
    assert "POST /api/v1/selections" in text
    assert "<table" not in text
