"""Some of each arm's abstentions are judged whatever else waits: drawn once, unforeseen, and for good."""

import datetime as dt
import secrets
from concurrent.futures import ThreadPoolExecutor
from html import unescape

import pytest
import time_machine
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from bandit import ledger, merging
from bandit.chance import key_id
from bandit.models import Arm
from grading.intake import erasing
from grading.judging import earlier, enqueuing, ordering, sweeper, worker
from grading.judging.allowance import budget
from grading.models import AbstentionDraw, JudgeAttempt, JudgeJob, JudgePolicy, Rubric, Session
from grading.models.judging import AttemptOutcome, JudgeRole
from grading.review import corrections
from grading.reward import rewards
from grading.vocabulary import Outcome, Source
from tests.casts import intake
from tests.casts import judge as judge_cast
from tests.casts.page import flat
from tests.site import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("noon")]
HOUR = dt.timedelta(hours=1)


def draws(**columns):
    return list(AbstentionDraw.objects.filter(**columns).values_list("drawn", "chance"))


def stub(site, name, text="I had a look.", **said):
    """A session whose log shows nothing to grade by, handed in."""
    return site.upload(name, intake.claude(name, ("user", "Do it. " + "x" * 6_000), intake.says(text)), **said)


def test_an_abstention_is_drawn_when_it_is_first_recorded_with_its_chance_and_key(site):
    session = site.session().abstained().settle()
    row = AbstentionDraw.objects.get()
    assert (row.session, row.arm, row.chance, row.key_id) == (session, session.category, 0.1, key_id())


def test_no_arm_has_none_among_ten_and_none_has_less_than_its_chance(site):
    for arm in ("code", "news"):
        for _ in range(20):
            site.session(arm).abstained().settle()
        found = draws(arm__name=arm)
        assert all(any(drawn for drawn, _ in found[start : start + 10]) for start in range(11))
        assert {chance for _, chance in found} <= {0.1, 1.0}
        assert 2 <= sum(drawn for drawn, _ in found) <= 8


def test_the_same_sessions_under_another_key_are_drawn_otherwise(site, settings):
    def drawn():
        with site.rolled_back():
            for number in range(20):
                site.session("code", external_id=f"s-{number}").abstained().settle()
            return [each for each, _ in draws()]

    first = drawn()
    assert drawn() == first
    settings.CHANCE_KEY = bytes(range(32, 64))
    assert drawn() != first


@pytest.mark.parametrize(
    "fields", [{"outcome": Outcome.INFRASTRUCTURE, "outcome_reason": "out of memory"}, {"category": None}]
)
def test_what_says_nothing_of_an_arm_is_not_drawn(site, fields):
    site.session(**fields).abstained().settle()
    assert draws() == []


def test_what_is_graded_is_not_drawn(site):
    for source in (Source.TRAJECTORY, Source.JOURNAL, Source.JUDGE):
        site.session().graded(source, 0.4).settle()
    assert draws() == []


def test_one_that_names_its_category_later_is_drawn_then(site):
    site.session(None, external_id="late").abstained().settle()
    assert draws() == []
    made = Session.objects.get()
    made.category = Arm.objects.resolve("category", "news")
    made.save()
    rewards.settle(made)
    assert [row.arm.name for row in AbstentionDraw.objects.all()] == ["news"]


def test_in_another_arm_it_is_another_draw_and_back_in_the_first_none(site):
    made, back = site.session("code").abstained().settle(), Arm.objects.resolve("category", "code")
    before = AbstentionDraw.objects.get()
    for arm in (Arm.objects.resolve("category", "news"), back):
        Session.objects.filter(pk=made.pk).update(category=arm)
        rewards.settle(made)
    assert list(AbstentionDraw.objects.values_list("arm__name", flat=True)) == ["code", "news"]
    assert AbstentionDraw.objects.first() == before


def test_merging_arms_and_parting_them_draws_nothing_again(site):
    code, news = (Arm.objects.resolve("category", name) for name in ("code", "news"))
    for _ in range(4):
        site.session("code").abstained().settle()
        site.session("news").abstained().settle()
    before = draws()
    merging.merge(code, news, by="otto")
    for each in Session.objects.all():
        rewards.settle(each, renew=True)
    merging.unmerge(Arm.objects.get(pk=code.pk), by="otto")
    for each in Session.objects.all():
        rewards.settle(each)
    assert draws() == before


def test_what_was_merged_counts_on_in_the_arm_that_it_is_now(site):
    code, news = (Arm.objects.resolve("category", name) for name in ("code", "news"))
    passed_over(site, 9, "code")
    merging.merge(code, news, by="otto")
    site.session("news").abstained().settle()
    assert draws()[-1] == (True, 1.0)


def passed_over(site, n, arm):
    """So many abstentions of the arm that were not drawn."""
    with_arm = Arm.objects.get(bandit__name="category", name=arm)
    for _ in range(n):
        made = site.session(arm).session
        AbstentionDraw.objects.create(session=made, arm=with_arm, drawn=False, chance=0.1, key_id="00000000")


# ---- stable, whatever comes


def test_a_submission_again_a_late_transcript_and_a_verdict_draw_nothing_again(site, rita):
    stub(site, "s-1")
    before = draws()
    assert len(before) == 1
    stub(site, "s-1")
    stub(site, "s-1", "Another word.")
    assert draws() == before
    work = intake.calls(("Bash", {"command": "git commit -m x"}, "[main 1a2b3c4] x\n 1 file changed"))
    site.upload("s-1", intake.claude("s-1", *work, intake.says("Done.")), journal="Merged it.")
    made = Session.objects.get()
    assert rewards.live(made).source != Source.FLOOR
    corrections.record_correction(made, rita, value=0.2, reason="no")
    corrections.undo(made.grades.get(source="human"), rita, reason="yes")
    assert draws() == before


def test_an_empty_log_is_drawn_like_any_other(site):
    site.upload("s-1", b"\n")
    assert ledger.live_entries("category", [Session.objects.get().observation]).get().is_abstention
    assert len(draws()) == 1


def test_new_ids_for_the_same_work_are_new_sessions_of_the_arm_and_some_of_them_are_drawn(site):
    for number in range(20):
        stub(site, f"again-{number}")
    found = draws()
    assert len(found) == 20
    assert sum(drawn for drawn, _ in found) >= 2


@pytest.mark.django_db(transaction=True)
def test_sessions_that_come_at_once_are_drawn_one_after_the_other(site):
    made = [site.session("code").session for _ in range(24)]
    for each in made:
        site.on(each).abstained()

    def settle(some):
        try:
            for each in some:
                rewards.settle(each)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(settle, [made[start::4] for start in range(4)]))
    found = [drawn for drawn, _ in draws()]
    assert len(found) == 24
    assert all(any(found[start : start + 10]) for start in range(15))


def test_a_lost_key_changes_nothing_that_was_drawn(site, settings):
    made = [site.session("code").abstained().settle() for _ in range(12)]
    old, before = key_id(), draws()
    settings.CHANCE_KEY = bytes(range(32, 64))
    for each in made:
        rewards.settle(each, renew=True)
    assert draws() == before
    site.session("code").abstained().settle()
    assert list(AbstentionDraw.objects.values_list("key_id", flat=True)) == [old] * 12 + [key_id()]


def test_the_share_is_that_of_the_policy_which_holds(site):
    budget.set_policy(by=None, abstention_share=0.5)
    site.session("code").abstained().settle()
    site.session("code").abstained().settle()
    assert {chance for _, chance in draws()} <= {0.5, 1.0}
    assert any(drawn for drawn, _ in draws())
    budget.set_policy(by=None, abstention_share=0)
    for _ in range(11):  # the eleventh would be drawn for certain
        site.session("news").abstained().settle()
    assert draws(arm__name="news") == [(False, 0)] * 11


def test_the_database_refuses_to_change_a_draw_or_to_take_it_back(site):
    site.session().abstained().settle()
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        AbstentionDraw.objects.update(drawn=True)
    with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
        AbstentionDraw.objects.all().delete()


def test_erasing_a_session_erases_its_draw(site):
    kept, gone = site.session().abstained().settle(), site.session().abstained().settle()
    counts = erasing.erase(Session.objects.filter(pk=gone.pk), who="otto", why="asked to")
    assert counts["abstentiondraw"] == 1
    assert AbstentionDraw.objects.get().session == kept


# ---- judged first


@pytest.fixture
def policy():
    return budget.set_policy(by=None, repeat_share=0, second_share=0)


def job(site, *, drawn=False, agent="bob", **fields):
    """A waiting job of a session that was drawn, or not."""
    made = site.session(agent=agent).session
    AbstentionDraw.objects.create(session=made, arm=made.category, drawn=drawn, chance=0.1, key_id="00000000")
    return enqueuing.add(made, Rubric.objects.active(), **fields)


def order():
    """The waiting jobs, one call after the other, in the order in which a worker would ask for them."""
    asked = []
    waiting = JudgeJob.objects.count()
    while len(asked) < waiting:
        first = ordering.single_call_jobs(NOON, [JudgeRole.FIRST]).exclude(pk__in=[each.pk for each in asked])[0]
        asked.append(first)
        call(first)
    return asked


def call(made):
    JudgeAttempt.objects.create(
        job=made, lease_token=secrets.token_hex(16), outcome=AttemptOutcome.GRADED, finished_at=NOON
    )


def test_a_drawn_sessions_job_is_reserved_from_the_start_or_from_the_draw_on(site):
    before = site.session().session
    waits = site.on(before).with_judge_job().job
    AbstentionDraw.objects.create(session=before, arm=before.category, drawn=True, chance=1, key_id="00000000")
    assert not JudgeJob.objects.get(pk=waits.pk).reserved
    assert job(site, drawn=True).reserved
    assert not job(site, drawn=False).reserved
    passed_over(site, 9, "code")
    made = site.session("code").session
    open_job = site.on(made).with_judge_job().job
    site.on(made).abstained().settle()
    assert JudgeJob.objects.get(pk=open_job.pk).reserved


def test_drawn_ones_go_after_stale_verdicts_and_before_new_sessions(site, policy):
    new, backlog = job(site, backlog=False), job(site, backlog=True)
    drawn, stale = job(site, drawn=True, backlog=True), job(site, unread="abc")
    JudgeJob.objects.filter(pk=new.pk).update(worth=0.9)
    assert order() == [stale, drawn, new, backlog]


def test_they_take_no_more_than_the_reserved_share_while_others_wait(site, policy):
    drawn = [job(site, drawn=True, backlog=True) for _ in range(20)]
    others = [job(site, backlog=False) for _ in range(45)]
    asked = order()
    first = [each in drawn for each in asked[:55]]  # a share of the last 50 calls
    assert first[0]
    assert 11 <= sum(first) <= 12
    assert max(sum(first[start : start + 10]) for start in range(45)) <= 3
    assert set(asked) == {*drawn, *others}


def test_where_nobody_else_waits_they_go_one_after_the_other(site, policy):
    drawn = [job(site, drawn=True, backlog=True) for _ in range(5)]
    assert order() == drawn


def test_agents_take_turns_and_each_has_first_what_is_worth_most(site, policy):
    many, few = [job(site) for _ in range(6)], [job(site, agent="alice") for _ in range(2)]
    JudgeJob.objects.filter(pk__in=[each.pk for each in many]).update(worth=0.2)
    JudgeJob.objects.filter(pk__in=[many[3].pk, few[1].pk]).update(worth=0.3)
    assert order() == [many[3], few[1], many[0], few[0], many[1], many[2], many[4], many[5]]


def test_with_no_reserve_they_have_no_precedence(site):
    budget.set_policy(by=None, reserved_share=0)
    drawn, other = job(site, drawn=True, backlog=True), job(site, backlog=False)
    assert order() == [other, drawn]


def test_a_backlog_of_drawn_ones_is_not_left_to_the_batches(site, settings, policy, sim):
    judge_cast.in_batches(settings)
    plain = [job(site, backlog=True) for _ in range(3)]
    drawn = job(site, drawn=True, backlog=True)
    assert list(ordering.single_call_jobs(NOON, [JudgeRole.FIRST])) == [drawn]
    assert list(ordering.batch_jobs(NOON, JudgeRole.FIRST)) == plain


@pytest.mark.usefixtures("redis_url")
def test_without_a_shortage_all_are_judged_and_the_marks_stand(site, sim, policy):
    with time_machine.travel(NOON, tick=True):
        for number in range(10):  # of which one is drawn for certain
            stub(site, f"s-{number}", ended_at=NOON)
        before = draws()
        assert JudgeJob.objects.filter(reserved=True).count() == sum(drawn for drawn, _ in before) > 0
        worker.pump(seconds=600)  # a busy machine is no shortage
    assert {rewards.live(each).source for each in Session.objects.all()} == {Source.JUDGE}
    assert draws() == before
    speaking = AbstentionDraw.objects.drawn().filter(session__grades__source=Source.JUDGE)
    assert speaking.count() == sum(drawn for drawn, _ in before)


@pytest.mark.usefixtures("redis_url")
def test_of_earlier_sessions_that_a_person_chooses_drawn_ones_are_heard_first(site, sim, settings, policy):
    settings.ANTHROPIC_API_KEY = ""
    for number in range(10):
        stub(site, f"s-{number}")
    settings.ANTHROPIC_API_KEY = judge_cast.KEY
    with time_machine.travel(NOON + 3 * HOUR, tick=True):
        earlier.start_run("all", by=None, at_most=10, why="", now=timezone.now())
        first = sweeper.next_jobs(timezone.now())[0]
        assert JudgeJob.objects.get(pk=first).reserved


# ---- what people see


def test_the_quota_page_says_the_order_its_share_and_how_many_wait(site, client, sim):
    client.force_login(site.person("vera", "viewer"))
    job(site, drawn=True), job(site, drawn=True), job(site)
    page = unescape(flat(client.get("/quota/")))
    assert "at least 10 % of each arm’s" in page
    assert "at most 20 % of the last 50 calls. Then come new sessions, and then the backlog. Agents take turns" in page
    assert "2 of the drawn sessions wait now." in page
    budget.set_policy(by=None, abstention_share=0)
    page = flat(client.get("/quota/"))
    assert "Sessions without visible results are not drawn." in page
    assert "random sample" not in page


def test_the_page_of_a_drawn_session_says_so_and_its_place(site, client, settings):
    settings.ANTHROPIC_API_KEY = judge_cast.KEY
    client.force_login(site.person("vera", "viewer"))
    others, drawn = [job(site, backlog=False), job(site, backlog=True)], job(site, drawn=True, backlog=True)
    rewards.settle(drawn.session)
    page = unescape(flat(client.get(drawn.session.get_absolute_url())))
    assert "The judge has this session in the queue, drawn at random to represent similar sessions, 1st of 3" in page
    rewards.settle(others[0].session)
    page = unescape(flat(client.get(others[0].session.get_absolute_url())))
    assert "The judge has this session in the queue, 2nd of 3" in page


def test_an_operator_changes_the_share(site, client):
    client.force_login(site.person("olga", "operator"))
    form = {"daily_budget_usd": "", "reserved_share": "20", "abstention_share": "30", "repeat_share": "5"}
    page = flat(client.post("/quota/policy/", {**form, "second_share": "25"}, follow=True))
    assert "abstentions judged first 10 % → 30 %" in page
    assert JudgePolicy.objects.current().abstention_share == 0.3
