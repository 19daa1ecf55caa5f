"""The first steps, shown on the dashboard until all are done. Whether a step is done is computed from the data, so it
makes no difference how or by whom it was done.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.urls import reverse

from bandit.models import LedgerEntry
from grading.agent import samples
from grading.judging import judges
from grading.models import ApiToken, JudgeKey, JudgeKeyTest, Session
from grading.models.judge_keys import HINT_LENGTH
from grading.models.sessions import observation_of
from grading.plain import counted
from grading.screens.judge_key.view import TEST_WORDS
from grading.screens.quota.judge_state import first_quota
from grading.story import march31
from grading.templatetags.gradingsite_tags import fine_usd, stamp
from grading.vocabulary import Reason, Source

ENOUGH_GRADES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveLine:
    """What a step waits for and since when; `session` is the session that it waited for, once it has arrived."""

    text: str
    aside: str = ""
    session: Session | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step. `aside` is a short note beside its title; `url` and `button` link to the page where it is done."""

    title: str
    done: bool
    text: str
    aside: str = ""
    url: str = ""
    button: str = ""
    live: LiveLine | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Checklist:
    """The steps in their order; `now` is the number of the first that isn't done."""

    steps: tuple[Step, ...]

    @property
    def done(self) -> int:
        return sum(step.done for step in self.steps)

    @property
    def now(self) -> int:
        return next((number for number, step in enumerate(self.steps, 1) if not step.done), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesTried:
    """How many samples people graded. `next_url` links to the next; "" if no samples are offered."""

    count: int = 0
    next_url: str = ""

    @property
    def text(self) -> str:
        return f"tried on {counted(self.count, 'sample')}" if self.count else ""


def checklist(user: User) -> Checklist | None:
    """The steps with their state; None once all are done, if this user may not do them, or on a demo, which has its
    own story.
    """
    if not user.has_perm("grading.add_apitoken") or march31.is_demo():
        return None
    graded = graded_by_people(50)
    tried = SamplesTried() if graded else samples_tried()
    result = Checklist(
        steps=(
            judges_key(),
            an_agent(),
            categories(),
            three_grades(len(graded), tried),
            see_bandit_move(graded, tried),
        )
    )
    return result if result.now else None


# --- the steps -------------------------------------------------------------------------------------------------------


def judges_key() -> Step:
    access, judge = JudgeKey.objects.access(), judges.first()
    url = reverse("admin:judge_key")
    if judge is None:
        return Step(
            title="Set the judge’s key",
            done=False,
            text=access.trouble
            or (
                "You enter and test the key on the next page. It is stored encrypted. Without a judge, only a "
                "person’s grade is final."
            ),
            aside="about 1 minute",
            url=url,
            button="Set the key",
        )
    hint, quota = judge.api_key[-HINT_LENGTH:], first_quota()
    has_answered = quota is not None and quota.has_answered
    where = "comes from the environment" if access.from_environment else "is stored encrypted"
    text, aside = f"The key ends in …{hint} and {where}.", ""
    test = JudgeKeyTest.objects.filter(hint=hint, canary=None).first()
    if test is not None and test.finished_at is not None:
        aside = f"tested {stamp(test.started_at)}"
    if not has_answered:
        failed = "" if test is None or not test.reason else f" {TEST_WORDS.get(Reason(test.reason), test.detail)}"
        text = f"{text} The judge has not answered yet.{failed}"
    elif test is not None and test.answered:
        price = "" if test.cost_usd is None else f" for {fine_usd(test.cost_usd)}"
        text = f"{test.model} answered in {test.seconds or 0:.1f} s{price}. {text}"
    button = "Change" if has_answered else "Test the key"
    return Step(title="Set the judge’s key", done=has_answered, text=text, aside=aside, url=url, button=button)


def an_agent() -> Step:
    first = Session.objects.yours().order_by("pk").first()
    url = reverse("admin:connect")
    if first is not None:
        arrived = LiveLine(text=first.title or first.short_id, aside=stamp(first.received_at), session=first)
        return Step(
            title="Connect an agent",
            done=True,
            text="The first session is here.",
            live=arrived,
            url=url,
            button="Another",
        )
    token = ApiToken.objects.filter(agent__is_sample=False, revoked_at=None).order_by("created_at").first()
    since = "" if token is None else f"since {stamp(token.created_at)}, when {token.agent} got a token; "
    return Step(
        title="Connect an agent",
        done=False,
        text="Run two commands on the machine where the agent runs. The hook never delays the agent, and keeps "
        "sessions that it can’t send.",
        aside="about 1 minute",
        live=LiveLine(text="Waiting for the first session\u00a0…", aside=f"{since}this line updates automatically"),
        url=url,
        button="Connect an agent",
    )


def categories() -> Step:
    done = Session.objects.yours().filter(category__isnull=False).exists()
    return Step(
        title="Decide how sessions get a category",
        done=done,
        text=(
            "Rules on repository, path, branch or words set the category. The category bandit learns only from "
            "sessions with a category."
        ),
        aside="" if done else "after the first session",
        url=reverse("admin:categories"),
        button="Categories",
    )


def three_grades(graded: int, tried: SamplesTried) -> Step:
    count = min(graded, ENOUGH_GRADES)
    url, button = reverse("admin:review"), "Review"
    if tried.next_url:
        url = tried.next_url
        button = "Try another sample" if tried.count else "Try it on a sample"
    return Step(
        title="Grade three sessions",
        done=count >= ENOUGH_GRADES,
        text="Press one key and give a reason for each sample. Your grade is final, even if the judge grades later.",
        aside=f"{count} of {ENOUGH_GRADES}" if count else tried.text or "about 2 minutes",
        url=url,
        button=button,
    )


def see_bandit_move(graded: Sequence[int], tried: SamplesTried) -> Step:
    """The step is done once a bandit has learned from one of the `graded` sessions, which are primary keys."""
    observations = [observation_of(each) for each in graded]
    learned = LedgerEntry.objects.filter(observation__in=observations, grader__source=Source.HUMAN)
    done = bool(observations) and learned.exists()
    return Step(
        title="See the bandit move",
        done=done,
        text="Before you save a grade, you see what it changes. You can undo it exactly.",
        aside="" if done else tried.text or "right after your first grade",
        url=reverse("admin:bandits"),
        button="Bandits",
    )


def samples_tried() -> SamplesTried:
    """How many samples people graded, and where to try the next; nothing once the site has a session of its own."""
    first = Session.objects.samples().filter(external_id=samples.FIRST).first()
    if first is None or Session.objects.yours().exists():
        return SamplesTried()
    count = Session.objects.samples().filter(reward_source=Source.HUMAN).count()
    next_url = f"{reverse('admin:review')}?samples=only"
    if not count:
        next_url = f"{reverse('admin:review_session', args=[first.pk])}?samples=only"
    return SamplesTried(count=count, next_url=next_url)


def graded_by_people(most: int) -> list[int]:
    """The primary keys of the latest sessions whose reward a person decided, without samples; at most `most`."""
    decided = Session.objects.yours().filter(reward_source=Source.HUMAN).order_by("-ended_at", "-pk")
    return list(decided.values_list("pk", flat=True)[:most])
