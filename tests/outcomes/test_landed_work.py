"""How much of the work landed and what a landed result cost, and the pages that show it."""

import datetime as dt

import pytest
from django.urls import reverse
from django.utils import timezone

from bandit.models import Arm
from grading.models import Repository, Session, SessionLanding
from grading.models.outcomes import LandingState
from grading.outcomes.landed_work import LandedWork, load_landed_work
from grading.roles import OPERATOR
from tests.site import NOON

pytestmark = pytest.mark.django_db
LATER = NOON + dt.timedelta(days=14)


@pytest.fixture
def worked(site):
    """Builds sessions with an outcome (None: it made no commit) that cost so many dollars."""

    def build(state, count=1, cost=1.0, landed=0, reverted=0, **fields):
        for _ in range(count):
            columns = {"cost_micro": round(cost * 1e6), "cost_unknown": ""} if cost is not None else {}
            session = site.session(**{**columns, **fields}).session
            if state is not None:
                SessionLanding.objects.create(
                    session=session, state=state, landed=landed, reverted=reverted, claimed=1, checked_at=NOON
                )

    return build


def test_both_denominators(worked):
    worked(LandingState.LANDED, 4, landed=1)
    worked(LandingState.PARTLY, 2, landed=1)
    worked(LandingState.PARTLY, 1, landed=1, reverted=1)  # some of it did not stay
    worked(LandingState.REVERTED, 1, reverted=1)
    worked(LandingState.OPEN, 4)
    worked(LandingState.UNKNOWN, 3, cost=100)
    worked(None, 6, cost=0.5)
    work = load_landed_work(Session.objects.yours(), LATER)
    assert (work.sessions, work.tried, work.unknown, work.decided, work.counted) == (21, 15, 3, 12, 18)
    assert work.share == 6 / 12
    assert work.unknown_share == 3 / 15
    assert work.usd_of_tried == 12 / 6
    assert work.usd_of_all == (12 + 6 * 0.5) / 6
    assert not work.is_least


def test_recent_sessions_do_not_count(worked):
    worked(LandingState.OPEN, ended_at=NOON + dt.timedelta(seconds=1))
    assert load_landed_work(Session.objects.yours(), LATER) == LandedWork()


def test_few_sessions_have_no_share_and_none_landed_no_cost(worked):
    worked(LandingState.OPEN, 9)
    work = load_landed_work(Session.objects.yours(), LATER)
    assert (work.share, work.usd_of_tried, work.usd_of_all) == (None, None, None)


def test_an_unknown_cost_makes_it_a_lower_bound(worked):
    worked(LandingState.LANDED, landed=1)
    worked(LandingState.LANDED, landed=1, cost=None)
    work = load_landed_work(Session.objects.yours(), LATER)
    assert (work.usd_of_all, work.is_least) == (0.5, True)


@pytest.fixture
def olga(site, client):
    person = site.person("olga", OPERATOR)
    client.force_login(person)
    return person


@pytest.mark.parametrize("bandit", ["category", "harness"])
def test_the_page_of_an_arm(client, olga, worked, bandit):
    name = {"category": "cross-repo", "harness": "claude-code"}[bandit]
    arm = Arm.objects.resolve(bandit, name)
    address = reverse("admin:arm", args=[bandit, arm.pk])
    worked(LandingState.LANDED, 3, landed=1)
    worked(LandingState.OPEN, 1, category="code", harness="gptme")
    assert client.get(address).context["work"] is None
    Repository.objects.create(name="engine", url="/srv/engine")
    assert client.get(address).context["work"].landed == 3
    assert client.get(address).context["work"].decided == 3


def test_a_merged_arm_counts_for_the_other(client, olga, worked):
    Repository.objects.create(name="engine", url="/srv/engine")
    worked(LandingState.LANDED, 1, landed=1, category="code")
    into = Arm.objects.resolve("category", "infra")
    Arm.objects.filter(bandit__name="category", name="code").update(merged_into=into)
    page = client.get(reverse("admin:arm", args=["category", into.pk]))
    assert page.context["work"].landed == 1
    assert "over sessions with commits and a known outcome (1)" in " ".join(page.content.decode().split())


def test_insight_shows_it_by_harness_and_model(client, olga, worked, site):
    from grading.insight import agents

    Repository.objects.create(name="engine", url="/srv/engine")
    now = timezone.now()
    old = now - dt.timedelta(days=20)
    worked(LandingState.LANDED, 2, landed=1, ended_at=old, model="one")
    worked(LandingState.UNKNOWN, 1, ended_at=old, model="one")
    worked(None, 1, ended_at=old, model="two", harness="gptme")
    agents.store(now)
    page = client.get("/insight/")
    rows = {(row.card.harness, row.card.model): row.work for row in page.context["agents"]}
    assert (rows["claude-code", "one"].landed, rows["claude-code", "one"].unknown) == (2, 1)
    assert ("gptme", "two") not in rows, "it has nothing to compare"
    assert "gptme with two has 0" in page.content.decode()
    assert "Cost per landed" in page.content.decode()
    narrowed = client.get("/insight/?harness=gptme")
    assert "Cost per landed" not in narrowed.content.decode()
