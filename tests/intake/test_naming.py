"""Models have the names that people give them, and past sessions are learnt of under those (L13, I119)."""

import datetime as dt
import html

import pytest
from django.utils import timezone

from bandit import arms
from bandit.models import Arm, ArmEvent, LedgerEntry
from grading import tasks
from grading.intake import naming
from grading.models import Session
from tests.casts.page import flat

pytestmark = pytest.mark.django_db
PAGE = "/bandits/model/unnamed/"
DATED = "claude-opus-4-5-20251101"


@pytest.fixture
def operator(site, client):
    client.force_login(site.person("otto", "operator"))
    return client


def credited(made):
    rows = LedgerEntry.objects.filter(observation=made.observation, bandit__name="harness").live()
    return list(rows.values_list("arm__name", flat=True))


def test_models_without_a_name_are_listed_with_a_suggestion(site):
    for _ in range(2):
        site.session(model=DATED).judged(0.6).settle()
    site.session(model="GPT 5").judged(0.6).settle()
    site.session(model="")
    rows = naming.unnamed_texts()
    assert [(row.text, row.sessions, row.suggestion) for row in rows] == [
        (DATED, 2, "claude-opus-4-5"),
        ("GPT 5", 1, "gpt-5"),
    ]


def test_naming_one_makes_a_model_with_an_alias_and_settles_its_sessions(site):
    made = site.session(model=DATED).judged(0.6).settle()
    assert credited(made) == ["claude-code"]
    model = naming.name_model(DATED, by="otto", name="Opus 4.5")
    assert (model.name, model.bandit.name) == ("opus-4.5", "model")
    assert list(model.aliases.values_list("alias", flat=True)) == [DATED]
    assert Session.objects.get(pk=made.pk).model_arm == model
    assert credited(made) == ["claude-code/opus-4.5"]
    assert Arm.objects.get(name="claude-code/opus-4.5").probation
    assert naming.unnamed_texts() == []
    assert set(ArmEvent.objects.values_list("by", flat=True)) == {"otto"}


def test_another_date_of_a_model_is_one_more_alias(site):
    model = naming.name_model(DATED, by="otto", name="opus-4.5")
    other = site.session(model="claude-opus-4-5-20260101").judged(0.6).settle()
    assert credited(other) == ["claude-code"]
    assert naming.name_model("claude-opus-4-5-20260101", by="otto", arm=model) == model
    assert credited(other) == ["claude-code/opus-4.5"]


def test_a_name_that_is_taken_is_refused_and_nothing_is_made(site):
    arms.add("model", "opus", by="otto")
    made = site.session(model=DATED).judged(0.6).settle()
    with pytest.raises(ValueError, match="'opus' is an arm of model already"):
        naming.name_model(DATED, by="otto", name="Opus")
    assert Session.objects.get(pk=made.pk).model_arm is None
    assert Arm.objects.in_bandit("model").count() == 1


def test_a_submission_finds_its_model_by_name_or_alias_and_never_makes_one(site):
    model = naming.name_model(DATED, by="otto", name="opus-4.5")

    def sent(number, text):
        return site.upload(f"s{number}", category=None, harness="codex", model=text).session.model_arm

    assert sent(1, "Claude_Opus 4-5-20251101") == model
    assert sent(2, "opus-4.5") == model
    assert sent(3, "claude-opus-4-5") is None
    assert sent(4, "") is None


def test_many_sessions_get_their_name_some_at_once_and_the_rest_by_the_worker(site, monkeypatch):
    monkeypatch.setattr(naming, "SYNC_LIMIT", 2)
    made = [site.session(model=DATED).judged(0.6).settle() for _ in range(5)]
    naming.name_model(DATED, by="otto", name="opus")
    assert naming.count_waiting() == 3
    tasks.name_models()
    assert naming.count_waiting() == 0
    assert [credited(each) for each in made] == [["claude-code/opus"]] * 5


def test_the_page_names_a_model_and_says_how_many_are_left(site, operator):
    site.session(model=DATED).judged(0.6).settle()
    page = html.unescape(flat(operator.get(PAGE)))
    assert DATED in page
    assert 'value="claude-opus-4-5"' in page
    response = operator.post(PAGE, {"text": DATED, "name": "claude-opus-4-5", "arm": ""}, follow=True)
    assert str(next(iter(response.context["messages"]))) == (
        f"{DATED} now means claude-opus-4-5, and its sessions were settled again."
    )
    page = flat(response)
    assert "Every model has a name." in page


def test_a_site_without_models_says_so(operator):
    page = flat(operator.get(PAGE))
    assert "No session has named a model yet." in page
    assert "Every model has a name." not in page


def test_a_model_that_is_there_is_offered_first(site, operator):
    model = arms.add("model", "claude-opus-4-5", by="otto")
    site.session(model=DATED).judged(0.6).settle()
    assert f'<option value="{model.pk}" selected>' in flat(operator.get(PAGE))
    operator.post(PAGE, {"text": DATED, "name": "ignored", "arm": model.pk})
    assert list(model.aliases.values_list("alias", flat=True)) == [DATED]


def test_a_name_that_cannot_be_is_told(operator):
    response = operator.post(PAGE, {"text": "x" * 120, "name": "fine"}, follow=True)
    assert "1 to 100 printable characters" in str(next(iter(response.context["messages"])))
    assert not Arm.objects.in_bandit("model").exists()


def test_viewers_see_them_and_name_none(site, client):
    site.session(model=DATED).judged(0.6).settle()
    client.force_login(site.person("vera", "viewer"))
    assert "<form" not in flat(client.get(PAGE)).partition("<main")[2]
    assert client.post(PAGE, {"text": DATED, "name": "x"}).status_code == 403


def test_more_sessions_than_anybody_counts_are_said_to_be_more(site, monkeypatch, operator):
    monkeypatch.setattr(naming, "MAX_COUNT", 2)
    for days in range(1, 5):
        site.session(model="often", ended_at=timezone.now() - dt.timedelta(days=days))
    for days in range(3):
        site.session(model="lately", ended_at=timezone.now() - dt.timedelta(days=days))
    for model in ("twice", "twice", "even twice", "even twice", "once"):
        site.session(model=model)
    site.session(model="a sample's", is_sample=True)
    found = [(row.text, row.count) for row in naming.unnamed_texts()]
    more = [("lately", "more than 2"), ("often", "more than 2")]
    assert found == [*more, ("even twice", "2"), ("twice", "2"), ("once", "1")]
    assert "more than 2" in flat(operator.get(PAGE))
