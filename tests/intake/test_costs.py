"""What a session cost: a caller's word, else what its log states."""

import json

import pytest

from grading.intake.first_word import Speaker
from grading.models import ApiToken, Session
from tests.casts import logs

pytestmark = pytest.mark.django_db


def claude(name: str, *totals: object, message_costs: tuple[object, ...] = ()) -> bytes:
    """A log of Claude Code whose result records state these totals, and its messages these costs."""
    lines = logs.claude(name, logs.COMMIT).splitlines()
    for number, cost in enumerate(message_costs):
        message = {"id": f"c{number}", "role": "assistant", "model": "claude-opus-4-6", "content": "x", "usage": {}}
        said = {"type": "assistant", "sessionId": name, "uuid": f"c{number}", "message": message, "costUSD": cost}
        lines += [json.dumps(said).encode()] * 2  # a message has a line for each of its parts
    for number, total in enumerate(totals):
        said = {"type": "result", "subtype": "success", "session_id": name, "uuid": f"r{number}"}
        lines.append(json.dumps({**said, "total_cost_usd": total}).encode())
    return b"\n".join(lines) + b"\n"


def gptme(*costs: object) -> bytes:
    lines = logs.gptme(("user", "x" * 6_000), *[("assistant", "hi")] * len(costs)).splitlines()
    turns = [json.loads(line) for line in lines]
    for turn, cost in zip(turns[1:], costs, strict=True):
        turn["metadata"] = {"model": "m", "cost": cost}
    return "".join(json.dumps(turn) + "\n" for turn in turns).encode()


@pytest.mark.parametrize(
    ("log", "cost"),
    [
        (claude("s"), None),
        (claude("s", 0.25), 0.25),
        (claude("s", 0.25, 0.4), 0.4),  # a run's totals grow
        (claude("s", 0.25, 0.4, 0.1), 0.5),  # 0.4, and 0.1 of a second run
        (claude("s", message_costs=(0.1, 0.2)), 0.3),
        (claude("s", 0.5, message_costs=(0.1, 0.2)), 0.5),  # the total holds the messages' costs
        (gptme(0.1, 0.2), 0.3),
        (claude("s", 0), 0.0),
    ],
)
def test_log_states_the_cost(site, log, cost):
    session = site.upload("s", log).session
    session.refresh_from_db()
    assert session.cost_usd == (None if cost is None else pytest.approx(cost))


@pytest.mark.parametrize(
    "value", [-1, float("nan"), float("inf"), 1e308, 10**400, "0.25", True, None, [1], {"usd": 1}, 1_000_001], ids=repr
)
@pytest.mark.parametrize("write", [lambda value: claude("s", value), gptme], ids=["claude", "gptme"])
def test_impossible_cost_is_ignored(site, write, value):
    """What no session can cost is no cost, and the session is graded as without it."""
    receipt = site.upload("s", write(value))
    assert (receipt.problems, Session.objects.get().cost_usd) == ((), None)
    assert receipt.reward is not None


def test_sum_of_many_large_costs_is_ignored(site):
    assert site.upload("s", gptme(900_000, 900_000)).session.cost_usd is None


@pytest.mark.parametrize("is_first", [True, False])
def test_callers_cost_wins(site, is_first):
    """Whether it comes before the log, with it or after it; and a longer log doesn't replace it."""
    site.upload("s", **({"cost_usd": 0.3} if is_first else {"log": claude("s", 0.25)}))
    site.upload("s", **({"log": claude("s", 0.25)} if is_first else {"cost_usd": 0.3}))
    site.upload("s", claude("s", 0.25, 0.4))
    assert Session.objects.get().cost_usd == 0.3


def test_longer_log_updates_the_cost(site):
    site.upload("s", claude("s", 0.25))
    site.upload("s", claude("s", 0.25, 0.4))
    assert Session.objects.get().cost_usd == pytest.approx(0.4)


def test_another_sessions_log_states_no_cost(site):
    site.upload("s", claude("t", 0.25))
    assert Session.objects.get().cost_usd is None


def test_late_cost_of_the_graded_is_a_proposal(site):
    """After the first verdict, the agent's own word doesn't replace what the log states until a person accepts it."""
    token, _ = ApiToken.objects.issue(site.agent("bob"))
    session = site.upload("s", claude("s", 0.25)).session
    site.on(session).judged(0.5)
    receipt = site.upload("s", cost_usd=0.01, speaker=Speaker(token=token))
    assert ([problem.code for problem in receipt.problems], Session.objects.get().cost_usd) == (["too_late"], 0.25)


def test_page_shows_the_logs_cost(site, client):
    session = site.upload("s", claude("s", 0.25)).session
    client.force_login(site.person("olga", "operator"))
    assert "<b>$0.25</b>" in client.get(f"/sessions/{session.pk}/").content.decode()
