"""The world builder as plain functions, for tests that do not take the fixture `site` yet."""

from django.contrib.auth.models import User

from grading.models import Artifact, Grade, JudgeJob, ReviewAnswer, Session
from grading.vocabulary import Reason, Source
from tests.site import NOON, Site

__all__ = ["NOON"]
_site = Site()
world, agent, person = _site.rolled_back, _site.agent, _site.person


def session(**fields) -> Session:
    return _site.session(**{**fields, "agent": fields.get("agent") or "bob"}).session


def grade(session: Session, source: Source, value: float | None, reason: Reason = Reason.NONE, **fields) -> Grade:
    return _site.on(session).graded(source, value, reason, **fields).grade


def blind(session: Session, reviewer: User, value: float, **fields) -> ReviewAnswer:
    return _site.on(session).answered_blind(reviewer, value, **fields).answer


def pull_request(session: Session, url: str = "") -> Artifact:
    return _site.on(session).with_pull_request(url).artifact


def failed_check(session: Session, name: str = "ci") -> Artifact:
    return _site.on(session).with_failed_check(name).artifact


def open_judge_job(session: Session, **fields) -> JudgeJob:
    return _site.on(session).with_judge_job(**fields).job
