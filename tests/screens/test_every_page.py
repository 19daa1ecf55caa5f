"""What every page has in common: login, roles, the content policy, the alarm banner, the judge's state."""

import datetime as dt
import re

import pytest
from django.utils import timezone

from grading.intake.submission import SubmittedSession
from grading.models import Agent, Alarm, ApiToken, Quota, Session
from grading.models.quota import QuotaState
from grading.monitoring.judges import judge_out
from grading.monitoring.sessions import impossible_pair
from grading.screens.quota.judge_state import judge_state
from grading.vocabulary import Reason
from tests import addresses
from tests.addresses import ADDRESSES, Kind, World, of_kind
from tests.casts.page import flat
from tests.page_checks import markup_faults
from tests.site import Site

pytestmark = pytest.mark.django_db
TAG = re.compile(r"<[^>]*>")
# Alarm rules have names on pages; their codes are for settings, files and documents.
RULE_CODE = re.compile(r"\bA(?:[1-9]|[1-4]\d|5[0-2])\b")


def entered(client, role):
    client.force_login(Site().person(role, role))
    return client


def test_what_a_role_does_not_allow_is_refused_in_words(client):
    response = entered(client, "reviewer").get("/connect/")
    assert response.status_code == 403
    assert "Your role does not include" in flat(response)


def test_a_login_without_a_role_sees_nothing(client, django_user_model):
    client.force_login(django_user_model.objects.create_user("nobody", is_staff=True))
    assert client.get("/").status_code == 403


def test_the_first_bandit_is_shown(client):
    assert entered(client, "viewer").get("/bandits/")["Location"] == "/bandits/category/"


@pytest.mark.parametrize("path", ["/nothing-here/", "/bandits/nothing/", "/sessions/99999/"])
def test_an_unknown_address_is_a_page_of_the_site(client, path):
    response = entered(client, "viewer").get(path)
    assert response.status_code == 404
    assert "Page not found" in flat(response)
    assert markup_faults(response) == []


def pages_without_a_row() -> list[str]:
    """The addresses of the pages that are about no row, and so are there on an empty site."""
    names = set(of_kind(Kind.PAGE)) - set(addresses.PROGRAMS) - {"admin:quota_pause"}  # there is no judge to pause
    names = [name for name in names if not ADDRESSES[name].of and not ADDRESSES[name].inside]
    return [addresses.url(name, World(rows={})) for name in names]


def test_every_page_of_an_empty_site_is_there_with_the_alarm_and_the_simulated_judge(
    client, django_user_model, settings
):
    """Nothing but an open alarm is there. For everybody else, and with something of everything: the role matrix."""
    settings.SIMULATED = True
    Alarm.objects.create(rule=impossible_pair.id, detail="3 sessions in seven days")
    client.force_login(django_user_model.objects.create_superuser("root", password="correct horse battery"))
    everywhere = {
        "the alarm": 'class="banner" role="alert"',
        "its detail": "3 sessions in seven days",
        "its button": "Acknowledge as root",
        "the simulated judge": "<strong>Simulated.</strong>",
    }
    wrong = {}
    for url in pages_without_a_row():
        response = client.get(url)
        html = flat(response)
        missing = [what for what, text in everywhere.items() if text not in html]
        codes = [] if url.startswith("/about/") else RULE_CODE.findall(TAG.sub(" ", html))
        faults = [*missing, *codes, *markup_faults(response)]
        wrong[url] = [*faults, *([] if response.status_code == 200 else ["no page"])]
    assert len(wrong) > 40
    assert not {url: found for url, found in wrong.items() if found}


def test_an_alarm_stands_on_every_page_until_it_is_acknowledged_by_name(client):
    alarm = Alarm.objects.create(rule=judge_out.id, detail="No quota is left")
    entered(client, "reviewer")
    assert "Acknowledge as reviewer" in flat(client.get("/sessions/"))
    html = flat(client.post(f"/alarms/{alarm.pk}/acknowledge/", follow=True))
    assert "Acknowledged by you: The judge is out" in html
    assert "Acknowledged by reviewer" in html
    assert 'class="banner" role="alert"' not in html
    html = flat(client.post(f"/alarms/{alarm.pk}/acknowledge/", follow=True))
    assert "Somebody else acknowledged this alarm first: The judge is out" in html


def test_acknowledging_needs_a_post_and_a_role(client):
    alarm = Alarm.objects.create(rule="A1", detail="x")
    assert entered(client, "reviewer").get(f"/alarms/{alarm.pk}/acknowledge/").status_code == 405
    client.force_login(Site().person("vera", "viewer"))
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
    assert judge_state(None).text == "No judge"
    assert judge_state(quota(QuotaState.OPEN)).text == "Judge has not answered yet"
    assert judge_state(quota(QuotaState.OPEN, limits_at=timezone.now())).text == "Judge open"
    assert judge_state(quota(QuotaState.PACING)).text == "Judge paced"
    assert judge_state(quota(QuotaState.MISCONFIGURED)).trouble
    assert judge_state(quota(QuotaState.EXHAUSTED)).text == "Judge out"
    midnight = timezone.now().replace(hour=0, minute=0, second=0)
    assert judge_state(quota(QuotaState.EXHAUSTED, until=midnight)).text == "Judge out, asking again"
    midnight += dt.timedelta(days=1)
    assert judge_state(quota(QuotaState.EXHAUSTED, until=midnight)).text == "Judge out until 00:00 UTC"
    assert judge_state(quota(QuotaState.EXHAUSTED, until=midnight)).short == "Out to 00:00"
    assert judge_state(quota(QuotaState.EXHAUSTED, reason=Reason.BUDGET_SPENT)).text == "Budget spent"
    assert judge_state(quota(QuotaState.PAUSED)).text == "Judge paused"
    settings.SIMULATED = True
    assert judge_state(quota(QuotaState.OPEN, limits_at=timezone.now())).text == "Judge open, simulated"


def test_samples_are_announced_and_an_operator_may_remove_them(client):
    Site().session(is_sample=True)
    entered(client, "viewer")
    assert "1 sample session shows how the pages look" in flat(client.get("/"))
    assert 'href="/samples/"' not in flat(client.get("/"))
    client.force_login(Site().person("olga", "operator"))
    assert 'href="/samples/"' in flat(client.get("/"))
    assert "Remove 1 sample session</button>" in flat(client.get("/samples/"))


def test_removing_samples_takes_them_and_nothing_else(client):
    Site().session(is_sample=True)
    kept = Site().session().session
    html = flat(entered(client, "operator").post("/samples/", follow=True))
    assert "1 sample session was removed" in html
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
    token, secret = ApiToken.objects.issue(Site().agent())
    entered(client, "operator")
    client.post("/grading/apitoken/", {"action": "revoke", "_selected_action": [token.pk]})
    assert ApiToken.objects.authenticate(secret) is None


def test_dashboard_of_an_empty_site_says_what_to_do_first(client):
    html = flat(entered(client, "operator").get("/"))
    assert "No rewards yet." in html
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
