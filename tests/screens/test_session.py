"""The session page: the chain from its steps, the evidence in bounds and escaped, the whole history."""

import json
import re
from datetime import timedelta

import pytest

from bandit.models import LedgerEntry
from grading.intake.first_word import Speaker
from grading.models import (
    Agent,
    ApiToken,
    Evidence,
    Flag,
    Grade,
    JudgeAttempt,
    JudgeJob,
    Reveal,
    Session,
    SessionCommit,
    SessionLanding,
    SessionSignals,
    Settlement,
)
from grading.models.agents import TokenScope
from grading.models.evidence import EvidenceKind
from grading.models.judging import AttemptOutcome, JobState
from grading.models.outcomes import Authorship, CommitState, LandingState
from grading.models.review import Answer, QueueEntry
from grading.review import answers, corrections, promises
from grading.reward import rewards
from grading.reward.explain import number
from grading.reward.freshness import EvidenceState
from grading.screens.session import blind, reasons
from grading.screens.session.history import HistoryLine
from grading.screens.session.view import TABS
from grading.templatetags.gradingsite_tags import mean3
from grading.vocabulary import Reason, Source, Status
from grading.witness import Witness
from tests.casts import desk as desk_cast
from tests.casts import logs
from tests.casts import quota as quota_cast
from tests.casts.page import flat
from tests.site import NOON

pytestmark = pytest.mark.django_db


def opened(client, session, query=""):
    """The page, whose `context` says what it shows."""
    response = client.get(f"/sessions/{session.pk}/{query}")
    assert response.status_code == 200
    return response


def shown(client, session, query="") -> str:
    return flat(opened(client, session, query))


def tiles_of(page) -> dict:
    """The links of the chain, by source."""
    return {tile["source"]: tile for tile in page.context["tiles"]}


def gptme_log(turns: int) -> bytes:
    """A gptme conversation: a task, then `turns` messages of the agent."""
    messages = [{"role": "user", "content": "Do it", "timestamp": "2026-03-31T13:46:00"}]
    messages += [
        {"role": "assistant", "content": f"step {number}.", "timestamp": "2026-03-31T13:47:00"}
        for number in range(turns)
    ]
    return "\n".join(json.dumps(message) for message in messages).encode()


def test_the_tiles_are_the_steps_of_the_settlement(site, reviewer):
    session = (
        site.session()
        .judged(None, Reason.QUOTA_EXHAUSTED)
        .graded(Source.TRAJECTORY, None, Reason.STUB_NO_TOOL_CALLS)
        .graded(Source.JOURNAL, 0.32, detail="“Submitted PR” found")
        .settle()
    )
    page = opened(reviewer, session)
    tiles = tiles_of(page)
    assert (tiles["judge"]["css"], tiles["judge"]["reason"]) == ("failed", Reason.QUOTA_EXHAUSTED)
    assert tiles["trajectory"]["reason"] == Reason.STUB_NO_TOOL_CALLS
    assert (tiles["journal"]["css"], tiles["journal"]["value"]) == ("decides prov", 0.32)
    held = page.context["settlement"]
    assert (held.value, held.final) == (0.32, False)
    html = flat(page)
    assert html.count('role="listitem"') == len(page.context["tiles"]) == 6
    assert (html.count('class="join rule"'), html.count('class="join rule over"')) == (1, 1)


def test_a_judge_that_was_never_called_has_not_failed(site, reviewer):
    """During an outage, a session waits for the quota although nothing was sent for it."""
    builder = site.session().judged(None, Reason.QUOTA_EXHAUSTED).graded(Source.JOURNAL, 0.32)
    session, job = builder.settle(), builder.with_judge_job(reason=Reason.QUOTA_EXHAUSTED).job
    for page in (f"/sessions/{session.pk}/", f"/review/{session.pk}/"):
        assert tiles_of(reviewer.get(page))["judge"]["headline"] == "Not sent yet"
    quota_cast.attempt(job, NOON, AttemptOutcome.DEFERRED, Reason.QUOTA_EXHAUSTED, http_status=400)
    for page in (f"/sessions/{session.pk}/", f"/review/{session.pk}/"):
        assert tiles_of(reviewer.get(page))["judge"]["headline"] != "Not sent yet"


def test_nothing_but_the_stored_steps_explains_a_reward(site, reviewer):
    """A settlement of old keeps saying what it said, whatever the grades say now."""
    session = site.session().judged(0.5, detail="a new wording").session
    held = rewards.settle(session)
    Settlement.objects.create(
        session=session,
        revision=2,
        value=0.5,
        source="judge",
        final=True,
        weight=1,
        sentence="Reward .50, final. As it was explained then.",
        steps=[{**step, "why": "the old wording"} for step in held.steps],
    )
    html = shown(reviewer, session)
    assert html.count("the old wording") >= 6
    assert "As it was explained then." in html


def test_a_floor_is_a_dash_and_decides_nothing(site, reviewer):
    session = site.session().settle()
    page = opened(reviewer, session)
    floor = tiles_of(page)["floor"]
    assert (floor["css"], floor["value"]) == ("skipped slim", None)
    html = flat(page)
    assert '<span class="rw none">' in html
    assert ".10</div>" not in html


def test_a_session_without_settlement_says_so(site, reviewer):
    page = opened(reviewer, site.session().session)
    assert (page.context["settlement"], page.context["tiles"]) == (None, [])
    assert 'class="empty"' in flat(page)


def test_consumption_shows_its_sum(site, reviewer):
    session = site.session("news").session
    terms = [{"kind": "idea", "count": 3, "diminishing": 1.0, "weight": 0.4, "adds": 0.4}]
    site.on(session).graded(Source.CONSUMPTION, 0.6, evidence={"terms": terms}).settle()
    html = shown(reviewer, session)
    assert '<td>Idea</td><td class="right">3</td><td class="right">1</td><td class="right">.4</td>' in html


def test_hostile_evidence_is_text(site, reviewer):
    session = site.session(title="<img src=x onerror=alert(1)>").session
    attack = "<script>alert(1)</script>"
    site.on(session).with_file(
        EvidenceKind.TRANSCRIPT, gptme_log(1).replace(b"step 0.", attack.encode()), "conversation.jsonl"
    )
    site.on(session).with_file(EvidenceKind.JOURNAL, attack.encode(), attack)
    site.on(session).with_file(EvidenceKind.PATCH, f"+++ b/x\n+{attack}\n".encode())
    site.on(session).judged(0.5, detail=attack).settle()
    pages = [shown(reviewer, session, f"?tab={tab}") for tab in TABS]
    for html in pages:
        assert "<script>alert" not in html
        assert "<img src=x" not in html
    escaped = [html.count("&lt;script&gt;alert(1)") for html in pages]
    assert min(escaped) >= 1
    assert max(escaped) >= 3


def test_a_huge_message_is_bounded(site, reviewer):
    session = (
        site.session()
        .with_file(EvidenceKind.TRANSCRIPT, gptme_log(1).replace(b"step 0.", b"x" * 900_000), "conversation.jsonl")
        .session
    )
    html = shown(reviewer, session, "?event=1")
    assert "880000 more characters are stored but not shown" in html
    assert len(html) < 100_000


def test_evidence_that_cannot_be_parsed_is_said_in_words(site, reviewer):
    session = (
        site.session().with_file(EvidenceKind.TRANSCRIPT, b"\x00\xff\xfe not a transcript at all", "x.bin").session
    )
    page = opened(reviewer, session, "?tab=transcript")
    assert page.context["transcript"].problem
    assert "x.bin" in flat(page)
    assert 'class="did"' in shown(reviewer, session)


def test_evidence_that_is_missing_on_disk_is_said_in_words(site, reviewer):
    session = site.session().session
    for kind in (EvidenceKind.TRANSCRIPT, EvidenceKind.JOURNAL, EvidenceKind.PATCH):
        Evidence.objects.create(session=session, kind=kind, sha256="0" * 64, size=3)
    for tab in ("transcript", "journal", "patch"):
        assert "restore it from a backup" in shown(reviewer, session, f"?tab={tab}")
    assert 'class="did"' in shown(reviewer, session)


def test_a_refused_file_is_named_with_its_reason(site, reviewer):
    problem = {"problem": Reason.LOG_OVERWRITTEN, "detail": "Expected session 71a3; the log says 5e0c."}
    session = site.session().with_file(EvidenceKind.TRANSCRIPT, b"{}", "cc-last-session-log.txt", **problem).session
    page = opened(reviewer, session)
    assert [row.problem for row in page.context["refused"]] == [Reason.LOG_OVERWRITTEN]
    assert "the log says 5e0c" in flat(page)


def test_history_tells_everything_and_the_bandits_show_what_is_live(site, reviewer):
    session = site.session().graded(Source.TRAJECTORY, 0.41).settle()
    corrections.record_correction(session, site.person("ron", "reviewer"), value=0.8, reason="merged since")
    page = opened(reviewer, session)
    lines = page.context["history"]
    assert sorted(line.source for line in lines if line.source) == ["human", "human", "trajectory", "trajectory"]
    assert len(lines) == 1 + 2 + 2 + 6  # it came in, two grades, two settlements, what the bandits did
    grade = Grade.objects.get(source=Source.HUMAN)
    assert [(line.undo, line.detail) for line in lines if line.undo] == [(grade.pk, "merged since")]
    assert [(row["entry"].value, row["weight"]) for row in page.context["applied_rewards"]] == [(0.8, 1)] * 2
    assert f'href="/grades/{grade.pk}/undo/"' in flat(page)
    assert LedgerEntry.objects.count() == 6


def test_attempts_say_how_each_call_ended(site, reviewer, settings):
    quota_cast.use(settings)
    session = site.session().session
    job = site.on(session).with_judge_job().job
    JudgeAttempt.objects.create(
        job=job, lease_token="12345678123456781234567812345678", started_at=NOON, finished_at=NOON,
        outcome="deferred", reason=Reason.QUOTA_EXHAUSTED, http_status=400,
    )  # fmt: skip
    page = opened(reviewer, session, "?tab=judge")
    (attempt,) = page.context["attempts"]
    assert (attempt.outcome, attempt.reason) == ("deferred", Reason.QUOTA_EXHAUSTED)
    assert page.context["job"] == job
    assert "<b>queued</b>" in flat(page)


def test_an_unknown_session_is_a_404(reviewer):
    assert reviewer.get("/sessions/987654/").status_code == 404


def test_a_failed_grade_has_its_words_in_the_history(site, reviewer):
    session = site.session().session
    Grade.objects.create(
        session=session, source=Source.JUDGE, status=Status.FAILED, reason=Reason.TIMEOUT, detail="after 120 s"
    )
    rewards.settle(session)
    (line,) = (line for line in opened(reviewer, session).context["history"] if line.source == "judge")
    assert "failed" in line.what
    assert "after 120 s" in line.detail


def test_the_judge_says_why_and_its_citations_lead_to_the_events(site, reviewer):
    session = site.session().with_file(EvidenceKind.TRANSCRIPT, gptme_log(150), "conversation.jsonl").session
    said = {"rationale": "The guard holds.", "citations": [3, 118], "dimensions": {"goal_fit": 0.8}}
    site.on(session).judged(0.76, evidence=said).settle()
    page = opened(reviewer, session, "?tab=transcript")
    assert page.context["citations"] == [3, 118]
    assert page.context["dimensions"] == [("Goal fit", 0.8)]
    html = flat(page)
    assert "The guard holds." in html
    assert 'href="?event=118#e118"' in html
    assert '<rect class="f-judge" width="80" height="4"/>' in html
    assert 'class="ev cited c-judge" id="e3"' in html
    assert "cited" in shown(reviewer, session, "?event=118").partition('id="e118"')[0].rpartition("<div")[2]


def test_a_trajectory_shows_the_terms_of_its_sum(site, reviewer):
    session = site.session().session
    terms = [{"kind": "commit", "count": 3, "units": 1.0, "adds": 2.0}]
    site.on(session).graded(Source.TRAJECTORY, 0.61, evidence={"terms": terms, "penalty": 0.04}).settle()
    page = opened(reviewer, session)
    assert [(card.name, card.decides) for card in page.context["cards"]] == [("sum", True)]
    assert '<td class="right">−.04</td>' in flat(page)


def test_an_abstained_session_is_a_dash_and_says_what_would_make_it_gradable(site, reviewer, settings):
    settings.ANTHROPIC_API_KEY = "sk-test"
    session = site.upload("2f7b", logs.claude("2f7b", ("cat notes.md", "one"), said="It is the index rebuild.")).session
    page = reviewer.get(f"/sessions/{session.pk}/")
    tiles = {tile["source"]: tile for tile in page.context["tiles"]}
    assert (tiles["trajectory"]["state"], tiles["trajectory"]["css"]) == ("abstained", "abstained")
    assert tiles["floor"]["value"] is None
    assert [way.mark for way in page.context["ways"]] == ["judge", "human", "facts"]
    assert page.context["next_judging"].text == "has this session in the queue"
    assert page.context["cards"] == []
    html = flat(page)
    assert "tile c-trajectory failed" not in html
    assert html.count('class="btn primary"') == 1


def test_the_place_in_the_queue_is_named(site, reviewer, settings):
    settings.ANTHROPIC_API_KEY = "sk-test"
    sessions = [site.upload(name, logs.claude(name, ("ls", "a"))).session for name in ("a1", "a2", "a3")]
    JudgeJob.objects.filter(session=sessions[2]).update(worth=1)
    context = reviewer.get(f"/sessions/{sessions[0].pk}/").context
    assert context["next_judging"].place == "2nd of 3"
    assert next(tile for tile in context["tiles"] if tile["source"] == "judge")["headline"] == "Queued, 2nd of 3"


def test_a_job_that_left_the_queue_meanwhile_has_no_place_in_it(site, settings):
    settings.ANTHROPIC_API_KEY = "sk-test"
    job = site.upload("a1", logs.claude("a1", ("ls", "a"))).session.judge_jobs.get()
    JudgeJob.objects.filter(pk=job.pk).update(state=JobState.PARKED)
    assert reasons.next_judging(job).place == ""


def test_without_a_judge_nothing_comes_next(site, reviewer):
    session = site.upload("2f7b", logs.claude("2f7b", ("cat notes.md", "one"))).session
    page = reviewer.get(f"/sessions/{session.pk}/")
    assert page.context["next_judging"] is None
    assert "Add a key in Settings" in page.context["ways"][0].detail
    assert "/runs/plan/" not in flat(page)


def test_only_who_may_change_the_category_is_told_that_it_may_be_one_of_looking(site, client):
    reads = [("cat a.md", "one"), ("cat b.md", "two"), ("ls src", "c.py"), ("grep -n x c.py", "1:x")]
    session = site.upload("2f7b", logs.claude("2f7b", *reads, said="Nothing to do.")).session
    session.extracted.data = {**session.signals, "reads": 4, "concluded": True}
    session.extracted.save()
    for name, role, told in (("olga", "operator", True), ("rita", "reviewer", False)):
        client.force_login(site.person(name, role))
        ways = client.get(f"/sessions/{session.pk}/").context["ways"]
        assert any(f"/bandit/arm/{session.category_id}/change/" in way.url for way in ways) is told


def test_infrastructure_is_a_gate_before_the_chain_with_the_tests_that_held(site, reviewer):
    session = site.upload("7d15", logs.claude("7d15", ("ls", "a"), said=""), exit_code=137).session
    page = reviewer.get(f"/sessions/{session.pk}/")
    first, *others = page.context["tiles"]
    assert (first["css"], first["headline"]) == ("gate", "Infrastructure")
    assert {tile["headline"] for tile in others if tile["source"] != "human"} == {"Not asked"}
    assert len(page.context["tests"]) == 2
    html = flat(page)
    assert 'class="tile gate"' in html
    assert "btn primary" not in html


def test_an_api_error_is_shown_with_its_event(site, reviewer):
    log = logs.claude("7d15", api_error="API Error: 529 overloaded")
    session = site.upload("7d15", log).session
    Session.objects.filter(pk=session.pk).update(outcome="infrastructure", outcome_reason="overloaded")
    session = Session.objects.get(pk=session.pk)
    session.extracted.data |= {"assistant_turns": 0, "tool_calls": {}, "api_errors": {"overloaded": 1}}
    session.extracted.save()
    rewards.settle(session)
    context = reviewer.get(f"/sessions/{session.pk}/").context
    assert [(test.detail, test.event) for test in context["tests"]] == [("API Error: 529 overloaded", 2)]
    assert next(row for row in context["did"] if row.kind == "API error").events == [2]


def test_what_it_did_has_a_row_a_kind_with_its_events_and_where_it_was_seen(site, reviewer):
    calls = (("pytest -q", "1 failed in 0.1s"), logs.COMMIT, ("pytest -q", "8 passed in 0.1s"))
    facts = {"commits": [{"sha": "1a2b3c4" + "0" * 33}], "checks": []}
    session = site.upload("5c02", logs.claude("5c02", *calls, said="Done & <dusted>."), facts=facts).session
    page = reviewer.get(f"/sessions/{session.pk}/")
    rows = {row.kind: row for row in page.context["did"]}
    assert (rows["Commit"].events, rows["Commit"].seen_in) == ([5], "log and caller’s facts")
    assert {row.witness for row in rows.values()} == {Witness.UNKNOWN, ""}
    assert rows["Commit"].items[0].text == "Fix it"
    assert rows["Tests"].events == [3, 7]
    assert rows["Tests"].note.endswith("failed, passed")
    assert rows["Last message"].items[0].text == "“Done & <dusted>.”"
    assert "Done &amp; &lt;dusted&gt;." in flat(page)
    assert 'href="?tab=transcript&amp;event=5#e5"' in flat(page)
    assert "commits" not in rows["Not seen"].items[0].text.lower()


def test_each_activity_has_the_witness_of_its_evidence(site, reviewer):
    log = logs.claude("5c03", ("pytest -q", "8 passed in 0.1s"), logs.COMMIT)
    agent = Agent.objects.create(name="ann")
    token, _secret = ApiToken.objects.issue(agent, scope=TokenScope.RUNNER)
    session = site.upload("5c03", log, agent=agent, speaker=Speaker(token=token)).session
    rows = {row.kind: row for row in opened(reviewer, session).context["did"]}
    assert (rows["Commit"].witness, rows["Tests"].witness) == (Witness.OBSERVED, Witness.OBSERVED)
    commit = {"session": session, "claim": "1a2b3c4", "authorship": Authorship.OWN, "state": CommitState.LANDED}
    SessionCommit.objects.create(**commit)
    rows = {row.kind: row for row in opened(reviewer, session).context["did"]}
    assert (rows["Commit"].witness, rows["Tests"].witness) == (Witness.VERIFIED, Witness.OBSERVED)


def test_commits_are_verified_only_if_the_site_has_found_all_of_them(site, reviewer):
    """Also those that the page doesn't list; and a short hash is the same commit as the full one."""
    hashes = [f"{number}a2b3c4" for number in range(5)]
    calls = [(f"git commit -am 'Part {each}'", f"[main {each}] Part {each}\n 1 file changed") for each in hashes]
    session = site.upload("5c04", logs.claude("5c04", *calls)).session
    for each in hashes[:4]:
        commit = {"authorship": Authorship.OWN, "state": CommitState.LANDED}
        SessionCommit.objects.create(session=session, claim=each + "0" * 33, **commit)
    SessionLanding.objects.create(session=session, state=LandingState.LANDED, landed=4, checked_at=NOON)

    def marks():
        context = opened(reviewer, session).context
        row = next(row for row in context["did"] if row.kind == "Commits")
        return row.witness, context["outcome_steps"][0].mark

    assert marks() == (Witness.UNKNOWN, "")
    SessionCommit.objects.create(session=session, claim=hashes[4], authorship=Authorship.OWN)
    assert marks() == (Witness.VERIFIED, Witness.VERIFIED)


def test_a_log_that_cannot_be_read_is_not_called_too_little_work(site, reviewer):
    log = logs.claude("s1", ("pytest -q", "8 passed"), logs.COMMIT).replace(b'"name": "Bash"', b'"name": "Terminal"')
    session = site.upload("s1", log).session
    did = {row.kind: row for row in opened(reviewer, session).context["did"]}
    assert did["Log"].note == "Too little of the log can be read for a grade"


def test_a_commit_of_another_session_was_seen(site, reviewer):
    owner, copy = (site.upload(name, logs.claude(name, logs.COMMIT)).session for name in ("5c02", "5c03"))
    page = reviewer.get(copy.get_absolute_url())
    assert [each.owned_by for each in page.context["elsewhere"]] == [owner]
    missing = next(row for row in page.context["did"] if row.kind == "Not seen")
    assert "commits" not in missing.items[0].text.lower()


def test_what_is_left_out_says_why_and_is_no_changed_file(site, reviewer):
    head = "diff --git a/tasks/a.md b/tasks/a.md\nnew file mode 100644\n--- /dev/null\n+++ b/tasks/a.md\n"
    session = site.upload("n1", patch=f"{head}@@ -0,0 +1 @@\n+x\n".encode()).session
    did = {row.kind: row for row in reviewer.get(session.get_absolute_url()).context["did"]}
    (item,) = did["Not counted"].items
    assert (item.code, item.text) == ("tasks/a.md", "1 character of text, 60 needed; 59 missing")
    assert not {"Task", "Tasks", "File changed"} & did.keys()
    assert "hanged files" not in did["Not seen"].items[0].text


def test_ideas_are_shown_without_the_bars_of_their_table(site, reviewer):
    table = "--- a/idea-backlog.md\n+++ b/idea-backlog.md\n@@ -1,0 +1 @@\n+| 1 | Idea: offline maps | 8 |\n"
    patch = f"diff --git a/idea-backlog.md b/idea-backlog.md\n{table}"
    days = (NOON, NOON + timedelta(days=1))
    first, second = (site.upload(f"n{day.day}", patch=patch, category="news", ended_at=day).session for day in days)
    (idea,) = {row.kind: row for row in opened(reviewer, first).context["did"]}["Idea"].items
    (copy,) = {row.kind: row for row in opened(reviewer, second).context["did"]}["Not counted"].items
    assert idea.code == copy.code == "1 · Idea: offline maps · 8"
    assert copy.text == f"the same as in session {first.external_id}"


def test_a_session_of_which_nothing_came_has_no_empty_cards(site, reviewer):
    session = site.upload("5c02").session
    page = reviewer.get(f"/sessions/{session.pk}/")
    assert [row.kind for row in page.context["did"]] == ["Not seen"]
    assert [tab.name for tab in page.context["tabs"]] == ["did"]


def test_a_failure_shows_its_evidence(site, reviewer):
    steps = [("sed -i s/a/b/ a.py", ""), ("pytest -q", "2 failed, 6 passed in 1.4s")]
    session = site.upload("7777", logs.claude("7777", *steps)).session
    html = shown(reviewer, session)
    assert '<use href="#i-cross"/>' in html
    assert "pytest" in html


def test_what_consumption_decides_comes_first(site, reviewer):
    session = (
        site.session("news").judged(0.2, detail="thin").graded(Source.CONSUMPTION, 0.6, evidence={"terms": []}).settle()
    )
    cards = reviewer.get(f"/sessions/{session.pk}/").context["cards"]
    assert [(card.name, card.decides) for card in cards] == [
        ("consumption", True), ("judge", False),
    ]  # fmt: skip


def test_any_rows_that_add_to_a_grade_are_shown(site, reviewer):
    session = site.session().session
    rows = [{"words": "last test run passed", "factor": 1.0, "adds": 0.26}]
    terms = [{"words": "commit", "count": 1, "adds": 1.0}]
    site.on(session).graded(Source.TRAJECTORY, 0.56, evidence={"terms": terms, "weighed": rows, "units": 1.0}).settle()
    html = shown(reviewer, session)
    for units in ("+1.00", "+.260"):
        assert f'<td class="right">{units}</td>' in html


def test_signals_of_another_version_do_not_break_the_page(site, reviewer):
    session = site.session().session
    SessionSignals.objects.create(session=session, data={"of": "another version"}, version="signals/0")
    rewards.settle(session)
    assert 'class="did"' in shown(reviewer, session)


def test_the_list_shows_an_abstention_as_a_dash(site, reviewer):
    site.upload("2f7b", logs.claude("2f7b", ("cat notes.md", "one")))
    html = flat(reviewer.get("/sessions/"))
    assert re.search(r'<span class="chip c-none none"[^>]*>–</span>', html)


def test_what_was_carried_over_is_shown_with_where_it_came_from(site, reviewer):
    log = logs.claude("0090", logs.COMMIT)
    first = site.upload("0090", log, title="The first").session
    copy = site.upload("0099", log.replace(b'"sessionId": "0090"', b'"sessionId": "0099"')).session
    page = reviewer.get(f"/sessions/{copy.pk}/")
    carried = page.context["carried"]
    assert [(each.session, each.records == each.total) for each in carried] == [(first, True)]
    assert [each.owned_by for each in page.context["elsewhere"]] == [first]
    assert [row.kind for row in page.context["did"]] == ["Not seen"]
    assert f'href="/sessions/{first.pk}/">The first</a>' in flat(page)
    assert {tile["state"] for tile in page.context["tiles"]} <= {"skipped", "abstained", "decides"}


# --- blind first ------------------------------------------------------------------------------------------------------

# Text of the verdict of `desk_cast.judged`, and what else tells which number it is.
TELLING = (".17", "0.17", "sealed verdict", "focused fix", "claude-sonnet-5-5", "tile decides", "cited", "learned by")


def main_of(page) -> str:
    return flat(page).split("<main")[1].split("</main>")[0].lower()


@pytest.mark.parametrize("tab", ["", "?tab=transcript", "?tab=judge"])
def test_who_is_asked_to_grade_blind_reads_nothing_of_the_verdict(site, reviewer, tab):
    """The page of a session keeps back what the desk keeps back."""
    session = desk_cast.judged(0.17)
    site.on(session).with_file(EvidenceKind.TRANSCRIPT, gptme_log(5), "conversation.jsonl").with_judge_job(state="done")
    desk_cast.waits(session)
    html = main_of(opened(reviewer, session, tab))
    assert [telling for telling in TELLING if telling in html] == []
    assert "hidden until you grade" in html


def test_settlements_that_look_alike_while_hidden_are_one_line():
    lines = [HistoryLine(at=NOON, what=f"Settled at {value}", while_blind="Settled") for value in (".60", ".17")]
    assert [line.what for line in blind.history(lines)] == ["Settled: hidden until you grade"]


def test_a_look_at_the_verdict_is_recorded_and_the_grade_is_no_longer_blind(site, reviewer, rita):
    session = desk_cast.judged(0.17)
    desk_cast.waits(session)
    reply = reviewer.post(f"/review/{session.pk}/reveal/", {"back": "session"}, follow=True)
    assert reply.redirect_chain == [(session.get_absolute_url(), 302)]
    assert "a focused fix" in main_of(reply)
    assert (Reveal.objects.get().reviewer, Reveal.objects.get().value) == (rita, None)
    answer = answers.submit(session, rita, answer=Answer.GRADE, value=0.8, reason="it works")
    assert (answer.revealed, answer.blind_value) == (True, None)


def test_the_verdict_is_shown_to_who_is_not_asked_or_has_graded(site, client, rita):
    session, waiting, for_ron = desk_cast.judged(0.17), desk_cast.judged(0.17), desk_cast.judged(0.17)
    desk_cast.waits(waiting)
    desk_cast.waits(for_ron, assigned_to=site.person("ron", "reviewer"))
    client.force_login(rita)
    assert ".17" in main_of(opened(client, session))
    assert ".17" in main_of(opened(client, for_ron))
    answers.submit(waiting, rita, answer=Answer.GRADE, value=0.8, reason="it works")
    assert "the judge’s .17" in main_of(opened(client, waiting))
    client.force_login(site.person("vera", "viewer"))
    assert ".17" in main_of(opened(client, session))


def test_a_flag_that_compares_the_verdict_does_not_tell_it(site, reviewer):
    session = desk_cast.judged(0.17)
    Flag.objects.create(session=session, rule="A3", detail="the judge says 0.17; its trajectory 0.80")
    Session.objects.filter(pk=session.pk).update(open_flags=1)
    desk_cast.waits(session, QueueEntry.RULE, why="the judge says 0.17; its trajectory 0.80")
    for address in (session.get_absolute_url(), f"/review/{session.pk}/"):
        html = main_of(reviewer.get(address))
        assert "judge and trajectory disagree" in html
        assert "0.17" not in html
    assert "0.17" not in main_of(reviewer.get("/"))


def test_what_contests_the_verdict_does_not_tell_how_far_it_is_from_it(site, reviewer):
    """.95 − .78 would be the verdict."""
    session = desk_cast.judged(0.17, category="news")
    site.on(session).graded(Source.CONSUMPTION, 0.95, detail="3 ideas", evidence={"terms": []}).settle()
    assert any(".78" in step["why"] for step in rewards.live(session).steps)
    desk_cast.waits(session)
    for address in (session.get_absolute_url(), f"/review/{session.pk}/"):
        html = main_of(reviewer.get(address))
        assert ".95" in html
        assert [telling for telling in (".78", ".17", "contest") if telling in html] == []


# ---- what each answer would do, while the grade is open

WHEN_JUDGED = EvidenceState(source="the journal", effects=frozenset({"a"})).as_dict()
NOW = EvidenceState(source="all", transcript="f" * 12, effects=frozenset({"a", "b", "c"})).as_dict()


def with_stale_verdict(site, *, view: str) -> Session:
    """A session whose transcript came after its verdict; a trajectory of the full view stands in for that."""
    evidence = {"view": view, "stands": True, "shown": NOW}
    builder = site.session("code").judged(0.1, rubric="4e1c", evidence={"read": WHEN_JUDGED})
    return builder.graded(Source.TRAJECTORY, 0.6, evidence=evidence).settle()


def answers_of(page) -> dict[float, tuple[str, float]]:
    """Whose each grade is, and the mean that it leads to."""
    return {each.value: (each.name, each.move.mean_after) for each in page.context["open_answers"]}


def open_card(page) -> str:
    return flat(page).partition("What each answer would do</h2>")[2].partition("</section>")[0]


def test_a_contested_session_shows_what_each_answer_would_do(site, viewer):
    """The judge's grade and the artifacts' are among them; .20 and .80 are too close to these."""
    site.session("news").judged(0.6).settle()
    builder = site.session("news").judged(0.05)
    session = builder.graded(Source.CONSUMPTION, 1.0, evidence={"witness": "observed", "terms": []}).settle()
    page = opened(viewer, session)
    shown_answers = answers_of(page)
    assert {value: name for value, (name, _) in shown_answers.items()} == {
        0.05: "the judge’s",
        0.5: "",
        1.0: "the artifacts’",
    }
    for value, (_, mean_after) in shown_answers.items():
        (promised,) = [
            move for move in promises.arm_moves([(session, value)]) if move.touched and move.bandit == "category"
        ]
        assert mean_after == promised.mean_after
        row = f"<b>{number(value)}</b>"
        assert row in open_card(page)
        assert f"{mean3(promised.mean_before)} →</span> {mean3(mean_after)}" in open_card(page)
        assert f"{promised.share_before:.0f} →</span> {promised.share_after:.0f}" in open_card(page)
    assert "A person’s answer replaces the reward of 1 exactly." in open_card(page)
    assert "What it changed" not in flat(page)


@pytest.mark.parametrize(("view", "decides"), [("full", Source.TRAJECTORY), ("", Source.JUDGE)])
def test_a_stale_verdict_leaves_the_grade_open(site, viewer, view, decides):
    session = with_stale_verdict(site, view=view)
    page = opened(viewer, session)
    assert page.context["settlement"].source == decides
    assert {value: name for value, (name, _) in answers_of(page).items()} == {
        0.1: "the stale verdict’s",
        0.5: "",
        0.8: "",
    }
    assert [(part.title, part.was_read) for part in page.context["parts_read"]] == [
        ("1 confirmed effect", True),
        ("Transcript", False),
        ("2 further confirmed effects", False),
    ]
    unread = flat(page).partition("What the verdict had not read</h2>")[2].partition("</section>")[0]
    assert (unread.count(">read<"), unread.count(">not read<")) == (1, 2)
    # The verdict of another rubric is stale, too, but only one that decides counts.
    assert ("but counts until the session is judged again" in flat(page)) == (decides == Source.JUDGE)


def test_an_ungraded_session_shows_what_each_answer_would_do(site, viewer):
    page = opened(viewer, site.session("code").abstained().settle())
    assert list(answers_of(page)) == [0.2, 0.5, 0.8]
    assert "Until then, this session changes no arm." in open_card(page)


def test_without_an_arm_no_answer_would_do_anything(site, viewer):
    page = opened(viewer, site.session(None, harness=None).abstained().settle())
    assert "What each answer would do" not in flat(page)
    assert "Nothing. No bandit has an arm for this session." in flat(page)


def test_a_settled_session_shows_what_it_changed(site, viewer):
    for session in (
        site.session("code").judged(0.6).settle(),
        site.session("code").graded(Source.TRAJECTORY, 0.4).settle(),
    ):
        page = opened(viewer, session)
        assert "What it changed" in flat(page)
        assert "open_answers" not in page.context


def test_a_persons_grade_closes_a_stale_verdict(site, viewer):
    session = with_stale_verdict(site, view="full")
    corrections.record_correction(session, site.person("ron", "reviewer"), value=0.8, reason="merged since")
    assert "What it changed" in shown(viewer, session)


def test_a_task_that_is_the_title_is_not_repeated(site, viewer):
    log = logs.claude("task-1")
    session = site.upload("task-1", log, category="code").session
    kinds = [row.kind for row in opened(viewer, session).context["did"]]
    assert session.title
    assert "Task" not in kinds
    Session.objects.filter(pk=session.pk).update(title="Another title")
    assert "Task" in [row.kind for row in opened(viewer, session).context["did"]]
