"""The bundled sessions: they come in like any other, tell their story, and leave without a trace in the bandits."""

import datetime as dt
import json
import re
from pathlib import Path

import pytest
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.utils import timezone

from bandit import ledger
from bandit.models import Bucket, Erasure, LedgerEntry
from grading.agent import samples
from grading.models import (
    AbstentionDraw,
    Agent,
    Artifact,
    Evidence,
    Flag,
    Grade,
    JudgeAttempt,
    JudgeJob,
    Session,
    Settlement,
)
from grading.review.corrections import record_correction, undo
from grading.reward import rewards
from grading.reward.trajectory import EvidenceView
from grading.vocabulary import Outcome, Reason, Source

NOW = timezone.now()
LARGEST = 3_000_000

pytestmark = pytest.mark.django_db


def loaded() -> dict[str, Session]:
    """The samples by the name of their folder."""
    described = ((path.parent.name, json.loads(path.read_text())) for path in samples.FOLDER.glob("*/session.json"))
    by_id = {said["metadata"]["session_id"]: folder for folder, said in described}
    return {by_id[receipt.session.external_id]: receipt.session for receipt in samples.load(NOW)}


def reason(session: Session, source: Source) -> str:
    return session.grades.filter(source=source).last().reason


def test_the_samples_tell_their_story():
    sessions = loaded()
    assert len(sessions) == 14
    assert {session.harness.name for session in sessions.values()} == {"claude-code", "codex", "gptme"}
    assert {session.category.is_consumption for session in sessions.values()} == {True, False}
    logs = {
        "cross-repo-71a3": (Reason.LOG_OVERWRITTEN, {"A1", "A5"}),
        "cross-repo-a517": (Reason.STUB_NO_TOOL_CALLS, {"A1"}),
    }
    for name, (why, flags) in logs.items():
        trajectory = sessions[name].grades.filter(source=Source.TRAJECTORY).last()
        assert (trajectory.evidence["view"], trajectory.evidence["log"]) == (EvidenceView.FACTS, why)
        assert not rewards.live(sessions[name]).final
        assert set(sessions[name].flags.values_list("rule", flat=True)) == flags
    assert rewards.live(sessions["news-three-ideas"]).value == 0.6
    assert sessions["code-quota-death"].outcome == Outcome.INFRASTRUCTURE
    assert rewards.live(sessions["code-quota-death"]).value is None
    assert rewards.live(sessions["infra-merged"]).value > 0.6
    looked = sessions["triage-nothing-done"].grades.filter(source=Source.TRAJECTORY).last()
    assert (looked.value, looked.evidence["view"]) == (0.35, EvidenceView.LOOKED)


def test_every_sample_is_settled_and_marked():
    for session in loaded().values():
        assert session.is_sample
        assert rewards.live(session) is not None
        assert NOW - dt.timedelta(days=7) < session.ended_at < NOW


def test_no_bandit_learns_from_a_sample_whatever_is_said_of_it(site):
    sessions = loaded()
    rita = site.person("rita", "reviewer")
    session = sessions["cross-repo-71a3"]
    record_correction(session, rita, value=0.8, reason="it opened a pull request")
    assert rewards.live(session).value == 0.8
    undo(session.grades.last(), rita, reason="too fast")
    for model in (Bucket, LedgerEntry, AbstentionDraw):
        assert not model.objects.exists()


def test_a_sample_that_an_earlier_version_taught_the_bandits_stays_exact_until_it_is_removed(site):
    session = site.session().graded(Source.JOURNAL, 0.4).settle()
    Session.objects.filter(pk=session.pk).update(is_sample=True)
    session.refresh_from_db()
    before = list(Bucket.objects.order_by("pk").values())
    rewards.settle(session)
    assert list(Bucket.objects.order_by("pk").values()) == before
    rita = site.person("rita", "reviewer")
    record_correction(session, rita, value=0.8, reason="it opened a pull request")
    assert list(Bucket.objects.order_by("pk").values()) != before
    samples.remove("rita")
    assert not any(bucket.n for bucket in Bucket.objects.all())


def test_loading_twice_adds_nothing():
    loaded()
    assert list(samples.load(NOW + dt.timedelta(days=1))) == []


def test_removing_leaves_only_what_is_not_a_sample(site, django_capture_on_commit_callbacks):
    journal = (samples.FOLDER / "cross-repo-71a3" / "journal.md").read_bytes()
    own = site.upload("own", journal=journal, category="code", ended_at=NOW).session
    before = list(Bucket.objects.order_by("pk").values())
    sessions = loaded()
    rita = site.person("rita", "reviewer")
    record_correction(sessions["cross-repo-71a3"], rita, value=0.8, reason="it opened a pull request")
    correction = sessions["cross-repo-71a3"].grades.last()
    undo(correction, rita, reason="too fast")
    hashes = {row.sha256 for row in Evidence.objects.filter(session__is_sample=True)}
    kept = own.evidence.get().sha256
    with django_capture_on_commit_callbacks(execute=True):
        counts = samples.remove("rita")
    assert counts["session"] == 14
    assert list(Session.objects.all()) == [own]
    for model in (Evidence, Grade, Settlement, Artifact, Flag, JudgeJob):
        assert not model.objects.exclude(session=own).exists()
    assert not JudgeAttempt.objects.exists()
    assert list(Bucket.objects.order_by("pk").values()) == before
    assert ledger.history(own.observation).count() == 1
    assert (Erasure.objects.get().who, Erasure.objects.get().counts["session"]) == ("rita", 14)
    assert not Agent.objects.filter(name="samples").exists()
    stored = {sha256 for sha256 in hashes if default_storage.exists(f"{sha256[:2]}/{sha256}.zst")}
    assert stored == {kept}


def test_samples_are_loaded_and_removed_from_the_shell(capsys):
    call_command("load_samples")
    call_command("remove_samples")
    said = capsys.readouterr().out
    assert "14 sample sessions loaded" in said
    assert "14 sample sessions removed" in said


def test_the_samples_are_small_and_their_sources_named():
    folder = Path(samples.__file__).parent
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    named = set(re.findall(r"^\| ([a-z0-9-]+) \|", (folder / "SOURCES.md").read_text(), re.MULTILINE))
    assert size < LARGEST
    assert named - {"session"} == {path.parent.name for path in samples.FOLDER.glob("*/session.json")}


def test_samples_are_loaded_into_an_empty_site_and_stay_away_once_removed(site):
    from grading.management.commands.up import first_sessions as programs

    assert [program.name for program in programs()] == ["samples"]
    session = site.session(is_sample=True).session
    assert programs() == []
    samples.remove("otto")
    assert not type(session).objects.exists()
    assert programs() == []
