"""The cast of the tests: an agent, people in their roles, sessions with grades. Plain functions on a real database."""

import datetime as dt
import itertools
from collections.abc import Iterator
from contextlib import contextmanager

from django.contrib.auth.models import Group, User
from django.db import transaction

from bandit.chance import chance
from bandit.models import Arm
from grading.models import Agent, Artifact, Grade, JudgeJob, JudgePolicy, ReviewAnswer, ReviewItem, Rubric, Session
from grading.models.evidence import ArtifactKind, Origin
from grading.review import shares
from grading.vocabulary import Reason, Source, Status

NOON = dt.datetime(2026, 3, 31, 12, 0, tzinfo=dt.UTC)
_numbers = itertools.count(1)
ARMS = ("code", "infra", "triage", "content", "cross-repo", "research", "news", "social")
# Names that no share is chosen by, so that a session is judged once and in its turn, and nobody asked, unless a test
# says otherwise.
_names = (
    name
    for name in (f"session-{number:04d}" for number in itertools.count(1))
    if all(shares.number(purpose, "bob", name) >= 0.25 for purpose in (shares.SLICE, "repeat", "second"))
    and all(chance(f"abstention of {arm}", "category", "bob", name) >= JudgePolicy().abstention_share for arm in ARMS)
)


@contextmanager
def world() -> Iterator[None]:
    """A history that is undone at the end, so that another can be lived and compared with it."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def agent(name: str = "bob") -> Agent:
    return Agent.objects.get_or_create(name=name)[0]


def person(name: str, role: str) -> User:
    """A staff user in one of the three groups."""
    user = User.objects.create_user(name, password="correct horse battery", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    return user


def session(*, category: str | None = "cross-repo", harness: str | None = "claude-code", **fields) -> Session:
    """A finished session without grades."""
    return Session.objects.create(
        agent=fields.pop("agent", None) or agent(),
        external_id=fields.pop("external_id", next(_names)),
        category=category and Arm.objects.resolve("category", category),
        harness=harness and Arm.objects.resolve("harness", harness),
        ended_at=fields.pop("ended_at", NOON),
        **fields,
    )


def grade(session: Session, source: Source, value: float | None, reason: Reason = Reason.NONE, **fields) -> Grade:
    """One grade row, as a grader would append it; each with inputs of its own unless told."""
    return Grade.objects.create(
        session=session,
        source=source,
        status=Status.UNSCORED if value is None else Status.SCORED,
        value=value,
        reason=reason,
        inputs_sha256=fields.pop("inputs_sha256", f"{next(_numbers):064d}"),
        **fields,
    )


def blind(session: Session, reviewer: User, value: float, **fields) -> ReviewAnswer:
    """What a person said of a session of the random slice before seeing the judge's answer; its turn has come."""
    said = {"value": value, "blind_value": value, "slice_probability": 0.2, **fields}
    item = {"entered_as": "slice", "state": "done", "closed_at": NOON, "slice_probability": said["slice_probability"]}
    ReviewItem.objects.get_or_create(session=session, defaults={**item, "drawn_at": NOON})
    return ReviewAnswer.objects.create(session=session, reviewer=reviewer, answer=said.pop("answer", "grade"), **said)


def pull_request(session: Session, url: str = "") -> Artifact:
    """A pull request that the caller observed itself."""
    return Artifact.objects.create(
        session=session,
        kind=ArtifactKind.PULL_REQUEST,
        key=url or f"https://example.test/pull/{next(_numbers)}",
        origin=Origin.FACTS,
    )


def failed_check(session: Session, name: str = "ci") -> Artifact:
    """A mandatory check that the caller saw fail."""
    return Artifact.objects.create(session=session, kind=ArtifactKind.CHECK_FAILED, key=name, origin=Origin.FACTS)


def open_judge_job(session: Session, **fields) -> JudgeJob:
    rubric = Rubric.objects.active()
    return JudgeJob.objects.create(session=session, rubric=rubric, **fields)
