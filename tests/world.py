"""A small site with one row of everything that an address can be about."""

import datetime as dt
import uuid

from django.contrib.auth.models import Group, User
from django.utils import timezone

from bandit.models import (
    Arm,
    ArmEvent,
    Assignment,
    Bandit,
    Bucket,
    CalibrationVersion,
    Erasure,
    Grader,
    LedgerEntry,
    PolicyVersion,
)
from bandit.selection import select
from grading.intake.categories import changes
from grading.judging.rubrics import rejudge, versions
from grading.models import (
    Alarm,
    ApiToken,
    ArtifactRule,
    CategoryRule,
    ImportedFile,
    LogImport,
    NoticeChannel,
    OutcomeRecord,
    Project,
    Proposal,
    Repository,
    ReviewAnswer,
    ReviewItem,
    Rubric,
    SavedView,
    SessionLesson,
    Submission,
    SubmissionAddress,
    WeeklyLetter,
)
from grading.models.imports import Fate
from grading.models.notices import Webhook
from grading.models.quota import QuotaState
from grading.models.review import Answer, QueueEntry
from grading.monitoring.sessions import impossible_pair
from grading.review import answers, bulk
from grading.reward import rewards
from grading.roles import OPERATOR, REVIEWER
from grading.vocabulary import Source
from tests.addresses import World
from tests.casts import quota as quota_cast
from tests.site import Site

site = Site()


def make() -> World:
    """For a site whose judge is configured and its quota gone. Bob and alice are agents, olga an operator."""
    olga = site.person("olga", OPERATOR)
    session = (
        site.session(title="Add a retry guard", ended_at=timezone.now() - dt.timedelta(hours=1))
        .with_work()
        .judged(0.5, detail="Solid.", rubric="4e1c", model="m")
        .session
    )
    grade = site.on(session).graded(Source.HUMAN, 0.8, author=olga, detail="merged").grade
    rewards.settle(session)
    others = site.session(agent="alice", is_sample=True, model="claude-opus-4-20250514")
    other = others.with_work().graded(Source.JOURNAL, 0.3).settle()
    bulk_name = str(uuid.uuid4())
    seen = {other.pk: other.settlements.latest("revision").revision}
    bulk.submit(seen, olga, answer=Answer.GRADE, value=0.4, reason="all the same", bulk=bulk_name)
    waiting, beside, free = (site.session().with_work().graded(Source.JOURNAL, 0.3).settle() for _ in range(3))
    for each in (waiting, beside, free):
        ReviewItem.objects.update_or_create(session=each, defaults={"entered_as": QueueEntry.PERSON, "wanted": 2})
    ReviewItem.objects.filter(session=waiting).update(
        claim="held", claimed_by=olga, claimed_until=timezone.now() + dt.timedelta(minutes=5)
    )
    for person in (olga, site.person("rita", REVIEWER)):
        opinion = answers.submit(beside, person, answer=Answer.GRADE, value=0.6, reason="seen it")
    held = Rubric.objects.active()
    draft, _ = versions.save(
        Rubric(title="Stern", text="Be stern.", dimensions=held.dimensions, bands=held.bands, parent=held), author=olga
    )
    run = rejudge.start([session.pk, other.pk], held, by=olga, why="the rubric changed", estimated_usd=0.1)
    quota_cast.quota(QuotaState.EXHAUSTED, detail=quota_cast.SAID)
    token, secret = ApiToken.objects.issue(session.agent, note="laptop", created_by=olga)
    _, others_secret = ApiToken.objects.issue(other.agent)
    # An authenticated call notes the time, once a minute: not now.
    ApiToken.objects.update(last_used_at=timezone.now())
    drawn = _assignment(session)
    told = site.session().with_work().session
    told_file = site.on(told).with_file("journal", b"DB_PASSWORD=correct-horse-7\n").evidence
    category = Arm.objects.get(bandit__name="category", name="code")
    said = [{"field": "words", "test": "contains", "values": ["retry", "a-rather-long-word-" * 6]}]
    rule = CategoryRule.objects.create(conditions=said, category=category)
    seen = {"observed_at": timezone.now(), "source": "token 1", "witness": "observed", "detail": "12 jobs"}
    OutcomeRecord.objects.create(session=session, kind="ci", result="pass", url="https://ci.example.test/1", **seen)
    week = timezone.localdate() - dt.timedelta(days=timezone.localdate().weekday() + 7)
    WeeklyLetter.objects.create(monday=week, subject="Week of 23 March", sentences=["One session earned .80."])
    chosen = select(bandit="category", decision_id="d-1", supply=None, agent="bob", now=timezone.now())
    return World(
        rows={
            "session": session,
            "others_session": other,
            "grade": grade,
            "told": told,
            "told_file": told_file,
            "draft": draft,
            "run": run,
            "token": token,
            "named": f"bob/{session.external_id}",
            "alarm": Alarm.objects.create(rule=impossible_pair.id, detail="three in a week"),
            "session_pk": session.pk,
            "rule_pk": rule.pk,
            "category_change": changes.set_by_hand([told.pk], category, olga, reason="It wrote code."),
            "own_id": (session.external_id,),
            "waiting": waiting,
            "free": free,
            "answer": ReviewAnswer.objects.filter(session=other).get(),
            "beside": opinion,
            "view": SavedView.objects.create(owner=olga, page="sessions", name="Hers", query="state=final"),
            "last_event": 1,
            "proposal": _proposal(session, token),
            "bulk": (bulk_name,),
            "bulk_name": bulk_name,
            "bandit": ("category",),
            "arm": ("category", Arm.objects.get(bandit__name="category", name="news").pk),
            "arm_other": Arm.objects.get(bandit__name="category", name="social").pk,
            "model_text": other.model,
            "repository_key": Repository.objects.create(name="tools", url="https://forge.example/ada/tools"),
            "project_pk": Project.objects.for_key("forge.example/ada/engine").pk,
            "app": ("grading",),
            "provider": ("sso",),
            "invitation": ("MQ", "made-up"),
            "import": _import(session),
            "channel": _channel(olga),
            "document": ("operate",),
            "secret": secret,
            "others_secret": others_secret,
            "grading_agent": session.agent,
            "grading_apitoken": token,
            "grading_artifactrule": ArtifactRule.objects.first(),
            "bandit_bandit": Bandit.objects.first(),
            "bandit_arm": Arm.objects.first(),
            "bandit_ledgerentry": LedgerEntry.objects.first(),
            "bandit_bucket": Bucket.objects.first(),
            "bandit_selection": chosen,
            "bandit_grader": Grader.objects.first(),
            "bandit_calibrationversion": CalibrationVersion.objects.first(),
            "bandit_policyversion": PolicyVersion.objects.first(),
            "bandit_armevent": ArmEvent.objects.create(arm=Arm.objects.first(), act="resumed", by="olga"),
            "bandit_assignment": drawn,
            "lesson": drawn.arm,
            "step": ("exhaust",),
            "bandit_erasure": Erasure.objects.create(who="olga", why="a test"),
            "auth_user": User.objects.create_user("nina", password="x"),
            "auth_group": Group.objects.create(name="guests"),
        }
    )


def _assignment(session):
    """A lesson's draw, and the session that it was for."""
    # In bulk: a poisoned name would not be found again when the session is settled.
    (lesson,) = Arm.objects.bulk_create([Arm(bandit=Bandit.objects.get(name="lesson"), name="read-the-diff")])
    fields = {"bandit": lesson.bandit, "arm": lesson, "taken": True, "chance": 0.9, "created": timezone.now()}
    drawn = Assignment.objects.create(decision_id="l-1", observation=session.observation, **fields)
    SessionLesson.objects.create(session=session, arm=lesson, assignment=drawn, salience=0.5)
    rewards.settle(session)
    return drawn


def _proposal(session, token):
    """What the agent said once the session was graded."""
    said = Submission.objects.create(session=session, token=token, scope="hook", witness="hook", body_sha256="b" * 64)
    SubmissionAddress.objects.create(submission=said, address="127.0.0.1")
    return Proposal.objects.create(session=session, submission=said, field="category", value={"category": "news"})


def _channel(by):
    """A channel that is paused: nothing is sent anywhere."""
    row = NoticeChannel(name="on call", state="paused")
    row.put(Webhook(url="http://127.0.0.1:9/"), by)
    return row


def _import(session):
    """An import that found a file of every fate."""
    counts = dict.fromkeys(Fate, 1)
    row = LogImport.objects.create(agent=session.agent, by="olga", folders=["/logs"], counts=counts, stopped="Ctrl-C")
    for fate in Fate:
        of = session if fate is Fate.IMPORTED else None
        ImportedFile.objects.create(
            log_import=row, path=f"/logs/{fate}", fate=fate, why="links", detail="seen", session=of
        )
    return row
