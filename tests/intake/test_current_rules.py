"""Each upload goes by the rules, arms and claims that the database has at that moment, whoever changed them."""

import threading

import pytest
from django.db import connection, transaction

from bandit import audit
from bandit.merging import merge
from bandit.models import Arm, Grader, LedgerEntry
from grading.evidence import ownership
from grading.intake import erasing
from grading.models import (
    Agent,
    Artifact,
    ArtifactRule,
    CategoryRule,
    Evidence,
    JudgePolicy,
    RecordAnchor,
    SessionLog,
)
from grading.models.evidence import ArtifactKind
from grading.monitoring.sessions import COMPARED_KINDS
from grading.reward import sources
from tests.casts import logs

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
    assert sources.load_input(session).rules.definitions == ()
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
    elsewhere(lambda: list(erasing.erase_agent(Agent.objects.get(name="bob"), who="olga", why="asked")))
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


LOOKUPS = {
    "subagents": lambda: SessionLog.objects.filter(parent__in=["x"]).exclude(parent=""),
    "copies": lambda: RecordAnchor.objects.filter(record__in=[-7]),
    "claims": lambda: ownership.claims_at(["x"]),
    "files": lambda: Evidence.objects.filter(sha256__in=["0" * 64], kind__in=COMPARED_KINDS),
}


@pytest.mark.parametrize("what", LOOKUPS)
def test_other_sessions_things_are_found_by_an_index(what):
    """Else an upload would cost more, the more sessions there are."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")  # with which it reads a table that is all but empty
        plan = LOOKUPS[what]().explain()
    assert "INDEX" in plan.upper()
    assert "SCAN grading" not in plan
    assert "Seq Scan" not in plan
