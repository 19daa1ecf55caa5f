"""Rules about what nobody would notice: repeated evidence, disagreement, drift, collapse, missing fields."""

import datetime as dt
import json
import random
import uuid
from html import unescape

import pytest
import time_machine
from django.utils import timezone

from bandit import versions
from bandit.core.calibration import FallbackCalibration, KindEstimate
from bandit.models import Arm
from grading.models import Flag, Grade, Session
from grading.monitoring.alarms import open_alarms, run_rules
from grading.monitoring.operation import incomplete
from grading.monitoring.rewards import collapse, disagreement, drift
from grading.monitoring.sessions import repeated
from grading.monitoring.watch import acknowledge, inspect_session, watch
from grading.review import corrections
from grading.reward import rewards
from grading.vocabulary import Source, Status
from tests.casts import logs
from tests.casts.page import flat
from tests.site import NOON, Site

pytestmark = pytest.mark.django_db
DAY = dt.timedelta(days=1)
ARMS = ("code", "infra", "news", "triage")
JOURNAL = "# The session\n\n" + "Went through the open issues, one by one. " * 6


@pytest.fixture(autouse=True)
def _noon():
    with time_machine.travel(NOON, tick=False):
        yield


def flags(rule="A5"):
    return {flag.session.external_id: flag.detail for flag in Flag.objects.filter(rule=rule, cleared_at=None)}


def opened(rule):
    return {alarm.about: alarm.detail for alarm in open_alarms().filter(rule=rule)}


# --- the same evidence twice ------------------------------------------------------------------------------------------

DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n x\n" + "+" + "y = 1 " * 40 + "\n"
FACTS = json.dumps({"exit_code": 0, "checks": [{"name": f"check {n}", "passed": True} for n in range(20)]})
LOG = logs.gptme(("user", "Do it. " + "x" * 6_000), ("assistant", "Done."))


@pytest.mark.parametrize(
    ("part", "kind", "data"),
    [("journal", "journal", JOURNAL), ("patch", "patch", DIFF), ("log", "transcript", LOG)],
)
def test_the_same_bytes_for_two_sessions_flag_the_later_one(site, part, kind, data):
    site.upload("one", **{part: data})
    assert flags() == {}
    site.upload("two", **{part: data})
    assert list(flags()) == ["two"]
    assert f"its {kind} (" in flags()["two"]
    assert "session one of bob" in flags()["two"]


def test_the_same_bytes_again_for_the_same_session_are_no_finding(site):
    site.upload("one", journal=JOURNAL)
    site.upload("one", journal=JOURNAL, patch=DIFF)
    assert flags() == {}


@pytest.mark.parametrize("data", ["", "# Done\n", "Nothing to do.\n" * 13])
def test_what_is_tiny_may_well_be_the_same(site, data):
    site.upload("one", journal=data)
    site.upload("two", journal=data)
    assert flags() == {}


def test_facts_may_well_be_the_same(site):
    site.upload("one", facts=FACTS)
    site.upload("two", facts=FACTS)
    assert flags() == {}


@pytest.mark.parametrize(("kind", "data", "own"), [("journal", JOURNAL, JOURNAL + "."), ("log", LOG, LOG + b" ")])
def test_a_session_with_a_file_of_its_own_beside_another_ones_is_no_finding(site, kind, data, own):
    site.upload("one", **{kind: data})
    site.upload("two", **{kind: data})
    assert list(flags()) == ["two"]
    site.upload("two", **{kind: own})
    assert flags() == {}
    assert Flag.objects.get(rule="A5").cleared_why == "it has evidence of its own now"


def test_a_resumed_session_whose_log_begins_with_another_ones_is_no_finding(site):
    first = logs.claude("one", ("pytest -q", "8 passed"), logs.COMMIT)
    site.upload("one", first)
    site.upload("two", first + logs.claude("two", ("pytest -q", "9 passed")))
    assert flags() == {}


def test_people_see_both_agents_and_the_agents_neither(site):
    site.upload("one", journal=JOURNAL)
    receipt = site.upload("zwei", journal=JOURNAL, agent="eve")
    assert "session one of bob" in flags()["zwei"]
    assert "one" not in [word for problem in receipt.problems for word in str(problem).split()]


def test_another_sessions_log_is_flagged_until_its_own_comes(site):
    site.upload("one", logs.claude("operator", logs.COMMIT))
    assert "The log belongs to session operator" in flags()["one"]
    site.upload("one", logs.claude("one", logs.COMMIT))
    assert flags() == {}
    assert Flag.objects.get(rule="A5").cleared_why == "it has evidence of its own now"


def test_the_third_in_seven_days_is_an_alarm_about_the_agent(site):
    for n in range(3):
        assert opened("A5") == {}
        site.upload(f"s{n}", logs.claude("operator", logs.COMMIT, padding=6_000 + n))
    site.upload("other", logs.claude("operator", logs.COMMIT, padding=7_000), agent="eve")
    assert list(opened("A5")) == ["bob"]
    assert "3 sessions of bob" in opened("A5")["bob"]


def test_another_agents_flag_reopens_no_acknowledged_alarm(site):
    for n in range(3):
        site.upload(f"s{n}", logs.claude("operator", logs.COMMIT, padding=6_000 + n))
    acknowledge(open_alarms().get(rule="A5"), site.person("rita", "reviewer"))
    site.upload("other", logs.claude("operator", logs.COMMIT, padding=7_000), agent="eve")
    assert open_alarms().get(rule="A5").acknowledged_by is not None
    site.upload("s3", logs.claude("operator", logs.COMMIT, padding=8_000))
    assert open_alarms().get(rule="A5").acknowledged_by is None


# --- missing fields ---------------------------------------------------------------------------------------------------


def look(rule):
    return {finding.about: finding.detail for finding in rule.find(timezone.now())}


def test_the_first_three_sessions_without_a_field_are_told_with_the_remedy(site):
    for _ in range(3):
        assert look(incomplete) == {}
        site.session(None, model="opus")
    found = look(incomplete)
    assert list(found) == ["bob: category"]
    assert found["bob: category"].startswith("3 of 3 sessions of bob in seven days came without a category")
    assert "Add a rule under Settings, Category rules" in found["bob: category"]


def test_a_few_missing_fields_among_many_are_usual(site):
    for n in range(20):
        site.session(model="" if n < 5 else "opus")
    assert look(incomplete) == {}
    site.session(model="", harness=None)
    assert list(look(incomplete)) == ["bob: model"]


def test_one_harness_of_an_agent_that_stops_sending_a_field_is_named(site):
    for n in range(60):
        site.session(model="opus", harness="gptme")
        if n < 3:
            site.session(model="", harness="codex")
    assert list(look(incomplete)) == ["bob with codex: model"]


def test_what_infrastructure_ended_and_what_is_long_ago_need_say_nothing(site):
    for _ in range(5):
        site.session(model="", outcome="infrastructure", outcome_reason="no answer")
        site.session(model="", ago=8 * DAY)
    assert look(incomplete) == {}


# --- collapse ---------------------------------------------------------------------------------------------------------


def settled(
    site, value, *, arm="code", ago=dt.timedelta(hours=1), source=Source.JUDGE, view="full", rubric="", **fields
):
    judge = {"model": "m", "rubric": rubric} if source == Source.JUDGE else {}
    return site.session(arm, ago=ago, **fields).graded(source, value, evidence={"view": view}, **judge).settle()


def add_graded(rows):
    """Sessions with grades and no settlements, in bulk, from (category, when it ended, grades as keyword arguments)."""
    rows = list(rows)
    bob, harness = Site().agent(), Arm.objects.resolve("harness", "claude-code")
    arms = {name: Arm.objects.resolve("category", name) for name in {name for name, _, _ in rows}}
    sessions = Session.objects.bulk_create(
        Session(
            agent=bob,
            external_id=str(uuid.uuid4()),
            category=arms[arm],
            harness=harness,
            model="opus",
            ended_at=ended_at,
        )
        for arm, ended_at, _ in rows
    )
    Grade.objects.bulk_create(
        Grade(session=session, status=Status.SCORED, inputs_sha256=uuid.uuid4().hex, **grade)
        for session, (_, _, grades) in zip(sessions, rows, strict=True)
        for grade in grades
    )


def several(site, values, **fields):
    for n, value in enumerate(values):
        settled(site, value, arm=ARMS[n % 4], ago=dt.timedelta(minutes=len(values) - n), **fields)


def test_thirty_rewards_all_alike_are_told(site):
    several(site, [0.5] * 29)
    assert look(collapse) == {}
    several(site, [0.51])
    assert "The last 30 rewards, in 4 categories, are all between 0.50 and 0.51" in look(collapse)["all alike"]
    several(site, [0.8])
    assert look(collapse) == {}


def test_categories_that_differed_and_do_not_any_more_are_told(site):
    chance = random.Random(2)
    for n in range(36):
        for place, arm in enumerate(ARMS):
            level = 0.3 + 0.15 * place if n < 22 else 0.5
            settled(site, chance.gauss(level, 0.05), arm=arm, ago=(36 - n) / 3 * DAY, source=Source.TRAJECTORY)
    found = look(collapse)
    assert list(found) == ["levelled"]
    assert found["levelled"].startswith("The means of 4 categories had a standard deviation of 0.1")


def test_what_holds_scores_down_at_one_number_is_no_finding():
    judge = {"source": Source.JUDGE, "value": 0.6, "model": "m"}
    caps = [{"why": "reached: partial", "most": 0.6}]
    add_graded((ARMS[n % 4], NOON, [judge | {"evidence": {"mean": 0.6 + n / 1000, "caps": caps}}]) for n in range(100))
    assert look(collapse) == {}


def test_eleven_zeros_are_told_as_zeros(site):
    several(site, [0.4, *[0.0] * 11])
    assert list(look(collapse)) == ["zeros"]


def test_a_number_that_makes_up_fifteen_percent_is_told():
    values = [n / 100 if n < 85 else 0.755 for n in range(100)]
    add_graded(("code", NOON, [{"source": Source.JUDGE, "value": value, "model": "m"}]) for value in values)
    assert look(collapse)["judge"].startswith("15 of 100 grades (15 %) of the judge in seven days are exactly 0.76")


@pytest.mark.parametrize("view", ["looked", "failed", "facts"])
def test_the_numbers_of_views_that_are_constants_are_no_finding(view):
    grade = {"source": Source.TRAJECTORY, "value": 0.35, "evidence": {"view": view}}
    add_graded([("code", NOON, [grade])] * 120)
    assert look(collapse) == {}


def test_sessions_that_looked_and_floors_are_not_alike(site):
    for n in range(32):
        site.session(ARMS[n % 4], ended_at=NOON).graded(Source.TRAJECTORY, 0.35, evidence={"view": "looked"}).settle()
    for n in range(32):
        rewards.settle(site.session(ARMS[n % 4], ended_at=NOON).session)
    assert look(collapse) == {}


# --- disagreement -----------------------------------------------------------------------------------------------------


def both(site, judge, trajectory, *, view="full", version="trajectory/2", **fields):
    session = settled(site, judge, **fields)
    site.on(session).graded(Source.TRAJECTORY, trajectory, version=version, evidence={"view": view}).settle()
    inspect_session(session)
    return session


def usually(difference, *, n=10, arm="code", rubric="", view="full", version="trajectory/2"):
    """So many pairs whose judge is so far above the trajectory, give or take a tenth."""
    judge = {"source": Source.JUDGE, "model": "m", "rubric": rubric}
    trajectory = {"source": Source.TRAJECTORY, "value": 0.5, "version": version, "evidence": {"view": view}}
    verdicts = (0.5 + difference + (place % 3 - 1) / 10 for place in range(n))
    add_graded((arm, NOON - dt.timedelta(hours=1), [judge | {"value": value}, trajectory]) for value in verdicts)


def test_a_session_on_which_the_two_are_far_more_apart_than_usual_is_flagged(site):
    usually(0.2)
    both(site, 0.9, 0.31)
    assert flags("A3") == {}
    session = both(site, 0.9, 0.3)
    assert list(flags("A3")) == [session.external_id]
    assert (
        "the judge says 0.90, but the trajectory, which saw the whole log, says 0.30"
        in flags("A3")[session.external_id]
    )
    assert "usually 0.20 above it, by the median of 11 sessions of this category" in flags("A3")[session.external_id]


def test_scales_that_differ_are_no_disagreement(site):
    """A raw .20 may well be worth .63: what counts is how far the two usually are apart."""
    usually(0.4)
    both(site, 0.63, 0.2)
    assert flags("A3") == {}
    session = both(site, 0.2, 0.25)
    assert list(flags("A3")) == [session.external_id]


def test_nobody_can_say_what_is_wide_before_there_are_pairs(site):
    usually(0.0, n=9)
    both(site, 0.9, 0.1)
    assert flags("A3") == {}
    both(site, 0.9, 0.1)
    assert len(flags("A3")) == 1


@pytest.mark.parametrize("other", [{"version": "trajectory/1"}, {"view": "part"}, {"rubric": "b" * 64}])
def test_pairs_of_another_judge_version_or_view_say_nothing(site, other):
    usually(0.0, **other)
    both(site, 0.9, 0.1)
    assert flags("A3") == {}


def test_a_category_without_pairs_is_compared_with_all(site):
    usually(0.0, arm="infra")
    session = both(site, 0.9, 0.1, arm="code")
    assert "of all categories" in flags("A3")[session.external_id]


@pytest.mark.parametrize("view", ["part", "facts", "looked"])
def test_only_a_trajectory_that_saw_the_whole_log_can_disagree(site, view):
    usually(0.0, view=view)
    both(site, 0.9, 0.1, view=view)
    assert flags("A3") == {}


def test_a_judge_who_passes_over_a_failure_is_flagged(site):
    usually(0.0, view="failed")
    session = both(site, 0.95, 0.1, view="failed")
    assert list(flags("A3")) == [session.external_id]


def test_a_newer_agent_does_not_change_what_is_usual_for_the_older_ones(site):
    site.session("code", agent="alice")
    with time_machine.travel(NOON + DAY, tick=False):
        for _session in range(10):
            both(site, 0.9, 0.85, agent="mallory")
        both(site, 0.9, 0.4, agent="alice")
        assert flags("A3") == {}
        session = both(site, 0.3, 0.85, agent="bob")
        assert list(flags("A3")) == [session.external_id]


def test_a_person_ends_the_disagreement(site):
    usually(0.0)
    session = both(site, 0.9, 0.1)
    corrections.record_correction(session, site.person("rita", "reviewer"), value=0.5, reason="read it")
    assert flags("A3") == {}


def history(site, lost, *, days=40, rubric="abcdef"):
    """Three pairs a day of two categories; from day 30 on the trajectory of one reads so much lower."""
    chance = random.Random(3)
    rows = []
    for n in range(3 * days):
        for arm in ("code", "infra"):
            quality, missed = chance.gauss(0.6, 0.1), lost if arm == "code" and n >= 90 else 0.0
            said = max(0.0, quality - 0.1 + chance.gauss(0, 0.08) - missed)
            judge = {"source": Source.JUDGE, "value": quality, "model": "m", "rubric": rubric if n >= 90 else "abcdef"}
            trajectory = {"source": Source.TRAJECTORY, "value": said, "version": "trajectory/2"}
            grades = [judge, trajectory | {"evidence": {"view": "full"}}]
            rows.append((arm, NOON - (days - n / 3) * DAY, grades))
    add_graded(rows)


def test_a_slice_whose_difference_drifts_is_told(site):
    history(site, 0.35)
    found = look(disagreement)
    assert [about.split(" · ")[0] for about in found] == ["claude-code × code"]
    (said,) = found.values()
    assert "the judge’s grades have been 0.41 above the trajectory’s on average" in said
    assert "Before, they were 0.11 above" in said


def test_a_disagreement_reopens_no_acknowledged_alarm_about_a_slice(site):
    """Each session of a slice that drifts may disagree, and its flag opens no alarm by itself."""
    history(site, 0.35)
    usually(0.0)
    run_rules([disagreement], timezone.now())
    acknowledge(open_alarms().get(rule="A3"), site.person("rita", "reviewer"))
    both(site, 0.9, 0.05)
    assert flags("A3")
    run_rules([disagreement], timezone.now())
    assert open_alarms().get(rule="A3").acknowledged_by is not None


def test_where_nothing_changes_no_slice_is_told(site):
    history(site, 0.0)
    assert look(disagreement) == {}


def test_another_rubric_begins_another_series(site):
    history(site, 0.35, rubric="b" * 64)
    assert look(disagreement) == {}


def calibrate():
    """Put a calibration in force that reads trajectories .4 higher."""
    kind = KindEstimate(source="trajectory", shift=0.4, pairs={"code": 40})
    fallbacks = FallbackCalibration(sources=("journal", "trajectory"), kinds=(kind,))
    versions.set_calibration("category", fallbacks, version=2, by="otto")


def test_with_a_calibration_the_two_are_compared_on_the_judges_scale(site):
    calibrate()
    both(site, 0.9, 0.2)
    assert flags("A3") == {}
    session = both(site, 0.15, 0.2)
    assert list(flags("A3")) == [session.external_id]
    assert "0.20 (0.60 on the judge's scale)" in flags("A3")[session.external_id]


# --- drift ------------------------------------------------------------------------------------------------------------


def judged(site, n, levels, *, first_day, seed, model="m"):
    """So many verdicts, of each category its share and level, spread over thirty days from `first_day` days ago."""
    chance = random.Random(seed)
    names, rows = list(levels), []
    for place in range(n):
        (arm,) = chance.choices(names, [levels[name][0] for name in names])
        value = min(1.0, max(0.0, chance.gauss(levels[arm][1], 0.12)))
        grade = {"source": Source.JUDGE, "value": value, "model": model, "rubric": "abcdef"}
        rows.append((arm, NOON - (first_day - 30 * place / n) * DAY, [grade]))
    add_graded(rows)


def test_a_drift_names_its_cell(site):
    judged(site, 120, {"code": (1, 0.7), "infra": (1, 0.6)}, first_day=50, seed=5)
    assert look(drift) == {}
    judged(site, 60, {"code": (1, 0.4), "infra": (1, 0.6)}, first_day=20, seed=2)
    found = look(drift)
    assert list(found) == ["claude-code × opus × code"]
    assert "0.40 on average since" in found["claude-code × opus × code"]
    assert "0.69 before" in found["claude-code × opus × code"]


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Pago_Pago"])
@pytest.mark.parametrize("rule", [disagreement, drift])
def test_day_of_a_change_is_the_sites(site, rule, zone):
    if rule is disagreement:
        history(site, 0.35)
    else:
        judged(site, 120, {"code": (1, 0.7), "infra": (1, 0.6)}, first_day=50, seed=5)
        judged(site, 60, {"code": (1, 0.4), "infra": (1, 0.6)}, first_day=20, seed=2)
    with timezone.override(zone):
        finding = next(iter(rule.find(timezone.now())))
        first = Session.objects.get(pk=finding.sessions[0])
        assert f"since {timezone.localtime(first.ended_at):%-d %b}" in finding.detail


def test_cells_that_move_with_the_judge_are_one_alarm_that_says_so(site):
    judged(site, 120, {"code": (1, 0.7), "infra": (1, 0.6)}, first_day=50, seed=5)
    judged(site, 60, {"code": (1, 0.4), "infra": (1, 0.3)}, first_day=20, seed=2, model="other")
    found = look(drift)
    assert list(found) == ["another judge"]
    assert "The judge changed too (m, rubric abcd; now other, rubric abcd)" in found["another judge"]
    assert "1 more changed at the same time" in found["another judge"]


def test_a_mix_shift_is_told_as_that(site):
    judged(site, 600, {"code": (8, 0.8), "infra": (2, 0.4)}, first_day=60, seed=1)
    assert look(drift) == {}
    judged(site, 300, {"code": (2, 0.8), "infra": (8, 0.4)}, first_day=30, seed=2)
    found = look(drift)
    assert list(found) == ["all sessions"]
    assert "The mix of work shifted" in found["all sessions"]


def test_nobody_can_tell_where_the_work_is_new(site):
    judged(site, 600, {"code": (8, 0.8), "infra": (2, 0.7)}, first_day=60, seed=1)
    judged(site, 300, {"news": (8, 0.4), "triage": (2, 0.4)}, first_day=30, seed=2)
    assert "can’t be separated" in look(drift)["all sessions"]


# --- the page of an alarm ---------------------------------------------------------------------------------------------


def page_of(site, client, rule, person="olga"):
    client.force_login(site.person(person, "operator"))
    found = client.get(f"/alarms/{open_alarms().filter(rule=rule).first().pk}/")
    assert found.status_code == 200
    return unescape(flat(found))


def test_an_alarm_has_a_page_with_what_came_what_to_do_and_its_sessions(site, client):
    for n in range(3):
        site.upload(f"s{n}", logs.claude("operator", logs.COMMIT, padding=6_000 + n))
    page = page_of(site, client, "A5")
    assert "In seven days, 3 sessions of bob came with another session’s log or files" in page
    assert repeated.todo in page
    assert repeated.means in page
    for session in Session.objects.all():
        assert f'href="{session.get_absolute_url()}"' in page
    assert "The log belongs to session operator, not to this one" in page


def test_the_page_of_a_slice_lists_the_sessions_since_its_change(site, client):
    history(site, 0.35)
    watch()
    page = page_of(site, client, "A3")
    assert "the judge’s grades have been 0.41 above the trajectory’s on average" in page
    rows = page.split("<tbody>")[1].split("</tbody>")[0]
    assert rows.count("<tr>") == 34
    assert "infra" not in rows


def test_the_page_of_a_missing_field_lists_the_sessions_without_it(site, client):
    for n in range(5):
        site.session(model="", agent="eve", external_id=f"bare-{n}")
    site.session(model="opus", agent="eve", external_id="whole")
    watch()
    page = page_of(site, client, "A12")
    assert "bare-4" in page
    assert "whole" not in page


def test_the_page_of_a_past_alarm_says_until_when_it_held(site, client):
    for _ in range(3):
        site.session(model="")
    watch()
    alarm = open_alarms().get(rule="A12")
    Session.objects.update(model="opus")
    watch(timezone.now() + dt.timedelta(hours=1))
    client.force_login(site.person("olga", "operator"))
    assert "now closed" in flat(client.get(f"/alarms/{alarm.pk}/"))
