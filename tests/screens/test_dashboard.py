"""The dashboard: every figure leads to exactly the rows that it counts; nothing gives the judge away."""

import datetime as dt
import re

import pytest
from django.utils import timezone

from bandit import selection
from grading.judging.allowance import budget
from grading.models import Alarm, Flag, ReviewItem
from grading.models.judging import AttemptOutcome, Purpose
from grading.models.quota import QuotaState
from grading.monitoring.judges import judge_out
from grading.review import queue, trust
from grading.review.filters import QueueFilters, waiting
from grading.review.trust import Behind
from grading.screens.dashboard.starving import starving
from grading.vocabulary import Outcome, Reason, Source
from tests.casts import quota as quota_cast
from tests.casts.page import flat

pytestmark = pytest.mark.django_db

GRADER = {"model": "claude-sonnet-5-5", "route": "api", "rubric": "a" * 64, "version": "judge/1"}


@pytest.fixture
def rita(client, rita):
    client.force_login(rita)
    return rita


def settled(site, *, days=0, flagged=False, **values):
    """A session that ended so many days ago with these grades; the queue has looked at it."""
    builder = site.session(ended_at=timezone.now() - dt.timedelta(days=days), **values.pop("fields", {}))
    for source, value in values.items():
        builder.graded(source, value, **GRADER if source == Source.JUDGE else {})
    if flagged:
        Flag.objects.create(session=builder.session, rule="A1", detail="1 pull request, and only the journal")
    return builder.settle()


@pytest.fixture
def mixed(site, rita):
    """Of everything something: days, sources, flags, no reward at all."""
    for days in (0, 0, 1, 6, 7, 13, 20):
        settled(site, days=days, judge=0.7)
        settled(site, days=days, judge=0.7, flagged=True)
        settled(site, days=days, trajectory=0.4)
        settled(site, days=days, journal=0.3, flagged=True)
        settled(site, days=days)
    settled(site, consumption=0.6)
    settled(site, fields={"outcome": Outcome.INFRASTRUCTURE, "outcome_reason": "login expired"})
    session = settled(site, judge=0.7)
    site.on(session).graded(Source.HUMAN, None, Reason.EXCLUDED, author=rita).settle()
    ahead = settled(site, trajectory=0.4, days=-0.9)
    assert ahead


def listed(client, behind):
    return client.get(f"/sessions/?behind={behind}").context_data["page"].count


def test_every_figure_leads_to_as_many_rows_as_it_says(mixed, client, settings):
    quota_cast.use(settings)
    figures = trust.trust()
    said = {
        Behind.HOLDS: figures.validity.part,
        Behind.DOUBTED: figures.validity.rest,
        Behind.GRADED: figures.coverage.part,
        Behind.FLOOR: figures.coverage.rest,
        Behind.TODAY: figures.provisional_today.whole + figures.ungraded_today,
        Behind.PROVISIONAL: figures.provisional_today.part,
        Behind.UNGRADED: figures.ungraded_today,
        Behind.WAITING: figures.waiting,
        Behind.COMPARED: 0,
    }
    assert min(said[each] for each in (Behind.HOLDS, Behind.DOUBTED, Behind.GRADED, Behind.FLOOR)) > 0
    assert {each: listed(client, each) for each in said} == said
    html = flat(client.get("/"))
    for each in (*list(said)[:4], Behind.PROVISIONAL, Behind.UNGRADED, Behind.WAITING, Behind.COMPARED):
        assert f'href="/sessions/?behind={each}"' in html, each


def test_a_list_of_a_figure_says_what_it_lists_and_keeps_to_it(mixed, client):
    html = client.get("/sessions/?behind=doubted").content.decode()
    assert "Only unreliable grades of the last 7 days" in html
    assert '<input type="hidden" name="behind" value="doubted"' in html
    assert "Filter ignored." in client.get("/sessions/?behind=nonsense").content.decode()


def test_the_seven_days_and_today_begin_at_the_sites_midnight(site, rita, settings):
    settled(site, judge=0.7, fields={})
    figures = trust.trust(timezone.now() + dt.timedelta(days=6))
    assert (figures.coverage.whole, figures.provisional_today.whole) == (1, 0)
    assert trust.trust(timezone.now() + dt.timedelta(days=7)).coverage.whole == 0


def test_sessions_that_wait_are_counted_apart_from_further_opinions(site, rita, client, settings):
    quota_cast.use(settings)
    for purpose in (Purpose.VERDICT, Purpose.REPEAT, Purpose.SECOND):
        job = site.on(session := settled(site, judge=0.7)).with_judge_job().job
        type(job).objects.filter(pk=job.pk).update(purpose=purpose)
    site.on(session).with_judge_job()
    html = flat(client.get("/"))
    assert "2 <small>sessions</small>" in html
    assert "2 further opinions also waiting" in html
    assert listed(client, Behind.WAITING) == 2


def test_the_money_leads_to_the_calls_and_an_unknown_cost_is_not_nothing(site, rita, client):
    now = timezone.now()
    client.force_login(site.person("olga", "operator"))
    html = flat(client.get("/"))
    assert "no calls today" in html
    job = quota_cast.job(now)
    quota_cast.attempt(job, now, AttemptOutcome.GRADED, cost_usd=None, estimated_usd=0.05)
    html = flat(client.get("/"))
    figure = html[html.index("Spent today") :][:600]
    assert ">–<" in re.sub(r"\s+", "", figure)
    assert "1 of unknown cost" in figure
    assert "$0" not in figure
    quota_cast.attempt(job, now)
    quota_cast.attempt(job, now, AttemptOutcome.DEFERRED, Reason.OVERLOADED)
    budget.set_policy(by=None, daily_budget_usd=5)
    figure = (html := flat(client.get("/")))[html.index("Spent today") :][:700]
    assert "of $5.00" in figure
    assert "3 calls, 1 paid at 4.6 ¢ on average; 1 of unknown cost" in figure
    assert client.get("/quota/costs/?days=1").context_data["page"].paginator.count == 3


def test_judge_against_human_leads_to_its_pairs(site, rita, client):
    for gap in (0.1, -0.3):
        site.on(settled(site, judge=0.5 + gap)).answered_blind(rita, 0.5)
    site.on(settled(site, judge=0.9)).answered_blind(rita, 0.1, slice_probability=None)
    html = flat(client.get("/"))
    assert ".20<small>mean error</small>" in html
    assert "bias −.10 over 2 blind pairs" in html
    assert listed(client, Behind.COMPARED) == 2


def test_the_button_leads_to_exactly_as_many_items_as_it_names(site, rita, client, settings):
    quota_cast.use(settings)
    for _ in range(3):
        session = settled(site, journal=0.3)
        site.on(session).with_pull_request()
        queue.recheck(session)
    queue.recheck(settled(site, journal=0.3))
    html = flat(client.get("/"))
    assert "3 rewards contradict a commit or a pull request" in html
    assert '<a class="btn primary" href="/review/?rule=A1">Review the three</a>' in html
    assert waiting(rita, QueueFilters(rule="A1")).count() == 3
    assert html.count('class="btn primary"') == 1


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (QuotaState.EXHAUSTED, "The judge has been out since"),
        (QuotaState.PAUSED, "The judge has been paused since"),
        (QuotaState.MISCONFIGURED, "The judge has been misconfigured since"),
    ],
)
def test_what_keeps_the_judge_from_answering_is_named(site, rita, client, settings, state, said):
    quota_cast.use(settings)
    settled(site, journal=0.3)
    quota_cast.quota(state)
    html = flat(client.get("/"))
    assert f'<em class="no">Not fully.</em> {said}' in html
    assert "1 reward is provisional" in html or "today’s only reward is provisional" in html


def item(session, **fields):
    return ReviewItem.objects.create(session=session, **{"entered_as": "rule", "why": "PR #619", **fields})


def test_the_queue_card_gives_no_answer_of_a_judge_away(site, rita, client):
    """Neither where it decides, nor where it was beaten, nor where it stands beside the chain."""
    for session in (
        settled(site, judge=0.73),
        settled(site, judge=0.31, consumption=0.62),
        settled(site, journal=0.27),
    ):
        item(session)
    beside = settled(site, journal=0.44)
    site.on(beside).judged(0.91, parallel=True, **GRADER)
    item(beside)
    html = flat(client.get("/"))
    card = html[html.index("<h2>Review queue</h2>") : html.index("<h2>Neglected ")]
    assert card.count('title="Hidden until you grade">?<') == 3
    assert re.findall(r">(\.\d\d)<", card) == [".27"]


def test_the_queue_card_shows_five_by_impact_and_counts_the_rest(site, rita, client):
    for number in range(7):
        by_chance = number >= 5
        at = timezone.now() - dt.timedelta(hours=5 - number)
        fields = {"entered_as": "slice", "why": ""} if by_chance else {}
        item(settled(site, journal=0.3), impact=number, entered_at=at, **fields)
    html = flat(client.get("/"))
    card = html[html.index("<h2>Review queue</h2>") : html.index("<h2>Neglected ")]
    assert "7 waiting, 5 put first, oldest 5 h" in card
    assert card.count("<li>") == 5
    assert "random check" not in card


def test_a_starving_arm_links_to_exactly_its_missing_grades(site, rita, client):
    for values in ({"judge": 0.7}, {"judge": 0.6}, {"journal": 0.3}, {}, {"trajectory": 0.4}):
        settled(site, **values, fields={"category": "infra"})
    settled(site, days=20, fields={"category": "infra"})
    settled(site, fields={"category": "code"}, judge=0.5)
    found = {each.arm: each for each in starving(trust.trust(), timezone.now())}
    assert found["infra"].why == "3 of 5 grades in 14 days are provisional or missing."
    assert found["infra"].link == "Review these three"
    assert client.get(found["infra"].url).context_data["page"].count == 3
    assert "missing" not in found.get("code", found["infra"]).why or "code" not in found
    assert "Review these three" in flat(client.get("/"))


def test_arms_are_not_called_chosen_before_a_decision_was_made(site, rita, client):
    """The card of arms says that no decision has been made, until one has."""
    for harness in ("claude-code", "codex"):
        settled(site, judge=0.7, fields={"category": "infra", "harness": harness})
    assert "Every arm is chosen often enough" not in (html := flat(client.get("/")))
    assert "No bandit has chosen an arm yet" in html
    selection.select(bandit="category", decision_id="d-1", agent="bob", supply=None, now=timezone.now())
    assert "Every arm is chosen often enough" in (html := flat(client.get("/")))
    assert "No bandit has chosen an arm yet" not in html


def test_an_empty_site_has_no_number_that_is_not_there(site, client):
    client.force_login(site.person("olga", "operator"))
    html = flat(client.get("/"))
    assert "No rewards yet." in html
    assert '<a class="btn primary" href="/settings/judge/">Set the key</a>' in html
    assert html.count('class="btn primary"') == 1
    assert html.count('class="big"') == 6
    figures = html.partition("card figs")[2].partition("cols-wide")[0]
    assert len(re.findall(r'class="big"[^>]*>–', figures)) == 5
    assert "%" not in figures


def test_an_alarm_beside_the_first_steps_is_listed(site, client, settings):
    """An alarm of the second judge does not make the answer bad, and the first steps don't hide it."""
    quota_cast.use(settings)
    quota_cast.quota()
    site.session(ended_at=timezone.now()).with_work().enqueue()
    Alarm.objects.create(rule=judge_out.id, about="the second judge", detail="No quota is left")
    client.force_login(site.person("olga", "operator"))
    page = client.get("/")
    assert page.context["checklist"]
    assert page.context["backlog"]
    assert not page.context["answer"].is_bad
    main = flat(page).partition("<main")[2]
    assert "all alarms</a>" in main
    assert "The judge is out" in main
