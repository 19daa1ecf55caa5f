"""What an intake sees at a glance is what the database has, and nothing that a process remembers is older than that."""

import threading

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from bandit import audit
from bandit.merging import merge
from bandit.models import Arm, ArmAlias, Bandit, Grader, LedgerEntry
from grading.evidence.claims import place
from grading.intake import forgetting
from grading.intake.categories.rules import Rules
from grading.models import (
    Agent,
    Artifact,
    ArtifactRule,
    CategoryRule,
    Evidence,
    JudgeKey,
    JudgePolicy,
    RecordAnchor,
    Rubric,
    SessionLog,
    glance,
)
from grading.models.evidence import ArtifactKind
from grading.reward import sources
from grading.signals.artifacts import RULE_FIELDS
from tests.casts import logs
from tests.intake.test_intake import SHA

pytestmark = pytest.mark.django_db(transaction=True)


def elsewhere(work) -> None:
    """Do it in a connection of its own, as another process would."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - raised below
            failed.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def arm(name: str, bandit: str = "category") -> Arm:
    return Arm.objects.resolve(bandit, name)


def look(site, **probes) -> glance.Glance:
    return glance.look(site.agent().pk, "new", probes)


def test_it_is_what_the_tables_say(site):
    """To the last bit of a weight, and in the order in which they come by themselves."""
    ArtifactRule.objects.create(kind="third", path_glob="**/x", weight=1 / 3, scale=0.1 + 0.2)
    ArtifactRule.objects.create(kind="A-b", path_glob="**/y", weight=1 / 3, new_files_only=True)
    ArtifactRule.objects.create(kind="a_b", line_pattern="%s ' \\d", path_glob="**/z", weight=1 / 3)
    said = [{"field": "words", "test": "contains", "values": ["it's 100 %s", 'said "so"', "ünïcode\n"]}]
    CategoryRule.objects.create(conditions=said, category=arm("code"), position=2)
    CategoryRule.objects.create(conditions=[], category=arm("triage"), position=1)
    CategoryRule.objects.create(conditions=said, category=arm("news"), position=3, is_on=False)
    CategoryRule.objects.create(conditions=said, category=arm("news"), position=0, is_deleted=True)
    JudgePolicy.objects.create(repeat_share=0.5)
    latest = JudgePolicy.objects.create(repeat_share=1 / 3)
    JudgeKey.objects.put("a-key-of-mine", "https://judge.example", User.objects.create(username="olga"))
    seen = look(site)
    assert seen.artifact_rules == tuple(ArtifactRule.objects.values_list(*RULE_FIELDS))
    rules = CategoryRule.objects.filter(is_on=True)
    with glance.holding(seen):
        held = [(row.pk, row.position, row.conditions, row.category, row.changed_at) for row in Rules.in_force().rows]
        assert JudgePolicy.objects.current().repeat_share == latest.repeat_share
        assert {kind: Rubric.objects.active(kind) for kind in seen.rubrics} == Rubric.objects.in_force()
        assert JudgeKey.objects.access().api_key == "a-key-of-mine"
    assert held == [(row.pk, row.position, row.conditions, row.category, row.changed_at) for row in rules]


def test_arms_are_found_by_names_and_aliases_and_merged_ones_are_left_to_others(site):
    category = Bandit.objects.named("category")
    ArmAlias.objects.create(bandit=category, arm=arm("code"), alias="coding")
    merge(arm("news"), arm("code"), by="olga")
    asked = {("category", "code"), ("category", "coding"), ("category", "news"), ("harness", "nobody")}
    seen = glance.look(site.agent().pk, "new", {}, asked)
    assert ("category", "news") not in seen.arms
    assert seen.arms["harness", "nobody"] is None
    row = arm("code")
    for text in ("code", "coding"):
        found = seen.arms["category", text]
        assert (found.pk, found.name, found.title, found.bandit) == (row.pk, row.name, row.title, category.pk)
        assert found.revision == Bandit.objects.get(pk=category.pk).revision


def test_what_others_have_is_seen_and_the_key_that_comes_next(site):
    receipt = site.upload("71a3", logs.claude("71a3", logs.COMMIT), facts={"commits": [{"sha": SHA}]})
    mine = {
        glance.PARENT: ["71a3"],
        glance.ANCHORS: list(RecordAnchor.objects.values_list("record", flat=True)),
        glance.LOOKUPS: [place(ArtifactKind.COMMIT, SHA)],
        glance.FILES: list(Evidence.objects.values_list("sha256", flat=True)),
    }
    SessionLog.objects.filter(session=receipt.session).update(parent="71a3")
    with transaction.atomic():
        seen = look(site, **mine)
        assert seen.elsewhere == mine.keys()
        assert not seen.free
        others = {glance.PARENT: ["x"], glance.ANCHORS: [1], glance.LOOKUPS: ["0"], glance.FILES: ["0" * 64]}
        assert look(site, **others).free == {what: frozenset(asked) for what, asked in others.items()}
        known = glance.look(receipt.session.agent_id, "71a3", {})
        assert (known.session, known.following) == (receipt.session.pk, None)
    assert site.upload("another").session.pk >= seen.following > receipt.session.pk


def test_every_upload_goes_by_the_rules_as_they_are(site, settings):
    """Whoever changes them in another process changes them for the next."""
    settings.ANTHROPIC_API_KEY = ""
    for number in range(2):
        site.upload(f"before {number}", logs.claude(f"before {number}", logs.COMMIT))
    conditions = [{"field": "harness", "test": "contains", "values": ["claude"]}]

    def change() -> None:
        CategoryRule.objects.create(conditions=conditions, category=arm("triage"))
        ArtifactRule.objects.all().delete()
        JudgePolicy.objects.create(repeat_share=1, second_share=1)

    elsewhere(change)
    session = site.upload("after", logs.claude("after", logs.COMMIT), category=None).session
    assert (session.category.name, session.category_from) == ("triage", "rule")
    assert (session.shares.repeat, session.shares.second) == (1, 1)
    assert sources.look(session).rules == ()
    assert audit.audit() == []


def test_rewards_go_to_where_an_arm_was_merged_meanwhile(site):
    site.upload("one", logs.claude("one", logs.COMMIT))
    elsewhere(lambda: merge(arm("cross-repo"), arm("code"), by="olga"))
    session = site.upload("two", logs.claude("two", logs.COMMIT)).session
    rewarded = LedgerEntry.objects.filter(observation=session.observation, bandit__name="category")
    assert {entry.arm.name for entry in rewarded} == {"code"}
    assert audit.audit() == []


def test_graders_of_an_agent_that_was_erased_are_made_again(site):
    """A process that has given rewards of an agent knows rows that another one deletes with it."""
    for number in range(2):
        site.upload(f"s{number}", logs.claude(f"s{number}", logs.COMMIT), agent="bob")
    gone = set(Grader.objects.filter(agent="bob").values_list("pk", flat=True))
    assert gone
    elsewhere(lambda: list(forgetting.erase_agent(Agent.objects.get(name="bob"), who="olga", why="asked")))
    assert not Grader.objects.filter(agent="bob").exists()
    site.upload("again", logs.claude("again", logs.COMMIT), agent="bob")
    graders = set(Grader.objects.filter(agent="bob").values_list("pk", flat=True))
    assert graders
    assert not graders & gone
    assert set(LedgerEntry.objects.values_list("grader", flat=True)) == graders
    assert audit.audit() == []


def test_nobodys_claim_is_overlooked_that_came_a_moment_before(site):
    """Two that show the same commit: one of them has it, whoever came first."""
    elsewhere(lambda: site.upload("one", logs.claude("one", logs.COMMIT), agent="ann"))
    site.upload("two", logs.claude("two", logs.COMMIT), agent="bob")
    owned = Artifact.objects.filter(kind=ArtifactKind.COMMIT).values_list("session__external_id", "owned_by")
    assert sum(owner is None for _name, owner in owned) == 1
    assert len(owned) == 2


# What to ask for where it is no text.
ONE = {glance.ANCHORS: -7, glance.FILES: b"x"}


@pytest.mark.parametrize(("what", "one"), [(what, ONE.get(what, "x")) for what in glance.ELSEWHERE])
def test_others_things_are_found_by_an_index(what, one):
    """Else an upload would cost the more, the more sessions there are."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")  # with which it reads a table that is all but empty
        asked = f"SELECT 1 FROM {glance.ELSEWHERE[what]} (%s)"  # noqa: S608 - our own words
        cursor.execute(f"{connection.ops.explain_query_prefix()} {asked}", [one])
        plan = str(cursor.fetchall())
    assert "INDEX" in plan.upper()
    assert "SCAN grading" not in plan
    assert "Seq Scan" not in plan
