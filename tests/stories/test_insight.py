"""A new version of the harness arrives on 12 November: the same work gets worse, and there is more of the easy work.

Before, half of the sessions are code at .70 and half news at .40: a mean of .55. Since then, three quarters are code
at .62 and a quarter is news at .32: a mean of .545. By Shapley, the mix added .25 · (.30 + .30) / 2 = .075, and the
results on like work took .08 away.
"""

import datetime as dt

import pytest
import time_machine

from grading.insight import agents, since
from grading.models import Session, SessionFacts
from grading.review import corrections
from tests.browser.watch import listen, log_in
from tests.site import Site

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

ARRIVAL = dt.date(2026, 11, 12)
# Two weeks after it.
NOW = dt.datetime(2026, 11, 26, 12, tzinfo=dt.UTC)
OLD, NEW = "2.1.9", "2.1.14"
LEVELS = {"code": 0.70, "news": 0.40}
FALL = 0.08
# Twelve sessions a day.
BEFORE, SINCE = {"code": 6, "news": 6}, {"code": 9, "news": 3}
# In turn, so that each day has the same mean.
WAVE = (-0.1, 0.0, 0.1)
CORRECTED, RISE = 10, 0.2


def live() -> None:
    """Four weeks of judged sessions, until yesterday."""
    for ago in range(28, 0, -1):
        day = NOW - dt.timedelta(days=ago)
        is_new = day.date() >= ARRIVAL
        for category, count in (SINCE if is_new else BEFORE).items():
            for number in range(count):
                value = LEVELS[category] - (FALL if is_new else 0) + WAVE[number % 3]
                builder = Site().session(category, ended_at=day + dt.timedelta(minutes=number))
                session = builder.judged(round(value, 2)).settle()
                facts = {"harness_version": NEW if is_new else OLD}
                SessionFacts.objects.update_or_create(session=session, defaults=facts)


def figures(page) -> dict[str, str]:
    """What the card says of each period and part: "Mix": "+.075"."""
    titles = page.locator("#change .parts > div > .t12").all_inner_texts()
    values = page.locator("#change .parts > div > .big").all_inner_texts()
    return {title.strip(): value.strip() for title, value in zip(titles, values, strict=True)}


def test_a_version_arrives(live_site, page):
    """The page names the version, says that like work got worse while the mix got better, and follows corrections.

    The sessions of a month and a browser take half a minute.
    """
    with time_machine.travel(NOW):
        live()
        since.store(NOW)
        agents.store(NOW)
        rita = Site().person("rita", "reviewer")
        complaints = listen(page)
        log_in(page, "rita")
        page.goto("/insight/")
        row = page.locator("#effects li", has_text=f"Claude Code {NEW}, 12 Nov")
        assert "reward is lower on comparable work: −.080" in row.inner_text()
        assert "because" not in row.inner_text().replace("because too few tasks recur", "")

        row.get_by_role("link", name="Before and after").click()
        page.wait_for_url("**mark=version**")
        before, since_then = "Mean, 29 Oct – 11 Nov", "Mean, 13–26 Nov"
        shown = figures(page)
        assert (shown[before], shown[since_then], shown["Mix"], shown["Within"]) == (".550", ".545", "+.075", "−.080")
        lead = page.inner_text("#change .lead-line")
        assert "other results on comparable work take .080 away" in lead
        assert "other work adds .075" in lead

        # Ten of 156 sessions rise by .2: the mean by 10 · .2 / 156 = .0128, to .5578.
        after_arrival = Session.objects.filter(ended_at__date__gt=ARRIVAL, category__name="code")
        for session in after_arrival.order_by("pk")[:CORRECTED]:
            value = round(session.reward_value + RISE, 2)
            corrections.record_correction(session, rita, value=value, reason="it works")
        page.reload()
        shown = figures(page)
        assert (shown[before], shown[since_then]) == (".550", ".558")
        assert page.locator("#change .parts > div").last.inner_text().count("+.008") == 1

        # The number opens its sessions.
        page.get_by_role("link", name="156 of 156").click()
        page.wait_for_url("**/sessions/**")
        assert "156 matches" in page.inner_text(".lede")
        assert complaints == []
