"""The first steps on the dashboard: each is done by what is in the data, whoever did it and however."""

import pytest

from grading.models import ApiToken, JudgeKey
from grading.vocabulary import Source
from tests.casts import quota as quota_cast
from tests.casts.page import flat

pytestmark = pytest.mark.django_db

KEY, AGENT, GRADES, MOVE = "Set the judge’s key", "Connect an agent", "Grade three sessions", "See the bandit move"


@pytest.fixture
def olga(site, client):
    client.force_login(site.person("olga", "operator"))
    return client


def steps(client) -> dict[str, bool]:
    found = client.get("/").context["checklist"]
    return {} if found is None else {step.title: step.done for step in found.steps}


def step(client, title):
    return next(each for each in client.get("/").context["checklist"].steps if each.title == title)


def own(site, category="cross-repo", value=None):
    """A session of the site's own; decided by a person where a value is given."""
    builder = site.session(category, harness=category and "claude-code")
    if value is not None:
        builder.graded(Source.HUMAN, value, author=site.person(f"rita-{builder.session.pk}", "reviewer"))
    return builder.settle()


def test_a_new_site_begins_with_the_key(olga):
    assert not any(steps(olga).values())
    html = flat(olga.get("/"))
    assert f"0 of {len(steps(olga))} done" in html
    assert html.count('class="btn primary"') == 1


def test_a_key_from_wherever_does_the_first_step_once_the_judge_answered(site, olga, settings):
    JudgeKey.objects.put("sk-ant-typed-h7Qw", "", site.person("otto", "operator"))
    assert not steps(olga)[KEY]
    quota_cast.quota()
    assert (steps(olga)[KEY], "…h7Qw and is stored encrypted" in step(olga, KEY).text) == (True, True)
    JudgeKey.objects.all().delete()
    assert not steps(olga)[KEY]
    quota_cast.use(settings)
    quota_cast.quota()
    assert (steps(olga)[KEY], "comes from the environment" in step(olga, KEY).text) == (True, True)


def test_the_line_that_waits_for_a_session_becomes_the_session(site, olga):
    ApiToken.objects.issue(site.agent("bob"))
    assert "when bob got a token" in step(olga, AGENT).live.aside
    site.session(is_sample=True)
    assert not steps(olga)[AGENT]
    session = own(site)
    came = step(olga, AGENT)
    assert (came.done, came.live.session) == (True, session)
    assert f'href="/sessions/{session.pk}/"' in flat(olga.get("/"))


def test_three_grades_of_people_and_the_bandit_that_they_moved(site, olga):
    own(site, value=0.8)
    assert (steps(olga)[GRADES], step(olga, GRADES).aside, steps(olga)[MOVE]) == (False, "1 of 3", True)
    own(site, value=0.3)
    own(site, value=0.5)
    assert steps(olga)[GRADES]


def test_a_grade_that_reaches_no_bandit_moves_none(site, olga):
    own(site, category=None, value=0.8)
    assert not steps(olga)[MOVE]


def test_once_all_is_done_it_is_gone(site, olga, settings):
    quota_cast.use(settings)
    quota_cast.quota()
    for value in (0.2, 0.4, 0.6):
        own(site, value=value)
    assert olga.get("/").context["checklist"] is None


def test_steps_that_are_done_are_folded(site, olga):
    own(site)
    done = sum(steps(olga).values())
    html = flat(olga.get("/"))
    assert (done, html.count("<details open>")) == (2, len(steps(olga)) - done)


def test_who_cannot_do_them_sees_none(site, client):
    for role in ("viewer", "reviewer"):
        client.force_login(site.person(role, role))
        assert steps(client) == {}
