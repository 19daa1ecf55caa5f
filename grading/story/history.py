"""The demo's history: two weeks of made-up sessions, submitted and judged through the site's own code.

Two agents share the work. In the second week a package mirror is down, so that code and infra sessions get worse
verdicts, and a new version of the harness is in use, so that Insight has versions to compare. On one day the judge's
quota is exhausted: its sessions are judged the next day, and one of them has a log without any commands. One session is
submitted without a log and stays without a grade. The category bandit chose what most sessions worked on, and the
commits are in a repository that the site follows. Rewards are the same on every site; decisions are drawn.
"""

import datetime as dt
import io
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.utils import timezone

from bandit.selection import NothingEligible, select
from grading import intake
from grading.intake.first_word import Speaker
from grading.judging import worker
from grading.judging.allowance import budget, quota
from grading.models import Agent, ApiToken, JudgeJob, Repository, Rubric, Session
from grading.models.agents import TokenScope
from grading.models.judging import Purpose
from grading.models.review import Answer
from grading.outcomes import following
from grading.review import answers, notes
from grading.roles import REVIEWER
from grading.simulator import Mode, Simulator
from grading.story import repository
from grading.story.logs import FOLDER, MODEL, VERSION, Command, NewFile, codex_log, log

AGENT, CODEX_AGENT = "autopilot", "night-shift"
TITLES = {AGENT: "Claude Code, around the clock", CODEX_AGENT: "Codex, on chores"}
SCOPES = {AGENT: TokenScope.RUNNER, CODEX_AGENT: TokenScope.HOOK}
LARGE_MODEL, CODEX_MODEL = "claude-opus-4-5", "gpt-5.1-codex"
DAYS, BAD_DAYS = 14, 7
# How many sessions the days of a week have.
A_WEEK = (5, 6, 4, 7, 5, 3, 5)
# A person grades one session of so many, the day's outage aside, an hour after it ended: before the next one begins.
GRADED, MINUTES_TO_GRADE = 9, 60
VERSION_BEFORE = "2.1.9"
# How many days before today the quota was gone.
OUTAGE = 5
# The session that is submitted without a log, and the one whose commit is reverted soon after.
UNLOGGED, REVERTED = 17, 36
# Commits with a lower verdict stay on a branch of their own.
MERGED_FROM = 0.5
PROJECT, NOTES_FOLDER = Path(FOLDER).name, "/srv/notes"
# One session of so many is started by a person, so that the bandit has not chosen it.
BY_HAND = 6
# How many ids are tried for a decision.
MAX_DRAWS = 30
# By category: the usual verdict.
USUAL = {
    "code": 0.66,
    "infra": 0.72,
    "cross-repo": 0.58,
    "triage": 0.58,
    "content": 0.56,
    "research": 0.54,
    "news": 0.44,
    "social": 0.36,
}
# By category: the titles of its sessions, in turn.
TASKS = {
    "code": (
        "Add a retry to the upload client",
        "Stop the parser at the first bad line",
        "Show the queue's length in the status",
        "Sort imports by their last use",
    ),
    "infra": (
        "Move the nightly build to the new runner",
        "Rotate the keys of the package mirror",
        "Cut the image to half its size",
    ),
    "cross-repo": (
        "Send the fix for the hook upstream",
        "Port the date parser to the client",
        "Document the new flag in both repositories",
    ),
    "triage": ("Sort the new issues", "Close issues that are fixed", "Find the owner of each crash"),
    "content": ("Describe the settings", "Write the notes of release 1.4", "Draw the path of a request"),
    "research": (
        "Compare three ways to cache the index",
        "Measure what a cold start costs",
        "Find out why the queue stalls at night",
    ),
    "news": ("Read what is new about agents", "Read this week's papers on evaluation", "Read the runtime's changelog"),
    "social": ("Answer the open questions", "Thank the week's contributors", "Ask users about the new flag"),
}
# The categories that read and write notes instead of committing, and what they read about.
READING = ("news", "social")
TOPICS = (
    ("sandboxes", "an agent that cannot reach the network fails early and says so"),
    ("judges", "two judges of one family share their mistakes, and two families do not"),
    ("memory", "a short list of decisions helped more than the whole conversation"),
    ("retries", "half of the failed tool calls succeed when they are made once more"),
    ("budgets", "a hard limit for tokens changed the plan, a soft one was ignored"),
    ("reviews", "small changes are read within the hour and large ones within the week"),
    ("benchmarks", "most of the gain came from a better prompt and not from the model"),
    ("caching", "a stable prefix made a long session cheaper than three short ones"),
    ("planning", "a plan that is written down is kept, and one that is only said is not"),
    ("handover", "the next session needs the open questions more than the results"),
    ("tests", "an agent that runs the tests first repairs fewer things that work"),
)
# The categories in which every other session is CODEX_AGENT's.
CHORES = ("code", "infra", "triage", "research")
# By category: how much lower verdicts are while the mirror is down.
MIRROR_DOWN = {"code": 0.16, "infra": 0.26}
# The output of a test run.
PASSED = "\n".join(f"tests/test_client.py::test_case_{number:02d} PASSED" for number in range(1, 34))
PAGE = "A long page of which a reader keeps a sentence or two, and an agent should keep no more. "
# Added to the usual verdict, one after the other, so that verdicts vary.
WAVE = (0.0, 0.08, -0.06, 0.12, -0.11, 0.04, -0.03)
# How many files a session reads before it changes one.
READS = (2, 7, 4, 11, 3, 16, 5, 9, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class PastSession:
    """A session of the history, with the judge's `verdict` in [0, 1].

    `is_hampered`: the mirror was down. `is_stub`: its log has no steps. `is_reviewed`: a person grades it. `commit` is
    the hash of its commit, if it `makes_commit`.
    """

    number: int
    category: str
    title: str
    agent: str
    ended_at: dt.datetime
    verdict: float
    is_hampered: bool
    is_stub: bool
    version: str
    pull_request: int | None
    is_reviewed: bool
    commit: str = "0000000"

    @property
    def name(self) -> str:
        return f"{self.number + 1:04x}-{self.category}"

    @property
    def started_at(self) -> dt.datetime:
        return self.ended_at - dt.timedelta(minutes=18 + 2 * self.reads)

    @property
    def model(self) -> str:
        if self.agent == CODEX_AGENT:
            return CODEX_MODEL
        return LARGE_MODEL if self.category == "research" else MODEL

    @property
    def harness(self) -> str:
        return "codex" if self.agent == CODEX_AGENT else "claude-code"

    @property
    def reads(self) -> int:
        """How many files or pages the session reads."""
        return READS[self.number % len(READS)]

    @property
    def makes_commit(self) -> bool:
        is_without_work = self.category in READING or self.is_hampered or self.is_stub
        return not is_without_work and self.number != UNLOGGED

    @property
    def transcript(self) -> bytes | None:
        if self.number == UNLOGGED:
            return None
        last = "The mirror is down; nothing could be installed." if self.is_hampered else "Done, and the tests pass."
        if self.agent == CODEX_AGENT:
            return codex_log(self.name, self.started_at, self.title, self._work(), last, model=self.model)
        steps: Sequence[Command | NewFile] = self._work()
        folder = FOLDER
        if self.is_stub:
            steps = []
        elif self.category in READING:
            steps, last = [*self._pages(), *self._notes()], f"Read {self.reads} pages and kept what is new to us."
            folder = NOTES_FOLDER
        return log(
            self.name,
            self.started_at,
            self.title,
            steps,
            last,
            model=self.model,
            version=self.version,
            folder=folder,
        )

    def _work(self) -> list[Command]:
        commands: list[Command] = [("git status", "On branch main", False)]
        commands += [(f"sed -n 1,80p src/part_{part}.py", f"# part {part}\n", False) for part in range(self.reads)]
        commands += [("pytest -v", PASSED, False)]
        if self.is_hampered:
            commands += [("pip install -r requirements.txt", "ERROR: the mirror does not answer", True)] * 3
        else:
            commands += [("sed -i 's/once/until it works/' src/part_0.py", "", False)]
            commands += [("pytest -v", f"{PASSED}\n34 passed", False)]
            commands += [(f'git commit -am "{self.title}"', f"[main {self.commit[:7]}] {self.title}", False)]
        if self.pull_request:
            commands += [("gh pr create --fill", f"https://example.test/relay/pull/{self.pull_request}", False)]
        return commands

    def _pages(self) -> list[Command]:
        address = f"https://example.test/feed/{self.number}"
        return [(f"curl -s {address}/{page}", PAGE * 12, False) for page in range(self.reads)]

    def _notes(self) -> list[NewFile]:
        """The files that a session about up to three topics writes.

        A news session writes an idea backlog with a row for each topic, and a note on all of them. A social session
        drafts a post on each topic.
        """
        past_rounds = self.number // len(USUAL)
        topics = [TOPICS[(past_rounds * 3 + offset) % len(TOPICS)] for offset in range(past_rounds % 4)]
        if self.category == "social":
            return [
                NewFile(
                    path=f"drafts/{self.name}-{subject}.md",
                    text=f"{self.title}, about {subject}.\n\nWe tried it for a week: {finding}. If you have seen the "
                    "opposite, we would like to know how your sessions are set up, how long they ran, and what you "
                    f"measured before and after. We will report what comes of it ({self.name}).\n",
                )
                for subject, finding in topics
            ]
        rows = "".join(f"| idea | {subject} | {finding} |\n" for subject, finding in topics)
        note = f"# {self.title}\n\n" + "".join(f"- {subject}: {finding}.\n" for subject, finding in topics)
        return [
            NewFile(path=f"notes/{self.name}/idea-backlog.md", text=f"| kind | topic | finding |\n|-|-|-|\n{rows}"),
            NewFile(path=f"knowledge/{self.name}.md", text=note),
        ]


def plan(today: dt.datetime) -> Iterator[PastSession]:
    """The sessions of the DAYS before `today`, oldest first."""
    midnight = today.replace(hour=0, minute=0, second=0, microsecond=0)
    categories = tuple(USUAL)
    turns = [(DAYS - day, turn) for day in range(DAYS) for turn in range(A_WEEK[day % len(A_WEEK)])]
    for number, (days_ago, turn) in enumerate(turns):
        # Categories are taken in steps of three, so that each comes once in each round, and at another hour each day.
        category = categories[number * 3 % len(categories)]
        past_rounds = number // len(categories)
        loss = MIRROR_DOWN.get(category, 0.0) if days_ago <= BAD_DAYS else 0.0
        yield PastSession(
            number=number,
            category=category,
            title=TASKS[category][past_rounds % len(TASKS[category])],
            agent=CODEX_AGENT if category in CHORES and past_rounds % 2 else AGENT,
            ended_at=midnight - dt.timedelta(days=days_ago) + dt.timedelta(hours=8 + 2 * turn),
            verdict=round(USUAL[category] + WAVE[number % len(WAVE)] - loss, 2),
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
    """Submit and judge the whole history, each session at its own time.

    Yields each session; it is judged unless the quota is exhausted. The site's judge must be this running simulator,
    and nothing else may run. Django's clock is moved for as long as this runs, so that the rows of all tables have the
    story's times, and pages that show several of them agree.
    """
    is_database_clock = settings.DATABASE_CLOCK
    try:
        timezone.datetime = MovedClock  # type: ignore[attr-defined]
        settings.DATABASE_CLOCK = False
        yield from _submit_and_judge(today, judge)
    finally:
        timezone.datetime = dt.datetime  # type: ignore[attr-defined]
        settings.DATABASE_CLOCK = is_database_clock


def _with_commits(sessions: list[PastSession]) -> list[PastSession]:
    """The sessions with the hashes of their commits in the demo's repository, which this creates."""
    commits = [
        repository.DemoCommit(
            name=past.name,
            author=past.agent,
            subject=past.title,
            committed_at=past.ended_at - dt.timedelta(minutes=5),
            has_landed=past.verdict >= MERGED_FROM,
            reverted_at=past.ended_at + dt.timedelta(minutes=30) if past.number == REVERTED else None,
        )
        for past in sessions
        if past.makes_commit
    ]
    hashes = repository.create(commits)
    return [replace(past, commit=hashes.get(past.name, past.commit)) for past in sessions]


def _submit_and_judge(today: dt.datetime, judge: Simulator) -> Iterator[Session]:
    sessions = _with_commits(list(plan(today)))
    start = sessions[0].ended_at
    set_clock(start)
    Rubric.objects.update(created_at=start)  # they come with the site, and the site is as old as its first session
    budget.set_policy(by=None, repeat_share=0, second_share=0)  # repeated readings are drawn differently on each site
    for name, title in TITLES.items():
        agent, _is_new = Agent.objects.get_or_create(name=name, defaults={"title": title})
        ApiToken.objects.issue(agent, scope=SCOPES[name], note="of the demo")
    unjudged: list[tuple[PastSession, Session]] = []
    day = sessions[0].ended_at.date()
    for past in sessions:
        set_clock(past.started_at)
        if past.ended_at.date() != day:
            day = past.ended_at.date()
            _look_up_commits()
        decision = None if past.number % BY_HAND == 0 else decide(past)
        is_out = (today.date() - past.ended_at.date()).days == OUTAGE
        if unjudged and not is_out:
            set_clock(unjudged[-1][0].ended_at.replace(hour=6) + dt.timedelta(days=1))
            quota.probe_now()
            for unjudged_past, session in unjudged:
                judge_with(judge, session, unjudged_past.verdict)
            unjudged.clear()
        set_clock(past.ended_at + dt.timedelta(minutes=1))
        session = submit(past, decision)
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
    set_clock(today)
    _look_up_commits()


def _look_up_commits() -> None:
    """Find out what became of the commits so far, as the site does several times a day."""
    if repository.location().exists():
        if not Repository.objects.exists():
            repository.follow(PROJECT)
        following.run_due(timezone.now())


def simulator() -> Simulator:
    """A simulator, not yet started, for the port of ANTHROPIC_BASE_URL."""
    return Simulator(port=urlsplit(settings.ANTHROPIC_BASE_URL).port or 0)


def decide(past: PastSession) -> str | None:
    """Have the category bandit choose the session's category, out of two with work. Returns the id of the decision.

    The draw depends on the site's secret, so ids are tried until one draws this category; the other decisions are
    rolled back. None if no id does so, for example when the day's limit for reading is reached.
    """
    categories = tuple(USUAL)
    other = categories[(categories.index(past.category) + 1 + past.number % 3) % len(categories)]
    with suppress(NothingEligible):
        for attempt in range(MAX_DRAWS):
            decision_id = f"{past.number + 1:04x}-{attempt}"
            with transaction.atomic():
                selection = select(
                    bandit="category",
                    decision_id=decision_id,
                    agent=past.agent,
                    supply={past.category: 2, other: 1},
                    now=past.started_at,
                )
                if selection.arm.name == past.category:
                    return decision_id
                transaction.set_rollback(True)
    return None


def submit(past: PastSession, decision_id: str | None = None) -> Session:
    agent = Agent.objects.get(name=past.agent)
    agent.tokens.update(last_used_at=timezone.now())
    transcript = past.transcript
    facts = {"pull_requests": [f"https://example.test/relay/pull/{past.pull_request}"]} if past.pull_request else {}
    return intake.submit(
        agent=agent,
        metadata=intake.SubmittedSession(
            session_id=past.name,
            category=past.category,
            harness=past.harness,
            model=past.model,
            title=past.title,
            selection_id=decision_id,
            started_at=past.started_at,
            ended_at=past.ended_at,
        ),
        transcript=io.BytesIO(transcript) if transcript else None,
        facts=io.BytesIO(json.dumps(facts).encode()) if facts else None,
        speaker=Speaker(token=agent.tokens.first()),
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
    if past.category in READING:
        reason = "Read the notes: more of them are new to us than the verdict says"
    if past.is_hampered:
        value, reason = past.verdict - 0.1, "Nothing was installed, so nothing was tried"
    notes.reveal(session, reviewer)  # not blind: which sessions the random slice has differs from site to site
    claim = f"history-{past.name}"
    answers.submit(session, reviewer, answer=Answer.GRADE, value=round(value, 2), reason=reason, claim=claim)


def judge_session(session: Session) -> None:
    for job in JudgeJob.objects.open().filter(session=session, purpose=Purpose.VERDICT):
        worker.run(job.pk)


def set_clock(to: dt.datetime) -> None:
    """Move Django's clock, so that it shows `to` now."""
    MovedClock.shift = to - dt.datetime.now(dt.UTC)
