"""Who may open and do what: every screen of the site, for a stranger and each of the three roles."""

import pytest
from django.contrib.auth.models import Permission
from django.urls import reverse

from grading import monitoring, rewards
from grading.admin.site import SCREENS
from grading.core.vocabulary import Source
from grading.models import Alarm, Grade, JudgeRun, Rubric, Settlement
from grading.roles import OPERATOR, PERMISSIONS, REVIEWER, VIEWER
from tests import cast

pytestmark = pytest.mark.django_db

READS = {"sessions", "session", "bandits", "bandit", "quota", "costs", "costs_csv", "alarms", "review", "settings"}
READS |= {"rubrics", "rubric", "rubric_try", "runs", "run", "run_progress"}
CORRECTS = {"correct", "preview", "undo", "alarm_acknowledge"}
RUNS = {"connect", "samples", "rubric_edit", "rubric_activate", "run_plan", "run_cancel"}
RUNS |= {"quota_pause", "quota_resume", "quota_probe", "quota_policy"}
MAY = {VIEWER: READS, REVIEWER: READS | CORRECTS, OPERATOR: READS | CORRECTS | RUNS}


@pytest.fixture
def addresses():
    """Every screen's address, for a session that a person graded and an open alarm."""
    session = cast.session()
    given = cast.grade(session, Source.HUMAN, 0.8, author=cast.person("olga", OPERATOR))
    rewards.settle(session)
    alarm = Alarm.objects.create(rule=monitoring.IMPOSSIBLE_PAIR, detail="three")
    rubric = Rubric.objects.get()
    run = JudgeRun.objects.create(rubric=rubric)
    arguments = {
        "undo": {"pk": given.pk},
        "alarm_acknowledge": {"pk": alarm.pk},
        "bandit": {"name": "category"},
        **{name: {"pk": rubric.pk} for name in ("rubric", "rubric_try", "rubric_edit", "rubric_activate")},
        **{name: {"pk": run.pk} for name in ("run", "run_progress", "run_cancel")},
        **{name: {"pk": session.pk} for name in ("session", "correct", "preview")},
    }
    names = [name for _route, name, _view, _need in SCREENS]
    return {name: reverse(f"admin:{name}", kwargs=arguments.get(name)) for name in names}


def test_this_file_names_every_screen():
    assert {name for _route, name, _view, _need in SCREENS} == READS | CORRECTS | RUNS


@pytest.mark.parametrize("role", [VIEWER, REVIEWER, OPERATOR])
def test_a_role_opens_its_screens_and_no_others(client, addresses, role):
    client.force_login(cast.person("rita", role))
    for name, address in addresses.items():
        refused = client.get(address).status_code == 403
        assert refused is (name not in MAY[role]), f"{role} at {address}"


def test_a_stranger_is_sent_to_the_login(client, addresses):
    for address in ["/", *addresses.values()]:
        response = client.get(address)
        assert response.status_code == 302
        assert response.url.startswith(reverse("admin:login"))


@pytest.mark.parametrize("name", sorted(CORRECTS | RUNS))
def test_a_viewer_changes_nothing_by_posting_either(client, addresses, name):
    client.force_login(cast.person("vera", VIEWER))
    before = (Grade.objects.count(), Settlement.objects.count(), Alarm.objects.filter(acknowledged_at=None).count())
    assert client.post(addresses[name], {"value": ".1", "reason": "because", "agent": "eve"}).status_code == 403
    after = (Grade.objects.count(), Settlement.objects.count(), Alarm.objects.filter(acknowledged_at=None).count())
    assert after == before


def test_a_signed_in_user_without_a_role_reads_nothing(client, addresses, django_user_model):
    client.force_login(django_user_model.objects.create_user("nina", password="x", is_staff=True))
    assert {client.get(address).status_code for address in ["/", *addresses.values()]} == {403}


@pytest.mark.parametrize("model", ["grading/agent", "grading/apitoken", "bandit/arm", "auth/user"])
def test_only_an_operator_adds_what_the_site_runs_on(client, model):
    app, name = model.split("/")
    address = reverse(f"admin:{app}_{name}_changelist")
    client.force_login(cast.person("rita", REVIEWER))
    assert client.post(f"{address}add/", {}).status_code in {403, 404}


def test_every_permission_of_the_roles_exists():
    known = set(Permission.objects.values_list("content_type__app_label", "codename"))
    assert {wanted for role in PERMISSIONS.values() for wanted in role} <= known
