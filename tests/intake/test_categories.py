"""How sessions get their category: whose word holds, what rules catch, what people set, and undoing all of it."""

import random

import pytest
from django.utils import timezone
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from msgspec import convert

from bandit.core.moves import moves
from bandit.models import Arm, Bandit, Bucket
from bandit.reading import posterior_of
from bandit.whatif import what_if_rows
from grading.intake.categories import changes, edits, preview, provenance, reach, rules
from grading.intake.categories.changes import ChangeRefused
from grading.intake.first_word import Speaker
from grading.models import (
    AuditEvent,
    CategoryChange,
    CategoryRule,
    CategoryWord,
    JudgeJob,
    Session,
    SessionTraits,
)
from grading.models.agents import TokenScope
from grading.models.sessions import CategoryOrigin
from grading.signals.conditions import InvalidCondition, Matcher
from grading.signals.traits import Traits
from tests.casts.intake import called, calls, claude
from tests.casts.page import flat
from tests.examples import examples
from tests.redteam.test_chance import Agent
from tests.site import NOON

pytestmark = pytest.mark.django_db

WRITE = (
    "Write",
    {"file_path": "/repo/infra/main.tf", "content": "x"},
    "File created successfully at: /repo/infra/main.tf",
)


def arm(name):
    return Arm.objects.resolve("category", name)


def rule(field="words", test="contains", *values, category="triage", **fields):
    conditions = [{"field": field, "test": test, "values": list(values or ["inbox"])}]
    position = fields.pop("position", CategoryRule.objects.count() + 1)
    return CategoryRule.objects.create(conditions=conditions, category=arm(category), position=position, **fields)


def log(name, task="Go through the inbox. ", **fields):
    return claude(name, *calls(WRITE, task=task), **fields)


def bits():
    """Everything that the bandits know: their sums, and what is read of them."""
    sums = Bucket.objects.exclude(n=0).order_by("bandit", "arm", "grader", "effective_day")
    read = {row.name: posterior_of(row.name, NOON) for row in Bandit.objects.that_learn()}
    columns = ("bandit", "arm", "grader", "effective_day", "n", "s", "q", "cost", "costed", "productive")
    return list(sums.values_list(*columns)), repr(read)


def graded(site, value=0.7, **fields):
    """A settled session without a category unless told; each is of the harness claude-code."""
    return site.session(**{"category": None, **fields}).judged(value, model="judge").settle()


# --- whose word holds


def test_a_rule_gives_a_new_session_its_category_and_says_why(site):
    made = rule()
    session = site.upload("s-1", log("s-1"), category=None).session
    said = provenance.provenance_of(session)
    assert (session.category.name, said.origin, said.is_inferred) == ("triage", "rule", True)
    assert said.why == "rule 1: the task says “Go through the inbox. " + "x" * 39 + "…”"
    assert CategoryWord.objects.get().rule == made


def test_nobodys_word_is_no_category(site):
    rule("words", "contains", "newsletter")
    session = site.upload("s-1", log("s-1"), category=None).session
    assert session.category is None
    assert provenance.provenance_of(session) is None


def test_the_agents_own_word_holds_until_a_rule_says_another(site):
    agent = Agent("eve")
    session = site.upload("s-1", log("s-1"), category="code", agent="eve").session
    assert session.category_from == "runner"  # handed in at the site itself
    own = agent.send("s-2", category="news", journal="Read the news.").session
    assert (own.category.name, own.category_from) == ("news", "agent")


@pytest.mark.parametrize("parts", [["both"], ["word", "log"]])
def test_an_agent_cannot_choose_its_category_above_a_rule(site, parts):
    rule()
    eve = Agent("eve")
    for part in parts:
        said = {"category": "code", "ended_at": None, "speaker": Speaker(token=eve.token)}
        session = site.upload("s-1", None if part == "word" else log("s-1"), agent=eve.token.agent, **said).session
    assert (session.category.name, session.category_from) == ("triage", "rule")


def test_a_decisions_arm_outranks_a_rule_and_a_runner_outranks_both():
    rule()
    eve, runner = Agent("eve"), Agent("eve", TokenScope.RUNNER)
    eve.ask("d-1", supply={"infra": 1})
    session = eve.send("s-1", selection_id="d-1", category="zzz", journal="Done.").session
    assert (session.category.name, session.category_from) == ("infra", "decision")
    session = runner.send("s-1", category="news").session
    assert (session.category.name, session.category_from) == ("news", "runner")


def test_a_decision_that_another_session_closed_gives_no_category():
    eve = Agent("eve")
    eve.ask("d-1", supply={"infra": 1})
    eve.send("s-1", selection_id="d-1", journal="Done.")
    receipt = eve.send("s-2", selection_id="d-1", journal="Done too.")
    assert [problem.code for problem in receipt.problems if problem.part == "selection_id"] == ["selection_completed"]
    assert receipt.session.category is None


def test_a_person_outranks_everybody(site):
    runner, reviewer = Agent("eve", TokenScope.RUNNER), site.person("ana", "reviewer")
    session = runner.send("s-1", category="news", journal="Done.").session
    changes.set_by_hand([session.pk], arm("code"), reviewer)
    session = runner.send("s-1", category="infra").session
    assert (session.category.name, session.category_from) == ("code", "person")
    assert [word.category.name for word in provenance.load_words(session)] == ["news", "code", "infra"]


def test_a_rule_made_later_leaves_a_categorised_session_alone(site):
    session = site.upload("s-1", log("s-1"), category="code").session
    Session.objects.update(category_from="")
    CategoryWord.objects.all().delete()  # as on a site that was upgraded
    rule()
    longer = claude("s-1", *calls(WRITE, WRITE, task="Go through the inbox. "))
    session = site.upload("s-1", longer, category=None).session
    assert session.category.name == "code"
    assert not CategoryWord.objects.exists()


@pytest.mark.parametrize(("witness", "origin"), [("observed", "runner"), ("claimed", "agent"), ("unknown", "agent")])
def test_whose_word_it_was_before_the_site_kept_that_is_read_from_the_submissions(site, witness, origin):
    scope = {"observed": TokenScope.RUNNER, "claimed": TokenScope.AGENT, "unknown": TokenScope.UNSCOPED}[witness]
    session = Agent("eve", scope).send("s-1", category="news", journal="Done.").session
    CategoryWord.objects.all().delete()
    Session.objects.update(category_from="")
    session.refresh_from_db()
    said = provenance.provenance_of(session)
    assert (said.origin, said.why) == (origin, provenance.UNTRACKED)
    changes.undo(
        changes.set_by_hand([session.pk], arm("code"), site.person("ana", "reviewer")), site.person("b", "viewer")
    )
    session.refresh_from_db()
    assert (session.category.name, session.category_from) == ("news", origin)


# --- what a log shows, and conditions on it


def test_traits_are_what_the_log_shows(site):
    session = site.upload("s-1", log("s-1", gitBranch="fix/retry-loop"), category=None).session
    traits = convert(session.traits.data, Traits)
    assert traits.harness == "claude-code"
    assert traits.repositories == ("repo",)
    assert (traits.folder, traits.branch) == ("/repo", "fix/retry-loop")
    assert traits.paths == ("infra/main.tf",)
    assert {"Write", "write"} <= set(traits.tools)
    assert traits.task.startswith("Go through the inbox. xxx")


def test_a_logs_secrets_are_not_kept_in_its_traits(site):
    key = "AKIA" + "Q7RZ2XN4PLM6KD3V"
    session = site.upload("s-1", log("s-1", task=f"Use {key} for the inbox. "), category=None).session
    assert key not in str(SessionTraits.objects.get(session=session).data)


@pytest.mark.parametrize(
    ("field", "test", "value", "met"),
    [
        ("repository", "is", "engine", "repository engine"),
        ("repository", "is", "Ada/Engine", "repository ada/engine"),
        ("repository", "is", "gin", ""),
        ("path", "starts with", "infra/", "path infra/main.tf"),
        ("path", "starts with", "main", ""),
        ("path", "matches", "*.tf", "path infra/main.tf"),
        ("branch", "matches", "fix/*", "branch fix/a"),
        ("branch", "matches", "fix/??", ""),
        ("branch", "is", ".*", ""),
        ("words", "contains", "inbox", "the task says “the INBOX, überall news”"),
        ("words", "contains", "box", ""),
        ("words", "contains", "über", ""),
        ("words", "starts with", "go through", "the task says “Go through the INBOX, überall news”"),
        ("tool", "matches", "mcp__mail__*", "tool mcp__mail__read"),
        ("harness", "is", "codex", "harness codex"),
    ],
)
def test_what_a_condition_is_met_by(field, test, value, met):
    traits = Traits(
        harness="codex",
        repositories=("ada/engine",),
        branch="fix/a",
        task="Go through the INBOX, überall news",
        paths=("infra/main.tf",),
        tools=("shell", "mcp__mail__read"),
    )
    found = Matcher([{"field": field, "test": test, "values": [value]}]).explain_match(traits)
    assert (found == "") == (met == "")
    assert found.replace("Go through ", "").replace("the task says “the", "the task says “the") or not met
    assert met.split(" ")[0] == found.split(" ")[0]


@pytest.mark.parametrize(
    "rows",
    [
        [],
        "x",
        [{"field": "reward", "test": "is", "values": ["1"]}],
        [{"field": "words", "test": "regex", "values": ["(a+)+$"]}],
        [{"field": "words", "test": "is", "values": []}],
        [{"field": "words", "test": "is", "values": ["  "]}],
        [{"field": "branch", "test": "matches", "values": ["**"]}],
        [{"field": "branch", "test": "is", "values": ["a\0b"]}],
        [{"field": "branch", "test": "is", "values": ["a" * 201]}],
        [{"field": "branch", "test": "is", "values": [["a"]]}],
        [{"field": "branch", "test": "is", "values": ["a"]}] * 7,
    ],
)
def test_a_condition_that_cannot_work_is_refused(rows):
    with pytest.raises(InvalidCondition):
        Matcher(rows)


@examples(25)
@hypothesis_given(st.lists(st.text(min_size=1, max_size=200), min_size=1, max_size=3), st.text(max_size=2000))
def test_no_pattern_breaks_the_search_and_its_own_text_is_found(values, task):
    for test in ("is", "starts with", "contains", "matches"):
        try:
            matcher = Matcher([{"field": "branch", "test": test, "values": values}])
        except InvalidCondition:
            continue
        matcher.explain_match(Traits(branch=task))
        assert matcher.explain_match(Traits(branch=matcher.conditions[0].values[0]))


# --- what rules would catch


def test_each_rule_says_what_it_catches_and_what_goes_to_an_earlier_one(site):
    for number, task in enumerate(["inbox news ", "news ", "inbox ", "nothing "]):
        site.upload(f"s-{number}", log(f"s-{number}", task=task), category=None)
    site.upload("s-9", log("s-9", task="inbox "), category="code")
    rows = [rule(category="triage"), rule("words", "contains", "news", category="news")]
    found = reach.uncategorised(rows)
    assert (found.total, found.count, found.remaining) == (4, 3, 1)
    assert [each.count for each in found.rules] == [2, 1]
    assert found.rules[1].earlier == {1: 1}


def test_the_page_says_how_many_of_too_many_sessions_were_examined(site, client, monkeypatch):
    for number in range(2):
        site.upload(f"s-{number}", log(f"s-{number}"), category=None)
    rule()
    client.force_login(site.person("vera", "viewer"))
    assert "sessions were counted" not in flat(client.get("/categories/"))
    monkeypatch.setattr(reach, "MAX_SESSIONS", 1)
    assert "Only the latest 1 sessions were counted." in flat(client.get("/categories/"))


def test_the_page_counts_where_the_categories_came_from(site, client):
    client.force_login(site.person("olga", "operator"))
    rule()
    site.upload("s-1", log("s-1"), category=None)
    Agent("eve").send("s-2", category="news", journal="Read the news.")
    given = client.get("/categories/").context["origins_by_category"]
    assert given == [
        {"name": "news", "total": 1, "origins": [("the agent’s own word", 1)]},
        {"name": "triage", "total": 1, "origins": [("set by a rule", 1)]},
    ]


def test_a_rule_that_is_off_catches_nothing(site):
    site.upload("s-1", log("s-1"), category=None)
    assert reach.uncategorised([rule(is_on=False)]).count == 0
    assert site.upload("s-2", log("s-2"), category=None).session.category is None


def test_logs_from_before_are_read_for_the_rules(site):
    session = site.upload("s-1", log("s-1"), category=None).session
    SessionTraits.objects.all().delete()
    assert rules.without_traits().count() == 1
    assert reach.uncategorised([rule()]).count == 0
    assert changes.catch_up() == 1
    assert reach.uncategorised(CategoryRule.objects.all()).count == 1
    session.refresh_from_db()
    assert session.category is None


# --- setting, applying, undoing


def test_rules_are_applied_to_sessions_without_a_category_and_only_with_the_others_to_them(site):
    ana = site.person("ana", "operator")
    for number, category in enumerate([None, None, "code"]):
        site.upload(f"s-{number}", log(f"s-{number}"), category=category)
    eve = Agent("eve")
    other = eve.send("s-e", category="code", journal="Done.").session
    rules.store_traits(other, Traits(task="inbox"))
    rule()
    name = "8a8b7c1e-0000-4000-8000-000000000002"
    change = changes.apply_rules(ana, expected=2, name=name)
    assert change.total == 2
    assert changes.apply_rules(ana, expected=2, name=name) == change, "the same form, sent twice"
    assert dict(Session.objects.values_list("external_id", "category__name")) == {
        "s-0": "triage", "s-1": "triage", "s-2": "code", "s-e": "code",
    }  # fmt: skip
    with pytest.raises(ChangeRefused, match="match no sessions"):
        changes.apply_rules(ana)
    with pytest.raises(ChangeRefused, match="match 1 sessions instead of 5"):
        changes.apply_rules(ana, others=True, expected=5)
    changes.apply_rules(ana, others=True, expected=1)
    other.refresh_from_db()
    assert (other.category.name, other.category_from) == ("triage", "rule")
    assert Session.objects.get(external_id="s-2").category.name == "code"


def test_a_category_that_is_set_moves_the_reward_there_and_asks_no_judge(site, settings):
    settings.ANTHROPIC_API_KEY, settings.JUDGE_MODEL = "key", "claude-opus-4-6"
    session, reviewer = graded(site), site.person("ana", "reviewer")
    changes.set_by_hand([session.pk], arm("code"), reviewer, reason="It wrote code.")
    entry = Bucket.objects.get(bandit__name="category", n__gt=0)
    assert (entry.arm.name, entry.s) == ("code", 700_000)
    assert not JudgeJob.objects.exists()


def test_the_same_form_sent_twice_is_one_change(site):
    session, reviewer = graded(site), site.person("ana", "reviewer")
    name = "8a8b7c1e-0000-4000-8000-000000000001"
    for _ in range(2):
        changes.set_by_hand([session.pk], arm("code"), reviewer, name=name)
    assert CategoryChange.objects.count() == CategoryWord.objects.count() == 1


def test_a_change_of_many_is_finished_by_a_worker(site, monkeypatch):
    sessions, reviewer = [graded(site) for _ in range(5)], site.person("ana", "reviewer")
    before = bits()
    monkeypatch.setattr(changes, "SYNC_LIMIT", 2)
    change = changes.set_by_hand([each.pk for each in sessions], arm("code"), reviewer)
    assert Session.objects.filter(category__name="code").count() == 2
    assert changes.unfinished() == [change]
    changes.catch_up()
    assert Session.objects.filter(category__name="code").count() == 5
    changes.undo(change, reviewer)
    changes.catch_up()
    assert not changes.unfinished()
    assert bits() == before


def test_what_is_undone_cannot_be_undone_again(site):
    session, reviewer = graded(site), site.person("ana", "reviewer")
    change = changes.set_by_hand([session.pk], arm("code"), reviewer)
    changes.undo(change, reviewer)
    with pytest.raises(ChangeRefused, match="already been undone"):
        changes.undo(change, reviewer)


def test_the_preview_is_what_then_holds(site):
    reviewer = site.person("ana", "reviewer")
    sessions = [graded(site, 0.2 + number / 10, category=None if number % 2 else "infra") for number in range(6)]
    now = timezone.now()
    told = preview.preview({each.pk: arm("code") for each in sessions}, now)
    changes.set_by_hand([each.pk for each in sessions], arm("code"), reviewer)
    assert {move.arm for move in told.arms if move.bandit == "category"} >= {"code", "infra"}
    for move in told.arms:
        held = moves(move.bandit, *what_if_rows(move.bandit, {}, now), touched=[move.arm])
        (then,) = [each for each in held if each.arm == move.arm]
        assert (then.mean_before, then.share_before) == (move.mean_after, move.share_after)
    assert told.sessions == {"code": 6}


def test_undoing_in_any_order_leaves_every_bit_as_it_was(site):
    """What people set and take back, in random orders, over words of agents, runners and rules that are edited."""
    people = [site.person("ana", "reviewer"), site.person("bo", "operator")]
    sessions = [
        site.upload(f"s-{n}", log(f"s-{n}"), category=category).session
        for n, category in enumerate([None, "code", None])
    ]
    sessions += [graded(site, 0.3), graded(site, 0.9, category="news"), graded(site, 0.5, category="infra")]
    rule()
    before, words = bits(), dict(Session.objects.values_list("pk", "category"))
    for seed in range(3):
        rng, open_ = random.Random(seed), []
        for _ in range(10):
            if open_ and rng.random() < 0.4:
                changes.undo(open_.pop(rng.randrange(len(open_))), rng.choice(people))
            elif rng.random() < 0.2:
                own = CategoryRule.objects.first()
                if own is None or rng.random() < 0.6:
                    edits.save(draft("inbox", rng.choice(["code", "triage"]), own))
                else:
                    edits.delete(own)
            elif rng.random() < 0.2 and reach.uncategorised(CategoryRule.objects.all()).count:
                open_.append(changes.apply_rules(people[1]))
            else:
                some = rng.sample(sessions, rng.randint(1, 3))
                name = rng.choice(["code", "news", "triage", "infra"])
                open_.append(changes.set_by_hand([each.pk for each in some], arm(name), rng.choice(people)))
        rng.shuffle(open_)
        for change in open_:
            changes.undo(change, people[0])
        assert dict(Session.objects.values_list("pk", "category")) == words
        assert bits() == before


# --- edits of the rules


def draft(word="inbox", category="triage", rule=None):
    """A rule as it is to be, not saved."""
    said = [{"field": "words", "test": "contains", "values": [word]}]
    return CategoryRule(
        pk=rule and rule.pk, position=rule.position if rule else 1, conditions=said, category=arm(category)
    )


def listed():
    """The rules as they stand, in their order: word, category and whether on; their numbers count from 1."""
    rows = list(CategoryRule.objects.select_related("category"))
    assert [row.position for row in rows] == list(range(1, len(rows) + 1))
    return [(row.conditions[0]["values"][0], row.category.name, row.is_on) for row in rows]


def edits_in_history():
    return list(AuditEvent.objects.filter(kind="category").order_by("pk").values_list("what", "detail"))


def test_each_edit_of_the_rules_takes_effect_and_is_in_the_history():
    first = rule("words", "contains", "old", category="news")
    edits.save(draft("inbox"))
    own = CategoryRule.objects.last()
    edits.save(draft("mail", "code", own))
    edits.move(own, up=True)
    edits.switch(own, is_on=False)
    assert listed() == [("mail", "code", False), ("old", "news", True)]
    edits.move(own, up=False)
    assert listed() == [("old", "news", True), ("mail", "code", False)]
    edits.switch(own, is_on=True)
    edits.delete(first)
    assert listed() == [("mail", "code", True)]
    assert edits_in_history() == [
        ("added rule 2: words of the task contains inbox → triage", ""),
        (
            "changed rule 2: words of the task contains mail → code",
            "before: words of the task contains inbox → triage",
        ),
        ("moved up rule 2: words of the task contains mail → code", ""),
        ("switched off rule 1: words of the task contains mail → code", ""),
        ("moved down rule 1: words of the task contains mail → code", ""),
        ("switched on rule 2: words of the task contains mail → code", ""),
        ("deleted rule 1: words of the task contains old → news", ""),
    ]


def test_an_edit_that_changes_nothing_is_not_in_the_history():
    own = rule()
    edits.move(own, up=True)
    edits.move(own, up=False)
    edits.switch(own, is_on=True)
    edits.save(draft("inbox", "triage", own))
    assert edits_in_history() == []
    edits.delete(own)
    edits.delete(own)
    edits.move(own, up=True)
    edits.switch(own, is_on=False)
    assert len(edits_in_history()) == 1


def test_a_rule_acts_on_new_sessions_only(site):
    own = rule("words", "contains", "inbox", category="triage")
    none, before = (site.upload(name, log(name, task=f"Read the {word} "), category=None).session for name, word in (
        ("s-1", "news"), ("s-2", "inbox"),
    ))  # fmt: skip
    edits.save(draft("news", "news"))
    edits.save(draft("inbox", "code", own))
    after = site.upload("s-3", log("s-3"), category=None).session
    edits.delete(own)
    for session in (none, before, after):
        session.refresh_from_db()
    assert (none.category, before.category.name, after.category.name) == (None, "triage", "code")
    assert provenance.provenance_of(before).why.startswith("rule 1: the task says “Read the inbox")


def test_a_rule_that_was_moved_or_switched_on_leaves_earlier_sessions_their_agents_word(site):
    first, second = rule(category="triage"), rule(category="news", is_on=False)
    eve = Agent("eve")
    fields = {"agent": eve.token.agent, "ended_at": None, "speaker": Speaker(token=eve.token)}
    site.upload("s-1", None, category="code", **fields)
    edits.move(first, up=False)
    edits.switch(second, is_on=True)
    earlier, later = (site.upload(name, log(name), category="code", **fields).session for name in ("s-1", "s-2"))
    assert (earlier.category.name, earlier.category_from) == ("code", "agent")
    assert (later.category.name, later.category_from) == ("news", "rule")


def test_a_change_of_many_is_finished_and_undone_although_its_rule_was_deleted(site, monkeypatch):
    sessions, ana = [graded(site) for _ in range(3)], site.person("ana", "operator")
    for each in sessions:
        rules.store_traits(each, Traits(task="inbox"))
    before, own = bits(), rule()
    monkeypatch.setattr(changes, "SYNC_LIMIT", 1)
    change = changes.apply_rules(ana)
    edits.delete(own)
    changes.catch_up()
    assert set(Session.objects.values_list("category__name", "category_from")) == {("triage", "rule")}
    assert set(CategoryWord.objects.values_list("rule", flat=True)) == {None}
    changes.undo(change, ana)
    changes.catch_up()
    assert not changes.unfinished()
    assert bits() == before


def test_an_upgraded_site_moves_nothing_when_it_looks_at_its_categories(site):
    sessions = [graded(site, 0.4, category="code"), graded(site, 0.6)]
    before = bits()
    for each in sessions:
        provenance.provenance_of(each)
    changes.catch_up()
    rule()
    reach.others(CategoryRule.objects.all())
    assert bits() == before
    assert set(Session.objects.values_list("category_from", flat=True)) == {""}


def test_the_order_of_strength_is_a_persons_a_runners_a_decisions_a_rules_an_agents():
    assert [each.value for each in CategoryOrigin] == ["person", "runner", "decision", "rule", "agent"]
    assert called(1, "x")
