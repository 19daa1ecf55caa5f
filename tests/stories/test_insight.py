"""A new version of the harness arrives on 12 November: the same work gets worse, while there is more of the easy work.

Before, half of the sessions are code at .70 and half are news at .40: a mean of .55. From the 13th on, three quarters are
code at .62 and a quarter is news at .32: a mean of .545. By Shapley, the mix added .25 · (.30 + .30) / 2 = .075, and the
results on like work took .08 away.
"""

import datetime as dt

import pytest
import time_machine

from grading import review
from grading.insight import agents, since
from grading.models import Session, SessionFacts
from tests.browser.watch import listen, log_in
from tests.site import Site

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ARRIVAL = dt.date(2026, 11, 12)
# Two weeks after it.
NOW = dt.datetime(2026, 11, 26, 12, tzinfo=dt.UTC)
OLD, NEW = "2.1.9", "2.1.14"
LEVELS = {"code": 0.70, "news": 0.40}
FALL = 0.08
# Twelve sessions a day: of code and news, before and after.
BEFORE, AFTER = {"code": 6, "news": 6}, {"code": 9, "news": 3}
# In turn, so that each day has the same mean.
WAVE = (-0.1, 0.0, 0.1)


def live() -> None:
    """The sessions of four weeks, judged; on the day of the arrival nobody works."""
    for ago in range(28, 0, -1):
        day = NOW - dt.timedelta(days=ago)
        is_new = day.date() >= ARRIVAL
        for category, count in (AFTER if is_new else BEFORE).items():
            for number in range(count):
                value = LEVELS[category] - (FALL if is_new else 0) + WAVE[number % 3]
                builder = Site().session(category, ended_at=day + dt.timedelta(minutes=number))
                session = builder.judged(round(value, 2)).settle()
                SessionFacts.objects.update_or_create(
                    session=session, defaults={"harness_version": NEW if is_new else OLD}
                )


def figures(page) -> dict[str, str]:
    """What the card says by part: "Mix": "+.075"."""
    titles = page.locator("#change .parts > div > .t12").all_inner_texts()
    values = page.locator("#change .parts > div > .big").all_inner_texts()
    return {title.strip(): value.strip() for title, value in zip(titles, values, strict=True)}


def test_a_version_arrives(live_site, page):
    """The page says that like work got worse and that the mix got better, names the version, and follows corrections."""
    with time_machine.travel(NOW):
        live()
        since.store(NOW)
        agents.store(NOW)
        rita = Site().person("rita", "reviewer")
        complaints = listen(page)
        log_in(page, "rita")
        page.goto("/insight/")
        mark = f"claude-code {NEW}"
        assert mark in page.inner_text("#effects")
        page.locator("#effects li", has_text=mark).get_by_role("link", name="Before and after").click()
        page.wait_for_selector("#change")
        print(figures(page), page.inner_text("#change"), page.inner_text("#effects"))
        for session in Session.objects.filter(ended_at__date__gt=ARRIVAL, category__name="code").order_by("pk")[:10]:
            review.record_correction(session, rita, value=round(session.reward_value + 0.2, 2), reason="it works")
        page.reload()
        print(figures(page), page.inner_text("#change"))
        assert complaints == []
        raise AssertionError
