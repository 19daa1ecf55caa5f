"""Calibrations on the pages: how fallbacks are read, what a new version would move, and who may put it in force."""

import datetime as dt
import html as entities
import re
from pathlib import Path

import pytest
import time_machine
from django.conf import settings
from django.test import Client

from bandit.models import Arm, Bandit, CalibrationVersion
from bandit.reading import posterior_of
from grading.models import ReviewItem
from grading.models.review import Answer
from grading.review import answers
from grading.reward import calibrating
from grading.screens.calibration.view import FALLBACK_AUC
from grading.screens.charts import posteriors
from grading.templatetags.gradingsite_tags import signed2
from tests.casts import calibration as calibration_cast
from tests.casts import review as review_cast
from tests.casts.calibration import DAY
from tests.casts.page import flat
from tests.site import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
PAGE, CALIBRATION, CHANGE = "/bandits/category/", "/calibration/", "/bandits/category/calibration/"


@pytest.fixture
def otto(site):
    return site.person("otto", "operator")


@pytest.fixture
def operator(client, otto):
    client.force_login(otto)
    return client


def text(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    return entities.unescape(flat(answer))


def card(client):
    return card_of(client)[1]


def part_of(client):
    """What the calibration's page shows of categories, and its text."""
    answer = client.get(CALIBRATION)
    (found,) = (each for each in answer.context["bandits"] if each.bandit.name == "category")
    return found, entities.unescape(flat(answer)).partition('id="category"')[2].partition("</section>")[0]


def card_of(client, path=PAGE):
    """What the card on a bandit's page shows, and its text."""
    answer = client.get(path)
    assert answer.status_code == 200
    page = entities.unescape(flat(answer))
    return answer.context["card"], page.partition('id="calibration"')[2].partition("</section>")[0]


def hidden(html):
    """The fields of the form that puts in force."""
    form = next(form for form in html.split("<form")[1:] if "fingerprint" in form)
    return dict(re.findall(r'name="(version|fingerprint)" value="([^"]+)"', form))


def messages(client, data, path=CHANGE):
    return [str(message) for message in client.post(path, data, follow=True).context["messages"]]


# ---- what holds, and what to do


def test_without_a_pair_the_pages_say_what_holds_and_what_to_do_next(operator):
    calibration_cast.fell_back(0.2)
    found, said = part_of(operator)
    assert (found.is_in_force, list(found.kinds), found.pairs) == (False, [], 0)
    assert found.status == "Calibration has no data yet, so fallback grades are used unchanged."
    assert found.status in said
    assert found.todo in said
    new, shown = card_of(operator)
    rule = "a trajectory .3 and a journal .3. Together they count as at most 3 observations"
    assert (
        f"{found.status} In an arm without verdicts, fallbacks have these weights compared with a verdict: {rule}"
        in shown
    )
    assert "With 5 or more verdicts, fallbacks don’t count" in shown
    assert not new.is_new
    assert 'class="empty"' in shown
    assert 'name="fingerprint"' not in shown
    assert f'action="{CHANGE}"' in shown


def test_where_it_was_switched_off_the_page_says_that_grades_are_read_as_given(operator, otto):
    calibrating.switch_off("category", otto, version=2)
    found, said = part_of(operator)
    assert found.status.startswith("Calibration is off, so every grade is used unchanged")
    assert found.status in said


def test_pairs_are_shown_by_kind_and_arm_and_once_in_force_those_of_the_version(operator, otto):
    calibration_cast.pairs(6)
    for number in range(6):
        calibration_cast.judged(None, 0.2 + 0.01 * number, arm="code", ago=DAY * (number % 5 + 1))
    found, said = part_of(operator)
    assert (found.is_in_force, found.pairs) == (False, 30)
    assert "The tables show estimates from 30 judged sessions. <b>These figures are not in force yet.</b>" in said
    version = calibration_cast.put(otto)
    found, said = part_of(operator)
    assert (found.is_in_force, found.last) == (True, version)
    trajectory, silent = found.kinds
    assert (trajectory.estimate, silent.estimate) == version.fallback_calibration.kinds
    assert {each.arm: each.pairs for each in trajectory.arms} == dict.fromkeys(calibration_cast.ARMS, 6)
    assert signed2(trajectory.estimate.shift) in said
    assert f"± {_two(trajectory.half_width)}" in said
    assert signed2(silent.estimate.difference) in said
    assert silent.estimate.difference_in("code") < 0
    assert silent.estimate.difference < 0
    assert "not graded: " in said
    assert "Version 2 compares fallback grades with 30 verdicts of m-1" in said


def test_the_page_says_what_fallbacks_are_worth_as_the_docs_do(operator):
    page = text(operator, CALIBRATION)
    raw, issued = (FALLBACK_AUC[name] for name in ("raw", "issued"))
    for value in (*raw, *issued):
        assert f">{_two(value)}<" in page
    measured = (Path(settings.BASE_DIR) / "docs" / "measured.md").read_text()
    assert f"| training halves | {_two(raw[0])} | {_two(raw[1])} |" in measured
    assert f"a mean AUC of {_two(issued[0])} and a matched one of {_two(issued[1])}" in " ".join(measured.split())
    readme = (Path(settings.BASE_DIR) / "README.md").read_text()
    assert f"(AUC {_two(issued[0])}; the number behind them {_two(raw[0])})" in " ".join(readme.split())


def test_what_moves_little_comes_by_itself_and_every_version_is_listed_with_what_it_rests_on(operator, otto):
    calibration_cast.pairs(6)
    calibration_cast.put(otto)
    calibration_cast.judged(0.3, 0.62, arm="code", ago=DAY / 2)
    found, shown = card_of(operator)
    assert found.proposed.comes_by_itself
    assert found.why in shown
    (made,) = [each for each in calibrating.renew(NOON) if each.bandit.name == "category"]
    calibrating.switch_off("category", otto, version=4, note="looks wrong")
    assert (made.version, made.by) == (3, "the site, at night")
    found, said = part_of(operator)
    assert [(each.version, each.by, each.enabled) for each in found.history] == [
        (4, "otto", False), (3, "the site, at night", True), (2, "otto", True), (1, "the site, at the start", True),
    ]  # fmt: skip
    assert not found.last.enabled
    assert "looks wrong" in said


# ---- the card: effect, button, way back


def test_the_card_shows_what_the_version_moves_and_waits_for_an_operator_while_everybody_reads_it(site, operator):
    calibration_cast.moves_a_lot()
    proposed = calibrating.proposal("category", NOON)
    arm, move = proposed.largest
    assert abs(move) > calibrating.MAX_AUTOMATIC_MOVE
    shown = card(operator)
    size = f"{abs(move):.2f}".removeprefix("0")
    assert (
        f"Version 2 would change {arm} by {size} from the version that a person last accepted. That is over .05, so it "
        "waits for you." in shown
    )
    assert "Put version 2 in force" in shown
    assert f"{arm}: mean" in shown
    client = Client()
    for role in ("viewer", "reviewer"):
        client.force_login(site.person(role, role))
        shown = card(client)
        assert "Only an operator can put this version in force." in shown
        assert "so it waits for an operator." in shown
        assert "<form" not in shown
        assert client.post(CHANGE, {"version": 2}).status_code == 403
        assert part_of(client)[1]
    assert CalibrationVersion.objects.filter(bandit__name="category").count() == 1


def test_putting_in_force_does_what_the_card_promised_and_off_gives_every_bit_back(site, operator):
    calibration_cast.pairs(6)
    for _ in range(6):
        calibration_cast.fell_back(0.2, arm="code")
    calibrating.switch_off("category", site.person("olga", "operator"), version=2)
    before = posterior_of("category", NOON).posterior
    found, shown = card_of(operator)
    assert (
        "olga switched calibration off with version 2, so version 3 waits for you even if it changes little." in shown
    )
    (promised,) = (move.mean_after for move in found.moves if move.arm == "code")
    (said,) = messages(operator, hidden(shown) | {"note": "six looked at"})
    assert said.startswith("Version 3 is in force: ")
    assert posterior_of("category", NOON).arms["code"].mean == promised
    row = CalibrationVersion.objects.filter(bandit__name="category").latest("version")
    assert (row.by, row.note, row.accepted, row.enabled) == ("otto", "six looked at", True, True)
    assert '<span class="dim">In force.</span>' in card(operator)
    (said,) = messages(operator, {"version": 4})
    assert said == "Calibration is off as of version 4. Every grade is used unchanged."
    after = posterior_of("category", NOON).posterior
    assert (after.version, after.alpha.tobytes()) == (before.version, before.alpha.tobytes())
    assert "off since" in card(operator)


def test_a_stale_page_changes_nothing(operator):
    calibration_cast.pairs(6)
    seen = hidden(card(operator))
    calibration_cast.judged(0.9, 0.1, arm="code")
    (said,) = messages(operator, seen)
    assert "new grades have changed this calibration since the page was opened" in said
    seen = hidden(card(operator))
    messages(operator, seen)
    (said,) = messages(operator, seen)
    assert "Nothing was saved" in said
    (said,) = messages(operator, {"version": "9"})
    assert "somebody else changed" in said
    assert CalibrationVersion.objects.filter(bandit__name="category").count() == 2


def test_a_form_that_is_not_ours_changes_nothing(operator):
    calibration_cast.pairs(2)
    for data in ({}, {"version": "x"}, {"version": "0"}, {"version": "-1"}, {"version": "2", "fingerprint": "f" * 17}):
        (said,) = messages(operator, data)
        assert said.startswith("Nothing was saved"), data
        assert CalibrationVersion.objects.filter(bandit__name="category").count() == 1, data


def test_an_unknown_bandit_and_one_that_only_names_are_404(operator):
    assert operator.post("/bandits/nothing/calibration/", {"version": 1}).status_code == 404
    assert operator.post("/bandits/model/calibration/", {"version": 1}).status_code == 404
    assert operator.get(CHANGE).status_code == 405


def test_hostile_names_and_notes_stay_text(operator, otto):
    evil = "<script>alert(1)</script>"
    Arm.objects.create(bandit=Bandit.objects.get(name="category"), name="evil", title=evil)
    calibration_cast.pairs(6, evil=(0.3, 0.7), code=(0.2, 0.5))
    found = calibrating.proposal("category", NOON)
    calibrating.put_in_force(found, otto, version=2, fingerprint=found.fingerprint, note=evil)
    for path in (PAGE, CALIBRATION):
        raw = operator.get(path).content.decode()
        assert evil not in raw
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in raw


def test_lessons_have_the_card_too_without_shares(operator):
    found, _ = card_of(operator, "/bandits/lesson/")
    assert (found.is_new, found.has_shares, found.proposed.pairs) == (False, False, 0)


# ---- what is read on the bandit's page


def test_the_evidence_says_how_a_fallback_is_read_and_what_it_counts(operator, otto):
    calibration_cast.pairs(6)
    for _ in range(3):
        calibration_cast.fell_back(0.2, arm="code")
        calibration_cast.fell_back(0.2, arm="news")
    calibration_cast.put(otto)
    arms = posterior_of("category", NOON).arms
    page = text(operator, PAGE)
    (own,) = arms["news"].evidence
    assert f"trajectory: 3, mean {_two(own.mean)}, each counts as {_two(own.counts)} of a verdict" in page
    (estimated,) = [each for each in arms["code"].evidence if each.source == "trajectory"]
    assert (
        f"3 graded by trajectory alone: estimated at ≈ {_two(estimated.mean)} from comparable judged sessions" in page
    )


def test_the_table_of_offsets_lists_strata_with_pairs_or_rewards(site, operator):
    rita = site.person("rita", "reviewer")
    for _ in range(3):
        session = review_cast.flagged(0.3)
        ReviewItem.objects.filter(session=session).update(slice_probability=0.2)
        answers.submit(session, rita, answer=Answer.GRADE, value=0.7, reason="merged")
    review_cast.flagged(0.3)
    found, shown = card_of(operator)
    assert [(offset.key, offset.pairs, rewards) for offset, rewards in found.offsets] == [
        (("cross-repo", "journal", "flagged"), 3, 1)
    ]
    assert signed2(found.offsets[0][0].offset) in shown
    assert "0 judged sessions and 3 graded blind by people" in shown
    (said,) = messages(operator, hidden(shown) | {"note": "<script>alert(1)</script>"})
    assert said.startswith("Version 2 is in force: ")
    assert "<script>alert" not in operator.get(PAGE).content.decode()


def test_time_travel_reads_by_the_calibration_of_that_moment(operator, otto):
    calibration_cast.pairs(6, ago=3 * DAY)
    for _ in range(8):
        calibration_cast.fell_back(0.2, arm="news", ago=2 * DAY)
    with time_machine.travel(NOON - dt.timedelta(hours=1), tick=False):
        calibration_cast.put(otto)
    then, now = NOON - dt.timedelta(hours=2), NOON
    believed = {at: posterior_of("category", now, known_by=at).arms["news"].mean for at in (then, now)}
    assert abs(believed[then] - believed[now]) > 0.01
    for at, version in ((then, "no calibration"), (now, "calibration version 2")):
        page = text(operator, f"{PAGE}?known={at:%Y-%m-%dT%H:%M}")
        assert f"{version}. Paused and retired arms" in page
        row = page.partition('<div class="name">news</div>')[2].partition('<div class="brow')[0]
        assert f">{posteriors.thousandths(believed[at])}<" in row
    page = text(operator, PAGE)
    assert "by calibration version 2" in page
    assert "Adjusted mean: calibrated" in page


def _two(value):
    return f"{value:.2f}".removeprefix("0")
