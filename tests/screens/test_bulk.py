"""Correcting many sessions at once: what is shown is what comes, all or nothing, and undone to the bit."""

import datetime as dt
import re
import uuid
from collections import Counter

import pytest
import time_machine
from django.utils import timezone

from bandit.reading import posterior_of
from grading.models import Flag, Grade, Reveal, ReviewAnswer, Session
from grading.models.review import Answer
from grading.monitoring.watch import inspect_session
from grading.review import answers, bulk, claims, queue
from grading.review.corrections import CorrectionError
from grading.reward import rewards
from grading.templatetags.gradingsite_tags import mean3
from grading.vocabulary import Source
from tests.bandit.helpers import buckets
from tests.casts.page import flat
from tests.site import NOON, Site

pytestmark = pytest.mark.django_db

NOW = NOON + dt.timedelta(days=1)
BANDITS = ("category", "harness")


@pytest.fixture(autouse=True)
def clock():
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture(scope="module")
def wrong(django_db_setup, django_db_blocker):
    """Sessions of two arms and three harnesses over two weeks: a wrong history (I151). What a test does is undone."""
    with django_db_blocker.unblock(), Site().rolled_back(), time_machine.travel(NOW, tick=False):
        yield [
            Site()
            .session(arm, harness=harness, ago=dt.timedelta(days=3 * n))
            .graded(Source.JUDGE if n % 3 else Source.JOURNAL, 0.2 + 0.05 * n)
            .settle()
            .pk
            for n, (arm, harness) in enumerate(
                [("cross-repo", "claude-code"), ("code", "gptme"), ("code", "codex")] * 2
            )
        ]


@pytest.fixture
def past(wrong):
    return [Session.objects.get(pk=pk) for pk in wrong]


def all_buckets():
    return {bandit: buckets(bandit) for bandit in BANDITS}


def form(sessions, **fields):
    seen = {f"seen-{each.pk}": rewards.live(each).revision for each in sessions}
    return {"session": [each.pk for each in sessions], **seen, "answer": "grade", "reason": "merged", **fields}


def send(client, sessions, **fields) -> str:
    return flat(client.post("/review/bulk/", form(sessions, **fields), follow=True))


def shown(html: str, what: str) -> dict[str, str]:
    return dict(re.findall(rf'data-{what}="([^"]+)">([^<]+)<', html))


def now_shown() -> tuple[dict[str, str], dict[str, str]]:
    """Every arm's mean and share as a page would write them, from what is saved."""
    means, shares = {}, {}
    for bandit in BANDITS:
        outlook = posterior_of(bandit, timezone.now())
        for arm in outlook.arms:
            means[f"{bandit}/{arm}"] = mean3(outlook.arms[arm].mean)
            shares[f"{bandit}/{arm}"] = str(round(outlook.next_100(arm)))
    return means, shares


@pytest.mark.parametrize(
    "verdict", [{"value": ".85"}, {"answer": "accept"}, {"answer": "exclude"}], ids=["grade", "accept", "exclude"]
)
def test_i151_the_preview_equals_what_saving_then_gives_to_the_last_shown_digit(reviewer, past, verdict):
    held = all_buckets()
    told = send(reviewer, past, preview="yes", **verdict)
    assert all_buckets() == held
    assert not ReviewAnswer.objects.exists()
    assert f"Corrected {len(past)} sessions" in send(reviewer, past, **verdict)
    for after, what in zip(now_shown(), ("mean", "share"), strict=True):
        promised = shown(told, what)
        assert {"category/code", "category/cross-repo", "harness/gptme", "harness/codex"} <= set(promised)
        assert {arm: after[arm] for arm in promised} == promised


def test_a_bulk_keeps_of_each_session_who_said_why_and_what_it_changed_and_is_never_blind(rita, past):
    """I151: the posterior is that of a history in which only its grades existed. I146: as the rewards were on the
    screen, such an answer calibrates nothing.
    """
    bulk.submit(seen(past), rita, answer=Answer.GRADE, value=0.85, reason="merged", bulk=(named := name()))
    days = Counter((each.category.name, "human", "", each.ended_at.date()) for each in past)
    assert buckets() == sorted((*key, n, n * 850_000, n * 850_000**2) for key, n in days.items())
    given = ReviewAnswer.objects.filter(bulk=named)
    assert {(row.reviewer, row.reason, row.value) for row in given} == {(rita, "merged", 0.85)}
    assert all(row.effects["reward"]["after"] == 0.85 for row in given)
    assert set(ReviewAnswer.objects.values_list("blind_value", flat=True)) == {None}
    assert not Reveal.objects.exists()


def seen(sessions):
    return {each.pk: rewards.live(each).revision for each in sessions}


def name() -> str:
    return str(uuid.uuid4())


def test_a_form_sent_twice_saves_once_and_undoing_it_gives_back_the_exact_buckets(reviewer, past):
    before = all_buckets()
    fields = form(past, value=".85", bulk=name())
    for _ in range(2):
        html = flat(reviewer.post("/review/bulk/", fields, follow=True))
        assert "Corrected 6 sessions" in html
    assert ReviewAnswer.objects.count() == len(past)
    assert all_buckets() != before
    address = re.search(r'action="(/review/bulk/[^"]+/undo/)"', html)[1]
    assert f"Undo all {len(past)}" in html
    assert "Give a short reason" in flat(reviewer.post(address, {"reason": " "}, follow=True))
    html = flat(reviewer.post(address, {"reason": "the wrong week"}, follow=True))
    assert f"Undone. The previous rewards of {len(past)} sessions are restored exactly." in html
    assert "All of these grades were undone." in html
    assert all_buckets() == before
    again = flat(reviewer.post(address, {"reason": "x"}, follow=True))
    assert "this correction has already been undone" in again


def test_undoing_a_bulk_leaves_alone_what_was_undone_or_corrected_since(rita, past):
    bulk.submit(seen(past), rita, answer=Answer.GRADE, value=0.85, reason="merged", bulk=(named := name()))
    first, second = past[:2]
    answers.undo(first.answers.get(), rita, "a slip")
    answers.submit(second, rita, answer=Answer.GRADE, value=0.1, reason="reverted since")
    assert bulk.undo(named, rita, "the wrong week") == len(past) - 1
    assert (rewards.live(second).value, rewards.live(second).source) == (0.1, "human")
    assert rewards.live(first).source == "journal"


def test_i149_one_stale_session_keeps_all_from_being_saved_and_shows_the_difference(site, reviewer, past):
    fields = form(past, value=".85")
    site.on(past[0]).judged(0.76)
    rewards.settle(past[0])
    before = all_buckets()
    html = flat(reviewer.post("/review/bulk/", fields))
    assert f"1 of {len(past)} rewards changed while this page was open. The changes are marked below." in html
    assert '<tr class="marked">' in html
    row = html[html.index('<tr class="marked">') :].partition("</tr>")[0]
    assert ">.20<" in row
    assert ">.76<" in row
    assert f'name="seen-{past[0].pk}" value="2"' in html
    assert all_buckets() == before
    assert not ReviewAnswer.objects.exists()
    assert "Corrected 6 sessions" in send(reviewer, past, value=".85")


def test_one_session_that_refuses_keeps_all_from_being_saved(site, reviewer, past):
    floor = site.session().settle()
    html = send(reviewer, [*past, floor], answer="accept")
    assert "1 of the sessions cannot be corrected like this" in html
    assert "There is no grade to accept" in html
    assert not Grade.objects.filter(source=Source.HUMAN).exists()


def test_a_session_that_somebody_else_holds_keeps_all_from_being_saved(reviewer, omar, past):
    item = queue.add(past[0], omar, "look")
    assert claims.take(item, omar, "a page of omar's")
    assert "has claimed this session" in send(reviewer, past, value=".85")
    assert not ReviewAnswer.objects.exists()


def test_a_missing_reason_and_what_is_no_grade_get_a_clear_error(reviewer, past):
    assert "Give a short reason" in send(reviewer, past, value=".85", reason=" ")
    for value in ("NaN", "1.5", "-1", "abc", "", ".123"):
        assert "A grade is a number from 0 to 1" in send(reviewer, past, value=value), value
    assert not ReviewAnswer.objects.exists()


def test_flags_are_counted_before_and_cleared_after(site, reviewer, past):
    site.on(past[0]).with_pull_request()
    inspect_session(past[0])
    assert Flag.objects.open().count() == 1
    assert "1 flag is cleared." in send(reviewer, past[:2], value=".85", preview="yes")
    assert Flag.objects.open().count() == 1
    send(reviewer, past[:2], value=".85")
    assert Flag.objects.open().count() == 0


def test_the_preview_says_how_many_rewards_change_and_by_how_much(site, reviewer):
    chosen = [
        site.session().graded(Source.JOURNAL, 0.3).settle(),
        site.session().graded(Source.JOURNAL, 0.5).settle(),
        site.session().session,
    ]
    rewards.settle(chosen[2])
    html = send(reviewer, chosen, value=".5", preview="yes")
    assert "1 reward changes by +.20." in html
    assert "1 session gets a grade for the first time." in html
    assert "1 session keeps the same reward, which becomes final." in html
    assert "3 sessions .50" in html


def test_the_panel_alone_answers_what_is_typed(reviewer, past):
    html = send(reviewer, past, value=".85", preview="panel")
    assert html.startswith('<div data-names="Grade 6 sessions .85">')
    assert not ReviewAnswer.objects.exists()


def test_more_than_two_hundred_are_refused(reviewer, rita):
    html = flat(reviewer.get("/review/bulk/", {"session": list(range(1, 202))}))
    assert "At most 200 sessions can be corrected at once; 201 are selected" in html
    with pytest.raises(CorrectionError, match="1 to 200"):
        bulk.submit(dict.fromkeys(range(201), 1), rita, answer=Answer.ACCEPT, reason="x", bulk=name())


def test_sessions_are_ticked_in_the_list_by_those_who_may_correct(site, reviewer, client, past):
    html = flat(reviewer.get("/sessions/"))
    assert "Correct <span data-ticked>the</span> ticked…" in html
    assert "Judge ticked sessions again" not in html
    client.force_login(site.person("vera", "viewer"))
    html = flat(client.get("/sessions/"))
    assert 'name="session"' not in html
    assert client.post("/review/bulk/", form(past, value=".9")).status_code == 403


def test_a_title_in_the_bulk_page_is_text(site, reviewer):
    html = flat(
        reviewer.get(
            "/review/bulk/",
            {"session": site.session(title="<script>alert(1)</script>").graded(Source.JOURNAL, 0.32).settle().pk},
        )
    )
    assert "<script>alert(1)" not in html
