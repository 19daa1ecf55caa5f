"""From sessions with transcripts and verdicts to a calibration, by people and at night, and back to the same bits."""

import datetime as dt
import html
import re

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from bandit import audit, ledger
from bandit.core.machine_human import Offset
from bandit.models import Arm, Bandit, CalibrationVersion
from bandit.reading import posterior_of
from bandit.versions import accepted_calibration, latest, set_calibration
from grading import tasks
from grading.models import Alarm, ApiToken
from grading.monitoring.rule import RULES, Severity
from grading.monitoring.watch import refresh_alarms, watch
from grading.reward import calibrating, judged_pairs, rewards
from grading.reward.explain import number
from grading.vocabulary import Source
from tests.bandit import helpers
from tests.casts import calibration as calibration_cast
from tests.casts import logs
from tests.casts.calibration import DAY
from tests.casts.page import flat
from tests.incidents.helpers import learned, simulated, work
from tests.site import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]

RED, GREEN = ("pytest -q", "2 failed, 6 passed"), ("pytest -q", "8 passed")
PUSH = ("git push", "To github.com:octo/repo.git\n   1a2b3c4..5d6e7f8  main -> main")


@pytest.fixture
def otto(site):
    return site.person("otto", "operator")


def bits(now=NOON):
    posterior = posterior_of("category", now).posterior
    return posterior.alpha.tobytes() + posterior.beta.tobytes()


def versions(name="category"):
    return list(CalibrationVersion.objects.filter(bandit__name=name).order_by("version").values_list("by", flat=True))


# ---- through the real intake, with a judge over a socket


def commit(number):
    return ("git commit -am 'Fix it'", f"[main {number:07x}] Fix it\n 1 file changed, 2 insertions(+)")


def hand_in(site, number, arm, *calls):
    name = f"s-{number}"
    log = logs.claude(name, commit(0xA000000 + number), *calls)
    return site.upload(name, log, category=arm, ended_at=NOON - dt.timedelta(hours=number % 20 + 1)).session


def test_verdicts_on_transcripts_become_pairs_a_version_and_a_posterior_and_off_gives_every_bit_back(
    site, settings, otto
):
    with simulated(settings) as sim:
        for number in range(6):
            arm, calls = (("code", (GREEN, PUSH)), ("infra", (RED,)), ("triage", (GREEN,)))[number % 3]
            sim.script({"score": {"code": 0.9, "infra": 0.3, "triage": 0.7}[arm] + 0.02 * (number % 4)})
            session = hand_in(site, number, arm, *calls)
            assert work() == 1
            assert rewards.live(session).source == Source.JUDGE
        settings.ANTHROPIC_API_KEY = ""
        alone = [hand_in(site, 100 + number, "news", GREEN) for number in range(2)]
    assert {rewards.live(session).source for session in alone} == {Source.TRAJECTORY}
    calibrating.switch_off("category", otto, version=2)
    before, rows = bits(), learned()
    found = calibrating.proposal("category", NOON)
    assert found.pairs == 6
    assert {kind.source for kind in found.fallbacks.kinds} == {"trajectory"}
    made = calibrating.put_in_force(found, otto, version=3, fingerprint=found.fingerprint, note="looked at")
    assert made.target.startswith("claude")
    assert bits() != before
    assert bits() == found.after.posterior.alpha.tobytes() + found.after.posterior.beta.tobytes()
    assert calibrating.proposal("category", NOON).is_in_force
    (said,) = [each for each in posterior_of("category", NOON).arms["news"].evidence if each.source == "trajectory"]
    read = calibrating.CalibrationReader().calibrate(alone[0], alone[0].grades.get(source="trajectory"))
    assert said.mean == pytest.approx(read.value, abs=1e-6)
    assert (read.version, read.pairs) == (3, 6)
    calibrating.switch_off("category", otto, version=4)
    assert bits() == before
    assert learned() == rows
    assert audit.audit() == []


# ---- one session: its page, and over HTTP


def page_of(client, session):
    return html.unescape(flat(client.get(session.get_absolute_url())))


def tile(page, source):
    return page.partition(f'<div class="tile c-{source}')[2].partition('<div class="join')[0]


def numbers(read):
    return f"{number(read.value)}", f"from {read.pairs} judged sessions", f"± {number(read.half_width)}"


def test_a_fallbacks_tile_says_what_it_is_on_the_judges_scale(client, otto):
    calibration_cast.pairs(6)
    calibration_cast.put(otto)
    session = calibration_cast.fell_back(0.2, arm="code")
    client.force_login(otto)
    read = calibrating.CalibrationReader().calibrate(session, session.grades.get(source="trajectory"))
    value, pairs, error = numbers(read)
    page = page_of(client, session)
    shown = tile(page, "trajectory")
    assert f"≈ {value}<small>on the judge’s scale</small>" in shown
    assert f"raw .20 · {pairs} · {error} for one session · counts 0" in re.sub(r"<[^>]+>", "", shown)
    assert f"On the judge’s scale, this reward is ≈ {value} ({error}; {pairs})." in page
    estimate = number(evidence_of("code", "trajectory").mean)
    assert estimate != value
    assert "The arm code has enough verdicts, so the category bandit doesn’t use this number." in page
    assert f"It uses ≈\xa0{estimate}, its estimate for such sessions." in page
    changed = page.partition("What it changed")[2]
    assert f'≈ {estimate} <span class="dim raw">raw .20</span>' in changed
    assert '<td class="right">0</td>' in changed
    # In an arm without verdicts it counts.
    page = page_of(client, calibration_cast.fell_back(0.2, arm="news"))
    assert f"<small>≈ {value} on the judge’s scale</small>" in page
    assert "The category bandit uses this number and counts it as .3 of a verdict." in page
    assert f'≈ {value} <span class="dim raw">raw .20</span>' in page.partition("What it changed")[2]
    # One that the judge graded too.
    page = page_of(client, calibration_cast.judged(0.2, 0.6, arm="code"))
    assert f"≈ {value}<small>" in tile(page, "trajectory")
    assert f"raw .20 · {pairs} · would count 0" in tile(page, "trajectory")
    assert "On the judge’s scale, this reward is" not in page


def evidence_of(arm, source, bandit="category"):
    """What the bandit itself has of this source in this arm."""
    (evidence,) = [each for each in posterior_of(bandit, NOON).arms[arm].evidence if each.source == source]
    return evidence


def test_each_bandit_is_shown_with_the_number_that_it_uses(client, otto):
    """Every bandit has its own calibration: the harness bandit has none until somebody puts one in force."""
    calibration_cast.pairs(6)
    calibration_cast.put(otto)
    session = calibration_cast.fell_back(0.2, arm="news", harness="gptme")
    client.force_login(otto)

    def rows():
        reply = client.get(session.get_absolute_url())
        return {row["entry"].bandit.name: row for row in reply.context["applied_rewards"]}

    used = {
        name: evidence_of(arm, "trajectory", name).mean for name, arm in (("category", "news"), ("harness", "gptme"))
    }
    assert used["harness"] == pytest.approx(0.2)
    shown = rows()
    assert shown["category"]["read"].value == pytest.approx(used["category"])
    assert shown["category"]["read"].how == "on the judge’s scale"
    assert evidence_of("gptme", "trajectory", "harness").mean == pytest.approx(0.2)
    assert shown["harness"]["read"] is None
    calibration_cast.put(otto, name="harness")
    shown = rows()
    assert shown["harness"]["read"].value == pytest.approx(evidence_of("gptme", "trajectory", "harness").mean)
    assert shown["harness"]["read"].value > 0.3


def test_a_baseline_and_peoples_grades_move_the_number_that_is_shown(client, otto):
    """The harness bandit compares a reward with its category; people graded the judge's sessions .3 higher."""
    for _ in range(10):
        calibration_cast.judged(None, 0.8, arm="code", ago=DAY * 2)
        calibration_cast.judged(None, 0.3, arm="infra", ago=DAY * 2)
    offset = Offset(arm="code", source="judge", stratum="", offset=0.1, pairs=9, low=0.0, high=0.2)
    set_calibration("category", None, [offset], version=2, by="otto", accepted=True)
    session = calibration_cast.judged(None, 0.5, arm="code", harness="gptme")
    client.force_login(otto)
    reply = client.get(session.get_absolute_url())
    read = {row["entry"].bandit.name: row["read"] for row in reply.context["applied_rewards"]}
    assert (read["category"].value, read["category"].how) == (pytest.approx(0.6), "corrected by people’s grades")
    assert read["harness"].how == "compared with its category"
    assert read["harness"].value == pytest.approx(evidence_of("gptme", "judge", "harness").mean)
    assert read["harness"].value < 0.45
    page = html.unescape(flat(reply))
    assert "The category bandit uses ≈\xa0.60, corrected by people’s grades." in page
    foot = "≈ is the number that the bandit uses: corrected by people’s grades; compared with its category."
    assert foot in page


def test_an_ungraded_session_says_whether_bandits_estimate_it(client, otto):
    session = calibration_cast.fell_back(None, arm="code")
    client.force_login(otto)
    assert "Until then, this session changes no arm." in page_of(client, session)
    calibration_cast.pairs(6)
    calibration_cast.judged(None, 0.1, arm="code")
    calibration_cast.put(otto)
    page = page_of(client, session)
    assert "Until then, calibrated bandits estimate this session from judged ones like it." in page
    assert "changes no arm." not in page


def test_a_fallback_that_counts_0_says_so(client, otto):
    """A journal has no pairs, so no estimate replaces it; in an arm with enough verdicts it still counts 0."""
    calibration_cast.pairs(6)
    calibration_cast.put(otto)
    client.force_login(otto)
    sentence = "It counts 0 for now, because its arm has enough verdicts."
    assert sentence in page_of(client, calibration_cast.fell_back(0.2, arm="code", source=Source.JOURNAL))
    assert sentence not in page_of(client, calibration_cast.fell_back(0.2, arm="news", source=Source.JOURNAL))


def test_without_pairs_the_tile_shows_the_grade_as_given(client, otto):
    session = calibration_cast.fell_back(0.2, arm="code")
    client.force_login(otto)
    page = page_of(client, session)
    assert '<div class="val">.20</div>' in tile(page, "trajectory")
    assert "judge’s scale" not in page


def test_each_verdict_in_the_arm_takes_a_fifth_of_its_weight(client, otto):
    calibration_cast.judged(0.3, 0.8)
    session = calibration_cast.fell_back(0.2, arm="code")
    client.force_login(otto)
    assert '<td class="right">.24</td>' in page_of(client, session).partition("What it changed")[2]


def test_weighing_more_rewards_of_an_arm_takes_no_more_queries(otto):
    """The page of an alarm weighs the reward of each of its sessions."""
    calibration_cast.pairs(6)
    calibration_cast.put(otto)
    sessions = [calibration_cast.fell_back(0.2, arm="code") for _ in range(6)]
    counts = []
    for some in (sessions[:2], sessions):
        entries = list(ledger.live_entries("category", [session.observation for session in some]))
        reader = calibrating.CalibrationReader()
        with CaptureQueriesContext(connection) as queries:
            assert [reader.weight_of(entry) for entry in entries] == [0.0] * len(some)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_single_sessions_are_cut_to_a_grade_on_the_screen(client, otto):
    calibration_cast.pairs(6, code=(0.2, 0.9), infra=(0.3, 0.97))
    calibration_cast.put(otto)
    session = calibration_cast.fell_back(0.98, arm="infra")
    client.force_login(otto)
    assert "≈ 1<small>" in tile(page_of(client, session), "trajectory")


def api(path, secret):
    answer = Client().get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 200
    return answer.json()


def test_the_api_gives_what_was_settled_what_it_is_read_as_and_what_a_source_counts(site, otto):
    helpers.policy(varies_by_day=False)  # else sessions of one day count a little less
    _, secret = ApiToken.objects.issue(site.agent())
    session = calibration_cast.fell_back(0.2, arm="code")
    said = api(f"sessions/{session.pk}", secret)["reward"]
    assert (said["value"], said["calibrated"], said["calibration_version"]) == (0.2, None, None)
    calibration_cast.pairs(6)
    calibration_cast.put(otto)
    read = calibrating.CalibrationReader().calibrate(session, session.grades.get(source="trajectory"))
    said = api(f"sessions/{session.pk}", secret)
    assert said["reward"]["value"] == 0.2
    assert said["reward"]["calibrated"] == pytest.approx(read.value)
    assert said["reward"]["calibration_version"] == 2
    (grade,) = said["grades"]
    assert (grade["value"], grade["calibrated"]) == (0.2, pytest.approx(read.value))
    (code,) = [arm for arm in api("bandits/category", secret)["arms"] if arm["arm"] == "code"]
    by_source = {each["source"]: each for each in code["evidence"]}
    assert (by_source["judge"]["is_estimated"], by_source["trajectory"]["is_estimated"]) == (False, True)
    assert by_source["judge"]["counts"] == pytest.approx(1, abs=0.01)
    assert (by_source["trajectory"]["pseudo"], by_source["trajectory"]["counts"]) == (0, 0)
    judged = calibration_cast.judged(0.2, 0.6, arm="code")
    said = api(f"sessions/{judged.pk}", secret)
    assert (said["reward"]["value"], said["reward"]["calibrated"]) == (0.6, None)
    by_source = {grade["source"]: grade["calibration_version"] for grade in said["grades"]}
    assert by_source == {"trajectory": 2, "judge": None}
    calibrating.switch_off("category", otto, version=3)
    assert api(f"sessions/{session.pk}", secret)["reward"]["calibrated"] is None


def test_the_schema_says_what_the_numbers_mean(client):
    schemas = client.get("/api/v1/openapi.json").json()["components"]["schemas"]
    for name in ("ReadReward", "GradeOut"):
        assert {"calibrated", "calibration_version"} <= schemas[name]["properties"].keys()
        assert "judge's scale" in re.sub(r"\s+", " ", schemas[name]["description"])


# ---- at night


def test_no_pair_is_of_a_session_or_a_verdict_that_is_older_than_they_may_be():
    bandit, within = Bandit.objects.get(name="category"), judged_pairs.MAX_AGE - DAY
    with time_machine.travel(NOON - judged_pairs.MAX_AGE - DAY, tick=False):
        calibration_cast.judged(0.2, 0.5, arm="code")  # of a session that went on since
    calibration_cast.judged(0.3, 0.6, arm="infra", ago=judged_pairs.MAX_AGE + DAY)
    with time_machine.travel(NOON - within, tick=False):
        calibration_cast.judged(0.4, 0.7, arm="triage", ago=within)
    assert [pair.arm for pair in judged_pairs.read_judgements(NOON).pairs[bandit.name]] == ["triage"]


def test_a_stored_reading_proposes_what_reading_the_grades_does(otto):
    """What the worker stored gives the same proposal, which can be put in force while newer verdicts wait."""
    calibration_cast.pairs(6)
    fresh = calibrating.proposal("category", NOON)
    judged_pairs.store_judgements(NOON)
    stored = calibrating.proposal("category", NOON)
    assert (stored.read_at, stored.target, stored.fallbacks) == (NOON, fresh.target, fresh.fallbacks)
    calibration_cast.judged(0.2, 0.5, arm="code", ago=DAY / 2)
    later = calibrating.proposal("category", NOON)
    assert later.pairs == fresh.pairs
    calibrating.put_in_force(later, otto, version=later.version, fingerprint=stored.fingerprint)
    judged_pairs.store_judgements(NOON + dt.timedelta(hours=1))
    assert calibrating.proposal("category", NOON).pairs == fresh.pairs + 1


def test_many_small_nights_never_go_further_than_one_large_one_may(otto):
    """What counts is how far it is from where a person left it, not how far last night's version was."""
    calibration_cast.pairs(6, code=(0.2, 0.3), infra=(0.5, 0.6), triage=(0.35, 0.45))
    for each in range(10):
        calibration_cast.fell_back(0.2, arm="news", ago=DAY * (1 + each % 5))
    accepted = calibration_cast.put(otto)
    nights = 0
    for _ in range(12):
        for arm, value in (("code", 0.2), ("infra", 0.5), ("triage", 0.35)):
            calibration_cast.judged(value, 0.95, arm=arm, ago=DAY / 2)
        renewed = [each for each in calibrating.renew(NOON) if each.bandit.name == "category"]
        nights += len(renewed)
        found = calibrating.proposal("category", NOON)
        if renewed:
            held = [arm.mean for arm in found.now.arms.values()]
            left = [arm.mean for arm in found.accepted.arms.values()]
            assert max(abs(a - b) for a, b in zip(held, left, strict=True)) <= calibrating.MAX_AUTOMATIC_MOVE
        if found.waits:
            break
    assert found.waits
    assert abs(found.largest[1]) > calibrating.MAX_AUTOMATIC_MOVE
    assert accepted_calibration(found.bandit) == accepted
    assert len(versions()) == 2 + nights


def test_nothing_comes_by_itself_where_a_person_switched_off(otto):
    calibration_cast.pairs(6)
    calibration_cast.put(otto)
    calibrating.switch_off("category", otto, version=3)
    calibration_cast.judged(0.2, 0.5, arm="code", ago=DAY / 2)
    tasks.at_night()
    assert versions() == ["the site, at the start", "otto", "otto"]
    assert not alarms("category")


def test_nothing_comes_by_itself_where_nobody_ever_accepted_one():
    moods = Bandit.objects.create(name="moods", title="Moods", kind="choice")
    Arm.objects.create(bandit=moods, name="calm")
    helpers.reward("s-1", bandit="moods", calm=0.5)
    tasks.at_night()
    assert versions("moods") == []
    (detail,) = alarms("moods")
    assert "This bandit has rewards but has never been calibrated" in detail
    assert "version 1" in detail


def test_a_bandit_without_a_calibration_and_without_rewards_waits_for_nobody():
    Bandit.objects.create(name="moods", title="Moods", kind="choice")
    tasks.at_night()
    assert not alarms()


# ---- a rule speaks


def alarms(about=""):
    return list(
        Alarm.objects.filter(rule="A40", resolved_at=None, about__startswith=about).values_list("detail", flat=True)
    )


def test_a_version_that_moves_much_waits_as_an_advisory_of_the_night_and_one_that_moves_little_comes_by_itself(otto):
    """I37: grades of unlike graders are read at face value until somebody accepts a calibration, and that is told."""
    calibration_cast.moves_a_lot()
    watch()
    refresh_alarms()
    assert not alarms()
    tasks.at_night()
    assert versions() == ["the site, at the start"]
    found = calibrating.proposal("category", NOON)
    arm, move = found.largest
    (detail,) = alarms("category")
    assert f"Version 2, based on 36 judged sessions, would change {arm} by {number(abs(move))}" in detail
    assert "over .05, so a person must decide. Until then, version 1 stays in force." in detail
    rule = RULES["A40"]
    assert rule.severity == Severity.ADVISORY
    assert reverse(rule.page) == "/calibration/"
    calibration_cast.put(otto)
    tasks.at_night()
    assert not alarms("category")
    calibration_cast.judged(0.2, 0.84, arm="code", ago=DAY / 2)
    tasks.at_night()
    assert versions() == ["the site, at the start", "otto", "the site, at night"]
    held = latest(Bandit.objects.get(name="category").calibrations.all())
    assert (held.accepted, held.enabled) == (False, True)
    tasks.at_night()
    assert len(versions()) == 3
