"""The page of one alarm: every rule has one, with what its sessions did to the bandits and what can be done."""

import datetime as dt
from dataclasses import replace

import pytest
import time_machine
from django.utils import timezone
from django.utils.html import escape

from bandit.reading import posterior_of
from grading.models import Alarm, Flag, Session
from grading.models.quota import QuotaState
from grading.monitoring.arms import lone_agent
from grading.monitoring.rule import RULES
from grading.screens.alarms import reach
from grading.vocabulary import Source
from tests.bandit.helpers import policy
from tests.casts import desk as desk_cast
from tests.casts import quota as quota_cast
from tests.casts.page import flat

pytestmark = pytest.mark.django_db


@pytest.fixture
def found(monkeypatch) -> list[int]:
    """The keys of the sessions that A41 names; fill it."""
    keys: list[int] = []
    monkeypatch.setitem(RULES, "A41", replace(lone_agent, list_sessions=lambda _about, _now: keys))
    return keys


def opened(rule: str, **fields) -> Alarm:
    return Alarm.objects.create(rule=rule, detail="3 of 4 were otherwise; 1 is usual", **fields)


def read(keys: list[int]) -> list[Session]:
    sessions = Session.objects.with_people().in_bulk(keys)
    return [sessions[key] for key in keys]


@pytest.mark.parametrize("rule", sorted(RULES))
def test_every_rule_has_a_page_with_one_primary_button(operator, rule):
    html = flat(operator.get(f"/alarms/{opened(rule).pk}/"))
    title = escape(RULES[rule].title)
    for part in ("What to do", "The rule", f"{title}</h1>", "3 of 4 were otherwise"):
        assert part in html
    assert html.count("btn primary") == 1
    assert "no cost" in html


def test_an_old_alarm_that_is_open_is_listed_whatever_was_opened_since(operator):
    old = opened("A1", about="an old one", opened_at=timezone.now() - dt.timedelta(days=30))
    now = timezone.now()
    for number in range(60):
        opened("A33", about=str(number), resolved_at=now)
    assert f'id="alarm-{old.pk}"' in operator.get("/alarms/").content.decode()


def test_what_is_closed_offers_nothing(operator):
    html = flat(operator.get(f"/alarms/{opened('A41', resolved_at=timezone.now()).pk}/"))
    assert "btn primary" not in html
    assert "now closed" in html


def test_who_may_do_nothing_is_offered_nothing(site, client):
    client.force_login(site.person("vera", "viewer"))
    html = flat(client.get(f"/alarms/{opened('A41').pk}/"))
    assert "btn primary" not in html


def test_an_alarm_of_a_rule_that_is_gone_has_no_empty_card(site, client):
    client.force_login(site.person("vera", "viewer"))
    assert "What to do" in flat(client.get(f"/alarms/{opened('A41').pk}/"))
    assert "What to do" not in flat(client.get(f"/alarms/{opened('A0').pk}/"))


def test_the_arm_without_the_sessions_is_the_arm_as_if_they_had_never_been(found):
    policy(varies_by_day=False)  # else five more of one day count less than five
    for n in range(6):
        desk_cast.judged(0.5, category="code", external_id=f"other-{n}")
        desk_cast.judged(0.3, category="infra", external_id=f"infra-{n}")
    before = posterior_of("category", timezone.now())
    found += [desk_cast.judged(0.95, category="code", external_id=f"own-{n}").pk for n in range(5)]
    now = timezone.now()
    told = reach.load_reach(read(found), now)
    held = posterior_of("category", now)
    assert (told.bandit, told.arm, told.rewards) == ("category", "code", 5)
    without, as_it_is, in_full = told.outlooks
    assert without.mean == pytest.approx(before.arms["code"].mean, abs=1e-9)
    assert as_it_is.mean == held.arms["code"].mean
    assert without.mean < as_it_is.mean <= in_full.mean
    assert (told.move_of_arm.mean_before, told.move_of_arm.mean_after) == (without.mean, as_it_is.mean)
    assert (told.decisions, told.decisions_for_arm) == (0, 0)


def test_the_button_names_what_it_does_and_its_price(site, operator, found):
    sessions = [desk_cast.judged(0.9, category="code") for _ in range(3)]
    for session in sessions:
        site.on(session).with_log()
    found += [session.pk for session in sessions]
    reply = operator.get(f"/alarms/{opened('A41').pk}/")
    first, *others = reply.context["answers"]
    assert first.label == "Judge 3 sessions again"
    assert first.price > 0
    assert operator.get(first.url).context["plan"].total == 3
    taken = next(each for each in others if each.label == "Take 3 sessions out of the bandits")
    assert taken.price is None
    assert "code goes back to" in taken.effect
    assert len(operator.get(taken.url).context["rows"]) == 3
    assert operator.get(taken.url).status_code == 200


def test_a_reward_is_listed_with_what_it_counts_in_the_bandit(site, operator, found):
    """A provisional grade counts less the more verdicts its arm has, as on the session's own page."""
    for number in range(12):
        desk_cast.judged(0.5, category="code", external_id=f"judged-{number}")
    provisional = site.session(category="code").with_log().graded(Source.TRAJECTORY, 0.3).settle()
    found += [provisional.pk, desk_cast.judged(0.9, category="code").pk]
    judged, fallback = operator.get(f"/alarms/{opened('A41').pk}/").context["rows"]
    (on_its_page,) = [
        row["weight"]
        for row in operator.get(provisional.get_absolute_url()).context["applied_rewards"]
        if row["entry"].bandit.name == "category"
    ]
    assert judged.weight == 1
    assert fallback.weight == on_its_page
    assert fallback.weight < fallback.settlement.weight


def test_the_rewards_that_count_are_those_of_the_arm(operator, found):
    found += [desk_cast.judged(0.9, category="code").pk for _ in range(3)]
    found += [desk_cast.judged(0.5, category="infra").pk]
    page = flat(operator.get(f"/alarms/{opened('A41').pk}/"))
    assert "3 of 4 sessions have a reward for code, in the category bandit; 3 of these have any weight" in page


def test_while_the_judge_is_out_the_button_says_when_the_verdicts_come(site, operator, found, settings):
    quota_cast.use(settings)
    session = desk_cast.judged(0.9, category="code")
    site.on(session).with_log()
    found += [session.pk]
    until = timezone.now().replace(hour=0, minute=0) + dt.timedelta(days=1)
    quota_cast.quota(QuotaState.EXHAUSTED, until=until)
    first = operator.get(f"/alarms/{opened('A41').pk}/").context["answers"][0]
    assert first.label == f"Queue 1 verdict for {timezone.localtime(until):%H:%M %Z}"
    assert first.price > 0


@pytest.mark.postgresql
def test_an_alarm_takes_no_session_out_that_was_graded_since(site, operator):
    """Of three flagged sessions a judge grades two and a person none: the button names the third alone, and the server
    refuses the others.
    """
    start = timezone.now()
    with time_machine.travel(start, tick=False):
        sessions = [
            site.session(ended_at=start).with_pull_request().graded("trajectory", 0.1).recheck() for _ in range(3)
        ]
        alarm = Alarm.objects.get(rule="A1")
    with time_machine.travel(start + dt.timedelta(hours=1), tick=False):
        for session in sessions[:2]:
            site.on(session).judged(0.76).recheck()
        reply = operator.get(f"/alarms/{alarm.pk}/")
        assert flat(reply).count("Graded .76 by the judge since.") == 2
        (taken,) = [each for each in reply.context["answers"] if "out of the bandits" in each.label]
        assert taken.label == "Take 1 session out of the bandits"
        opened_at = operator.get(taken.url)
        assert [row["chosen"].session for row in opened_at.context["rows"]] == [sessions[2]]
        assert f'name="alarm" value="{alarm.pk}"' in flat(opened_at)
        # A page that was opened before they were graded asks for all three.
        seen = {f"seen-{each.pk}": each.settlements.count() for each in sessions}
        chosen = {"session": [each.pk for each in sessions], "answer": "exclude", "reason": "infrastructure", **seen}
        refused = flat(operator.post("/review/bulk/", {**chosen, "alarm": alarm.pk}))
        assert refused.count("because the judge graded it .76 after the alarm") == 2
        assert {each.settlements.last().value for each in sessions} == {0.76, 0.1}
        for session in sessions[2:]:
            site.on(session).judged(0.3).recheck()
        words = [each.label for each in operator.get(f"/alarms/{alarm.pk}/").context["answers"]]
        assert not [each for each in words if "out of the bandits" in each]
        assert "Acknowledge: I know the cause" in words
    assert "exclude" not in operator.get(f"/alarms/{alarm.pk}/").content.decode()


def test_sessions_that_no_bandit_has_learned_from_reach_nothing(site, found):
    found.append(site.session(None, harness=None).session.pk)
    assert reach.load_reach(read(found), timezone.now()) is None


def test_a_session_graded_since_is_not_counted_as_the_alarms_doing(site, operator, found):
    """Its reward is the judge's now, and the provisional rewards of the others count 0 or little."""
    for number in range(12):
        desk_cast.judged(0.5, category="code", external_id=f"judged-{number}")
        desk_cast.judged(0.5, category="infra", external_id=f"infra-{number}")
    provisional = site.session(category="code").with_log().graded(Source.TRAJECTORY, 0.1).settle()
    graded_since = desk_cast.judged(0.95, category="code")
    earlier = timezone.now() - dt.timedelta(days=1)
    Flag.objects.create(rule="A41", session=graded_since, raised_at=earlier)
    found += [provisional.pk, graded_since.pk]
    page = f"/alarms/{opened('A41').pk}/"
    context = operator.get(page).context
    assert context["affected"] == 1
    without, as_it_is, in_full = context["reach"].outlooks
    assert in_full.mean < as_it_is.mean <= without.mean
    assert context["reach"].rewards == 1
    found.remove(provisional.pk)
    assert "All these sessions have been graded since" in flat(operator.get(page))
