"""Attacks by whoever is graded, with nothing but its token: its own word, and what it says afterwards."""

import datetime as dt
import io
import json

import pytest
from django.test import Client
from django.utils import timezone

from bandit.models import ArmAlias, LedgerEntry
from bandit.selection import select
from grading import intake
from grading.intake import first_word
from grading.intake.first_word import Speaker
from grading.models import ApiToken, Flag, Proposal, Session, Submission, SubmissionAddress
from grading.models.agents import TokenScope
from grading.reward import rewards
from grading.roles import REVIEWER
from grading.vocabulary import Outcome, Source
from tests.casts import lesson as lesson_cast
from tests.casts import logs
from tests.casts.page import flat
from tests.site import Site

pytestmark = pytest.mark.django_db


class Caller:
    """An agent and one of its tokens, used on the intake as the API does."""

    def __init__(self, scope: TokenScope = TokenScope.AGENT, name: str = "bob") -> None:
        self.agent = Site().agent(name)
        self.token, self.secret = ApiToken.objects.issue(self.agent, scope=scope)

    def sends(self, name: str = "s1", *, at: dt.datetime | None = None, **said):
        parts = {part: io.BytesIO(said.pop(part)) for part in ("transcript", "patch", "journal") if part in said}
        if "facts" in said:
            parts["facts"] = io.BytesIO(json.dumps(said.pop("facts")).encode())
        metadata = intake.SubmittedSession(session_id=name, ended_at=at or timezone.now(), **said)
        speaker = Speaker(token=self.token, address="192.0.2.7")
        return intake.submit(agent=self.agent, metadata=metadata, speaker=speaker, **parts)


@pytest.fixture
def agent() -> Caller:
    return Caller()


@pytest.fixture
def hook() -> Caller:
    return Caller(TokenScope.HOOK)


@pytest.fixture
def runner() -> Caller:
    return Caller(TokenScope.RUNNER)


def invented(files: int = 12, about: str = "word") -> bytes:
    """A patch with many small files where artifacts are looked for, each with enough text."""
    folders = ("tasks", "posts", "knowledge")
    found = []
    for number in range(files):
        path = f"{folders[number % 3]}/thing-{number}.md"
        text = " ".join(f"{about}{number}x{each}" for each in range(60))
        found.append(
            f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+{text}\n"
        )
    return "".join(found).encode()


def settled(session: Session) -> tuple[float | None, str, float]:
    held = rewards.live(session)
    return held.value, held.source, held.weight


def judged(session: Session, value: float) -> None:
    Site().on(session).graded(Source.JUDGE, value, rubric="r", model="m", evidence={"witness": "claimed"})
    rewards.settle(session)


def test_an_invented_patch_counts_as_a_claim_and_never_above_a_verdict(agent):
    session = agent.sends(category="news", patch=invented()).session
    value, source, weight = settled(session)
    assert (source, weight) == ("consumption", 0.3)
    assert value > 0.5
    entry = LedgerEntry.objects.filter(observation=session.observation, bandit__name="category").live().get()
    assert (entry.grader.standing, entry.grader.witness) == ("claimed", "claimed")
    judged(session, 0.1)
    assert settled(session)[:2] == (0.1, "judge")


def test_a_patch_that_no_log_bears_out_is_a_claim_from_a_hook_too(hook, runner):
    session = hook.sends(category="news", patch=invented(), transcript=logs.claude("s1")).session
    assert settled(session)[1:] == ("consumption", 0.3)
    assert settled(runner.sends("s2", category="news", patch=invented(about="other")).session)[1:] == (
        "consumption",
        1.0,
    )


def test_a_token_from_before_scopes_keeps_the_weight_that_it_had():
    old = Caller(TokenScope.UNSCOPED)
    assert settled(old.sends(category="news", patch=invented()).session)[1:] == ("consumption", 1.0)


def test_what_an_agent_says_of_its_own_log_counts_as_a_fallback(agent, hook):
    log = logs.claude("s1", logs.COMMIT)
    claimed = agent.sends(category="code", transcript=log).session
    judged(claimed, 0.9)
    assert settled(claimed) == (0.9, "judge", 0.3)
    seen = hook.sends("s3", category="code", transcript=logs.claude("s3", logs.COMMIT)).session
    Site().on(seen).graded(Source.JUDGE, 0.9, rubric="r", model="m", evidence={"witness": "hook"})
    rewards.settle(seen)
    assert settled(seen) == (0.9, "judge", 1.0)


def test_adding_ones_own_word_to_what_a_runner_saw_changes_nothing(agent, runner):
    session = runner.sends(category="code", transcript=logs.claude("s1", logs.COMMIT)).session
    before = settled(session)
    longer = logs.claude("s1", logs.COMMIT, ("git push", "To example.test\n   1a2b3c4..5d6e7f8  main -> main"))
    said = {"commits": [{"sha": "ab" * 20}], "pull_requests": ["https://github.com/o/r/pull/7"]}
    agent.sends(category="code", transcript=longer, patch=invented(), facts=said)
    session.refresh_from_db()
    assert settled(session) == before
    assert session.grades.filter(source=Source.CONSUMPTION).latest("pk").value is None


@pytest.mark.parametrize("outcome", ["refused", "infrastructure"])
def test_an_outcome_that_is_claimed_takes_no_verdict_away(agent, outcome):
    session = agent.sends(category="code", transcript=logs.claude("s1", logs.COMMIT)).session
    judged(session, 0.24)
    receipt = agent.sends(category="code", outcome=outcome, outcome_reason="never mind")
    session.refresh_from_db()
    assert settled(session)[:2] == (0.24, "judge")
    assert session.outcome_claimed == Outcome.COMPLETED
    assert [problem.code for problem in receipt.problems] == ["too_late"]
    assert Flag.objects.open().filter(session=session, rule="A42").exists()


def test_a_reason_or_a_lesson_that_is_added_to_a_final_description_is_only_proposed(agent):
    ArmAlias.objects.create(arm=lesson_cast.lesson("ask-first"), alias="ask")
    session = agent.sends(
        category="code",
        transcript=logs.claude("s1", logs.COMMIT),
        outcome="failed",
        outcome_reason="the tests are red",
        lessons=[{"name": "ask-first"}],
    ).session
    judged(session, 0.24)
    reason = agent.sends(outcome="failed", outcome_reason="the network was down")
    salience = agent.sends(lessons=[{"name": "ask-first", "salience": 0.9}])
    assert [problem.code for problem in (*reason.problems, *salience.problems)] == ["too_late"] * 2
    assert agent.sends(lessons=[{"name": "ask"}]).problems == (), "nothing new"
    session.refresh_from_db()
    assert (session.claim_reason, session.lessons.get().salience) == ("the tests are red", None)


def test_the_same_late_end_is_proposed_once(agent):
    end = timezone.now() + dt.timedelta(minutes=40)
    session = agent.sends(at=end, category="code", journal=b"Done.").session
    judged(session, 0.24)
    agent.sends(at=end)
    assert Proposal.objects.filter(session=session).count() == 1


@pytest.mark.parametrize("later", [{"exit_code": 137}, {"facts": {"exit_code": 137}}])
def test_a_runner_s_exit_code_replaces_that_of_the_agent_and_not_the_other_way_round(agent, runner, later):
    session = agent.sends(category="code", journal=b"Done.", exit_code=0).session
    runner.sends(**later)
    agent.sends(exit_code=1)
    session.refresh_from_db()
    assert (session.exit_code, session.exit_witness) == (137, "observed")


def test_an_outcome_in_the_first_word_is_judged_as_usual(agent, settings):
    session = agent.sends(
        category="code", transcript=logs.claude("s1", logs.COMMIT), outcome="refused", outcome_reason="no"
    ).session
    assert session.outcome == Outcome.COMPLETED
    assert Flag.objects.open().filter(session=session, rule="A35").exists()


def test_infrastructure_by_the_agents_own_log_or_exit_code_is_no_way_out(agent, hook):
    cut = logs.claude("s1", ("ls", "a"), api_error="API Error: 529 overloaded")
    assert agent.sends(category="code", transcript=cut).session.outcome == Outcome.COMPLETED
    assert hook.sends("s2", category="code", facts={"exit_code": 137}).session.outcome == Outcome.COMPLETED
    assert hook.sends("s3", category="code", exit_code=137).session.outcome == Outcome.COMPLETED


def test_a_runners_exit_code_is_believed(runner):
    session = runner.sends(category="code", exit_code=137).session
    assert session.outcome == Outcome.INFRASTRUCTURE


def test_a_veto_is_lifted_only_by_a_witness_as_strong(agent, runner):
    failed = {"checks": [{"name": "ci", "passed": False}]}
    passed = {"checks": [{"name": "ci", "passed": True}]}
    session = runner.sends(category="code", facts=failed).session
    agent.sends(category="code", facts=passed)
    assert rewards.vetoes(session) == ["ci"]
    runner.sends(category="code", facts={**passed, "exit_code": 0})
    assert rewards.vetoes(session) == []


def test_a_category_sent_after_the_verdict_is_put_before_people(agent):
    session = agent.sends(transcript=logs.claude("s1", logs.COMMIT)).session
    judged(session, 0.9)
    receipt = agent.sends(category="news")
    assert not any(problem.is_error for problem in receipt.problems)
    session.refresh_from_db()
    assert session.category is None
    proposal = session.proposals.get()
    assert (proposal.field, proposal.value, proposal.adopted) == ("category", {"category": "news"}, False)
    agent.sends(category="news")
    assert session.proposals.count() == 1


def test_the_same_log_again_is_no_offence(hook):
    log, now = logs.claude("s1", logs.COMMIT), timezone.now()
    session = hook.sends(category="code", transcript=log, at=now - dt.timedelta(hours=3)).session
    judged(session, 0.9)
    assert hook.sends(category="code", transcript=log, at=now).problems == ()
    session.refresh_from_db()
    assert session.ended_at == now - dt.timedelta(hours=3)
    hook.sends(category="code", transcript=logs.claude("s1", logs.COMMIT, ("ls", "a")), at=now)
    session.refresh_from_db()
    assert session.ended_at == now
    assert not session.proposals.exists()


def test_facts_that_came_too_late_take_no_effect_when_they_are_sent_again(agent):
    session = agent.sends(transcript=logs.claude("s1", logs.COMMIT)).session
    judged(session, 0.9)
    for _ in range(2):
        agent.sends(facts={"exit_code": 0})
        session.refresh_from_db()
        assert session.exit_code is None
    assert session.proposals.count() == 1


def test_another_reason_each_time_fills_no_table(agent):
    session = agent.sends(transcript=logs.claude("s1", logs.COMMIT)).session
    judged(session, 0.2)
    for number in range(8):
        agent.sends(outcome="refused", outcome_reason=f"reason {number}")
    assert session.proposals.count() == 5


def test_within_the_first_hour_blanks_are_filled_and_after_it_they_are_not(agent):
    session = agent.sends("s1").session
    agent.sends("s1", category="code")
    session.refresh_from_db()
    assert str(session.category) == "code"
    late = agent.sends("s2").session
    Session.objects.filter(pk=late.pk).update(received_at=timezone.now() - dt.timedelta(minutes=61))
    agent.sends("s2", category="code")
    late.refresh_from_db()
    assert late.category is None


def test_a_person_adopts_what_was_said_and_turns_down_the_rest(agent):
    session = agent.sends(transcript=logs.claude("s1", logs.COMMIT)).session
    judged(session, 0.9)
    agent.sends(category="news", outcome="refused", outcome_reason="no", facts={"commits": [{"sha": "ab" * 20}]})
    rita = Site().person("rita", REVIEWER)
    asked = {row.field: row for row in session.proposals.all()}
    assert set(asked) == {"category", "outcome", "facts"}
    assert first_word.answer(asked["category"], rita, adopt=True)
    assert first_word.answer(asked["facts"], rita, adopt=True)
    assert first_word.answer(asked["outcome"], rita, adopt=False)
    assert not first_word.answer(asked["outcome"], rita, adopt=True)
    session.refresh_from_db()
    assert str(session.category) == "news"
    assert session.outcome_claimed == Outcome.COMPLETED
    assert session.artifacts.filter(key="ab" * 20).exists()
    assert not Flag.objects.open().filter(session=session, rule="A42").exists()


def test_a_runner_that_says_the_same_adopts_it(agent, runner):
    session = agent.sends(transcript=logs.claude("s1", logs.COMMIT)).session
    judged(session, 0.9)
    agent.sends(category="news")
    runner.sends(category="news")
    session.refresh_from_db()
    assert str(session.category) == "news"
    assert session.proposals.get().adopted


def test_a_runner_adopts_the_same_moment_in_another_time_zone(agent, runner):
    long_ago = timezone.now() - dt.timedelta(days=400)
    session = agent.sends(category="code", at=long_ago.astimezone(dt.timezone(dt.timedelta(hours=2)))).session
    runner.sends(category="code", at=long_ago)
    assert session.proposals.get().adopted


def test_a_bad_session_is_not_dated_away(agent):
    now = timezone.now()
    long_ago = now - dt.timedelta(days=400)
    receipt = agent.sends(category="code", at=long_ago)
    assert abs(receipt.session.ended_at - (now - dt.timedelta(days=7))) < dt.timedelta(minutes=1)
    assert [problem.code for problem in receipt.problems] == ["out_of_bounds"]
    assert receipt.session.proposals.get().value == {"ended_at": long_ago.isoformat().replace("+00:00", "Z")}
    ahead = agent.sends("s2", category="code", at=now + dt.timedelta(minutes=40)).session
    assert ahead.ended_at < now + dt.timedelta(minutes=6)


def test_a_session_is_not_dated_ahead_by_a_second_submission(agent):
    now = timezone.now()
    session = agent.sends(category="code", at=now - dt.timedelta(hours=3)).session
    ahead = now + dt.timedelta(hours=20)
    receipt = agent.sends(at=ahead)
    session.refresh_from_db()
    assert session.ended_at < now + dt.timedelta(minutes=6)
    assert [problem.code for problem in receipt.problems] == ["out_of_bounds"]
    assert session.proposals.get().value == {"ended_at": ahead.isoformat().replace("+00:00", "Z")}


def test_a_session_is_not_dated_ahead_by_a_longer_log(agent):
    now = timezone.now()
    log = logs.claude("s1", logs.COMMIT)
    session = agent.sends(category="code", transcript=log, at=now - dt.timedelta(hours=3)).session
    judged(session, 0.9)
    longer = logs.claude("s1", logs.COMMIT, ("ls", "a"))
    agent.sends(transcript=longer, at=now + dt.timedelta(hours=20))
    session.refresh_from_db()
    assert now - dt.timedelta(hours=1) < session.ended_at < now + dt.timedelta(minutes=6)


def test_the_end_does_not_move_in_small_steps(agent):
    end = timezone.now() - dt.timedelta(hours=3)
    session = agent.sends(category="code", transcript=logs.claude("s1", logs.COMMIT), at=end).session
    judged(session, 0.9)
    for number in range(1, 4):
        agent.sends(at=end + number * dt.timedelta(minutes=4))
    session.refresh_from_db()
    assert session.ended_at == end


def test_a_session_ends_after_its_decision(agent):
    decided = timezone.now() - dt.timedelta(minutes=20)
    select(bandit="category", decision_id="d1", agent="bob", supply=None, override="code", now=decided)
    session = agent.sends(selection_id="d1", at=timezone.now() - dt.timedelta(days=3)).session
    assert session.ended_at == decided


def test_a_decision_that_was_used_dates_no_second_session_back(agent):
    decided = timezone.now() - dt.timedelta(days=30)
    select(bandit="category", decision_id="d1", agent="bob", supply=None, override="code", now=decided)
    assert agent.sends("s1", selection_id="d1", at=decided).session.ended_at == decided
    second = agent.sends("s2", category="code", selection_id="d1", at=decided).session
    assert second.ended_at > timezone.now() - dt.timedelta(days=8)


def test_a_person_may_adopt_the_date(agent):
    session = agent.sends(category="code", at=timezone.now() - dt.timedelta(days=20)).session
    assert first_word.answer(session.proposals.get(), Site().person("rita", REVIEWER), adopt=True)
    session.refresh_from_db()
    assert timezone.now() - session.ended_at > dt.timedelta(days=19)


def test_a_new_journal_after_each_verdict_asks_nobody_again(agent):
    session = agent.sends(category="code", transcript=logs.claude("s1", logs.COMMIT), journal=b"Merged it.").session
    judged(session, 0.2)
    jobs = session.judge_jobs.count()
    for number in range(5):
        agent.sends(category="code", journal=f"It was great work, number {number}.".encode())
    assert session.judge_jobs.count() == jobs


def test_every_submission_is_a_row_and_the_same_again_adds_none(agent):
    now = timezone.now()
    agent.sends(category="code", journal=b"Done.", at=now)
    agent.sends(category="code", journal=b"Done.", at=now)
    row = Submission.objects.get()
    assert (row.token, row.witness, row.added) == (agent.token, "claimed", ["journal"])
    agent.sends(title="A title", at=now)
    later = Submission.objects.latest("pk")
    assert (later.before, later.after) == ({"title": ""}, {"title": "A title"})


def test_the_same_submission_again_is_a_row_if_it_changes_the_session_back(runner):
    """Failed, completed, failed again: the third submission has the first one's body, but changes the outcome."""
    now = timezone.now()
    for outcome in ("infrastructure", "completed", "infrastructure"):
        session = runner.sends(category="news", outcome=outcome, outcome_reason="No quota.", at=now).session
    columns = [row.after.get("outcome_claimed") for row in session.submissions.order_by("pk")]
    assert columns == ["infrastructure", "completed", "infrastructure"]


def test_a_secret_in_a_late_word_is_kept_nowhere(agent):
    session = agent.sends(transcript=logs.claude("s1", logs.COMMIT), title="API_KEY=hunter2hunter2hunter2").session
    judged(session, 0.9)
    agent.sends(outcome="refused", outcome_reason="password: correct-horse-77")
    kept = [*session.proposals.values_list("value", flat=True), *session.submissions.values_list("after", flat=True)]
    assert not any(secret in json.dumps(kept) for secret in ("hunter2hunter2", "correct-horse-77"))


def test_addresses_are_forgotten_after_a_month(agent):
    agent.sends(category="code")
    assert SubmissionAddress.objects.get().address == "192.0.2.7"
    assert first_word.forget_addresses(timezone.now() + dt.timedelta(days=29)) == 0
    assert first_word.forget_addresses(timezone.now() + dt.timedelta(days=31)) == 1
    assert Submission.objects.exists()


def test_a_person_s_grade_binds_as_a_verdict_does(agent):
    session = agent.sends(transcript=logs.claude("s1", logs.COMMIT)).session
    Site().on(session).graded(Source.HUMAN, 0.4, author=Site().person("rita", REVIEWER))
    agent.sends(category="news")
    session.refresh_from_db()
    assert session.category is None


def test_a_token_for_reading_submits_nothing():
    reader = Caller(TokenScope.READ)
    client = Client(headers={"Authorization": f"Bearer {reader.secret}"})
    reply = client.post("/api/v1/sessions", {"metadata": '{"session_id": "s1"}'})
    assert reply.status_code == 403
    assert reply.json()["expected"] == "a token of the agent, its hook or its runner"
    assert client.get("/api/v1/bandits/category").status_code == 200
    assert not Session.objects.exists()


def test_a_token_is_never_widened_and_a_revoked_one_stays_so(agent):
    with pytest.raises(ValueError, match="never widened"):
        agent.token.narrow(TokenScope.RUNNER)
    _row, fresh = agent.token.rotate(None)
    assert ApiToken.objects.authenticate(agent.secret)
    assert ApiToken.objects.authenticate(fresh)
    ApiToken.objects.filter(pk=agent.token.pk).update(expires_at=timezone.now())
    assert ApiToken.objects.authenticate(agent.secret) is None
    agent.token.revoke()
    when = ApiToken.objects.get(pk=agent.token.pk).revoked_at
    agent.token.revoke()
    assert ApiToken.objects.get(pk=agent.token.pk).revoked_at == when


def test_a_session_s_page_shows_what_was_said_afterwards(agent, client):
    session = agent.sends(transcript=logs.claude("s1", logs.COMMIT)).session
    judged(session, 0.9)
    agent.sends(category="news")
    client.force_login(Site().person("rita", REVIEWER))
    page = flat(client.get(f"/sessions/{session.pk}/"))
    assert "Later claims" in page
    assert "<td>Category</td>" in page
    assert f"Submitted by the agent itself, token …{agent.token.hint}" in page
    assert "news" in page
    client.post(f"/proposals/{Proposal.objects.get().pk}/", {"do": "adopt"})
    session.refresh_from_db()
    assert str(session.category) == "news"
    assert "adopted by rita" in flat(client.get(f"/sessions/{session.pk}/"))


def test_a_rejected_claim_is_called_so_everywhere(agent, client):
    """The button, the message and the page use one word."""
    session = agent.sends(transcript=logs.claude("s1", logs.COMMIT)).session
    judged(session, 0.9)
    agent.sends(category="news")
    client.force_login(Site().person("rita", REVIEWER))
    assert "Reject</button>" in flat(client.get(f"/sessions/{session.pk}/"))
    page = flat(client.post(f"/proposals/{Proposal.objects.get().pk}/", {"do": "reject"}, follow=True))
    assert "The claim was rejected. The session is unchanged." in page
    assert "rejected by rita" in page
