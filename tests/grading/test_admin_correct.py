"""Correcting a grade in the browser's forms: what is asked, what is refused, what is shown before it is saved."""

import pytest

from bandit.models import Bucket
from grading import rewards
from grading.core.vocabulary import Reason, Source
from grading.models import Grade
from tests import cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def reviewer(client):
    client.force_login(cast.person("rita", "reviewer"))
    return client


@pytest.fixture
def session():
    session = cast.session()
    cast.grade(session, Source.JOURNAL, 0.32)
    rewards.settle(session)
    return session


def send(client, session, **fields) -> str:
    """The page after the form was sent; follows to the session page where it was saved."""
    fields = {"seen_revision": rewards.live(session).revision, **fields}
    return client.post(f"/sessions/{session.pk}/correct/", fields, follow=True).content.decode()


def buckets():
    return list(Bucket.objects.filter(n__gt=0).order_by("pk").values_list("arm__name", "grader__source", "n", "s", "q"))


def test_a_correction_is_saved_and_final(reviewer, session):
    html = send(reviewer, session, value=".80", reason="the PR was merged")
    assert "Saved. Reward .80, final." in html
    held = rewards.live(session)
    assert (held.value, held.source, held.final) == (0.8, "human", True)
    grade = Grade.objects.get(source=Source.HUMAN)
    assert (grade.author.username, grade.detail) == ("rita", "the PR was merged")


@pytest.mark.parametrize("value", ["NaN", "-1", "-0.01", "1.5", "1.01", "abc", "1e999", ".123", "inf", "0x1", " ", ""])
def test_what_is_no_grade_gets_a_clear_error(reviewer, session, value):
    html = send(reviewer, session, value=value, reason="because")
    assert "A grade is a number from 0 to 1 with at most two decimals" in html
    assert not Grade.objects.filter(source=Source.HUMAN).exists()


@pytest.mark.parametrize(("value", "stored"), [("0", 0.0), ("1", 1.0), ("1.00", 1.0), ("0.3", 0.3), (" .45 ", 0.45)])
def test_what_is_a_grade_is_taken(reviewer, session, value, stored):
    send(reviewer, session, value=value, reason="because")
    assert rewards.live(session).value == stored


def test_a_big_move_needs_a_reason_and_a_small_one_does_not(reviewer, session):
    assert "A reason is needed" in send(reviewer, session, value=".80")
    assert "Saved. Reward .50, final." in send(reviewer, session, value=".50")


def test_accepting_the_grade_makes_it_final(reviewer, session):
    assert "Saved. Reward .32, final." in send(reviewer, session, value=".32")


def test_excluding_takes_the_reward_away_and_needs_a_reason(reviewer, session):
    assert "A reason is needed" in send(reviewer, session, exclude="on")
    html = send(reviewer, session, exclude="on", reason="the log is another session's")
    assert "No reward, final. A person excluded this session." in html
    assert buckets() == []


def test_a_grade_and_an_exclusion_together_are_refused(reviewer, session):
    assert "not both" in send(reviewer, session, exclude="on", value=".5", reason="x")


def test_a_stale_form_is_refused_and_says_what_changed(reviewer, session):
    cast.grade(session, Source.JUDGE, 0.76)
    rewards.settle(session)
    html = send(reviewer, session, value=".30", seen_revision=1)
    assert "The reward changed while you were looking" in html
    assert "The judge decides" in html
    assert 'name="seen_revision" value="2"' in html
    assert not Grade.objects.filter(source=Source.HUMAN).exists()


def test_the_preview_shows_before_and_after_and_saves_nothing(reviewer, session):
    before = buckets()
    html = reviewer.get(f"/sessions/{session.pk}/preview/", {"value": ".8"}).content.decode()
    for text in ('data-names="Submit .80"', "Moves the reward from .32 by +.48", "Mean of cross-repo", "<svg"):
        assert text in html
    assert buckets() == before


def test_the_preview_button_works_without_script(reviewer, session):
    html = send(reviewer, session, value=".8", preview="yes")
    assert "Submit .80" in html
    assert "Mean of cross-repo" in html
    assert not Grade.objects.filter(source=Source.HUMAN).exists()


def test_the_preview_says_what_saving_then_does(reviewer, session):
    """The mean after, as drawn, is the arm's mean once it is saved."""
    from django.utils import timezone

    from bandit.selection import posterior_of
    from grading.templatetags.house import mean3

    html = reviewer.get(f"/sessions/{session.pk}/preview/", {"value": ".8"}).content.decode()
    send(reviewer, session, value=".8", reason="merged")
    assert f"<dd>{mean3(posterior_of('category', timezone.now()).arms['cross-repo'].mean)}" in html


@pytest.mark.parametrize("value", ["NaN", "2", "", "<b>"])
def test_the_preview_of_no_grade_says_so(reviewer, session, value):
    html = reviewer.get(f"/sessions/{session.pk}/preview/", {"value": value}).content.decode()
    assert "A grade is a number from 0 to 1" in html
    assert "<svg" not in html


def test_a_session_without_category_can_be_corrected_too(reviewer):
    session = cast.session(category=None, category_claimed="gardening")
    rewards.settle(session)
    html = reviewer.get(f"/sessions/{session.pk}/preview/", {"value": ".8"}).content.decode()
    assert "no arm learns from it" in html
    assert "Saved. Reward .80" in send(reviewer, session, value=".8")


def test_undoing_brings_back_what_held_exactly(reviewer, session):
    before = buckets()
    send(reviewer, session, value=".80", reason="merged")
    grade = Grade.objects.get(source=Source.HUMAN)
    assert "rita graded it .80" in reviewer.get(f"/grades/{grade.pk}/undo/").content.decode()
    html = reviewer.post(f"/grades/{grade.pk}/undo/", {"reason": "wrong session"}, follow=True).content.decode()
    assert "Undone. Reward .32, provisional." in html
    assert "wrong session" in html
    assert buckets() == before


def test_undoing_needs_a_reason_and_happens_once(reviewer, session):
    send(reviewer, session, value=".80", reason="merged")
    url = f"/grades/{Grade.objects.get(source=Source.HUMAN).pk}/undo/"
    assert "Say in a few words why" in reviewer.post(url, {"reason": " "}).content.decode()
    reviewer.post(url, {"reason": "x"})
    assert "undone already" in reviewer.post(url, {"reason": "x"}).content.decode()
    assert Grade.objects.filter(reason=Reason.WITHDRAWN).count() == 1


def test_only_a_persons_verdict_has_an_undo(reviewer, session):
    assert reviewer.get(f"/grades/{session.grades.get().pk}/undo/").status_code == 404


def test_a_viewer_cannot_correct_or_undo(client, session):
    client.force_login(cast.person("vera", "viewer"))
    for url in (f"/sessions/{session.pk}/correct/", f"/sessions/{session.pk}/preview/", "/grades/1/undo/"):
        assert client.get(url).status_code == 403
        assert client.post(url, {"value": ".8"}).status_code == 403
    assert f"/sessions/{session.pk}/correct/" not in client.get(f"/sessions/{session.pk}/").content.decode()
