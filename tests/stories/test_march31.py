"""The incident of 31 March on a demo site: by its buttons in a browser, step by step, and on its page of the docs."""

import datetime as dt
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from bandit.models import Bucket, LedgerEntry
from bandit.reading import posterior_of
from grading.intake.erasing import erase
from grading.judging import sweeper
from grading.models import Grade, Repository, Session, SessionLanding
from grading.models.outcomes import LandingState
from grading.models.review import Answer
from grading.review import answers
from grading.story import history, march31, repository
from grading.story.march31 import BOTH
from grading.vocabulary import Reason
from tests.browser.watch import Watch, signed_in
from tests.casts import story
from tests.casts.page import flat
from tests.casts.story import NAMES, states, work

ROOT = Path(__file__).resolve().parent.parent.parent
SLOW = 300_000  # milliseconds


@pytest.fixture
def demo(sim, settings):
    """A demo site with three days of history, as far as the settings go; its judge."""
    story.start(settings)
    return sim


@pytest.fixture
def lived(demo, db, monkeypatch):
    story.live_history(demo, monkeypatch)
    return demo


def ledger_of(name: str) -> LedgerEntry:
    """What is live for one of the two sessions."""
    session = Session.objects.get(external_id=name)
    return LedgerEntry.objects.filter(bandit__name="category", observation=session.observation).live().get()


def mean() -> float:
    return posterior_of("category", dt.datetime.now(dt.UTC)).arms["cross-repo"].mean


def three(value: float) -> str:
    return f"{value:.3f}"[1:]


def buckets() -> list[tuple]:
    rows = Bucket.objects.exclude(n=0).order_by("arm", "grader", "effective_day")
    return [*rows.values_list("bandit", "arm", "grader", "effective_day", "n", "s", "q")]


def with_floors(site) -> float:
    """The mean where both sessions had been judged .10: lived through, and undone."""
    with site.rolled_back():
        for each in BOTH:
            session = Session.objects.get(external_id=each.name)
            site.on(session).judged(0.1).settle()
        return mean()


def test_the_history_has_decisions_and_landed_work(lived):
    sessions = Session.objects.filter(agent__name__in=history.TITLES)
    chosen = sessions.exclude(selection=None).select_related("selection__executed_arm", "category")
    assert chosen.count() > sessions.count() / 2
    assert {(each.selection.arm.name, each.selection.executed_arm.name) for each in chosen} == {
        (each.category.name, each.category.name) for each in chosen
    }
    states = SessionLanding.objects.values_list("state", "landed", "open")
    assert set(states) == {(LandingState.LANDED, 1, 0), (LandingState.OPEN, 0, 1)}
    for landing in SessionLanding.objects.select_related("session__verdict"):
        has_landed = landing.state == LandingState.LANDED
        assert has_landed == (landing.session.verdict.value >= history.MERGED_FROM)


def test_the_dashboard_offers_the_story_until_its_first_step(lived, operator):
    assert "Start the story" in flat(operator.get("/"))
    operator.post("/story/exhaust/")
    assert "Start the story" not in flat(operator.get("/"))


def test_a_demo_on_a_machine_without_git_has_no_repository(demo, db, monkeypatch, tmp_path, settings):
    settings.STATE_DIR = tmp_path / "state"
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "sh").symlink_to(shutil.which("sh"))
    monkeypatch.setenv("PATH", str(programs))
    story.live_history(demo, monkeypatch)
    assert not repository.location().exists()
    assert not Repository.objects.exists()
    assert not SessionLanding.objects.exists()


# --- by its buttons --------------------------------------------------------------------------------------------------


def shown(page, step: str) -> str:
    """What a step says of itself, once it is done; without loading the page anew."""
    page.wait_for_selector(f'[data-step="{step}"][data-state="done"]', timeout=SLOW)
    return " ".join(page.inner_text(f'[data-step="{step}"]').split())


def belief(page, of: str) -> str:
    return page.inner_text(f'[data-belief="{of}"]').split()[0]


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.worker
def test_the_story_by_its_buttons(
    site,
    chromium,
    live_site,
    lived,
    settings,
    start_worker,
):
    settings.FEED_SECONDS = 0.2
    start_worker(
        "--with-scheduler", SWEEP_SECONDS="0.5", ANTHROPIC_API_KEY=settings.ANTHROPIC_API_KEY,
        ANTHROPIC_BASE_URL=lived.url, JUDGE_SIMULATED="yes", DEMO="yes",
    )  # fmt: skip
    context = signed_in(chromium, live_site, site.person("olga", "operator"))
    page = context.new_page()
    page.set_default_timeout(SLOW)
    watch = Watch(page, live_site)
    page.goto("/story/")
    before = three(mean())
    assert belief(page, "here") == belief(page, "floors") == before
    assert page.locator("ol.story button").count() == 1

    def press(step: str) -> str:
        page.click(f'[data-step="{step}"] button')
        return shown(page, step)

    assert "quota exhausted" in press("exhaust")
    assert Grade.objects.filter(session__external_id="5e0c", reason=Reason.QUOTA_EXHAUSTED).exists()

    said = press("submit")
    for each in BOTH:
        row = ledger_of(each.name)
        assert (row.grader.source, row.provisional) == ("trajectory", True)
        fallback = f"{row.value_micro / 1e6:.2f}"[1:]
        assert f"{each.name} {fallback} by trajectory, provisional, weight .3" in said
    assert "The log belongs to session 5e0c" in said
    assert f"cross-repo {before} → {three(mean())}" in said
    assert belief(page, "here") == three(mean())
    assert belief(page, "floors") == three(with_floors(site))
    assert belief(page, "before") == before

    said = press("watch")
    assert "refused once more" in said
    assert "Alarm The judge is out" in said
    assert "71a3: No real grade for a pull request or commit; Two sessions share the same evidence" in said
    assert not LedgerEntry.objects.filter(value_micro=100_000).exists()
    assert "has not called it yet" in press("return")
    provisional = mean()

    said = press("replace")
    for each in BOTH:
        row = ledger_of(each.name)
        assert (row.grader.source, row.provisional, row.value_micro) == ("judge", False, 760_000)
        assert f"{each.name} {fallback} by trajectory, provisional, weight .3 → .76 by judge, final, weight 1" in said
    assert f"cross-repo {three(provisional)} → {three(mean())}" in said
    assert belief(page, "here") == three(mean())
    judged, held = mean(), buckets()

    said = press("correct")
    assert (ledger_of("71a3").grader.source, ledger_of("71a3").value_micro) == ("human", 800_000)
    assert "71a3 .76 by judge, final, weight 1 → .80 by human, final, weight 1" in said
    assert f"cross-repo {three(judged)} → {three(mean())}" in said

    said = press("undo")
    assert (ledger_of("71a3").grader.source, ledger_of("71a3").value_micro) == ("judge", 760_000)
    assert f"cross-repo {three(mean())}" in said.replace("→ ", "cross-repo ")
    assert "exactly as before the correction" in said
    assert (mean(), buckets()) == (judged, held)
    assert belief(page, "floors") == three(with_floors(site))
    assert watch.looked() == []
    context.close()


# --- the rules of the panel ------------------------------------------------------------------------------------------


@pytest.fixture
def operator(site, client):
    client.force_login(site.person("olga", "operator"))
    return client


def press(client, step: str):
    return client.post(f"/story/{step}/", follow=True)


def rows() -> tuple[int, int, int]:
    return LedgerEntry.objects.count(), Grade.objects.count(), Session.objects.count()


def live_step(client, step: str) -> None:
    """Press the button, wait until the step is done, and press once more: twice is once."""
    press(client, step)
    work(client, step)
    before = rows()
    press(client, step)
    assert rows() == before, step


def start_again(client) -> None:
    client.post("/story/again/")
    assert not Session.objects.filter(external_id__in=[each.name for each in BOTH]).exists()


def test_steps_go_in_order_twice_is_once_and_it_can_start_again(site, lived, operator):
    untouched = buckets()
    assert "“Exhaust the quota” must be done first" in flat(press(operator, "submit"))
    assert states(operator) == ["now", *["later"] * 6]
    for step in NAMES[:4]:
        live_step(operator, step)
    # A verdict that comes while a page is made is none of its news.
    press(operator, "replace")
    sweeper.sweep()
    page = march31.Incident(dt.datetime.now(dt.UTC))
    belief_then = page.ledger.belief()
    live_step(operator, "replace")
    assert (page.done, page.ledger.belief()) == (4, belief_then)
    for step in NAMES[5:]:
        live_step(operator, step)
    assert states(operator) == ["done"] * 7
    assert ledger_of("71a3").value_micro == 760_000
    # A grade of a session that the story has nothing to do with doesn't make its undo look wrong.
    other = Session.objects.filter(category__name="cross-repo").exclude(external_id__in=["71a3", "a517"]).first()
    with site.rolled_back():
        answers.submit(other, User.objects.get(username="olga"), answer=Answer.GRADE, value=0.3, reason="It failed")
        assert "71a3 counts exactly as before the correction" in flat(operator.get("/story/"))
    start_again(operator)
    assert lived.mode == "verdict"
    for step in NAMES[:2]:
        live_step(operator, step)
    assert states(operator) == ["done", "done", "now", *["later"] * 4]
    start_again(operator)
    own = [row for row in buckets() if row[0] == untouched[0][0]]
    assert own == [row for row in untouched if row[0] == untouched[0][0]]


@pytest.mark.usefixtures("lived")
def test_erased_sessions_of_the_story_are_submitted_again(operator):
    """After somebody erased them the page opens, and the next step is to submit them."""
    for step in NAMES[:3]:
        live_step(operator, step)
    erase(Session.objects.filter(external_id=BOTH[0].name), who="root", why="a test")
    assert states(operator) == ["done", "now", *["later"] * 5]
    live_step(operator, "submit")
    assert states(operator) == ["done", "done", "now", *["later"] * 4]


def test_a_simulator_that_is_gone_changes_nothing(lived, operator, settings):
    settings.ANTHROPIC_BASE_URL = "http://127.0.0.1:1"
    assert "doesn’t answer" in flat(press(operator, "exhaust"))
    assert states(operator)[0] == "now"


# --- who, and where --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "wrong",
    [{"DEMO": False}, {"SIMULATED": False}, {"ANTHROPIC_BASE_URL": ""}, {"ANTHROPIC_BASE_URL": "https://x.test"}],
)
def test_on_any_other_site_there_is_no_story(demo, client, settings, wrong, db):
    client.force_login(User.objects.create_superuser("root"))
    assert client.get("/story/").status_code == 200
    for name, value in wrong.items():
        setattr(settings, name, value)
    assert client.get("/story/").status_code == 404
    assert {client.post(f"/story/{name}/").status_code for name in (*NAMES, "again")} == {404}
    assert not Session.objects.exists()
    assert demo.calls == []


def test_a_viewer_sees_it_and_presses_nothing(site, demo, client, db):
    client.force_login(site.person("vera", "viewer"))
    page = flat(client.get("/story/"))
    assert "Only operators can do this step." in page
    assert "/story/exhaust/" not in page
    assert {client.post(f"/story/{name}/").status_code for name in (*NAMES, "again")} == {403}


def test_a_button_needs_a_token_against_forgery_and_an_unknown_step_is_none(site, demo, db):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(site.person("olga", "operator"))
    assert strict.post("/story/exhaust/").status_code == 403
    lax = Client()
    lax.force_login(User.objects.get(username="olga"))
    assert lax.post("/story/no-such/").status_code == 404
    assert lax.get("/story/exhaust/").status_code == 405


# --- the history -----------------------------------------------------------------------------------------------------


@pytest.mark.pure
def test_the_history_is_the_same_every_time_and_its_second_week_is_worse():
    today = dt.datetime(2026, 3, 31, 15, tzinfo=dt.UTC)
    plan = [*history.plan(today)]
    assert plan == [*history.plan(today)]
    assert len({past.name for past in plan}) == len(plan) == 70
    assert {past.ended_at.date() for past in plan} == {today.date() - dt.timedelta(days=n) for n in range(1, 15)}
    first, second = plan[:35], plan[35:]
    infra = [statistics.mean(past.verdict for past in week if past.category == "infra") for week in (first, second)]
    assert infra[1] < infra[0] - 0.15
    assert [past.is_hampered for past in first] == [False] * 35


# --- on its page of the docs -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_page_says_what_happens(tmp_path):
    """Where this fails: `python docs/march31.py`."""
    environment = {**os.environ, "GRADINGSITE_STATE": str(tmp_path / "ours"), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "docs/march31.py", "--check"]
    today = None
    while today != dt.datetime.now(dt.UTC).date():  # at midnight, once more
        today = dt.datetime.now(dt.UTC).date()
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.django_db
def test_nothing_of_the_story_runs_on_a_site_that_is_no_demo():
    from django.core.management import CommandError, call_command

    with pytest.raises(CommandError, match="This is not a demo site"):
        call_command("load_history")
    assert march31.is_demo() is False
    assert not Session.objects.exists()
