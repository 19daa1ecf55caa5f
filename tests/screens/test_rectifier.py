"""The card on the bandit's page: what recalibration would move, one button that says so, and a way back."""

import re

import pytest
from django.contrib.auth.models import User

from bandit.models import Rectifier
from bandit.selection import posterior_of
from grading import review
from grading.models import ReviewItem
from grading.models.review import Answer
from grading.reward import one_scale
from tests.casts import review as review_cast
from tests.casts import scale as scale_cast
from tests.casts.page import flat
from tests.site import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
PAGE, CHANGE = "/bandits/category/", "/bandits/category/rectifier/"


def labelled(site, pairs=3):
    """Flagged sessions of one arm, each reviewed twice as good as its journal says, and one that nobody reviewed."""
    rita = site.person("rita", "reviewer")
    for _ in range(pairs):
        session = review_cast.flagged(0.3)
        ReviewItem.objects.filter(session=session).update(slice_probability=0.2)
        review.submit(session, rita, answer=Answer.GRADE, value=0.7, reason="merged")
    review_cast.flagged(0.3)


def read(client):
    html = flat(client.get(PAGE))
    return html.partition('id="recalibration"')[2].partition("<h2>Decisions</h2>")[0]


def hidden(html):
    """The fields of the form with the primary button."""
    form = next(form for form in html.split("<form")[1:] if "primary" in form)
    return dict(re.findall(r'name="(version|fingerprint)" value="([^"]+)"', form))


def messages(client, data):
    return [str(message) for message in client.post(CHANGE, data, follow=True).context["messages"]]


def test_without_blind_grades_the_card_says_what_is_missing(operator):
    review_cast.flagged()
    card = read(operator)
    assert "No blind human grades from the random slice yet" in card
    assert "never used" in card
    assert "<form" not in card


def test_the_card_shows_each_stratum_and_what_it_moves(site, operator):
    labelled(site)
    card = read(operator)
    assert "Put version 1 in force" in card
    assert "1 reward, mean .30 → .63" in card
    assert "+.33" in card
    assert "cross-repo: mean" in card
    assert "From 3 sessions" in card


def test_putting_a_version_in_force_does_what_the_card_promised(site, operator):
    labelled(site)
    (promised,) = (move.mean_after for move in operator.get(PAGE).context["moves"] if move.arm == "cross-repo")
    (said,) = messages(operator, hidden(read(operator)) | {"note": "three good ones"})
    assert said.startswith("Version 1 is in force: cross-repo from")
    assert posterior_of("category", NOON).arms["cross-repo"].mean == promised
    row = Rectifier.objects.get()
    assert (row.by, row.note, row.enabled) == ("otto", "three good ones", True)
    card = read(operator)
    assert "version 1 in force since" in card
    assert "by otto: three good ones" in card
    assert "This is what is in force." in card
    assert "btn primary" not in card


def test_switching_off_is_one_more_version_and_gives_every_number_back(site, operator):
    labelled(site)
    before = posterior_of("category", NOON).posterior.version
    messages(operator, hidden(read(operator)))
    assert posterior_of("category", NOON).posterior.version != before
    (said,) = messages(operator, {"version": 2})
    assert said == "The recalibration is off since version 2: every posterior is the ledger's own again."
    assert posterior_of("category", NOON).posterior.version == before
    assert "off since" in read(operator)
    assert "Put version 3 in force" in read(operator)


def test_a_stale_page_changes_nothing(site, operator):
    labelled(site)
    seen = hidden(read(operator))
    messages(operator, seen)
    (said,) = messages(operator, seen)
    assert "somebody changed it meanwhile" in said
    (said,) = messages(operator, seen | {"version": 2, "fingerprint": "other"})
    assert "look again" in said
    (said,) = messages(operator, {"fingerprint": "x"})
    assert said.startswith("Nothing was saved")
    assert Rectifier.objects.count() == 1


def test_only_operators_may_change_it_and_everybody_reads_it(site, client):
    labelled(site)
    for role in ("viewer", "reviewer"):
        client.force_login(site.person(role, role))
        assert "An operator puts this in force." in read(client)
        assert client.post(CHANGE, {"version": 1}).status_code == 403
    assert not Rectifier.objects.exists()


def test_a_note_is_shown_as_text_and_an_unknown_bandit_is_a_404(site, operator):
    labelled(site)
    messages(operator, hidden(read(operator)) | {"note": "<script>alert(1)</script>"})
    assert "<script>alert" not in read(operator)
    assert operator.post("/bandits/nothing/rectifier/", {"version": 1}).status_code == 404
    assert operator.get(CHANGE).status_code == 405


def test_the_card_says_which_offsets_rest_and_why(site, operator):
    otto = User.objects.get(username="otto")
    scale_cast.pairs()
    scale_cast.put(otto)
    rita = site.person("rita", "reviewer")
    for _ in range(3):
        session = scale_cast.fell_back(0.2, arm="code")
        ReviewItem.objects.update_or_create(session=session, defaults={"slice_probability": 0.2, "entered_as": "slice"})
        review.submit(session, rita, answer=Answer.GRADE, value=0.9, reason="merged")
    assert "Fallback grades are compared as calibration 2 reads them" in read(operator)
    messages(operator, hidden(read(operator)))
    assert "rest" not in re.findall(r'class="note">([^<]*)', read(operator))
    one_scale.switch_off("category", otto, version=3)
    (said,) = re.findall(r'class="note">(\d+ offset[^<]*)', read(operator))
    assert said.endswith("offsets of trajectory rest: they were fitted under calibration 2, and none is now.")
    scale_cast.put(otto)
    (said,) = re.findall(r'class="note">(\d+ offset[^<]*)', read(operator))
    assert said.endswith("they were fitted under calibration 2, and calibration 4 is in force now.")
