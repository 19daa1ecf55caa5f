"""From one button to a revert of a revert: a local repository, twelve imported sessions, and what pages show."""

import datetime as dt
import json

import pytest
from django.utils import timezone

from bandit.models import LedgerEntry
from grading import tasks
from grading.intake.importing import ImportRecord, import_log
from grading.models import Session, Settlement
from tests.browser.watch import Watch, signed_in
from tests.outcomes.repos import Repo
from tests.site import Site, plain_names

pytestmark = pytest.mark.browser
REMOTE = "https://forge.example/ada/engine.git"
# Without the direction of the verdict, which is hidden until a person has graded.
CONTRADICTION = "its work was followed up after the verdict"


@pytest.fixture
def repo(tmp_path, settings):
    """A repository whose commits are twenty days old, when outcomes count as settled."""
    settings.STATE_DIR = tmp_path / "state"
    return Repo(tmp_path / "engine", epoch=int((timezone.now() - dt.timedelta(days=20)).timestamp()))


def codex_log(name: str, repo: Repo, commit: str, subject: str) -> bytes:
    """A Codex rollout in which the agent makes a commit in the repository."""
    at = dt.datetime.fromtimestamp(repo.epoch + 60 * repo.minute, dt.UTC).isoformat()
    meta = {"id": name, "cwd": str(repo.folder), "cli_version": "0.120.0", "git": {"repository_url": REMOTE}}
    command = {"command": ["bash", "-lc", f"git commit -am '{subject}'"], "workdir": str(repo.folder)}
    printed = f"[work {commit[:7]}] {subject}\n 1 file changed, 9 insertions(+)\n"
    output = {"output": printed, "metadata": {"exit_code": 0}}
    task = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"{subject}. {'x' * 6_000}"}]}
    call = {"type": "function_call", "name": "shell", "call_id": "c0", "arguments": json.dumps(command)}
    result = {"type": "function_call_output", "call_id": "c0", "output": json.dumps(output)}
    lines = [{"type": "session_meta", "payload": meta}]
    lines += [{"type": "response_item", "payload": item} for item in (task, call, result)]
    return "".join(json.dumps({"timestamp": at, **line}) + "\n" for line in lines).encode()


def imported(repo: Repo, number: int, verdict: float) -> Session:
    """A session that made one commit on a branch of its own, imported from its log and judged."""
    name, subject = next(plain_names), f"Part {number}"
    repo.branch(f"b{number}")
    log = repo.folder.parent / f"rollout-{name}.jsonl"
    log.write_bytes(codex_log(name, repo, repo.commit(subject), subject))
    record = ImportRecord(Site().agent(), [log.parent], by="olga", category=None)
    outcome = import_log(log, agent=Site().agent())
    record.add(outcome)
    record.end()
    return Site().on(Session.objects.get(pk=outcome.session)).judged(verdict).settle()


def test_from_one_button_to_a_revert_of_a_revert(chromium, live_site, site, repo):
    first = imported(repo, 0, 0.2)
    page = signed_in(chromium, live_site, site.person("olga", "operator")).new_page()
    watch = Watch(page, live_site)

    page.goto("/settings/repositories/")
    page.click("text=Follow all local repositories (1)")
    assert str(repo.folder) in page.inner_text("#local")
    page.click("text=Follow them")
    page.wait_for_selector("text=1 repository is followed.")
    tasks.follow_commits()
    assert became(page, first) == "0 of 1 commit on main"

    sessions = [first, *(imported(repo, number, 0.9 if number < 8 else 0.2) for number in range(1, 12))]
    squashes = [repo.squash(f"b{number}", f"Add part {number} (#{number})") for number in range(1, 8)]
    rewards = [list(model.objects.order_by("pk").values()) for model in (Settlement, LedgerEntry)]
    look_again(page)
    assert became(page, sessions[1]) == "1 of 1 commit on main"
    assert listed(page) == {"landed": 7, "not landed": 5}
    assert calibration(page) == ["7", "5"]
    assert CONTRADICTION not in queue(page)

    revert = repo.revert(squashes[0])
    look_again(page)
    assert became(page, sessions[1]) == "0 of 1 commit on main, 1 reverted"
    assert listed(page) == {"landed": 6, "not landed": 5, "reverted": 1}
    assert calibration(page) == ["6", "6"]
    assert CONTRADICTION in queue(page)

    repo.revert(revert)
    look_again(page)
    assert became(page, sessions[1]) == "1 of 1 commit on main"
    assert listed(page) == {"landed": 7, "not landed": 5}
    assert calibration(page) == ["7", "5"]
    assert CONTRADICTION not in queue(page)

    assert rewards == [list(model.objects.order_by("pk").values()) for model in (Settlement, LedgerEntry)]
    assert watch.heard == []
    page.context.close()


def look_again(page) -> None:
    """Press Check now, and run the round of the worker."""
    page.goto("/settings/repositories/")
    page.click("text=Check now")
    page.wait_for_selector("text=looked up within a minute")
    tasks.follow_commits()


def became(page, session: Session) -> str:
    """The last step of the line on the session's page."""
    page.goto(session.get_absolute_url())
    return page.inner_text(".became .step:last-child .label")


def listed(page) -> dict[str, int]:
    """How many sessions have each state in the column of the list."""
    page.goto("/sessions/")
    heads = page.locator("#list thead th").all_inner_texts()
    place = heads.index("Landed") + 1
    cells = page.locator(f"#list tbody td:nth-child({place})").all_inner_texts()
    return {state: cells.count(state) for state in ("landed", "not landed", "reverted") if state in cells}


def calibration(page) -> list[str]:
    """The judged sessions whose work landed, and the others."""
    page.goto("/calibration/")
    card = page.locator("details", has=page.locator("h2", has_text="Grades and landed work"))
    card.locator("summary").click()
    row = card.locator("tr", has_text="Judge")
    return row.locator("td").all_inner_texts()[1:3]


def queue(page) -> str:
    """The review queue's first session, or that there is none."""
    page.goto("/review/")
    return page.inner_text("main")
