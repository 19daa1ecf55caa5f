"""A site whose every text from outside is hostile: each free text column of each row, each place of a transcript, each
file. Rows are poisoned as they are saved, so that a new column is hostile too without anybody's doing.
"""

import datetime as dt
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from django.apps import apps
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.db import models
from django.db.models.signals import pre_save
from django.utils import timezone
from msgspec import to_builtins

from bandit.core.calibration import FallbackCalibration
from bandit.ledger import GraderKey
from bandit.models import (
    Arm,
    ArmAlias,
    Bandit,
    BreakDecision,
    CalibrationVersion,
    Grader,
    LedgerEntry,
    LedgerEntryQuerySet,
    PolicyVersion,
    Selection,
)
from grading.intake.categories import edits
from grading.models import (
    Agent,
    Alarm,
    Artifact,
    ArtifactRule,
    BlobProblem,
    CanaryRun,
    CategoryRule,
    Comment,
    Flag,
    JudgeAttempt,
    JudgeBatch,
    JudgeJob,
    JudgeKey,
    JudgeKeyTest,
    JudgeRun,
    ModelPrice,
    Notice,
    NoticeChannel,
    PeriodicJob,
    Quota,
    Reveal,
    ReviewItem,
    Rubric,
    SavedView,
    Session,
    SessionLog,
    SessionTraits,
    SessionUsage,
)
from grading.models.evidence import ArtifactKind, Origin
from grading.models.judging import AttemptOutcome, JobState, Purpose
from grading.models.quota import QuotaState
from grading.models.spending import PRICE_COLUMNS, TOKEN_COLUMNS
from grading.signals import conditions
from grading.signals.traits import Traits
from grading.vocabulary import Outcome, Reason, Source
from tests import world
from tests.addresses import World
from tests.casts import quota as quota_cast
from tests.corpus import transcripts, xss
from tests.site import Site

site = Site()

OURS = ("grading", "bandit", "auth", "admin")
# Columns that hold no text from outside: the program, or a hash, writes them, and it reads its own words there.
KEPT = {
    "auth.Permission.name", "auth.Permission.codename", "auth.User.password",
    "bandit.Bandit.name", "bandit.Bucket.source", "bandit.Grader.source", "bandit.Grader.rubric",
    "bandit.LedgerEntry.observation", "bandit.Selection.observation", "bandit.Assignment.observation",
    "grading.Alarm.rule", "grading.Flag.rule", "grading.RuleRun.rule",
    "grading.ApiToken.digest", "grading.ApiToken.hint",
    "grading.Evidence.sha256", "grading.Grade.inputs_sha256", "grading.Grade.rubric", "grading.Rubric.sha256",
    "grading.Grade.view", "grading.Grade.purpose",
    "grading.JudgeAttempt.inputs_sha256", "grading.JudgeAttempt.prompt_sha256", "grading.ReviewAnswer.evidence_sha256",
    "grading.NoticeChannel.sealed", "grading.JudgeKey.sealed", "grading.JudgeKey.hint", "grading.JudgeKeyTest.hint",
    "grading.Quota.key", "grading.Settlement.source", "grading.AbstentionDraw.key_id",
    "grading.SessionShares.key_id", "bandit.Selection.key_id", "bandit.Assignment.key_id",
    "grading.ReviewItem.claim", "grading.ReviewAnswer.bulk", "grading.Submission.body_sha256",
    "grading.CanaryRun.rubric", "grading.BlobProblem.sha256", "grading.Heartbeat.name", "grading.PeriodicJob.name",
    "grading.Heartbeat.host", "grading.EvidenceBlob.name", "grading.KeyFingerprint.name",
    "grading.KeyFingerprint.fingerprint",
    "grading.SessionSignals.version", "grading.Session.reward_source", "grading.Session.reward_reason",
    "grading.CommitSighting.sha", "grading.SessionCommit.claim", "grading.SessionCommit.sha",
    "grading.SessionCommit.landed_as", "grading.SessionCommit.reverted_by", "grading.OutcomeRecord.kind",
    "grading.OutcomeRecord.source", "grading.WebhookDelivery.delivery", "grading.LogInPlace.sha256",
    "grading.LogInPlace.path",
    "grading.StoredReading.name", "grading.StoredReading.inputs", "grading.Redaction.why",
}  # fmt: skip
LINES = list(xss.SHORT.values())
ROOM = 6  # for a number that keeps unique columns unique
CHUNK = 1100  # what a transcript shows of an event at once


class Poisoner:
    """Hands out hostile text for columns, in turns, so that every payload comes first in a row now and then."""

    def __init__(self) -> None:
        self.turns: Counter[str] = Counter()

    def text(self, column: str, limit: int | None) -> str:
        """As many payloads as fit into `limit` characters, going on where the column's last row ended."""
        if limit is None:
            start = 7 * self.turns[column]
            self.turns[column] += 1
            return "\n".join([*LINES[start:], *LINES[:start], *xss.LONG.values()])
        text, start = "", self.turns[column]
        for step in range(len(LINES)):
            line = LINES[(start + step) % len(LINES)]
            if len(text) + len(line) + 1 > limit - ROOM:
                break
            text += f" {line}" if text else line
            self.turns[column] += 1
        self.turns[column] += 1
        return (text or LINES[start % len(LINES)])[: limit - ROOM] + f" {self.turns[column]}" * (limit > ROOM)

    def spoil(self, row: models.Model) -> None:
        for column, field in columns(type(row)):
            setattr(row, field.attname, self.text(column, field.max_length if is_short(field) else None))


def is_short(field: models.Field) -> bool:
    return isinstance(field, models.CharField)


def columns(model: type[models.Model]) -> Iterator[tuple[str, models.Field]]:
    """The free text columns of a model."""
    for field in model._meta.concrete_fields:
        column = f"{model._meta.label}.{field.name}"
        is_text = isinstance(field, models.CharField | models.TextField) and not field.choices
        if is_text and column not in KEPT and model._meta.app_label in OURS:
            yield column, field


def every_column() -> set[str]:
    return {column for model in apps.get_models() for column, _field in columns(model)}


@contextmanager
def poisoning() -> Iterator[Poisoner]:
    """Every row that is made in the block is hostile."""
    poisoner = Poisoner()

    def spoil(sender, instance, **options):
        if instance._state.adding:
            poisoner.spoil(instance)

    pre_save.connect(spoil, weak=False)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                LedgerEntryQuerySet, "bulk_create", hostile_entries(poisoner, LedgerEntryQuerySet.bulk_create)
            )
            yield poisoner
    finally:
        pre_save.disconnect(spoil)


def hostile_entries(poisoner: Poisoner, bulk_create: Callable) -> Callable:
    """Ledger rows are made many at once, of which nobody is told; each gets a hostile grader of its own."""

    def spoiled(query, entries, **options):
        entries = list(entries)
        for entry in entries:
            poisoner.spoil(entry)
            if entry.op == LedgerEntry.Op.APPLY:  # a reverse repeats the grader of its apply
                said = {name: getattr(entry.grader, name) for name in GraderKey.__slots__}
                entry.grader = Grader.objects.create(**said)
        return bulk_create(query, entries, **options)

    return spoiled


def make() -> tuple[World, set[str]]:
    """The world, and the columns in which no row is hostile."""
    with poisoning() as poisoner:
        made = world.make()
        olga = made["grade"].author
        sessions = [_session(number, olga) for number in range(12)]
        _shared(sessions[0], sessions[2])
        rubric = _judging(sessions, olga)
        _people(sessions)
        _seeded(poisoner)
        _categories(sessions)
        _models(sessions)
    made.rows |= {
        "session": sessions[0],
        "session_pk": sessions[0].pk,
        "last_event": 101,
        "draft": rubric,
        "grade": sessions[0].grades.get(source=Source.HUMAN),
    }
    return made, every_column() - set(poisoner.turns)


def _session(number: int, olga: User) -> Session:
    """Evidence, a grade of every source, artifacts with every link, a flag and an alarm."""
    now = timezone.now()
    ended_at = now - dt.timedelta(hours=number)
    builder = site.session(ended_at=ended_at, is_sample=number == 1, selection=_selection(number))
    made = builder.session
    if number % 4 == 3:
        Session.objects.filter(pk=made.pk).update(outcome=Outcome.FAILED, category=None)
    text = "\n".join(xss.ALL.values())
    patch = "\n".join(f"{'+-@ '[n % 4]}{line}" for n, line in enumerate(text.split("\n")))
    builder.with_file("transcript", transcript(made.external_id), "conversation.jsonl")
    builder.with_journal(text).with_patch(patch.encode())
    made.evidence.create(kind="facts", sha256="f" * 64, size=1, problem=Reason.LOG_SHARED)
    builder.graded(Source.TRAJECTORY, 0.3, evidence=seen()).judged(0.5, rubric="4e1c", evidence=verdict())
    builder.judged(0.6, rubric="4e1c", evidence=verdict(purpose="second"), parallel=True)
    builder.graded(Source.JOURNAL, None, Reason.NO_SIGNAL)
    builder.graded(Source.CONSUMPTION, 0.6, evidence={"terms": terms()})
    for link in xss.LINKS.values():
        for kind in (ArtifactKind.PULL_REQUEST, ArtifactKind.CHECK_FAILED):
            key = Artifact.objects.create(session=made, kind=kind, origin=Origin.TRANSCRIPT)
            Artifact.objects.filter(pk=key.pk).update(key=f"{link} {kind}")
    if number < 2:
        builder.graded(Source.HUMAN, 0.8, author=olga)
    Flag.objects.create(session=made, rule="A1", cleared_at=now if number % 3 == 1 else None)
    return builder.settle()


def _shared(session: Session, owner: Session) -> None:
    """A log whose records, and what they made, belong to another session."""
    SessionLog.objects.create(session=session, carried={str(owner.pk): 3}, total=5, part_of=owner)
    session.artifacts.filter(kind=ArtifactKind.PULL_REQUEST).update(owned_by=owner)


def _selection(number: int) -> Selection:
    arm = Arm.objects.in_bandit("category").first()
    odds = {arm.name: 0.5, **dict.fromkeys(LINES, LINES[number])}
    return Selection.objects.create(
        bandit=arm.bandit, arm=arm, propensity=0.5, created=timezone.now(),
        eligible=odds, explanation=odds, requested=odds, override=odds,
    )  # fmt: skip


def verdict(**more) -> dict:
    """What a judge's reply leaves in a grade."""
    text = "\n".join(LINES)
    return {"rationale": text, "reached": text, "dimensions": dict.fromkeys(LINES, 0.5), "citations": [1, 2], **more}


def effects() -> dict:
    """What an answer says that it changed."""
    numbers = {"mean_before": 0.5, "mean_after": 0.6, "share_before": 10.0, "share_after": 12.0}
    return {
        "bandits": [{"bandit": line, "arm": line, **numbers} for line in LINES],
        "flags_cleared": LINES,
        "alarms": [{"rule": line, "about": line, "before": line, "after": line} for line in LINES],
        "reward": {"before": 0.5, "after": 0.6, "source_before": LINES[1]},
    }


def seen() -> dict:
    return {"terms": terms(), "units": 1.0, "weighed": terms(), "failures": LINES}


def terms() -> list[dict]:
    numbers = {"count": 1, "diminishing": 1.0, "weight": 0.1, "adds": 0.1}
    return [{"kind": line, "words": line, **numbers} for line in LINES]


def _judging(sessions: list[Session], olga: User) -> Rubric:
    """Attempts of every outcome, a batch, a run, a rubric (which it gives), states of the quota, alarms."""
    now = timezone.now()
    held = Rubric.objects.earliest("pk")
    rows = [{"name": line[:40], "text": line} for line in LINES[:12]]
    dimensions, bands = [{**row, "weight": 0.1} for row in rows], [{**row, "low": n / 12} for n, row in enumerate(rows)]
    examples = [{"grade": 1, "session": 1, "summary": line, "score": 0.5, "why": line} for line in LINES[:6]]
    rubric = Rubric.objects.create(sha256="e" * 64, dimensions=dimensions, bands=bands, examples=examples, parent=held)
    batch = JudgeBatch.objects.create()
    for number, outcome in enumerate(AttemptOutcome):
        job = JudgeJob.objects.create(
            session=sessions[number], rubric=held, state=JobState.DONE, purpose=Purpose.VERDICT, finished_at=now
        )
        JudgeAttempt.objects.create(job=job, lease_token=uuid.uuid4(), outcome=outcome, finished_at=now, batch=batch)
    JudgeRun.objects.create(rubric=held, by=olga)
    JudgeKey.objects.create(sealed="sealed", hint="body", by=olga)
    call = JudgeKeyTest.objects.create(hint="body", by=olga, reason=Reason.AUTH, finished_at=now)
    CanaryRun.objects.create(canary="good", day=now.date(), rubric="a" * 64, call=call)
    PeriodicJob.objects.create(name="sweep")
    BlobProblem.objects.create(sha256="a" * 64, kind="damaged", since=now)
    quota_cast.quota(QuotaState.PAUSED, by=olga)
    Quota.objects.create(key="another", state=QuotaState.MISCONFIGURED)
    for number in range(4):
        Alarm.objects.create(rule="A2", about=str(number), resolved_at=now if number == 3 else None)
    alarm = Alarm.objects.exclude(resolved_at=None).first()
    channel = NoticeChannel.objects.create(kind="webhook", sealed="sealed", by=olga)
    for about in ("opened", "resolved"):
        Notice.objects.create(channel="email", about=about, alarm=alarm, state="failed")
    Notice.objects.create(channel="webhook", to=channel, about="opened", alarm=alarm, state="failed")
    return rubric


def _people(sessions: list[Session]) -> None:
    """What people of hostile names write: answers, comments, views, policies, edits in the admin."""
    PolicyVersion.objects.create(bandit=Bandit.objects.get(name="harness"), version=2)
    CalibrationVersion.objects.create(
        bandit=Bandit.objects.get(name="category"),
        version=2,
        fallbacks=FallbackCalibration(sources=("journal", "trajectory")).as_json(),
    )
    broken = Arm.objects.filter(bandit__name="category").first()
    BreakDecision.objects.create(bandit=broken.bandit, arm=broken, day=timezone.localdate(), kept=False)
    for number, session in enumerate(sessions):
        eve = User.objects.create_user(f"eve-{number}", password="x")
        ReviewItem.objects.get_or_create(session=session, defaults={"entered_as": "person", "assigned_to": eve})
        judge = session.grades.filter(source=Source.JUDGE).first()
        site.on(session).answered_blind(eve, 0.5, judge=judge, effects=effects())
        Reveal.objects.create(session=session, reviewer=eve, judge=judge, value=0.5)
        Comment.objects.create(session=session, author=eve)
        for page in ("review", "sessions", "history"):
            SavedView.objects.create(owner=eve, page=page, shared=True)
        LogEntry.objects.create(
            user=eve,
            content_type=ContentType.objects.get_for_model(Agent),
            object_id=str(session.agent_id),
            action_flag=CHANGE,
        )


def _categories(sessions: list[Session]) -> None:
    """Rules of hostile patterns, the edits that made them, and sessions without a category that meet them."""
    news = Arm.objects.get(bandit__name="category", name="news")
    lines = [line[: conditions.MAX_VALUE_LENGTH] for line in LINES if line.isprintable()]
    for line in lines[:4]:
        said = [{"field": "branch", "test": "contains", "values": [line]}]
        edits.save(CategoryRule(conditions=said, category=news))
    for session in sessions:
        hostile = Traits(task="\n".join(LINES), branch=" ".join(lines), repositories=tuple(lines), folder=lines[0])
        SessionTraits.objects.create(session=session, data=to_builtins(hostile))


def _models(sessions: list[Session]) -> None:
    """Models of hostile names that sessions used, some with a price."""
    for session in sessions:
        day = timezone.localdate(session.ended_at)
        counts = dict.fromkeys(TOKEN_COLUMNS, 1_000)
        SessionUsage.objects.create(session=session, day=day, **counts, cost_micro=session.pk % 2 or None)
        ModelPrice.objects.create(valid_from=day, **dict.fromkeys(PRICE_COLUMNS, 10_000))


def _seeded(poisoner: Poisoner) -> None:
    """The rows that the migrations made before: arms, bandits, rules."""
    bandit = Bandit.objects.get(name="category")
    ArmAlias.objects.create(arm=Arm.objects.create(bandit=bandit), alias="eve")
    for model in (Arm, Bandit, ArtifactRule):
        for row in model.objects.all():
            limited = {field.name: poisoner.text(column, field.max_length) for column, field in columns(model)}
            # Names are what everything else refers to.
            model.objects.filter(pk=row.pk).update(**{name: text for name, text in limited.items() if name != "name"})


def transcript(session_id: str) -> bytes:
    """Every kind of event that a log can have, each full of attacks."""
    chunks = list(_chunks([*xss.ALL.values()]))
    steps: list[tuple] = []
    for chunk in chunks:
        steps += [("user", chunk), ("said", chunk), ("Bash", {"command": chunk}, chunk), (chunk, {chunk: chunk}, chunk)]
        steps += [("Edit", {"file_path": chunk, "old_string": chunk, "new_string": chunk}, f"Error: {chunk}")]
    common = {"sessionId": session_id, "timestamp": transcripts.STARTED, "cwd": chunks[0], "version": chunks[0]}
    records: list[dict] = [{"type": "pr-link", "prUrl": link, "prNumber": 1, **common} for link in xss.LINKS.values()]
    for number, chunk in enumerate(chunks):
        thought = {"id": f"x{number}", "type": "message", "role": "assistant", "model": chunk}
        blocks = [{"type": "thinking", "thinking": chunk}]
        records += [
            {"type": "assistant", "uuid": f"t{number}", "message": {**thought, "content": blocks}, **common},
            {"type": "system", "subtype": "compact_boundary", "compactMetadata": {"trigger": chunk}, **common},
            {"type": "system", "subtype": "api_error", "error": {"message": chunk}, **common},
            {"type": "attachment", "uuid": f"a{number}", "attachment": {"type": chunk, "content": chunk}, **common},
            {"type": "custom-title", "customTitle": chunk, **common},
            {"type": "result", "subtype": chunk, "result": chunk, "is_error": True, **common},
        ]
    return transcripts.log(session_id, *steps) + "".join(json.dumps(record) + "\n" for record in records).encode()


def _chunks(lines: list[str]) -> Iterator[str]:
    """The lines, together as far as a page shows them at once."""
    held = ""
    for line in lines:
        if held and len(held) + len(line) > CHUNK:
            yield held
            held = ""
        held += f"{line}\n"
    yield held
