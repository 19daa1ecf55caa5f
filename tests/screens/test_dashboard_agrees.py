"""What the dashboard says in one place agrees with what it says in another, whatever has come in and whoever judges."""

import datetime as dt
import re

import pytest
from django.utils import timezone
from django.utils.html import strip_tags

from grading.agent import samples
from grading.models.review import Answer
from grading.review import answers
from grading.vocabulary import Outcome, Source
from tests.casts import logs
from tests.casts.page import flat

pytestmark = pytest.mark.django_db

WORDS = {"only": 1, "–": 0}


def numbers(pattern: str, text: str) -> tuple[int, ...] | None:
    """The numbers of the first match, None without one; "only" is 1, and a figure that is missing 0."""
    found = re.search(pattern, text)
    return None if found is None else tuple(WORDS[n] if n in WORDS else int(n) for n in found.groups() if n)


def agrees(client) -> str:
    """The text of the dashboard, whose sentence and figures were compared."""
    html = flat(client.get("/")).replace("&#x27;", "'")
    sentence = strip_tags(re.search(r"<h1>(.*?)</h1>", html)[1])
    figures = strip_tags(html[re.search(r"card figs|figs-4", html).start() :])
    # Of seven days: the grades that may hold are those of the sessions that have one.
    graded, _ended = numbers(r"(\d+) of (\d+) sessions have a grade", figures) or (0, 0)
    assert (numbers(r"(\d+) of (\d+) grades are reliable", figures) or (0, 0))[1] == graded
    # Of today.
    provisional, rewards = numbers(r"Provisional\s*(\d+|–)\s*of (\d+) today", figures)
    ungraded = numbers(r"(\d+) more (?:is|are) not graded yet", figures) or (0,)
    assert (rewards, ungraded) == (0, (0,)) or "no sessions to grade have ended today" not in html
    assert graded >= rewards
    if "None of your own sessions has arrived" not in sentence:
        ones = r"today’s (only) reward is provisional|(\d+) of today’s (\d+) rewards"
        assert (numbers(ones, sentence) or (0,))[0] == provisional
        assert (numbers(r"of today’s (\d+) rewards", sentence) or (rewards,))[0] == rewards
        words = r"(\d+) of today’s sessions (?:is|are) not|none of today’s (\d+) sessions|today’s (only) session is not"
        assert (numbers(words, sentence) or (0,)) == ungraded
    return f"{sentence} {strip_tags(html)}"


def test_the_sentences_of_the_dashboard_agree(site, operator, rita, sim, settings):
    """With samples only, after an import without a judge, with a judge, and after its key is gone; loading the samples
    takes some seconds.
    """
    now, key = timezone.now(), settings.ANTHROPIC_API_KEY
    settings.ANTHROPIC_API_KEY = ""
    assert "None of your own sessions has arrived" in agrees(operator)
    list(samples.load(now))
    assert "What this page will show" in agrees(operator)
    # An import: today's one session shows nothing, and the others ended long ago.
    site.upload("looked", logs.claude("looked"), ended_at=now)
    page = agrees(operator)
    assert "today’s only session is not graded yet" in page
    assert "1 session of the last 14 days has no final grade because of this" in page
    for name in ("old-1", "old-2", "old-3"):
        old = site.upload(name, logs.worked(name), ended_at=now - dt.timedelta(days=40)).session
        answers.submit(old, rita, answer=Answer.GRADE, value=0.6, reason="It works")
    page = agrees(operator)
    assert "no session of these 7 days has a grade; 3 graded sessions ended earlier" in page
    assert "3 of 3" in page
    site.session(ended_at=now).graded(Source.JOURNAL, 0.3).settle()
    assert "today’s only reward is provisional, and 1 of today’s sessions is not graded yet" in agrees(operator)
    # What cannot be graded is neither.
    site.session(ended_at=now, outcome=Outcome.INFRASTRUCTURE, outcome_reason="login expired").settle()
    agrees(operator)
    settings.ANTHROPIC_API_KEY = key
    site.judged_by(sim, 0.7, ended_at=now)
    assert "1 of today’s 2 rewards is provisional" in agrees(operator)
    settings.ANTHROPIC_API_KEY = ""
    assert "1 of today’s 2 rewards is provisional" in agrees(operator)
