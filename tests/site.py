"""The world builder: agents, people and sessions with everything that can happen to them, as plain rows or uploads.

    site.session("code", agent="bob").with_log(commits=2).judged(.6).settle()    # rows, written directly
    site.upload("s-1", log=log, journal="Merged it.").session                    # the real intake
    site.person("rita", "reviewer")

Tests take the fixture `site`; everything else makes a `Site()`, which has no state of its own.
"""

import datetime as dt
import io
import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Self

from django.contrib.auth.models import Group, User
from django.db import transaction

from bandit.chance import chance
from bandit.models import Arm
from grading import intake
from grading.evidence import store
from grading.intake.first_word import Speaker
from grading.judging import enqueuing, worker
from grading.models import (
    Agent,
    Artifact,
    Evidence,
    Grade,
    JudgeJob,
    JudgePolicy,
    ReviewAnswer,
    ReviewItem,
    Rubric,
    Session,
)
from grading.models.evidence import ArtifactKind, EvidenceKind, Origin
from grading.models.review import QueueEntry
from grading.review import queue, shares
from grading.reward import rewards
from grading.simulator import Simulator
from grading.vocabulary import Reason, Source, Status
from tests.casts import logs

File = bytes | str | dict | list | IO[bytes]  # a dict or list is sent as JSON
NOON = dt.datetime(2026, 3, 31, 12, 0, tzinfo=dt.UTC)
ARMS = ("code", "infra", "triage", "content", "cross-repo", "research", "news", "social")
_numbers = itertools.count(1)
# Names that no share is chosen by, so that a session is judged once and in its turn, and nobody asked, unless a test
# wants it.
plain_names = (
    name
    for name in (f"session-{number:04d}" for number in itertools.count(1))
    if all(shares.keyed_number(purpose, "bob", name) >= 0.25 for purpose in (shares.SLICE, "repeat", "second"))
    and all(chance(f"abstention of {arm}", "category", "bob", name) >= JudgePolicy().abstention_share for arm in ARMS)
)


class Site:
    """Builds what a test or a benchmark needs, on the real database."""

    def agent(self, name: str = "bob") -> Agent:
        return Agent.objects.get_or_create(name=name)[0]

    def person(self, name: str, role: str) -> User:
        """A staff user in one of the three groups."""
        user = User.objects.create_user(name, password="correct horse battery", is_staff=True)
        user.groups.add(Group.objects.get(name=role))
        return user

    def session(
        self,
        category: str | None = "cross-repo",
        *,
        harness: str | None = "claude-code",
        agent: Agent | str = "bob",
        ago: dt.timedelta = dt.timedelta(),
        **fields: Any,
    ) -> "SessionBuilder":
        """A finished session without grades; it ended at noon, or so long before."""
        fields = {
            "external_id": fields.pop("external_id", None) or next(plain_names),
            "ended_at": NOON - ago,
            **fields,
        }
        return SessionBuilder(
            Session.objects.create(
                agent=self.agent(agent) if isinstance(agent, str) else agent,
                category=category and Arm.objects.resolve("category", category),
                harness=harness and Arm.objects.resolve("harness", harness),
                **fields,
            )
        )

    def on(self, session: Session) -> "SessionBuilder":
        """Adds to a session that exists: `site.on(session).judged(.8).settle()`."""
        return SessionBuilder(session)

    def judge_job(self, **fields: Any) -> JudgeJob:
        """An open job for a session with a log and a journal."""
        return self.session(**fields).with_work().enqueue()

    def judged_by(self, sim: Simulator, score: float = 0.5, **fields: Any) -> Session:
        """A session with a verdict that the simulated judge gave."""
        return self.session(**fields).with_work().judged_by(sim, score).session

    def upload(
        self,
        name: str = "",
        log: File | None = None,
        *,
        journal: File | None = None,
        patch: File | None = None,
        facts: File | None = None,
        agent: Agent | str = "bob",
        speaker: Speaker | None = None,
        is_sample: bool = False,
        **metadata: Any,
    ) -> intake.Receipt:
        """The receipt of a session that came in with these files through the intake."""
        files = {"transcript": log, "journal": journal, "patch": patch, "facts": facts}
        metadata = {"session_id": name or next(plain_names), "category": "cross-repo", "ended_at": NOON, **metadata}
        return intake.submit(
            agent=self.agent(agent) if isinstance(agent, str) else agent,
            metadata=intake.SubmittedSession.model_validate(metadata),
            **{kind: _stream(file) for kind, file in files.items() if file is not None},
            speaker=speaker,
            is_sample=is_sample,
        )

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """A history that is undone at the end, so that another can be lived and compared with it."""
        with transaction.atomic():
            yield
            transaction.set_rollback(True)


class SessionBuilder:
    """One session. Every step writes its rows at once and returns the builder; `settle` and `recheck` end the chain.

    The rows that a test may want are attributes: `session`, and the latest `grade`, `artifact`, `evidence`, `job`,
    `item` and `answer`.
    """

    grade: Grade
    artifact: Artifact
    evidence: Evidence
    job: JudgeJob
    item: ReviewItem
    answer: ReviewAnswer

    def __init__(self, session: Session) -> None:
        self.session = session

    # What the session left behind

    def with_file(self, kind: str, data: bytes, filename: str = "", **fields: Any) -> Self:
        """Stored evidence, which nothing has read yet."""
        stored = store.store(io.BytesIO(data))
        fields = {"sha256": stored.sha256, "size": stored.size, "filename": filename, **fields}
        self.evidence = Evidence.objects.create(session=self.session, kind=kind, **fields)
        return self

    def with_log(self, log: bytes | None = None, *, commits: int = 0) -> Self:
        """A Claude Code log: by default of a small fix, tested and committed; or of so many commits."""
        name = self.session.external_id
        calls = [(f"git commit -am 'Part {n}'", f"[main {n:07x}] Part {n}") for n in range(commits)]
        log = log or (logs.claude(name, *calls) if commits else logs.worked(name))
        return self.with_file(EvidenceKind.TRANSCRIPT, log, f"{name}.jsonl")

    def with_journal(self, text: str = "") -> Self:
        text = text or f"Submitted PR 619. {self.session.external_id}"
        return self.with_file(EvidenceKind.JOURNAL, text.encode())

    def with_patch(self, patch: bytes) -> Self:
        return self.with_file(EvidenceKind.PATCH, patch)

    def with_work(self) -> Self:
        """A log and a journal: something to judge."""
        return self.with_log().with_journal()

    def with_pull_request(self, url: str = "") -> Self:
        """A pull request that the caller observed itself."""
        url = url or f"https://example.test/pull/{next(_numbers)}"
        return self._with_artifact(ArtifactKind.PULL_REQUEST, url)

    def with_failed_check(self, name: str = "ci") -> Self:
        """A mandatory check that the caller saw fail."""
        return self._with_artifact(ArtifactKind.CHECK_FAILED, name)

    def _with_artifact(self, kind: str, key: str) -> Self:
        self.artifact = Artifact.objects.create(session=self.session, kind=kind, key=key, origin=Origin.FACTS)
        return self

    # What graders and people made of it

    def graded(self, source: Source | str, value: float | None, reason: Reason = Reason.NONE, **fields: Any) -> Self:
        """A grade row, as a grader would append it; each has inputs of its own by default."""
        self.grade = Grade.objects.create(
            session=self.session,
            source=source,
            status=Status.UNSCORED if value is None else Status.SCORED,
            value=value,
            reason=reason,
            inputs_sha256=fields.pop("inputs_sha256", f"{next(_numbers):064d}"),
            **fields,
        )
        return self

    def judged(self, value: float | None, reason: Reason = Reason.NONE, **fields: Any) -> Self:
        """A verdict."""
        return self.graded(Source.JUDGE, value, reason, **fields)

    def abstained(self, reason: Reason = Reason.NOTHING_OBSERVABLE, **fields: Any) -> Self:
        """A trajectory that nobody could grade."""
        return self.graded(Source.TRAJECTORY, None, reason, **fields)

    def with_judge_job(self, **fields: Any) -> Self:
        """An open job of the judge, for the rubric in force."""
        self.job = JudgeJob.objects.create(session=self.session, rubric=Rubric.objects.active(), **fields)
        return self

    def in_queue(self, entered_as: QueueEntry = QueueEntry.SLICE, **fields: Any) -> Self:
        """An item of the review queue."""
        drawn = {"slice_probability": 0.2} if entered_as == QueueEntry.SLICE else {}
        fields = {"session": self.session, "entered_as": entered_as, **drawn, **fields}
        self.item = ReviewItem.objects.create(**fields)
        return self

    def answered_blind(self, reviewer: User, value: float, **fields: Any) -> Self:
        """What a person answered in the random check before seeing the judge's verdict."""
        fields = {"answer": "grade", "value": value, "blind_value": value, "slice_probability": 0.2, **fields}
        item = {"entered_as": "slice", "state": "done", "drawn_at": NOON, "closed_at": NOON}
        item["slice_probability"] = fields["slice_probability"]
        self.item = ReviewItem.objects.get_or_create(session=self.session, defaults=item)[0]
        self.answer = ReviewAnswer.objects.create(session=self.session, reviewer=reviewer, **fields)
        return self

    def judged_by(self, sim: Simulator, score: float) -> Self:
        """A verdict of the simulated judge, which the site's own worker asked for."""
        sim.script({"score": score})
        self.job = self.enqueue()
        worker.run(self.job.pk)
        return self

    # The end of a chain

    def settle(self) -> Session:
        """Settle the session: its grades become rewards."""
        rewards.settle(self.session)
        return self.session

    def enqueue(self) -> JudgeJob:
        """Ask the judge about the session, as intake does."""
        job = enqueuing.enqueue(self.session)
        assert job is not None
        return job

    def recheck(self) -> Session:
        """Settle the session and apply the rules of review to it, as intake does."""
        with transaction.atomic():
            rewards.settle(self.session)
            queue.recheck(self.session)
        return self.session


def _stream(file: File) -> IO[bytes]:
    if isinstance(file, (dict, list)):
        file = json.dumps(file)
    if isinstance(file, str):
        file = file.encode()
    return io.BytesIO(file) if isinstance(file, bytes) else file
