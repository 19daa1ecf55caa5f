"""Attacks on what is left to chance, and on what agents share: ids tried out, limits used up, sessions by the dozen."""

import datetime as dt
import hashlib
import io
import itertools
import json
import random
from functools import cache

import pytest
import time_machine
from django.test import Client
from django.utils import timezone
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from bandit import selection
from bandit.core.thompson import draw, uniform
from bandit.models import Arm, Assignment, Bandit, LedgerEntry, PolicyVersion, Selection
from bandit.reading import posterior_of, version_of
from grading import intake
from grading.intake.first_word import Speaker
from grading.models import Alarm, ApiToken, Flag, RuleRun, Session, SessionShares
from grading.models.agents import TokenScope
from grading.monitoring.arms import unused_decisions
from grading.monitoring.rule import RULES
from grading.monitoring.watch import inspect_session, watch
from grading.reward import rewards
from tests.bandit.helpers import DAY, policy, reward
from tests.casts import logs
from tests.examples import examples
from tests.site import NOON, Site

pytestmark = pytest.mark.django_db
NOW = NOON


class Agent:
    """Somebody with a token of this scope, who may ask and send as often as it likes."""

    def __init__(self, name, scope=TokenScope.AGENT):
        self.name = name
        self.token, secret = ApiToken.objects.issue(Site().agent(name), scope=scope)
        self.client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {secret}"})

    def ask(self, decision_id, **asked):
        body = json.dumps({"decision_id": decision_id, **asked})
        return self.client.post("/api/v1/selections", body, content_type="application/json")

    def draw(self, decision_id, *lessons):
        body = json.dumps({"decision_id": decision_id, "lessons": lessons})
        return self.client.post("/api/v1/assignments", body, content_type="application/json")

    def send(self, name, **said):
        """A session as this token's holder submits it."""
        parts = {part: io.BytesIO(said.pop(part).encode()) for part in ("journal", "patch") if part in said}
        metadata = intake.SubmittedSession.model_validate({"session_id": name, **said})
        speaker = Speaker(token=self.token)
        return intake.submit(agent=self.token.agent, metadata=metadata, speaker=speaker, **parts)


@pytest.fixture
def eve():
    return Agent("eve")


@pytest.fixture
def hook():
    """An agent that attacks with the token of its hook."""
    return Agent("eve", TokenScope.HOOK)


@pytest.fixture
def alice():
    return Agent("alice", TokenScope.HOOK)


@pytest.fixture(autouse=True)
def noon():
    with time_machine.travel(NOW, tick=False):
        yield


def teach():
    """News is seldom worth choosing."""
    for number in range(12):
        day = DAY - dt.timedelta(days=1 + number % 6)
        for arm, value in (("code", 0.7), ("infra", 0.6), ("triage", 0.55), ("news", 0.2)):
            reward(f"{arm}-{number}", day=day, **{arm: value + (number % 3 - 1) / 10})


def patch(number, lines=40):
    body = "".join(f"+Note {number} on retry {line}, with what was tried and why it failed\n" for line in range(lines))
    return f"--- /dev/null\n+++ b/notes/{number}.md\n@@ -0,0 +1,{lines} @@\n{body}"


def journal(number, size=40):
    return f"Part {number}. " + " ".join(f"Looked at case {number}-{step} and wrote down why." for step in range(size))


# --- ids tried out


def test_ids_ground_offline_get_the_least_likely_arm_as_often_as_any_others(eve):
    teach()
    policy(open_decisions=None, consumption_per_agent=None, consumption_per_day=None)
    supply = {"code": 1, "infra": 1, "news": 1}
    odds = {arm: odd for arm, odd in eve.ask("first", supply=supply).json()["eligible"].items() if odd != str(odd)}
    least = min(odds, key=odds.get)
    names = (f"try-{number}" for number in itertools.count())
    ground = itertools.islice((name for name in names if draw(odds, uniform("category", name)) == least), 40)
    got = [eve.ask(name, supply=supply).json()["arm"] for name in ground]
    assert odds[least] < 0.1
    assert got.count(least) <= 40 * odds[least] + 4 * (40 * odds[least]) ** 0.5


def test_draws_of_lessons_ground_offline_are_held_out_as_often_as_any_others(eve):
    policy("lesson", holdout=0.4, holdout_decided=None, open_decisions=None)
    arm = Arm.objects.create(bandit=Bandit.objects.get(name="lesson"), name="ask-first")
    names = (f"try-{number}" for number in itertools.count())
    ground = itertools.islice((name for name in names if uniform("lesson", f"{name}\0{arm.name}") < 0.6), 30)
    assert {eve.draw(name, arm.name).status_code for name in ground} == {200}
    assert 3 <= Assignment.objects.filter(taken=False).count() <= 21


def test_who_names_sessions_by_the_old_hash_escapes_neither_the_slice_nor_a_second_opinion(settings):
    """Before, 20 of 20 did."""
    settings.REVIEW_SLICE = 0.2
    names = (f"s-{number}" for number in itertools.count())

    def public(text):
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") / 2**64

    escaping = (name for name in names if public(f"review/eve/{name}") >= 0.2 and public(f"second/{name}") >= 0.2)
    for name in itertools.islice(escaping, 60):
        Site().upload(name, journal="Done.", category="code", agent="eve")
    drawn = SessionShares.objects.filter(session__agent__name="eve")
    assert drawn.count() == 60
    assert 2 <= drawn.filter(review_slice=0.2).count() <= 22


def test_what_was_drawn_for_a_session_is_never_drawn_again(settings):
    Site().upload("s-1", journal="Done.", category="code")
    before = SessionShares.objects.values().get()
    settings.CHANCE_KEY, settings.REVIEW_SLICE = bytes(32), 1.0
    Site().upload("s-1", journal="Done, and more.", category="code")
    inspect_session(Session.objects.get())
    assert SessionShares.objects.values().get() == before


def test_decisions_ground_online_stop_at_eight_and_are_told(eve):
    """Asking as often as one may, day after day, and using only what says infra."""
    teach()
    supply = {"code": 1, "infra": 1, "triage": 1}
    used = 0
    with time_machine.travel(NOW, tick=False) as clock:
        for day in range(28):
            clock.move_to(NOW + dt.timedelta(days=day, minutes=day))
            answers = [eve.ask(f"d-{day}-{number}", supply=supply).status_code for number in range(9)]
            assert answers == [200] * 8 + [409]
            for row in Selection.objects.filter(decision_id__startswith=f"d-{day}-", arm__name="infra"):
                selection.complete(row, observation=f"o-{row.pk}", executed_arm="infra", now=row.created)
                used += 1
            if list(unused_decisions.find(timezone.now())):
                break
        watch()
    assert used <= 12
    alarm = Alarm.objects.get(rule="A13", resolved_at=None)
    assert alarm.about == "eve: category"
    assert "the agent uses only the decisions that it likes" in alarm.detail


def test_an_agent_whose_runs_die_goes_on(alice):
    """Asked again, an open decision is answered as before; and a day later its place is free."""
    for number in range(8):
        assert alice.ask(f"d-{number}").status_code == 200
    refused = alice.ask("d-8")
    assert refused.status_code == 409
    assert "ask for one again by its id: the answer is the same" in refused.json()["got"]
    assert alice.ask("d-3").status_code == 200
    assert alice.ask("d-8", override="code").status_code == 200
    with time_machine.travel(NOW + selection.OPEN_FOR + dt.timedelta(seconds=1), tick=False):
        assert alice.ask("d-9").status_code == 200


# --- what agents share


def test_an_id_taken_first_takes_nothing_away(eve, alice):
    assert eve.ask("run-17", supply={"news": 1}).json()["arm"] == "news"
    assert alice.ask("run-17", supply={"code": 1}).json()["arm"] == "code"
    Arm.objects.create(bandit=Bandit.objects.get(name="lesson"), name="ask-first")
    assert eve.draw("run-17", "ask-first").status_code == alice.draw("run-17", "ask-first").status_code == 200


def test_nobody_completes_the_decision_of_another(eve, alice):
    alice.ask("run-17", supply={"code": 1})
    receipt = eve.send("s-1", category="news", selection_id="run-17", journal="Mine.")
    assert [problem.code for problem in receipt.problems if problem.part == "selection_id"] == ["unknown_selection"]
    assert Selection.objects.get().completed_at is None
    own = alice.send("s-1", category="code", selection_id="run-17", journal="Done.")
    assert own.session.selection == Selection.objects.get()


def test_an_agents_own_word_names_no_other_arm_than_its_decision(eve):
    eve.ask("d-1", supply={"code": 1})
    session = eve.send("s-1", category="news", selection_id="d-1", journal=journal(1)).session
    assert (session.category.name, session.category_from) == ("code", "decision")


def test_decisions_completed_by_another_arm_shut_nobody_else_out(alice):
    eve = Agent("eve", TokenScope.RUNNER)
    for number in range(4):
        eve.ask(f"d-{number}", supply={"code": 1})
        eve.send(f"s-{number}", category="news", selection_id=f"d-{number}", journal=journal(number))
    assert "substituted" in eve.ask("d-9", supply={"code": 1, "infra": 1}).json()["eligible"]["code"]
    assert not isinstance(alice.ask("d-1").json()["eligible"]["code"], str)


def test_four_overrides_use_up_nobody_elses_day(eve, alice):
    for number in range(4):
        assert eve.ask(f"d-{number}", override="news").status_code == 200
    assert eve.ask("d-9", supply={"news": 1, "code": 1}).json()["eligible"]["news"].startswith("4 of 2 consumption")
    assert alice.ask("d-1", supply={"news": 1}).json()["arm"] == "news"


@pytest.mark.parametrize("of", ["decisions", "rewards", "samples"])
def test_a_limit_of_all_agents_is_not_used_up_by_what_one_insists_on_or_by_samples(eve, alice, of):
    """As on a site from before, which has that limit alone."""
    policy(consumption_per_agent=None, consumption_per_day=2)
    if of == "samples":
        eve.token.agent.is_sample = True
        eve.token.agent.save()
    for number in range(4):
        decided = {"supply": {"news": 1}} if of == "samples" and number < 2 else {"override": "news"}
        assert eve.ask(f"d-{number}", **decided).status_code == 200
        if of == "rewards":
            row = Selection.objects.get(decision_id=f"d-{number}")
            selection.complete(row, observation=f"o-{number}", executed_arm="news", now=NOW)
            reward(f"o-{number}", news=0.4)
    assert [alice.ask(f"d-{number}", supply={"news": 1}).status_code for number in range(3)] == [200, 200, 409]


def test_the_try_of_an_arm_on_probation_is_each_agents_own(eve, alice):
    Arm.objects.filter(name="triage").update(probation=True)
    assert eve.ask("d-1", supply={"triage": 1}).status_code == 200
    assert eve.ask("d-2", supply={"triage": 1}).status_code == 409
    assert alice.ask("d-1", supply={"triage": 1}).status_code == 200


# --- sessions by the dozen


def honest(agent, days=6, a_day=4):
    """What one agent has done: three categories, at levels of their own."""
    for age, number in itertools.product(range(1, days + 1), range(a_day)):
        for arm, value in (("code", 0.66), ("infra", 0.55), ("triage", 0.5)):
            reward_of(agent, f"{agent}-{arm}-{age}-{number}", arm, value + (number % 3 - 1) / 12, age=age)


def reward_of(agent, name, arm, value, *, age=0, source="judge", witness="hook"):
    from django.db import transaction

    from bandit import ledger
    from tests.bandit.helpers import credit

    with transaction.atomic():
        ledger.set_credits(
            {"category": {arm: credit(value, source, agent=agent, witness=witness)}},
            observation=name,
            effective_day=DAY - dt.timedelta(days=age),
            settlement="s",
            policy_version="test",
        )


def share(arm):
    return posterior_of("category", NOW).share_of_next_100(arm)


def flood(count):
    """How far the share of `social` moves by so many sessions of eve's that a credulous judge calls perfect."""
    before = share("social")
    for number in range(count):
        reward_of("eve", f"eve-{number}", "social", 1.0)
    return share("social") - before


def test_three_hundred_sessions_of_one_day_move_no_more_than_three_do():
    honest("alice")
    for number in range(8):
        reward_of("alice", f"old-{number}", "social", 0.3, age=3)
    found = {}
    for count in (3, 25, 300):
        with Site().rolled_back():
            found[count] = flood(count)
    assert found[3] == pytest.approx(found[25], abs=1e-6) == found[300]
    assert found[25] <= 8
    policy(agent_cap=None)
    assert flood(25) > 80


def test_twenty_five_sessions_with_the_same_bytes_from_an_agents_token_move_three_of_a_hundred_at_most(eve):
    """With nothing but its own word, beside another agent's honest work. Before, its arm had 92 of the next 100."""
    honest("alice")
    for number in range(8):
        reward_of("alice", f"old-{number}", "social", 0.3, age=3)
    before = share("social")
    for number in range(25):
        eve.send(f"s-{number}", category="social", patch=patch(0))
    assert Session.objects.filter(agent__name="eve").count() == 25
    assert abs(share("social") - before) <= 3


def test_one_person_with_one_agent_is_never_capped():
    honest("bob")
    version = posterior_of("category", NOW).posterior
    assert not version.caps
    policy(agent_cap=None)
    after = posterior_of("category", NOW).posterior
    assert (after.alpha.tobytes(), after.beta.tobytes()) == (version.alpha.tobytes(), version.beta.tobytes())


@pytest.fixture
def alices_work(db):
    honest("alice", days=3)


@given(order=st.permutations(range(24)))
@examples(10, HealthCheck.function_scoped_fixture)
def test_the_order_in_which_sessions_come_moves_no_bit_with_the_cap(alices_work, order):
    made = [("eve", f"e-{n}", "social", 0.9, n % 2) for n in range(14)]
    made += [("alice", f"a-{n}", ("code", "social")[n % 2], 0.2 + n / 20, 2) for n in range(10)]
    with Site().rolled_back():
        for at in order:
            agent, name, arm, value, age = made[at]
            reward_of(agent, name, arm, value, age=age)
        policy(agent_cap=4)
        found = posterior_of("category", NOW).posterior
        assert found.caps
        numbers = found.alpha.tobytes(), found.beta.tobytes()
    SEEN.setdefault("numbers", numbers)
    assert SEEN["numbers"] == numbers


SEEN = {}


USUAL = {"code": 0.62, "social": 0.58, "news": 0.54, "infra": 0.50}


def honest_site():
    """Four arms, of which `social` is second best: two honest agents have 14 rewards of each, over two weeks."""
    dice = random.Random(4)
    Arm.objects.filter(bandit__name="category").exclude(name__in=USUAL).update(paused=True)
    for agent, arm, number in itertools.product(("alice", "bob"), USUAL, range(14)):
        value = min(max(dice.gauss(USUAL[arm], 0.18), 0.0), 1.0)
        reward_of(agent, f"{agent}-{arm}-{number}", arm, value, age=1 + number)


def forge(eve, count, value, *arms, **said):
    """As many sessions of eve's in each of these arms, with logs that a judge believes."""
    for arm, number in itertools.product(arms, range(count)):
        name = f"{arm}-{number}"
        log = logs.claude(name, (f"git commit -m '{name}'", f"[main {number}abcdef] {name}\n 1 file changed"))
        sent = Site().upload(name, log, category=arm, agent=eve.token.agent, speaker=Speaker(token=eve.token), **said)
        Site().on(sent.session).graded("judge", value)
        rewards.settle(sent.session)


def named():
    """What the rule's alarms are about, now that it has looked."""
    watch()
    return set(Alarm.objects.filter(rule="A41", resolved_at=None).values_list("about", flat=True))


def test_an_agent_that_lifts_the_second_best_arm_is_named_with_its_sessions(hook):
    """Six forged sessions are enough for an alarm, which says what they moved and lists them."""
    honest_site()
    assert named() == set()
    forge(hook, 6, 0.95, "social")
    RuleRun.objects.all().delete()
    assert named() == {"eve: social"}
    alarm = Alarm.objects.get(rule="A41")
    assert "In 45 days, 6 sessions of eve in social averaged 0.95, and 28 of other agents 0.60" in (alarm.detail)
    assert "social gets 93 of the next 100 decisions. Without this agent’s rewards, it would get 46." in alarm.detail
    assert set(RULES["A41"].sessions(alarm.about, NOW)) == set(
        Session.objects.filter(agent__name="eve").values_list("pk", flat=True)
    )


def test_forged_sessions_that_are_dated_long_ago_are_named_too(hook):
    """The agent's own dates put no session out of the rule's sight: it counts on the day on which it was received."""
    honest_site()
    forge(hook, 6, 0.95, "social", ended_at=NOW - dt.timedelta(days=300))
    assert named() == {"eve: social"}


def test_who_lifts_other_arms_a_little_as_well_is_named(hook):
    """What an agent forges in other arms is not its skill."""
    honest_site()
    forge(hook, 8, 0.95, "social")
    forge(hook, 2, 0.95, "code", "news", "infra")
    assert "eve: social" in named()


def test_forged_sessions_that_move_nothing_are_not_named(hook):
    """In an arm that stays far from the best, higher rewards change no decision, and open no alarm."""
    honest_site()
    Arm.objects.filter(name="triage").update(paused=False)
    for number in range(28):
        reward_of("alice", f"triage-{number}", "triage", 0.1 + number % 3 / 20, age=1 + number % 14)
    forge(hook, 4, 0.6, "triage")
    assert named() == set()


def test_an_honest_specialist_is_not_named():
    """An agent that works in one arm, somewhat better than others there, is within what agents differ by."""
    honest_site()
    for number in range(30):
        reward_of("carol", f"carol-{number}", "social", 0.68 + (number % 7 - 3) / 12, age=number % 14)
    assert named() == set()


def test_an_agent_that_is_much_better_in_every_arm_is_not_named():
    """Its rewards lift all arms alike, and change no decision."""
    honest_site()
    for arm, number in itertools.product(USUAL, range(14)):
        reward_of("carol", f"carol-{arm}-{number}", arm, USUAL[arm] + 0.25 + (number % 5 - 2) / 20, age=1 + number)
    assert named() == set()


def test_on_a_site_with_one_agent_there_is_nobody_to_compare(hook):
    forge(hook, 30, 1.0, "social")
    forge(hook, 10, 0.2, "code")
    assert named() == set()


def test_who_shops_for_a_category_after_the_verdict_is_flagged(eve):
    for number in range(3):
        session = eve.send(f"s-{number}", category="code", journal=journal(number)).session
        Site().on(session).graded("judge", 0.2)
        eve.send(f"s-{number}", category="news", journal=journal(number))
        session.refresh_from_db()
        assert session.category.name == "code"
        assert "category" in Flag.objects.open().get(session=session, rule="A42").detail
    assert Alarm.objects.get(rule="A42", resolved_at=None).about == "eve"


EVES = ("copy", "own", "claim", "old", "retry")


@given(order=st.permutations([*EVES, "alice"]))
@examples(8, HealthCheck.function_scoped_fixture)
def test_in_any_order_nothing_that_one_agent_sends_makes_anothers_session_worse(order):
    """A copy comes after its original: nobody has what is not there yet."""
    if order.index("copy") < order.index("alice"):
        order = [each for each in order if each != "copy"] + ["copy"]
    assert what_alice_gets(*order) == what_alice_gets("alice")


@cache
def what_alice_gets(*order):
    with Site().rolled_back():
        alice, eve = Agent("alice", TokenScope.HOOK), Agent("eve")
        sends = {
            "alice": lambda: alice.send("a-1", category="code", patch=patch(1), journal=journal(1)),
            "copy": lambda: eve.send("e-1", category="code", patch=patch(1), journal=journal(1)),
            "own": lambda: eve.send("a-1", category="news", journal=journal(2)),
            "claim": lambda: eve.send(
                "e-2", category="code", outcome="infrastructure", outcome_reason="none", journal="x"
            ),
            "old": lambda: eve.send("e-3", category="code", ended_at=NOW - dt.timedelta(days=400), journal=journal(3)),
            "retry": lambda: eve.send("e-2", category="code", journal=journal(4)),
        }
        for each in order:
            sends[each]()
        session = Session.objects.get(agent__name="alice", external_id="a-1")
        live = rewards.live(session)
        learnt = (
            LedgerEntry.objects.filter(observation=session.observation).live().values_list("arm__name", "value_micro")
        )
        kept = session.artifacts.order_by("key").values_list("kind", "key", "left_out")
        return live.value, live.weight, live.source, live.reason, list(learnt), list(kept)


# --- a site from before


def test_a_policy_from_before_reads_every_bit_as_it_did():
    honest("alice")
    for number in range(30):
        reward_of("eve", f"eve-{number}", "social", 1.0)
    policy(agent_cap=None)
    before = posterior_of("category", NOW).posterior
    row = version_of(Bandit.objects.get(name="category"))
    assert isinstance(row, PolicyVersion)
    assert not before.caps
    policy(agent_cap=10)
    after = posterior_of("category", NOW).posterior
    capped = [(group, len(days), n, counted) for group, days, n, counted in after.caps.by_group() if days]
    assert capped == [(("social", "eve", False), 1, 30, 10)]
    assert before.alpha.tobytes() != after.alpha.tobytes()
