"""The demo's history: two weeks of made-up sessions, submitted and judged through the site's own code.

In the second week a package mirror is down, so that code and infra sessions get worse verdicts, and a new version of
the harness is in use, so that Insight has versions to compare. On one day the judge's quota is exhausted: its sessions
are judged the next day, and one of them has a log without any commands. The history is the same on every site.
"""

import datetime as dt
import hashlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.utils import timezone

from grading import intake, review
from grading.judging import worker
from grading.judging.allowance import budget, quota
from grading.models import Agent, JudgeJob, Session
from grading.models.judging import Purpose
from grading.models.review import Answer
from grading.roles import REVIEWER
from grading.simulator import Mode, Simulator
from grading.story.logs import MODEL, VERSION, Command, log

AGENT = "autopilot"
DAYS, BAD_DAYS = 14, 7
# How many sessions the days of a week have.
A_WEEK = (5, 6, 4, 7, 5, 3, 5)
# A person grades one session of so many, the day's outage aside, two hours after it ended.
GRADED, MINUTES_TO_GRADE = 9, 120
VERSION_BEFORE = "2.1.9"
# How many days before today the quota was gone.
OUTAGE = 5
# By category: the usual verdict, and the title of its sessions.
USUAL = {
    "code": (0.66, "Add a retry to the upload client"),
    "infra": (0.72, "Move the nightly build to the new runner"),
    "cross-repo": (0.58, "Send the fix for the hook upstream"),
    "triage": (0.58, "Sort the new issues"),
    "content": (0.56, "Describe the settings"),
    "research": (0.54, "Compare three ways to cache the index"),
    "news": (0.44, "Read what is new about agents"),
    "social": (0.36, "Answer the open questions"),
}
# By category: how much lower verdicts are while the mirror is down.
MIRROR_DOWN = {"code": 0.16, "infra": 0.26}
# The output of a test run.
PASSED = "\n".join(f"tests/test_client.py::test_case_{number:02d} PASSED" for number in range(1, 34))
# Added to the usual verdict, one after the other, so that verdicts vary.
WAVE = (0.0, 0.08, -0.06, 0.12, -0.11, 0.04, -0.03)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSession:
    """A session of the history. `verdict` in [0, 1] is the judge's. `is_hampered`: the mirror was down; `is_reviewed`:
    a person grades it.
    """

    name: str
    category: str
    title: str
    ended_at: dt.datetime
    verdict: float
    is_hampered: bool
    is_stub: bool
    version: str
    pull_request: int | None
    is_reviewed: bool

    @property
    def started_at(self) -> dt.datetime:
        return self.ended_at - dt.timedelta(minutes=26)

    @property
    def transcript(self) -> bytes:
        commands: list[Command] = [("git status", "On branch main", False), ("pytest -v", PASSED, False)]
        if self.is_hampered:
            commands += [("pip install -r requirements.txt", "ERROR: the mirror does not answer", True)] * 3
            commands += [("pytest -v", f"{PASSED}\nFAILED tests/test_new.py: no module named retry", True)]
        else:
            commands += [("pytest -v", f"{PASSED}\n34 passed", False)]
            commit = hashlib.sha1(self.name.encode(), usedforsecurity=False).hexdigest()[:7]
            commands += [(f"git commit -am '{self.title}'", f"[main {commit}] {self.title}", False)]
        if self.pull_request:
            commands += [("gh pr create --fill", f"https://example.test/upstream/pull/{self.pull_request}", False)]
        last = "The mirror is down; nothing could be installed." if self.is_hampered else "Done, and the tests pass."
        if self.is_stub:
            commands = []
        return log(self.name, self.started_at, self.title, commands, last, version=self.version)


def plan(today: dt.datetime) -> Iterator[PastSession]:
    """The sessions of the DAYS before `today`, oldest first."""
    midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
    categories = tuple(USUAL)
    turns = [(DAYS - day, turn) for day in range(DAYS) for turn in range(A_WEEK[day % len(A_WEEK)])]
    for number, (days_ago, turn) in enumerate(turns):
        # In steps of three, so that each category comes at another hour of each day.
        category = categories[number * 3 % len(categories)]
        usual, title = USUAL[category]
        loss = MIRROR_DOWN.get(category, 0.0) if days_ago <= BAD_DAYS else 0.0
        yield PastSession(
            name=f"{number + 1:04x}-{category}",
            category=category,
            title=title,
            ended_at=midnight - dt.timedelta(days=days_ago) + dt.timedelta(hours=8 + 2 * turn),
            verdict=round(usual + WAVE[number % len(WAVE)] - loss, 2),
            is_hampered=bool(loss),
            is_stub=days_ago == OUTAGE and category == "cross-repo",
            version=VERSION if days_ago <= BAD_DAYS else VERSION_BEFORE,
            pull_request=500 + number if category == "cross-repo" else None,
            is_reviewed=number % GRADED == GRADED // 2 and days_ago != OUTAGE,
        )


class MovedClock(dt.datetime):
    """What Django's `timezone.now` reads while the history is loaded: the machine's clock, moved by `shift`."""

    shift = dt.timedelta(0)

    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> dt.datetime:  # type: ignore[override]
        return dt.datetime.now(tz) + cls.shift


def load(today: dt.datetime, judge: Simulator) -> Iterator[Session]:
    """Submit and judge the whole history, each session at its own time. Yields each session, judged unless the quota is
    exhausted.

    For a site whose judge is this running simulator, and on which nothing else runs. Django's clock is moved for as
    long as this runs: every row, of whatever table, then has the time of the story, and pages that show two of them
    agree.
    """
    is_database_clock = settings.DATABASE_CLOCK
    try:
        timezone.datetime, settings.DATABASE_CLOCK = MovedClock, False  # type: ignore[attr-defined]
        yield from _submit_and_judge(today, judge)
    finally:
        timezone.datetime, settings.DATABASE_CLOCK = dt.datetime, is_database_clock  # type: ignore[attr-defined]


def _submit_and_judge(today: dt.datetime, judge: Simulator) -> Iterator[Session]:
    set_clock(next(plan(today)).ended_at)
    budget.set_policy(by=None, repeat_share=0, second_share=0)  # repeated readings are drawn differently on each site
    agent, _created = Agent.objects.get_or_create(name=AGENT, defaults={"title": "The demo's own agent"})
    unjudged: list[tuple[PastSession, Session]] = []
    for past in plan(today):
        is_out = (today.date() - past.ended_at.date()).days == OUTAGE
        if unjudged and not is_out:
            set_clock(unjudged[-1][0].ended_at.replace(hour=6) + dt.timedelta(days=1))
            quota.probe_now()
            for each, session in unjudged:
                judge_with(judge, session, each.verdict)
            unjudged.clear()
        set_clock(past.ended_at + dt.timedelta(minutes=1))
        session = submit(agent, past)
        if is_out:
            unjudged.append((past, session))
            judge.mode = Mode.USAGE_LIMITS
            judge.options = {"regain": f"{past.ended_at + dt.timedelta(days=1):%Y-%m-%d at 06:00}"}
            judge_session(session)
        else:
            judge_with(judge, session, past.verdict)
        if past.is_reviewed:
            set_clock(past.ended_at + dt.timedelta(minutes=MINUTES_TO_GRADE))
            grade(past, session)
        yield session


def simulator() -> Simulator:
    """A simulator, not yet started, for the port of ANTHROPIC_BASE_URL."""
    return Simulator(port=urlsplit(settings.ANTHROPIC_BASE_URL).port or 0)


def submit(agent: Agent, past: PastSession) -> Session:
    facts = {"pull_requests": [f"https://example.test/upstream/pull/{past.pull_request}"]} if past.pull_request else {}
    return intake.submit(
        agent=agent,
        metadata=intake.SubmittedSession(
            session_id=past.name,
            category=past.category,
            harness="claude-code",
            model=MODEL,
            title=past.title,
            started_at=past.started_at,
            ended_at=past.ended_at,
        ),
        transcript=io.BytesIO(past.transcript),
        facts=io.BytesIO(json.dumps(facts).encode()) if facts else None,
    ).session


def judge_with(judge: Simulator, session: Session, value: float) -> None:
    """Let the simulator give the session this verdict."""
    judge.mode, judge.options = Mode.VERDICT, {"score": value}
    judge_session(session)


def grade(past: PastSession, session: Session) -> None:
    """A person who has seen the verdict grades a tenth above it where the work went well, and a tenth below if not."""
    reviewer, is_new = User.objects.get_or_create(username=REVIEWER)
    if is_new:
        reviewer.set_unusable_password()
        reviewer.save()
        reviewer.groups.set([Group.objects.get(name=REVIEWER)])
    value, reason = past.verdict + 0.1, "Read the change: it does what was asked"
    if past.is_hampered:
        value, reason = past.verdict - 0.1, "Nothing was installed, so nothing was tried"
    review.reveal(session, reviewer)  # not blind: which sessions the random slice has differs from site to site
    claim = f"history-{past.name}"
    review.submit(session, reviewer, answer=Answer.GRADE, value=round(value, 2), reason=reason, claim=claim)


def judge_session(session: Session) -> None:
    for job in JudgeJob.objects.open().filter(session=session, purpose=Purpose.VERDICT):
        worker.run(job.pk)


def set_clock(to: dt.datetime) -> None:
    """Move Django's clock, so that it shows `to` now."""
    MovedClock.shift = to - dt.datetime.now(dt.UTC)
