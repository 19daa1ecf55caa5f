"""The incident of 31 March, replayed on a demo site in seven steps, with figures from the ledger after each.

The judge's quota is exhausted, and two sessions with real pull requests are submitted with another session's log. They
get a provisional reward until their verdicts. A site that treats a missing grade as a bad one would learn the floor
twice.
"""

import datetime as dt
import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache

from grading import clock, intake
from grading.days import start_of_day
from grading.intake.erasing import erase
from grading.intake.first_word import Speaker
from grading.judging.allowance import quota
from grading.models import Agent, Alarm, Evidence, Flag, JudgeAttempt, ReviewAnswer, Session
from grading.models.judging import AttemptOutcome
from grading.models.review import Answer
from grading.monitoring.judges import judge_out
from grading.monitoring.rule import title_of
from grading.monitoring.sessions import impossible_pair, repeated
from grading.review import answers
from grading.review.corrections import AlreadyUndone
from grading.review.seen import persons_grade
from grading.reward.explain import number
from grading.simulator import Mode
from grading.story.figures import ARM, Figure, Ledger, thousandths
from grading.story.history import AGENT
from grading.story.logs import MODEL, log
from grading.vocabulary import Reason, Source
from grading.wakeup import publish

# The judge's verdict on the two sessions, and a person's grade of the first.
VERDICT, CORRECTED = 0.76, 0.8
LOOPBACK = ("127.0.0.1", "localhost", "::1")
SECONDS = 5.0
# How often recording that a step was pressed is tried, and the pause between two tries.
MAX_TRIES, SECONDS_BETWEEN_TRIES = 50, 0.1
WATCHED = (judge_out.id, impossible_pair.id, repeated.id)
# The session whose log the others are submitted with. It stays when the others are erased, so later rounds number it.
OPERATOR, CHECK, BEFORE = "5e0c", "Check the grading health", dt.timedelta(minutes=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedUpSession:
    """A session that opened a pull request and is submitted with another's log. It ended `before` its submission."""

    name: str
    pull_request: int
    task: str
    before: dt.timedelta


FIRST = MixedUpSession(
    name="71a3", pull_request=619, task="Fix the lesson matcher upstream", before=dt.timedelta(minutes=20)
)
SECOND = MixedUpSession(
    name="a517", pull_request=620, task="Document the lesson matcher upstream", before=dt.timedelta(minutes=5)
)
BOTH = (FIRST, SECOND)


class NotYet(Exception):
    """A step was pressed before an earlier step was done, or could not be recorded."""


class SimulatorAway(Exception):
    """The judge simulator does not answer; nothing was changed."""


def is_demo() -> bool:
    """Whether the story may break the judge: only on a demo site whose judge is a simulator on the same machine."""
    is_local = urlsplit(settings.ANTHROPIC_BASE_URL).hostname in LOOPBACK
    return bool(settings.DEMO and settings.SIMULATED and is_local)


# --- the state of the incident ---------------------------------------------------------------------------------------


class Incident:
    """The state of the incident at `now`. `pressed_at` is when each step was pressed, from the shared cache."""

    def __init__(self, now: dt.datetime) -> None:
        self.now = now
        stored = cache.get_many([_key(step.name) for step in STEPS])
        self.pressed_at: dict[str, dt.datetime] = {
            step.name: stored[_key(step.name)] for step in STEPS if _key(step.name) in stored
        }
        mine = Session.objects.filter(agent__name=AGENT)
        names = [each.name for each in BOTH]
        submitted = mine.filter(external_id__in=names).select_related("agent")
        sessions = {session.external_id: session for session in submitted}
        if len(sessions) < len(names):  # not submitted yet, or erased since: the next step submits them
            before = {step.name for step in STEPS[: STEPS.index(SUBMIT)]}
            self.pressed_at = {name: at for name, at in self.pressed_at.items() if name in before}
        self.ledger = Ledger({name: sessions[name] for name in names if name in sessions}, now)

    @cached_property
    def done(self) -> int:
        """How many steps are done. The last step that was pressed counts once it is over."""
        pressed = next((at for at, step in enumerate(STEPS) if step.name not in self.pressed_at), len(STEPS))
        if pressed > 0 and not STEPS[pressed - 1].is_over(self):
            return pressed - 1
        return pressed

    @property
    def current(self) -> "StoryStep | None":
        """The first step that is not done; None at the end."""
        return STEPS[self.done] if self.done < len(STEPS) else None

    def end_of(self, step: "StoryStep") -> dt.datetime | None:
        """When the step after this one was pressed; None if it has not been."""
        following = STEPS.index(step) + 1
        return self.pressed_at.get(STEPS[following].name) if following < len(STEPS) else None

    @cached_property
    def series(self) -> list[tuple[float, float]]:
        """The arm's mean after each step that is done: on this site, and on a site that learns floors."""
        floors, before = self.ledger.with_floors.arm.mean, self.ledger.without.arm.mean
        return [
            (self.ledger.belief(self.end_of(step)).arm.mean, floors if at >= STEPS.index(SUBMIT) else before)
            for at, step in enumerate(STEPS[: self.done])
        ]

    @cached_property
    def is_exact(self) -> bool:
        """Whether undoing the correction made the session count in the posterior exactly as before the correction.

        Only this session is compared, because sessions outside the story may have been graded meanwhile.
        """
        return self.ledger.counted(FIRST.name, self.pressed_at[CORRECT.name]) == self.ledger.counted(FIRST.name)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StoryStep:
    """One step of the story. `act` does it, and nothing if it was done before. `is_over` says whether all its effects
    have happened, some of which need a worker. `figures` are its results.
    """

    name: str
    title: str
    button: str
    means: str
    act: Callable[[User], None]
    is_over: Callable[[Incident], bool]
    figures: Callable[[Incident], Iterator[Figure]]


def press(name: str, by: User) -> None:
    """Do a step, unless it was done before.

    Raises KeyError for an unknown step, NotYet if an earlier step is not done, SimulatorAway if the simulator does not
    answer, and CorrectionError if the person's act is refused.
    """
    step, incident = BY_NAME[name], Incident(clock.now())
    if name in incident.pressed_at:
        return
    if incident.current is not step:
        first = STEPS[incident.done].title
        raise NotYet(f"“{first}” must be done first. Nothing was changed.")
    step.act(by)
    # Later steps may have been pressed for sessions that were erased since.
    cache.delete_many([_key(later.name) for later in STEPS[STEPS.index(step) + 1 :]])
    # The database cache drops writes silently while the database is busy.
    for _ in range(MAX_TRIES):
        cache.set(_key(name), incident.now, timeout=None)
        if cache.get(_key(name)) == incident.now:
            return
        time.sleep(SECONDS_BETWEEN_TRIES)
    raise NotYet("The site is busy and did not record the step. Press it again.")


def start_again(by: User) -> None:
    """Begin the incident again.

    Lets the judge answer, erases the two sessions with everything that was learned from them, and forgets which steps
    were pressed.
    """
    script_simulator(mode=Mode.VERDICT, options={})
    sessions = Session.objects.filter(agent__name=AGENT, external_id__in=[session.name for session in BOTH])
    if sessions.exists():
        erase(sessions, who=by.get_username(), why="the demo's incident began again")
    probe_quota(by)  # its answer reopens the quota
    cache.set(_key("round"), cache.get(_key("round"), 1) + 1, timeout=None)  # see `operator_id`
    cache.delete_many([_key(step.name) for step in STEPS])


def script_simulator(**script: object) -> None:
    """Set the simulator's behaviour. Raises SimulatorAway if it does not answer."""
    import httpx2

    try:
        httpx2.post(f"{settings.ANTHROPIC_BASE_URL}/_script", json=script, timeout=SECONDS).raise_for_status()
    except httpx2.HTTPError as error:
        raise SimulatorAway(f"The judge simulator doesn’t answer ({error}). Nothing was changed; try again.") from error


def probe_quota(_by: User) -> None:
    """Let one call through to test the quota. If it succeeds, the others follow."""
    quota.probe_now()
    publish()


def earlier_today(by: dt.timedelta) -> dt.datetime:
    """The time `by` ago, but not before today: rewards of earlier days would change the figures."""
    now = clock.now()
    return max(now - by, start_of_day(now))


def operator_id() -> str:
    """The name of the operator's session. Each round of the story has another one."""
    round_number = cache.get(_key("round"), 1)
    return OPERATOR if round_number == 1 else f"{OPERATOR}-{round_number}"


def _key(name: str) -> str:
    return f"march31-{name}"


# --- 1 ---------------------------------------------------------------------------------------------------------------


def exhaust(_by: User) -> None:
    """Exhaust the simulated judge's quota until midnight, and submit a health check by the operator, which finds
    nothing wrong: the outage is visible only on the site. Every step of the story takes the person who clicked.
    """
    midnight = start_of_day(clock.now()) + dt.timedelta(days=1)
    script_simulator(mode=Mode.USAGE_LIMITS, options={"regain": f"{midnight.astimezone(dt.UTC):%Y-%m-%d at %H:%M}"})
    ended_at = earlier_today(BEFORE)
    metadata = intake.SubmittedSession(
        session_id=operator_id(),
        harness="claude-code",
        model=MODEL,
        title=CHECK,
        started_at=ended_at - dt.timedelta(minutes=5),
        ended_at=ended_at,
    )
    _submit(metadata, _operators_log(ended_at), f"# {OPERATOR}\n\n{CHECK}: every session had a grade.\n")


def _operators_log(ended_at: dt.datetime) -> bytes:
    commands = [("systemctl status grader", "active (running)", False)]
    return log(operator_id(), ended_at - dt.timedelta(minutes=5), CHECK, commands, "Every session has a grade.")


def _judge_refused(_incident: Incident) -> bool:
    return quota.current().is_out


def _exhausted(_incident: Incident) -> Iterator[Figure]:
    yield Figure(subject="Judge", text="quota exhausted at the first call; nothing more is sent, and nothing is lost")
    yield Figure(subject=OPERATOR, text="waits for its verdict; it belongs to no category, so no arm learns from it")


# --- 2 ---------------------------------------------------------------------------------------------------------------


def mix_up(_by: User) -> None:
    """Submit both sessions with the operator's log instead of their own."""
    wrong = _operators_log(Session.objects.get(agent__name=AGENT, external_id=operator_id()).ended_at)
    for each in BOTH:
        ended_at = earlier_today(each.before)
        metadata = intake.SubmittedSession(
            session_id=each.name,
            category=ARM,
            harness="claude-code",
            model=MODEL,
            title=each.task,
            started_at=ended_at - dt.timedelta(minutes=30),
            ended_at=ended_at,
        )
        journal = f"# {each.name}\n\n{each.task}.\n\nSubmitted PR #{each.pull_request}. Waiting for review.\n"
        facts = {"pull_requests": [f"https://example.test/contrib/pull/{each.pull_request}"]}
        _submit(metadata, wrong, journal, facts)


def _have_rewards(incident: Incident) -> bool:
    return all(incident.ledger.reward(each.name) for each in BOTH)


def _mixed_up(incident: Incident) -> Iterator[Figure]:
    yield from _rewards(incident, SUBMIT)
    refused = Evidence.objects.filter(session__in=incident.ledger.sessions.values(), problem=Reason.LOG_OVERWRITTEN)
    for detail in sorted(set(refused.values_list("detail", flat=True))):
        yield Figure(subject="Both logs", text=f"refused. {detail}")
    yield from _arm(incident, EXHAUST, SUBMIT)


# --- 3 ---------------------------------------------------------------------------------------------------------------


def _refused_again(incident: Incident) -> bool:
    since = JudgeAttempt.objects.filter(started_at__gte=incident.pressed_at[WATCH.name])
    return since.filter(outcome=AttemptOutcome.DEFERRED).exists()


def _watched(incident: Incident) -> Iterator[Figure]:
    yield Figure(subject="Judge", text="called once more, refused once more")
    yield from _rewards(incident, WATCH)
    alarms = Alarm.objects.filter(rule__in=WATCHED).exclude(resolved_at__lt=incident.pressed_at[WATCH.name])
    if (until := incident.end_of(WATCH)) is not None:
        alarms = alarms.filter(opened_at__lte=until)
    for rule in sorted(set(alarms.values_list("rule", flat=True))):
        yield Figure(subject="Alarm", text=title_of(rule))
    for name, session in incident.ledger.sessions.items():
        flags = Flag.objects.filter(session=session).order_by("rule").values_list("rule", flat=True)
        titles = "; ".join(title_of(rule) for rule in flags)
        yield Figure(subject="Flagged", text=f"{name}: {titles or 'by no rule'}")


# --- 4 and 5 ---------------------------------------------------------------------------------------------------------


def give_back(_by: User) -> None:
    """Let the simulated judge answer again."""
    script_simulator(mode=Mode.VERDICT, options={"score": VERDICT})


def _returned(_incident: Incident) -> Iterator[Figure]:
    yield Figure(subject="Judge", text="answers again; the site has not called it yet")


def _are_judged(incident: Incident) -> bool:
    entries = [incident.ledger.reward(each.name) for each in BOTH]
    return all(entry is not None and entry.source == Source.JUDGE for entry in entries)


def _judged(incident: Incident) -> Iterator[Figure]:
    yield from _changes(incident, RETURN, REPLACE)
    yield from _arm(incident, RETURN, REPLACE)


# --- 6 and 7 ---------------------------------------------------------------------------------------------------------


def correct(by: User) -> None:
    """Grade the first session as a person, who overrules the judge."""
    script_simulator(mode=Mode.VERDICT, options={})
    session = _first()
    if persons_grade(session) is None:
        why, claim = "The pull request was merged", f"march31-{session.pk}"
        answers.submit(session, by, answer=Answer.GRADE, value=CORRECTED, reason=why, claim=claim)


def _is_corrected(_incident: Incident) -> bool:
    return persons_grade(_first()) is not None


def _corrected(incident: Incident) -> Iterator[Figure]:
    yield from _changes(incident, REPLACE, CORRECT, FIRST)
    yield from _arm(incident, REPLACE, CORRECT)


def take_back(by: User) -> None:
    """Undo the person's grade of the first session."""
    answer = ReviewAnswer.objects.effective().filter(session=_first(), grade__isnull=False).order_by("-pk").first()
    if answer is not None:
        with suppress(AlreadyUndone):
            answers.undo(answer, by, "To check that the undo is exact")


def _is_undone(_incident: Incident) -> bool:
    return persons_grade(_first()) is None


def _undone(incident: Incident) -> Iterator[Figure]:
    yield from _changes(incident, CORRECT, UNDO, FIRST)
    yield from _arm(incident, CORRECT, UNDO)
    same = "exactly as before the correction" if incident.is_exact else "NOT as before the correction"
    yield Figure(subject="Posterior", text=f"{FIRST.name} counts {same}")


# --- what several steps need -----------------------------------------------------------------------------------------


def _first() -> Session:
    return Session.objects.get(agent__name=AGENT, external_id=FIRST.name)


def _submit(metadata: intake.SubmittedSession, transcript: bytes, journal: str, facts: object = None) -> None:
    """Submit a session as an upload would."""
    agent, _created = Agent.objects.get_or_create(name=AGENT)
    intake.submit(
        agent=agent,
        metadata=metadata,
        transcript=io.BytesIO(transcript),
        journal=io.BytesIO(journal.encode()),
        facts=None if facts is None else io.BytesIO(json.dumps(facts).encode()),
        speaker=Speaker(token=agent.tokens.first()),
    )


def _rewards(incident: Incident, step: StoryStep) -> Iterator[Figure]:
    for each in BOTH:
        yield Figure(
            subject=each.name, text=str(incident.ledger.reward(each.name, incident.end_of(step)) or "no reward")
        )


def _changes(incident: Incident, before: StoryStep, after: StoryStep, *which: MixedUpSession) -> Iterator[Figure]:
    for each in which or BOTH:
        was = incident.ledger.reward(each.name, incident.end_of(before))
        now = incident.ledger.reward(each.name, incident.end_of(after))
        yield Figure(subject=each.name, text=f"{was or 'no reward'} → {now or 'no reward'}")


def _arm(incident: Incident, before: StoryStep, after: StoryStep) -> Iterator[Figure]:
    was, now = (incident.ledger.belief(incident.end_of(step)) for step in (before, after))
    share = f"{was.of_100} → {now.of_100} of the next 100 sessions"
    yield Figure(subject=ARM, text=f"{thousandths(was.arm.mean)} → {thousandths(now.arm.mean)}, {share}")


EXHAUST = StoryStep(
    name="exhaust",
    title="Exhaust the quota",
    button="Exhaust the quota",
    means="The provider refuses every call from now on; the next session to be judged meets the refusal.",
    act=exhaust,
    is_over=_judge_refused,
    figures=_exhausted,
)
SUBMIT = StoryStep(
    name="submit",
    title="Submit two sessions with another’s log",
    button=f"Submit {FIRST.name} and {SECOND.name}",
    means=f"Both opened a pull request, but arrive with the log of {OPERATOR}, which had overwritten the shared file.",
    act=mix_up,
    is_over=_have_rewards,
    figures=_mixed_up,
)
WATCH = StoryStep(
    name="watch",
    title="Watch the rewards stay provisional",
    button="Ask the judge once more",
    means="One more call is refused. No grade is made of that, and the alarms say what is wrong.",
    act=probe_quota,
    is_over=_refused_again,
    figures=_watched,
)
RETURN = StoryStep(
    name="return",
    title="Let the quota return",
    button="Give the quota back",
    means="The provider answers again. The site finds out with its next call.",
    act=give_back,
    is_over=lambda _incident: True,
    figures=_returned,
)
REPLACE = StoryStep(
    name="replace",
    title="Let verdicts replace the provisional rewards",
    button="Probe now",
    means="One call is answered, then the others follow. Each verdict replaces a provisional reward.",
    act=probe_quota,
    is_over=_are_judged,
    figures=_judged,
)
CORRECT = StoryStep(
    name="correct",
    title="Correct one by hand",
    button=f"Correct {FIRST.name} to {number(CORRECTED)}",
    means="You know that the pull request was merged.",
    act=correct,
    is_over=_is_corrected,
    figures=_corrected,
)
UNDO = StoryStep(
    name="undo",
    title="Undo it",
    button="Undo the correction",
    means="The reward from before the correction counts again.",
    act=take_back,
    is_over=_is_undone,
    figures=_undone,
)
STEPS: Sequence[StoryStep] = (EXHAUST, SUBMIT, WATCH, RETURN, REPLACE, CORRECT, UNDO)
BY_NAME = {step.name: step for step in STEPS}
