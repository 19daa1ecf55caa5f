"""The policy's page: its numbers explained, a preview in words before anything holds, and a way back (I72, I97)."""

import datetime as dt
import html
import re
from urllib.parse import parse_qsl

import pytest

from bandit import arms
from bandit.models import Arm, Bandit, PolicyVersion
from bandit.reading import posterior_of, version_of
from bandit.selection import select
from grading.models import ReviewItem
from grading.models.review import Answer
from grading.review import answers
from tests.addresses import POLICY
from tests.bandit.helpers import policy, reward, with_cost
from tests.casts import review as review_cast
from tests.casts.page import flat
from tests.site import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
PAGE = "/bandits/category/policy/"
TODAY = NOON.date()
NUMBERS = dict(parse_qsl(POLICY))


def teach():
    for age in range(1, 40):
        day = TODAY - dt.timedelta(days=age)
        reward(f"c{age}", day=day, code=0.8 if age > 14 else 0.4)
        reward(f"i{age}", day=day, infra=0.4 if age > 14 else 0.7)


def read(client, **query):
    return html.unescape(flat(client.get(PAGE, query)))


def preview(client, **numbers):
    return read(client, **NUMBERS | {"half_life_days": "45"} | numbers, preview="yes")


def moved(client, **numbers):
    """What the preview shows of each arm."""
    query = NUMBERS | {"half_life_days": "45"} | numbers | {"preview": "yes"}
    return {move.arm: move for move in client.get(PAGE, query).context["moves"]}


def hidden(page):
    """The fields of the form with the primary button."""
    form = next(form for form in page.split("<form")[1:] if "btn primary" in form and "csrf" in form)
    return dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))


def messages(client, data):
    return [str(message) for message in client.post(PAGE, data, follow=True).context["messages"]]


def test_the_page_shows_each_number_with_what_it_does(operator):
    page = read(operator)
    assert 'name="half_life_days" inputmode="decimal" autocomplete="off" value="45"' in page
    assert "Evidence this old counts half." in page
    assert 'name="weight_journal"' in page
    assert 'name="cap_journal"' in page
    assert "weight_floor" not in page
    assert "Evidence counts half as much after 45 days." in page
    assert "the beginning" in page
    assert "initial settings" in page
    assert 'name="holdout"' not in page


def test_a_preview_says_what_it_does_in_words_and_changes_nothing(operator):
    teach()
    page = preview(operator, half_life_days="7")
    before = posterior_of("category", NOON)
    assert "Half-life 45 → 7 days. This version remembers 10.6 days of sessions. Nothing is saved yet." in page
    (promised,) = re.findall(r"Put version 2 in force: ([^<]+)<", page)
    assert re.fullmatch(r"\w+ from \.\d+ to \.\d+(, \d+ to \d+ of 100)?; \d+ more arms? changes?", promised)
    assert f"<h1>Version 2: {promised}</h1>" in page
    assert moved(operator, half_life_days="7")["infra"].mean_before == before.arms["infra"].mean
    assert PolicyVersion.objects.filter(bandit__name="category").count() == 1


def test_a_preset_is_previewed_with_its_changes_and_is_in_force_once_saved(operator):
    assert 'Balanced <span class="pill strong">in force</span>' in read(operator)
    page = read(operator, preset="quick")
    assert "Half-life 45 → 14 days; exploration .005 → .03 of 1." in page
    operator.post(PAGE, hidden(page))
    assert 'Quick <span class="pill strong">in force</span>' in read(operator)
    policy(half_life_days=20)
    page = read(operator)
    assert "(custom settings) is in force" in page
    assert "pill strong" not in page


def test_putting_it_in_force_does_what_the_preview_promised(operator):
    teach()
    page = preview(operator, half_life_days="7", weight_journal=".1", cap_journal="5")
    promised = moved(operator, half_life_days="7", weight_journal=".1", cap_journal="5")["infra"].mean_after
    (said,) = messages(operator, hidden(page) | {"note": "newer is truer"})
    assert said == ("Version 2 is in force: half-life 45 → 7 days; weight of journal .3 → .1; cap of journal 12 → 5.")
    row = version_of(Bandit.objects.get(name="category"))
    assert (row.version, row.by, row.note) == (2, "otto", "newer is truer")
    assert (row.half_life_days, row.weights, row.caps) == (7, {"journal": 0.1}, {"journal": 5})
    assert posterior_of("category", NOON).arms["infra"].mean == promised
    assert "newer is truer" in read(operator)


def test_an_earlier_version_is_previewed_and_put_back_as_one_more(operator):
    teach()
    first = posterior_of("category", NOON).posterior.alpha.tobytes()
    messages(operator, hidden(preview(operator, half_life_days="7")))
    assert "?to=1" in read(operator)
    page = read(operator, to="1")
    assert "Half-life 7 → 45 days." in page
    assert 'value="Back to version 1."' in page
    messages(operator, hidden(page) | {"note": "Back to version 1."})
    row = version_of(Bandit.objects.get(name="category"))
    assert (row.version, row.half_life_days, row.note) == (3, 45, "Back to version 1.")
    assert posterior_of("category", NOON).posterior.alpha.tobytes() == first


@pytest.mark.parametrize("to", ["9", "x", "0", "", "9" * 30])
def test_a_version_that_never_was_is_told(operator, to):
    response = operator.get(PAGE, {"to": to}, follow=True)
    assert "has had no policy" in str(next(iter(response.context["messages"])))


def test_an_earlier_version_that_remembers_too_little_today_says_why(operator):
    policy(evidence_cap=5)
    policy()
    teach()
    response = operator.get(PAGE, {"to": "2"}, follow=True)
    assert "Version 2 cannot be restored unchanged. A cap of 5" in str(next(iter(response.context["messages"])))


def test_a_memory_of_a_day_is_refused_at_its_field_with_the_number(operator):
    """I72."""
    page = preview(operator, half_life_days="1")
    assert "remembers 2.0 days of its traffic" in page.partition('id="bad-half_life_days"')[2][:200]
    assert 'value="1"' in page
    assert "Put version" not in page


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"half_life_days": "soon"}, "Half-life is a number (days), usually 45."),
        ({"floor": ""}, "Floor is a number (of 1), usually .01."),
        ({"floor": "2", "exploration": ""}, "The floor is a chance from 0 to 1."),
        ({"floor": ".02"}, "No arm has a floor of its own while 0.005 is shared by all arms"),
        ({"exploration": ".6"}, "Exploration is a chance from 0 to .5"),
        ({"sharpness": "9"}, "The sharpness is a power from 1 to 4."),
        ({"follows_change": "sometimes"}, "Breaks and drift are followed, or not."),
        ({"weight_judge": "1.5"}, "Of judge: expected a number from 0 to 1; got 1.5."),
        ({"weight_judge": ""}, "The weight of judge is a share from 0 to 1"),
        ({"cap_judge": "-1"}, "Of judge: expected a number above 0; got -1.0."),
        ({"consumption_per_agent": "1.5"}, "Limit for an agent is a whole number (sessions a day), usually 2."),
        ({"half_life_days": "nan"}, "Half-life is a number (days)"),
        ({"note": "x" * 501}, "at most 500 characters"),
    ],
)
def test_what_cannot_be_is_said_and_what_was_typed_stays(operator, numbers, words):
    page = preview(operator, **numbers)
    assert words in page
    assert "Put version" not in page


def test_the_same_numbers_are_no_change(operator):
    page = preview(operator)
    assert "nothing changes" in page
    assert "btn primary" not in page


def test_a_stale_page_changes_nothing(operator):
    seen = hidden(preview(operator, half_life_days="7"))
    messages(operator, seen)
    (said,) = messages(operator, seen)
    assert "the next version is 3, not" in said
    (said,) = messages(operator, {**seen, "version": "x"})
    assert said.startswith("Nothing was saved")
    assert version_of(Bandit.objects.get(name="category")).version == 2


def test_what_is_posted_past_the_preview_is_refused_all_the_same(operator):
    page = flat(operator.post(PAGE, NUMBERS | {"version": "2", "half_life_days": ".5"}))
    assert "remembers 1.3 days" in page
    page = flat(operator.post(PAGE, NUMBERS | {"version": "2", "floor": "x"}))
    assert "Floor is a number" in page
    assert version_of(Bandit.objects.get(name="category")).version == 1


def test_an_arm_without_work_is_marked_where_it_is_to_be_chosen_more_often(operator):
    """I97: a weight was raised from 1.0 to 1.5 for an empty lane, and nothing came of it."""
    teach()
    for i in range(20):
        work = dict.fromkeys(Arm.objects.in_bandit("category").values_list("name", flat=True), 1) | {"code": 0}
        select(bandit="category", decision_id=f"d{i}", supply=work, now=NOON)
    page = preview(operator, exploration=".4")
    assert page.count("limited by supply") == 1
    assert "limited by supply: no work was available in 20 of the latest 20 decisions" in page


def test_what_acts_at_decisions_alone_says_so(operator):
    page = preview(operator, consumption_boost="1.5")
    assert "These rules don’t change the means" in page
    assert "no arm changes visibly" in page
    assert "These rules don’t change the means" not in preview(operator, half_life_days="7")


def test_costs_stand_with_their_coverage(operator):
    with_cost("s1", 0.5, usd=0.42, arm="code", day=TODAY)
    for i in range(4):
        with_cost(f"t{i}", 0.5, usd=None if i else 1.0, arm="infra", day=TODAY)
    page = read(operator)
    assert '<td class="right">$0.42</td><td class="right dim">1 of 1</td>' in page
    assert '<td class="right">at least $0.25</td><td class="right dim">1 of 4</td>' in page


def test_pairs_suggest_a_cap(site, operator):
    rita = site.person("rita", "reviewer")
    for value in (0.7, 0.8, 0.9):
        session = review_cast.flagged(0.3)
        ReviewItem.objects.filter(session=session).update(slice_probability=0.2)
        answers.submit(session, rita, answer=Answer.GRADE, value=value, reason="merged")
    assert re.search(r"<strong>[\d.]+</strong> <span class=\"dim\">from 3 pairs</span>", read(operator))


def test_a_lesson_bandit_has_lessons_numbers_and_names_have_none(operator):
    page = html.unescape(flat(operator.get("/bandits/lesson/policy/")))
    assert 'name="holdout"' in page
    assert 'name="consumption_boost"' not in page
    assert operator.get("/bandits/model/policy/").status_code == 404
    assert operator.get("/bandits/moods/policy/").status_code == 404


def test_the_bandits_that_read_by_this_one_are_named(operator):
    assert "In Harness × model and Lesson, this bandit’s means are subtracted from each reward" in preview(
        operator, half_life_days="7"
    )


def test_only_operators_come_here(site, client):
    for role in ("viewer", "reviewer"):
        client.force_login(site.person(role, role))
        assert client.get(PAGE).status_code == 403
        assert client.post(PAGE, {**NUMBERS, "version": "2"}).status_code == 403


def test_harnesses_and_models_share_by_a_switch_with_its_effect_before_it(operator, client):
    page = "/bandits/harness/policy/"
    assert "pooling" not in client.get(page).context["form"].fields or version_of(harness()).pooling
    for name, value in (("codex/opus", 0.8), ("codex/haiku", 0.4), ("gptme/opus", 0.8), ("gptme/haiku", None)):
        arms.add("harness", name, by="otto")
        for age in range(1, 10 if value else 0):
            day = TODAY - dt.timedelta(days=age)
            reward(f"{name}-{age}", bandit="harness", day=day, **{name: value + 0.1 * (-1) ** age})
    numbers = NUMBERS | {"half_life_days": "45", "preview": "yes"}
    held = client.get(page)
    assert held.context["form"]["pooling"].value() == "True"
    seen = client.get(page, numbers | {"pooling": "False"})
    assert "harness and model pooled → not pooled" in seen.context["changes"]
    assert {"gptme/haiku"} <= {move.arm for move in seen.context["moves"] if move.mean_moves}
    client.post(page, hidden(html.unescape(flat(seen))) | {"note": "each by itself"})
    assert not version_of(harness()).pooling
    # A form that does not send the switch leaves it as it is.
    assert "harness and model" not in "".join(client.get(page, numbers).context["changes"])
    assert "harness and model not pooled → pooled" in client.get(page, numbers | {"pooling": "True"}).context["changes"]
    assert "Harness and model are pooled, or not." in html.unescape(flat(client.get(page, numbers | {"pooling": "2"})))


def test_a_bandit_whose_arms_have_no_parts_is_not_asked(operator):
    assert 'name="pooling"' not in read(operator)


def harness():
    return Bandit.objects.get(name="harness")
