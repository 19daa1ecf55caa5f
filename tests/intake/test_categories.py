"""How sessions get their category: whose word holds, what rules catch, what people set, and undoing all of it."""

import random

import pytest
from django.utils import timezone
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from bandit.core.moves import moves
from bandit.models import Arm, Bandit, Bucket, Grader
from bandit.reading import posterior_of
from bandit.whatif import what_if_moved
from grading.intake.categories import changes, edits, preview, provenance, reach, rules
from grading.intake.categories.changes import ChangeRefused
from grading.models import CategoryChange, CategoryRule, CategoryWord, JudgeJob, Session, SessionTraits
from grading.models.agents import TokenScope
from grading.models.categories import RuleAct
from grading.models.sessions import CategoryOrigin
from grading.signals.conditions import InvalidCondition, Matcher
from grading.signals.traits import Traits
from tests.casts.intake import called, calls, claude
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


def bits_by_grader():
    """The same, where histories named their graders in another order."""
    sums, read = bits()
    names = {row.pk: tuple(list(row.__dict__.values())[2:]) for row in Grader.objects.all()}
    return sorted((bandit, arm, names[grader], *rest) for bandit, arm, grader, *rest in sums), read


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
    from grading.intake.first_word import Speaker

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
    traits = Traits.from_dict(session.traits.data)
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


@examples(40)
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
    with pytest.raises(ChangeRefused, match="catch no session"):
        changes.apply_rules(ana)
    with pytest.raises(ChangeRefused, match="1 sessions now, and 5"):
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
    with pytest.raises(ChangeRefused, match="undone already"):
        changes.undo(change, reviewer)


def test_the_preview_is_what_then_holds(site):
    reviewer = site.person("ana", "reviewer")
    sessions = [graded(site, 0.2 + number / 10, category=None if number % 2 else "infra") for number in range(6)]
    now = timezone.now()
    told = preview.preview({each.pk: arm("code") for each in sessions}, now)
    changes.set_by_hand([each.pk for each in sessions], arm("code"), reviewer)
    assert {move.arm for move in told.arms if move.bandit == "category"} >= {"code", "infra"}
    for move in told.arms:
        held = moves(move.bandit, *what_if_moved(move.bandit, {}, now), touched=[move.arm])
        (then,) = [each for each in held if each.arm == move.arm]
        assert (then.mean_before, then.share_before) == (move.mean_after, move.share_after)
    assert told.sessions == {"code": 6}


def test_undoing_in_any_order_leaves_every_bit_as_it_was(site):
    """What people set and take back, in random orders, over words of agents, runners and rules."""
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


def test_an_edit_of_the_rules_is_undone_whatever_came_after_it(site):
    olga = site.person("olga", "operator")
    rule("words", "contains", "old", category="news")  # from before edits were kept
    added = edits.make(olga, RuleAct.ADD, draft("inbox"))
    own = CategoryRule.objects.get(pk=added.edit["rule"])
    changed = edits.make(olga, RuleAct.CHANGE, draft("mail", "code", own))
    moved = edits.make(olga, RuleAct.UP, own)
    off = edits.make(olga, RuleAct.OFF, own)
    assert listed() == [("mail", "code", False), ("old", "news", True)]
    changes.undo(changed, olga)
    assert listed() == [("inbox", "triage", False), ("old", "news", True)]
    changes.undo(off, olga)
    changes.undo(moved, olga)
    assert listed() == [("old", "news", True), ("inbox", "triage", True)]
    deleted = edits.make(olga, RuleAct.DELETE, CategoryRule.objects.first())
    assert listed() == [("inbox", "triage", True)]
    changes.undo(added, olga)
    assert listed() == []
    changes.undo(deleted, olga)
    assert listed() == [("old", "news", True)]
    with pytest.raises(ChangeRefused, match="undone already"):
        changes.undo(deleted, olga)


def test_an_edit_that_changes_nothing_is_none(site):
    olga, own = site.person("olga", "operator"), rule()
    for act in (RuleAct.UP, RuleAct.DOWN, RuleAct.ON):
        assert edits.make(olga, act, own) is None
    assert edits.make(olga, RuleAct.CHANGE, draft("inbox", "triage", own)) is None
    assert not CategoryChange.objects.exists()


def test_sessions_that_came_under_an_edit_are_as_if_it_had_not_been_made(site):
    olga = site.person("olga", "operator")
    own = rule("words", "contains", "inbox", category="triage")
    edits.make(olga, RuleAct.CHANGE, draft("inbox", "news", own))
    last = edits.make(olga, RuleAct.OFF, own)
    none = site.upload("s-1", log("s-1"), category=None).session
    assert none.category is None
    changes.undo(last, olga)
    none.refresh_from_db()
    assert (none.category.name, provenance.provenance_of(none).why[:6]) == ("news", "rule 1")
    changes.undo(CategoryChange.objects.earliest("pk"), olga)
    none.refresh_from_db()
    assert none.category.name == "triage"
    assert none.category_words.not_undone().count() == 1
    assert none.category_words.not_undone().get().rule == own


def test_what_a_person_had_the_rules_set_stays_when_an_edit_is_undone(site):
    olga, ana = site.person("olga", "operator"), site.person("ana", "reviewer")
    edits.make(olga, RuleAct.ADD, draft("inbox", "news"))
    first = site.upload("s-1", log("s-1"), category=None).session
    changes.set_by_hand([first.pk], arm("code"), ana)
    changes.undo(CategoryChange.objects.exclude(edit={}).get(), olga)
    first.refresh_from_db()
    assert (first.category.name, first.category_from) == ("code", "person")
    changes.undo(CategoryChange.objects.filter(edit={}).get(), ana)
    first.refresh_from_db()
    assert first.category is None


WORDS = ("inbox", "news", "retry")


def lived(site, rng_seed: int, undone: set[int], *, is_made: bool) -> tuple[object, ...]:
    """Edits, sessions and what people set, in a random order; without those that are to be undone, or undoing them."""
    rng, olga = random.Random(rng_seed), site.person("olga", "operator")
    ana, made, rows = site.person("ana", "reviewer"), {}, {}
    for step in range(14):
        kind, word, category = rng.random(), rng.choice(WORDS), rng.choice(["code", "news", "triage", "infra"])
        pick, beside, act = rng.random(), rng.random(), rng.choice(list(RuleAct))
        skipped = step in undone and not is_made
        known = sorted(rows)
        if kind < 0.45:
            task = f"Look at the {word} now. "
            session = site.upload(f"s-{step}", log(f"s-{step}", task=task), category=None).session
            site.on(session).judged(0.1 + step / 20, model="judge").settle()
        elif kind < 0.55:
            chosen = list(Session.objects.order_by("pk").values_list("pk", flat=True))[:: 1 + int(pick * 3)]
            if chosen and not skipped:
                made[step] = changes.set_by_hand(chosen, arm(category), ana)
        elif kind < 0.75 or not known:
            if not skipped:
                made[step] = edits.make(olga, RuleAct.ADD, draft(word, category))
                rows[step] = made[step].edit["rule"]
            else:
                rows[step] = None
        else:
            key, other = rows[known[int(pick * len(known))]], rows[known[int(beside * len(known))]]
            row = CategoryRule.objects.filter(pk=key).first()
            passed = CategoryRule.everything.filter(pk=other).first()
            if act is not RuleAct.ADD and row is not None and not skipped:
                fresh = draft(word, category, row) if act is RuleAct.CHANGE else row
                made[step] = edits.make(olga, act, fresh, beside=passed)
    order = sorted(undone)
    rng.shuffle(order)
    for step in order if is_made else ():
        if made.get(step) is not None:
            changes.undo(made[step], rng.choice([olga, ana]))
    changes.catch_up()
    assert not changes.unfinished()
    given_now = Session.objects.order_by("pk").values_list("external_id", "category__name", "category_from")
    return listed(), list(given_now), bits_by_grader()


@pytest.mark.parametrize("seed", range(4))
def test_undone_edits_in_any_order_leave_every_bit_of_a_history_without_them(site, seed):
    undone = set(random.Random(seed).sample(range(14), 7))
    with site.rolled_back():
        expected = lived(site, seed, undone, is_made=False)
    assert lived(site, seed, undone, is_made=True) == expected
    assert expected[1]


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
