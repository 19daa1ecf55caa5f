"""One scale on the pages: what fallbacks are read by, what a new version would move, who may put it in force."""

import datetime as dt
import html as entities
import re

import pytest
import time_machine
from django.test import Client

from bandit.models import Arm, Bandit, CalibrationVersion
from bandit.reading import posterior_of
from grading.reward import one_scale
from grading.screens import charts
from grading.templatetags.gradingsite_tags import coefficient
from tests.casts import scale as scale_cast
from tests.casts.page import flat
from tests.casts.scale import DAY
from tests.site import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
PAGE, CALIBRATION, CHANGE = "/bandits/category/", "/calibration/", "/bandits/category/scale/"


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


def scale_of(client):
    """What the calibration's page shows of categories, and its text."""
    answer = client.get(CALIBRATION)
    (found,) = (each for each in answer.context["scales"] if each.bandit.name == "category")
    return found, entities.unescape(flat(answer)).partition('id="scale-category"')[2].partition("</section>")[0]


def card_of(client, path=PAGE):
    """What the card on a bandit's page shows, and its text."""
    answer = client.get(path)
    assert answer.status_code == 200
    page = entities.unescape(flat(answer))
    return answer.context["card"], page.partition('id="scale"')[2].partition("</section>")[0]


def hidden(html):
    """The fields of the form that puts in force."""
    form = next(form for form in html.split("<form")[1:] if "fingerprint" in form)
    return dict(re.findall(r'name="(version|fingerprint)" value="([^"]+)"', form))


def messages(client, data, path=CHANGE):
    return [str(message) for message in client.post(path, data, follow=True).context["messages"]]


# ---- what holds, and what to do


def test_without_a_pair_the_pages_say_what_holds_and_what_to_do_next(operator):
    scale_cast.fell_back(0.2)
    found, said = scale_of(operator)
    assert (found.is_in_force, list(found.lines), found.pairs) == (False, [], 0)
    assert "trajectory .3 and journal .3" in found.holds
    assert found.todo
    assert '<svg class="fit"' not in said
    new, shown = card_of(operator)
    assert not new.is_new
    assert 'class="empty"' in shown
    assert 'name="fingerprint"' not in shown
    assert f'action="{CHANGE}"' in shown


def test_with_verdicts_and_no_pair_the_start_says_that_fallbacks_are_shifted(site, operator):
    session = site.session().judged(0.8, model="another", rubric="x" * 64).session
    one_scale.rewards.settle(session)
    holds = scale_of(operator)[0].holds
    assert "slope 1, shifted to the mean verdict" in holds
    assert "counts .10" in holds


def test_pairs_are_shown_and_once_in_force_their_line_and_later_that_they_are_old(operator, otto):
    scale_cast.pairs(6)
    found, said = scale_of(operator)
    assert (found.is_in_force, found.pairs, found.target.split()[0]) == (False, 24, "m-1")
    assert found.lines[0].view == "full log"
    assert 'aria-label="trajectory against the verdict, 4 arms; the table has the numbers"' in said
    for arm in scale_cast.ARMS:
        assert f"{arm}: 6 pairs, fallback" in said
    version = scale_cast.put(otto)
    scale = one_scale.versions.scale_of(version)
    (line,) = [each for each in scale.lines if each.view == "full"]
    found, said = scale_of(operator)
    assert (found.is_in_force, found.held, found.target.split()[0]) == (True, version, "m-1")
    (row,) = found.lines
    assert (row.line, row.weight) == (line, scale.weights["trajectory"])
    assert {each.arm: each.pairs for each in row.arms} == dict.fromkeys(scale_cast.ARMS, 6)
    assert f"{coefficient(line.low)} to {coefficient(line.high)}" in said
    assert f"r′ = {coefficient(line.slope)}·r" in said
    assert "≈ " in said
    assert not found.is_stale
    with time_machine.travel(NOON + 16 * DAY, tick=False):
        operator.force_login(otto)
        found, said = scale_of(operator)
        assert found.is_stale
        assert '<p class="red">' in said


def test_a_line_that_ranks_backwards_says_that_it_counts_nothing(operator, otto):
    arms = {f"arm-{number}": (0.1 * number, 1 - 0.12 * number) for number in range(1, 8)}
    for name in arms:
        Arm.objects.create(bandit=Bandit.objects.get(name="category"), name=name)
    scale_cast.pairs(5, **arms)
    scale_cast.put(otto)
    found, said = scale_of(operator)
    (row,) = found.lines
    assert (row.line.backwards, row.weight) == (True, 0)
    assert 'class="red"' in said


def test_judged_abstentions_say_what_the_others_are_worth(operator, otto):
    scale_cast.pairs(4)
    for number in range(10):
        scale_cast.judged(None, 0.2 + 0.01 * (number % 10), arm="code", ago=DAY * (number % 5 + 1))
    for _ in range(5):
        scale_cast.fell_back(None, arm="infra")
    scale_cast.put(otto)
    (silent,) = (row for row in scale_of(operator)[0].lines if row.is_silent)
    assert 0.2 < silent.level < 0.3
    page = text(operator, PAGE)
    assert "5 not graded, read as ≈ ." in page


def test_what_moves_little_comes_by_itself_and_every_version_is_listed_with_what_it_rests_on(operator, otto):
    scale_cast.pairs(6)
    scale_cast.put(otto)
    scale_cast.judged(0.3, 0.62, arm="code", ago=DAY / 2)
    found, shown = card_of(operator)
    assert found.proposed.comes_by_itself
    assert found.why in shown
    (made,) = [each for each in one_scale.renew(NOON) if each.bandit.name == "category"]
    one_scale.switch_off("category", otto, version=4, note="looks wrong")
    assert (made.version, made.by) == (3, "the site, at night")
    found, said = scale_of(operator)
    assert [(each["row"].version, each["row"].by, each["pairs"]) for each in found.history] == [
        (4, "otto", None), (3, "the site, at night", 25), (2, "otto", 24), (1, "the site, at the start", 0),
    ]  # fmt: skip
    assert not found.held.enabled
    assert "looks wrong" in said


# ---- the card: effect, button, way back


def test_the_card_shows_what_the_version_moves_and_waits_for_an_operator_while_everybody_reads_it(site, operator):
    scale_cast.moves_a_lot()
    proposed = one_scale.proposal("category", NOON)
    arm, move = proposed.largest
    assert abs(move) > one_scale.MAX_AUTOMATIC_MOVE
    shown = card(operator)
    size = f"{abs(move):.2f}".removeprefix("0")
    assert f"Version 2 moves {arm} by {size} since somebody last looked at it: over .05, so it waits for you." in shown
    assert "Put version 2 in force" in shown
    assert f"{arm}: mean" in shown
    client = Client()
    for role in ("viewer", "reviewer"):
        client.force_login(site.person(role, role))
        shown = card(client)
        assert "An operator puts this in force." in shown
        assert "so it waits for an operator." in shown
        assert "<form" not in shown
        assert client.post(CHANGE, {"version": 2}).status_code == 403
        assert scale_of(client)[1]
    assert CalibrationVersion.objects.filter(bandit__name="category").count() == 1


def test_putting_in_force_does_what_the_card_promised_and_off_gives_every_bit_back(site, operator):
    scale_cast.pairs(6)
    for _ in range(6):
        scale_cast.fell_back(0.2, arm="code")
    one_scale.switch_off("category", site.person("olga", "operator"), version=2)
    before = posterior_of("category", NOON).posterior
    found, shown = card_of(operator)
    assert "olga switched off with version 2: version 3 waits for you, whatever it moves." in shown
    (promised,) = (move.mean_after for move in found.moves if move.arm == "code")
    (said,) = messages(operator, hidden(shown) | {"note": "six looked at"})
    assert said.startswith("Version 3 is in force: ")
    assert posterior_of("category", NOON).arms["code"].mean == promised
    row = CalibrationVersion.objects.filter(bandit__name="category").latest("version")
    assert (row.by, row.note, row.accepted, row.enabled) == ("otto", "six looked at", True, True)
    assert "This is what is in force." in card(operator)
    (said,) = messages(operator, {"version": 4})
    assert said == "The calibration is off since version 4: every source is read as it stands."
    after = posterior_of("category", NOON).posterior
    assert (after.version, after.alpha.tobytes()) == (before.version, before.alpha.tobytes())
    assert "off since" in card(operator)


def test_a_stale_page_changes_nothing(operator):
    scale_cast.pairs(6)
    seen = hidden(card(operator))
    scale_cast.judged(0.9, 0.1, arm="code")
    (said,) = messages(operator, seen)
    assert "New verdicts have changed this calibration since the page was opened" in said
    seen = hidden(card(operator))
    messages(operator, seen)
    (said,) = messages(operator, seen)
    assert "Nothing was saved" in said
    (said,) = messages(operator, {"version": "9"})
    assert "somebody changed it meanwhile" in said
    assert CalibrationVersion.objects.filter(bandit__name="category").count() == 2


def test_a_form_that_is_not_ours_changes_nothing(operator):
    scale_cast.pairs(2)
    for data in ({}, {"version": "x"}, {"version": "0"}, {"version": "-1"}, {"version": "2", "fingerprint": "f" * 17}):
        (said,) = messages(operator, data)
        assert said.startswith("Nothing was saved"), data
        assert CalibrationVersion.objects.filter(bandit__name="category").count() == 1, data


def test_an_unknown_bandit_and_one_that_only_names_are_404(operator):
    assert operator.post("/bandits/nothing/scale/", {"version": 1}).status_code == 404
    assert operator.post("/bandits/model/scale/", {"version": 1}).status_code == 404
    assert operator.get(CHANGE).status_code == 405


def test_hostile_names_and_notes_stay_text(operator, otto):
    evil = "<script>alert(1)</script>"
    Arm.objects.create(bandit=Bandit.objects.get(name="category"), name="evil", title=evil)
    scale_cast.pairs(6, evil=(0.3, 0.7), code=(0.2, 0.5))
    found = one_scale.proposal("category", NOON)
    one_scale.put_in_force(found, otto, version=2, fingerprint=found.fingerprint, note=evil)
    for path in (PAGE, CALIBRATION):
        raw = operator.get(path).content.decode()
        assert evil not in raw
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in raw


def test_lessons_have_the_card_too_without_shares(operator):
    found, _ = card_of(operator, "/bandits/lesson/")
    assert (found.is_new, found.chooses, found.proposed.pairs) == (False, False, 0)


# ---- what is read on the bandit's page


def test_the_evidence_says_what_a_fallback_is_read_as_and_counts(operator, otto):
    scale_cast.pairs(6)
    for _ in range(3):
        scale_cast.fell_back(0.2, arm="code")
    scale_cast.put(otto)
    arm = posterior_of("category", NOON).arms["code"]
    (said,) = [each for each in arm.evidence if each.source == "trajectory"]
    words = f"trajectory: 3, raw .20, ≈ {_two(said.mapped)} on the judge’s scale, counts "
    assert words + f"{_two(said.counts)} each" in text(operator, PAGE)


def test_time_travel_reads_by_the_calibration_of_that_moment(operator, otto):
    scale_cast.pairs(6, ago=3 * DAY)
    for _ in range(8):
        scale_cast.fell_back(0.2, arm="news", ago=2 * DAY)
    with time_machine.travel(NOON - dt.timedelta(hours=1), tick=False):
        scale_cast.put(otto)
    then, now = NOON - dt.timedelta(hours=2), NOON
    believed = {at: posterior_of("category", now, known_by=at).arms["news"].mean for at in (then, now)}
    assert abs(believed[then] - believed[now]) > 0.01
    for at, version in ((then, "no calibration"), (now, "calibration version 2")):
        page = text(operator, f"{PAGE}?known={at:%Y-%m-%dT%H:%M}")
        assert f"{version}. Which arms are paused" in page
        row = page.partition('<div class="name">news</div>')[2].partition('<div class="brow')[0]
        assert f">{charts.thousandths(believed[at])}<" in row
    page = text(operator, PAGE)
    assert "fallbacks on the judge’s scale by calibration version 2" in page
    assert "Mean as read: on the judge’s scale" in page


def _two(value):
    return f"{value:.2f}".removeprefix("0")
