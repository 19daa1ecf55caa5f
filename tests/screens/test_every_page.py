"""What every page has in common: login, roles, the content policy, the alarm banner, the judge's state."""

import datetime as dt
import re

import pytest
from django.utils import timezone

from grading import monitoring
from grading.intake.submission import SubmittedSession
from grading.models import Agent, Alarm, ApiToken, Quota, Session
from grading.models.quota import QuotaState
from grading.screens.context import judge_state
from grading.screens.site import NO_PAGES, SCREENS
from grading.vocabulary import Reason
from tests import cast
from tests.addresses import Kind, of_kind
from tests.casts.page import flat

pytestmark = pytest.mark.django_db

PAGES = (
    "/", "/sessions/", "/bandits/category/", "/bandits/harness/", "/quota/", "/alarms/", "/review/", "/settings/",
    "/calibration/", "/settings/notices/",
)  # fmt: skip
OPERATOR_PAGES = (
    "/connect/", "/samples/", "/grading/agent/", "/grading/agent/add/", "/grading/apitoken/", "/grading/artifactrule/",
    "/rubrics/", "/bandit/arm/", "/bandit/ledgerentry/",
)  # fmt: skip


def entered(client, role):
    client.force_login(cast.person(role, role))
    return client


def test_what_holds_for_everybody_is_read_for_pages_alone():
    others = set(of_kind(Kind.PART, Kind.DATA, Kind.FILE, Kind.MOVED))
    assert {f"admin:{name}" for _, name, view, _ in SCREENS if view in NO_PAGES} == {
        name for _, short, _, _ in SCREENS if (name := f"admin:{short}") in others
    }


@pytest.mark.parametrize("path", [*PAGES, "/connect/", "/sessions/1/", "/grading/agent/"])
def test_a_stranger_is_sent_to_the_login(client, path):
    response = client.get(path)
    assert response.status_code == 302
    assert response["Location"].startswith("/login/")


@pytest.mark.parametrize("role", ["viewer", "reviewer", "operator"])
@pytest.mark.parametrize("path", PAGES)
def test_every_role_reads_every_screen(client, role, path):
    assert entered(client, role).get(path).status_code == 200


@pytest.mark.parametrize("path", OPERATOR_PAGES)
def test_an_operator_runs_the_site(client, path):
    assert entered(client, "operator").get(path).status_code == 200


@pytest.mark.parametrize("path", ["/connect/", "/samples/", "/grading/agent/add/", "/auth/user/"])
@pytest.mark.parametrize("role", ["viewer", "reviewer"])
def test_others_do_not(client, role, path):
    response = entered(client, role).get(path)
    assert response.status_code == 403
    assert "Your role does not allow" in flat(response)


def test_a_login_without_a_role_sees_nothing(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("nobody", is_staff=True))
    assert client.get("/").status_code == 403


def test_the_first_bandit_is_shown(client):
    assert entered(client, "viewer").get("/bandits/")["Location"] == "/bandits/category/"


@pytest.mark.parametrize("path", ["/nothing-here/", "/bandits/nothing/", "/sessions/99999/"])
def test_an_unknown_address_is_a_page_of_the_site(client, path):
    response = entered(client, "viewer").get(path)
    assert response.status_code == 404
    assert "There is no such page" in flat(response)


@pytest.mark.parametrize("path", [*PAGES, *OPERATOR_PAGES, "/login/", "/password_change/", "/nothing/"])
def test_pages_hold_the_content_policy(client, path):
    """No inline script, style or handler in any page, so that a policy without `unsafe-inline` holds."""
    entered(client, "operator")
    if path == "/login/":
        client.logout()
    response = client.get(path)
    policy = response["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    html = flat(response)
    assert not re.findall(r"<style|\sstyle=|\son[a-z]+=|javascript:", html)
    assert not [tag for tag in re.findall(r"<script[^>]*>", html) if "src=" not in tag]


def test_an_open_alarm_stands_on_every_page_until_it_is_acknowledged_by_name(client):
    alarm = Alarm.objects.create(rule=monitoring.IMPOSSIBLE_PAIR, detail="3 sessions in seven days")
    entered(client, "reviewer")
    for path in (*PAGES, "/password_change/"):
        html = flat(client.get(path))
        assert 'class="banner" role="alert"' in html
        assert "3 sessions in seven days" in html
        assert "Acknowledge as reviewer" in html
    response = client.post(f"/alarms/{alarm.pk}/acknowledge/", follow=True)
    html = flat(response)
    assert "A1 is acknowledged by you" in html
    assert "Acknowledged by reviewer" in html
    assert 'class="banner" role="alert"' not in html
    assert "Somebody else acknowledged A1 first" in flat(client.post(
        f"/alarms/{alarm.pk}/acknowledge/", follow=True
    ))  # fmt: skip


def test_acknowledging_needs_a_post_and_a_role(client):
    alarm = Alarm.objects.create(rule="A1", detail="x")
    assert entered(client, "reviewer").get(f"/alarms/{alarm.pk}/acknowledge/").status_code == 405
    client.force_login(cast.person("vera", "viewer"))
    assert client.post(f"/alarms/{alarm.pk}/acknowledge/").status_code == 403
    assert "Acknowledge as" not in flat(client.get("/"))


def test_acknowledging_leads_back_but_never_to_another_site(client):
    alarm = Alarm.objects.create(rule="A1", detail="x")
    entered(client, "reviewer")
    url = f"/alarms/{alarm.pk}/acknowledge/"
    assert client.post(url, headers={"referer": "http://testserver/quota/"})["Location"].endswith("/quota/")
    assert client.post(url, headers={"referer": "https://evil.test/"})["Location"] == "/alarms/"


def quota(state, **fields):
    return Quota(key="k", model="m", state=state, **fields)


def test_the_pill_says_what_the_judge_can_do(settings):
    assert judge_state(None).words == "No judge yet"
    assert judge_state(quota(QuotaState.OPEN)).words == "Judge open"
    assert judge_state(quota(QuotaState.PACING)).words == "Judge paced"
    assert judge_state(quota(QuotaState.MISCONFIGURED)).trouble
    assert judge_state(quota(QuotaState.EXHAUSTED)).words == "Judge out"
    midnight = timezone.now().replace(hour=0, minute=0, second=0)
    assert judge_state(quota(QuotaState.EXHAUSTED, until=midnight)).words == "Judge out, asking again"
    midnight += dt.timedelta(days=1)
    assert judge_state(quota(QuotaState.EXHAUSTED, until=midnight)).words == "Judge out until 00:00 UTC"
    assert judge_state(quota(QuotaState.EXHAUSTED, reason=Reason.BUDGET_SPENT)).words == "Budget spent"
    assert judge_state(quota(QuotaState.PAUSED)).words == "Judge paused"
    settings.SIMULATED = True
    assert judge_state(quota(QuotaState.OPEN)).words == "Judge open, simulated"


def test_a_simulated_judge_is_named_on_every_page(client, settings):
    settings.SIMULATED = True
    entered(client, "viewer")
    for path in PAGES:
        assert "<strong>Simulated.</strong>" in flat(client.get(path))


def test_samples_are_announced_and_an_operator_may_remove_them(client):
    cast.session(is_sample=True)
    entered(client, "viewer")
    assert "1 sample session shows how the pages look" in flat(client.get("/"))
    assert 'href="/samples/"' not in flat(client.get("/"))
    client.force_login(cast.person("olga", "operator"))
    assert 'href="/samples/"' in flat(client.get("/"))
    assert "Remove 1 sample session</button>" in flat(client.get("/samples/"))


def test_removing_samples_takes_them_and_nothing_else(client):
    cast.session(is_sample=True)
    kept = cast.session()
    html = flat(entered(client, "operator").post("/samples/", follow=True))
    assert "1 sample session is gone" in html
    assert list(Session.objects.all()) == [kept]


def test_a_new_agent_gets_a_token_that_is_shown_once_and_works(client):
    entered(client, "operator")
    html = flat(client.post("/connect/", {"agent": "bob", "note": "laptop"}))
    secret = re.search(r'id="token">(gs_[\w-]+)<', html).group(1)
    token = ApiToken.objects.authenticate(secret)
    assert (token.agent.name, token.note, token.created_by.username) == ("bob", "laptop", "operator")
    assert secret not in flat(client.get("/connect/"))
    assert secret not in flat(client.get(f"/grading/apitoken/{token.pk}/change/"))
    client.post("/connect/", {"agent": "bob"})
    assert Agent.objects.count() == 1


def test_an_impossible_agent_name_is_refused_in_words(client):
    html = flat(entered(client, "operator").post("/connect/", {"agent": "bob <script>"}))
    assert "A name of letters, digits" in html
    assert not Agent.objects.exists()


def test_a_revoked_token_opens_nothing(client):
    token, secret = ApiToken.objects.issue(cast.agent())
    entered(client, "operator")
    client.post("/grading/apitoken/", {"action": "revoke", "_selected_action": [token.pk]})
    assert ApiToken.objects.authenticate(secret) is None


def test_dashboard_of_an_empty_site_says_what_to_do_first(client):
    html = flat(entered(client, "operator").get("/"))
    assert "Nothing to trust yet." in html
    assert '<a class="btn primary" href="/settings/judge/">' in html
    assert 'href="/connect/"' in html
    assert html.count(">–") >= 4


def test_what_the_connect_page_points_to_is_there(client):
    html = flat(entered(client, "operator").get("/connect/"))
    for path in ("/agent/submit_session.py", "/api/v1/docs"):
        assert f'href="{path}"' in html
        assert client.get(path).status_code == 200


def test_the_connect_page_pastes_metadata_that_the_api_takes(client):
    html = flat(entered(client, "operator").get("/connect/"))
    pasted = re.search(r"metadata=(\{.*?\})", html).group(1).replace("&quot;", '"')
    assert SubmittedSession.model_validate_json(pasted).category == "code"
