"""Sessions that nobody could grade: on record in the ledger, with their reason, and in no figure."""

import datetime as dt
import re

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction
from django.test import Client

from bandit import audit, ledger, merging, policies
from bandit.eligibility import consumption_feedback, consumption_of_all
from bandit.models import Arm, Bandit, Bucket, LedgerEntry, PolicyVersion
from bandit.reading import baseline_of, policy_of, posterior_of, rows_of, version_of
from bandit.selection import complete, select
from grading.models import Grade, ReviewItem, Session
from grading.models.review import Answer
from grading.review import answers, corrections, priority, promises
from grading.review.trust import trust
from grading.reward import calibrating, lessons, rewards
from grading.screens.bandit import record, travel
from grading.vocabulary import Outcome, Reason, Source
from tests import addresses, world
from tests.addresses import Kind
from tests.casts import calibration as calibration_cast
from tests.casts import lesson as lesson_cast
from tests.casts import quota as quota_cast
from tests.casts.lesson import lesson
from tests.casts.page import flat
from tests.site import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
HOUR = dt.timedelta(hours=1)
BANDITS = ("category", "harness", "lesson")


def silent(site, reason=Reason.NOTHING_OBSERVABLE, **fields):
    """A settled session that the trajectory, the only one asked, could not grade."""
    return site.session(**fields).abstained(reason, version="trajectory/2").settle()


def live(session, bandit="category"):
    return [
        (entry.grader.source, entry.grader.view, entry.value)
        for entry in ledger.live_entries(bandit, [session.observation])
    ]


@pytest.mark.parametrize("reason", [Reason.NOTHING_OBSERVABLE, Reason.FORMAT_BLIND, Reason.STUB_NO_TOOL_CALLS])
def test_a_session_that_nobody_could_grade_is_on_record_with_its_reason(site, reason):
    session = silent(site, reason)
    for bandit in ("category", "harness"):
        assert live(session, bandit) == [("unscored", reason, 0)]
    grader = ledger.live_entries("category", [session.observation]).get().grader
    said = (grader.version, grader.witness, grader.standing, grader.agent, grader.stratum)
    assert said == ("trajectory/2", "unknown", "plain", "bob", "")


def test_one_whose_trajectory_was_never_asked_says_that_no_source_could_grade_it(site):
    session = site.session().settle()
    assert live(session) == [("unscored", "no_evidence", 0)]


def test_a_reward_says_what_gave_it(site):
    session = site.session(agent="alice").graded(Source.TRAJECTORY, 0.4, version="trajectory/2").settle()
    grader = ledger.live_entries("category", [session.observation]).get().grader
    assert (grader.version, grader.view, grader.agent) == ("trajectory/2", "", "alice")
    site.on(session).graded(Source.TRAJECTORY, 0.4, version="trajectory/2", evidence={"view": "part of it"}).settle()
    assert ledger.live_entries("category", [session.observation]).get().grader.view == "part of it"


def test_a_verdict_takes_the_place_of_an_abstention_and_its_withdrawal_gives_it_back(site, rita):
    session = silent(site)
    before = list(Bucket.objects.filter(n__gt=0).values_list("grader", "n", "s", "q"))
    corrections.record_correction(session, rita, value=0.8, reason="it fixed the build")
    assert live(session) == [("human", "", 0.8)]
    corrections.undo(Grade.objects.get(source="human"), rita, reason="that was another one")
    assert live(session) == [("unscored", Reason.NOTHING_OBSERVABLE, 0)]
    assert list(Bucket.objects.filter(n__gt=0).values_list("grader", "n", "s", "q")) == before
    assert audit.audit() == []


@pytest.mark.parametrize("outcome", [Outcome.INFRASTRUCTURE, Outcome.REFUSED])
def test_a_session_that_says_nothing_about_its_arm_leaves_no_row(site, outcome):
    silent(site, outcome=outcome, outcome_reason="the login expired")
    assert not LedgerEntry.objects.exists()


def test_one_that_a_person_excluded_leaves_no_row(site, rita):
    session = silent(site)
    corrections.record_correction(session, rita, exclude=True, reason="it never began")
    assert live(session) == []


def test_a_floor_that_the_site_lets_count_is_a_reward(site, settings):
    settings.EVIDENCE_WEIGHTS = {**settings.EVIDENCE_WEIGHTS, "floor": 0.2}
    assert live(silent(site)) == [("floor", "", 0.1)]


def test_an_old_session_keeps_its_reward_under_the_old_key_until_it_is_renewed(site):
    session = site.session().judged(0.6, version="1", model="m").session
    with transaction.atomic():
        for bandit, arm, context in (("category", "cross-repo", ""), ("harness", "claude-code", "cross-repo")):
            grader = ledger.GraderKey(source="judge", model="m", context=context)
            ledger.set_credits(
                {bandit: {arm: ledger.Credit(value=0.6, grader=grader)}},
                observation=session.observation,
                effective_day=NOON.date(),
                settlement="s",
                policy_version="p",
            )
    rows = LedgerEntry.objects.count()
    rewards.settle(session)
    assert LedgerEntry.objects.count() == rows
    rewards.settle(session, renew=True)
    assert LedgerEntry.objects.count() == 3 * rows
    assert ledger.live_entries("category", [session.observation]).get().grader.agent == "bob"


def test_no_weight_makes_evidence_of_an_abstention(site):
    silent(site)
    with pytest.raises(ValidationError, match="unscored"):
        policies.set_policy("category", {"weights": {"unscored": 0.5}}, version=2, by="otto")
    before = posterior_of("category", NOON).arms
    PolicyVersion.objects.create(
        bandit=Bandit.objects.get(name="category"), version=2, by="otto", weights={"unscored": 1.0}
    )
    assert posterior_of("category", NOON).arms == before


def test_a_merge_takes_abstentions_along_and_counts_rewards_only(site):
    silent(site, category="social")
    site.session("social").judged(0.7).settle()
    social, news = (Arm.objects.resolve("category", name) for name in ("social", "news"))
    promised = merging.preview_merge(social, news, NOON).merged
    assert merging.merge(social, news, by="otto") == promised
    assert promised.rewards == 1
    assert news.entries.live().count() == 2
    assert merging.unmerge(Arm.objects.get(pk=social.pk), by="otto").rewards == 1
    assert social.entries.live().count() == 2


def test_reading_that_could_not_be_graded_uses_one_of_the_days_sessions(site):
    decision = select(bandit="category", decision_id="d", supply={"news": 1}, now=NOON - HOUR)
    session = silent(site, category="news", selection=decision)
    complete(decision, observation=session.observation, executed_arm="news", now=NOON)
    assert consumption_of_all(Bandit.objects.get(name="category"), NOON.date()) == 1


def test_the_page_of_the_bandit_says_how_many_could_not_be_graded(site, client):
    for _ in range(12):
        silent(site, category="code")
    client.force_login(site.person("vera", "viewer"))
    page = flat(client.get("/bandits/category/"))
    assert "0 sessions, 12 not graded" in page
    past = flat(client.get("/bandits/category/?at=2026-03-30"))
    assert "12 not graded" not in past


def test_the_page_of_the_session_says_that_it_is_noted(site, client):
    session = silent(site)
    client.force_login(site.person("vera", "viewer"))
    page = flat(client.get(session.get_absolute_url()))
    assert "Left out by the category bandit" in page
    assert "No effect and no failure to see: no reward for" in page
    assert "Learned" not in page


# ---- fifty of them beside ten rewards, in every figure


def decide(number, arm):
    """A decision for the arm, drawn from it alone."""
    return select(bandit="category", decision_id=f"d{number}", supply={arm: 1}, now=NOON - HOUR)


def run(site, number, arm, value):
    """One session of the arm that was decided for, given a lesson, and cost two dollars; `value` None: not graded."""
    at = NOON - dt.timedelta(days=number % 9)
    decision = decide(number, arm) if number % 4 == 0 and (arm != "news" or number < 10) else None
    names = {
        "read_first": 1.0 if number % 2 else lesson_cast.draw_row("read-first", taken=number % 4 < 2, number=number)
    }
    made = lesson_cast.session(value, category=arm, at=at, **names)
    Session.objects.filter(pk=made.pk).update(cost_usd=2.0, selection=decision)
    if value is None:
        site.on(made).abstained()
    if decision is not None:
        complete(decision, observation=made.observation, executed_arm=arm, now=NOON)
    made.refresh_from_db()
    rewards.settle(made)
    return made


def figures():
    """What the functions behind the screens say, as comparable values."""
    found = {}
    for name in BANDITS:
        bandit = Bandit.objects.get(name=name)
        policy, version = policy_of(bandit), version_of(bandit)
        rows = rows_of(bandit, policy, NOON.date())
        outlook = posterior_of(name, NOON)
        then = posterior_of(name, NOON, known_by=NOON + HOUR)
        found[name] = (
            outlook.arms,
            outlook.chances,
            then.arms,
            outlook.posterior.evidence_scale,
            sorted(map(repr, rows)),
            policies.costs_of(rows),
            policies.memory_of(version, NOON),
            repr(baseline_of(bandit, NOON.date())),
            consumption_of_all(bandit, NOON.date()),
            consumption_feedback(rows, ["news"], version, NOON.date()),
            repr(calibrating.proposal(name, NOON).offsets),
        )
    found["lessons"] = repr(lessons.load_lessons(Bandit.objects.get(name="lesson"), NOON))
    found["trust"] = repr(trust(NOON))
    found["worth"] = priority.by_arm(NOON)
    return found


def screens(client, rows):
    """Every screen and its files, without what is new at each request. Django's pages of rows show no figures."""
    found = {}
    for name, address in addresses.SCREENS.items():
        if address.kind not in {Kind.PAGE, Kind.PART, Kind.DATA, Kind.FILE} or address.claims:
            continue
        for url in addresses.urls(name, rows):
            answer = client.get(url)
            text = b"".join(answer) if answer.streaming else answer.content
            said = re.sub(rb'(csrfmiddlewaretoken" value|name="bulk" value)="[^"]*"', b"", text)
            said = re.sub(rb",\s+\d+ not graded|<p class=\"only-seen\">.*?</p>", b"", said, flags=re.DOTALL)
            # What the next calibration would move: it is fitted to read abstentions.
            said = re.sub(rb'<section class="card" id="calibration">.*?</section>', b"", said, flags=re.DOTALL)
            found[url] = re.sub(rb"\s+", b" ", said)
    return found


@pytest.mark.slow
def test_fifty_abstentions_beside_ten_rewards_move_no_figure(site, settings, django_user_model):
    quota_cast.use(settings)
    rows = world.make()
    lesson("read-first")
    for number in range(10):
        run(site, number, ("news", "code", "infra")[number % 3], 0.2 + number / 20)
    abstained = [run(site, number, ("news", "code", "infra")[number % 3], None) for number in range(10, 60)]
    noted = LedgerEntry.objects.filter(grader__source="unscored").live()
    assert noted.filter(bandit__name="category").count() == 50
    assert noted.filter(bandit__name="lesson").exists()
    client = Client()
    client.force_login(django_user_model.objects.create_superuser("root"))
    screens(client, rows)  # what a first visit leaves behind
    with_them, shown = figures(), screens(client, rows)
    assert b"not graded" in client.get("/bandits/category/").content
    with transaction.atomic():
        for session in abstained:
            for bandit in BANDITS:
                ledger.set_credits(
                    {bandit: {}},
                    observation=session.observation,
                    effective_day=NOON.date(),
                    settlement="s",
                    policy_version="p",
                )
    assert not noted.all().filter(observation__in=[each.observation for each in abstained]).exists()
    assert figures() == with_them
    without = screens(client, rows)
    # The history tells of the downloads themselves, health of the moment.
    for url, text in shown.items():
        if url.startswith(("/history", "/healthz")):
            continue
        # Forms have names of their own, so that one that is sent twice counts once.
        other = rb'<td class="right">\s*\d+\s*</td>|name="name" value="[0-9a-f-]{36}"'
        assert re.sub(other, b"", text) == re.sub(other, b"", without[url]), url


# ---- where a calibration reads them


def read_by_a_calibration(site):
    """Judged sessions, judged abstentions and what they say of the others, in force."""
    calibration_cast.pairs(4, code=(0.2, 0.5), infra=(0.5, 0.8))
    for number in range(6):
        calibration_cast.judged(None, 0.3, arm="code", ago=calibration_cast.DAY * (number % 3 + 1))
    calibration_cast.put(site.person("otto", "operator"))


def test_abstentions_that_are_read_are_rewards_nowhere(site, client):
    """They move what is believed. They are no session that was graded, none that cost, none that ends a probation."""
    read_by_a_calibration(site)
    code = Arm.objects.resolve("category", "code")
    Session.objects.update(cost_usd=1.0)
    bandit, today = Bandit.objects.get(name="category"), NOON.date()
    client.force_login(site.person("vera", "viewer"))

    def said():
        belief = travel.read(bandit, travel.Moments(now=NOON, day=today))
        rows = rows_of(bandit, policy_of(bandit), today)
        counted = record.records(
            belief, {arm.name: arm for arm in bandit.arms.all()}, travel.Moments(now=NOON, day=today)
        )["code"]
        return (
            belief.rewarded("code"),
            (counted.n, counted.raw, counted.costed),
            policies.costs_of(rows).get("code"),
            belief.is_tried(code),
        )

    before = said()
    for _ in range(9):
        silent(site, category="code", ended_at=NOON - calibration_cast.DAY, cost_usd=5.0)
    rows = rows_of(bandit, policy_of(bandit), today)
    assert sum(row.n for row in rows if row.source == "unscored") == 9
    assert said() == before
    page = flat(client.get("/bandits/category/"))
    assert "10 sessions, 9 not graded" in page
    assert "9 not graded: estimated at ≈ " in page
    assert "unscored</option>" not in page


def test_they_are_no_evidence_of_their_own(site, client):
    read_by_a_calibration(site)
    for _ in range(30):
        silent(site, category="news", ended_at=NOON - calibration_cast.DAY)
        silent(site, category="code", ended_at=NOON - calibration_cast.DAY)
    arms = posterior_of("category", NOON).arms
    assert [each.pseudo for each in arms["news"].evidence] == [0]
    assert {each.source: each.pseudo for each in arms["code"].evidence}["unscored"] == 0
    client.force_login(site.person("vera", "viewer"))
    page = flat(client.get("/bandits/category/"))
    row = page.partition('<div class="name">news</div>')[2].partition('<div class="brow')[0]
    assert "no graded session yet" in row


def test_a_person_who_grades_one_takes_it_out_of_what_is_believed(site, rita):
    read_by_a_calibration(site)
    made = [silent(site, category="code", ended_at=NOON - calibration_cast.DAY) for _ in range(5)]
    effects = {(each.bandit, each.arm): each for each in promises.arm_moves([(made[0], 0.9)])}
    corrections.record_correction(made[0], rita, value=0.9, reason="it fixed the build")
    now = posterior_of("category", NOON).arms["code"]
    assert effects["category", "code"].mean_after == pytest.approx(now.mean)


def test_merging_arms_takes_abstentions_along_in_the_preview_too(site):
    read_by_a_calibration(site)
    for _ in range(5):
        silent(site, category="social", ended_at=NOON - calibration_cast.DAY)
    social, code = (Arm.objects.resolve("category", name) for name in ("social", "code"))
    promised = merging.preview_merge(social, code, NOON).after
    merging.merge(social, code, by="otto")
    now = posterior_of("category", NOON).arms["code"]
    assert promised.arms["code"].mean == pytest.approx(now.mean)


def test_no_offset_is_of_them(site, rita):
    read_by_a_calibration(site)
    for _ in range(5):
        silent(site, category="code")
    session = calibration_cast.fell_back(0.2, arm="code")
    ReviewItem.objects.update_or_create(session=session, defaults={"slice_probability": 0.2, "entered_as": "slice"})
    answers.submit(session, rita, answer=Answer.GRADE, value=0.9, reason="looked at it")
    offsets = calibrating.proposal("category", NOON).offsets
    assert {each.source for each in offsets} == {"trajectory"}
