"""The demo and its story as a test lives through them, without a browser and without a worker's process."""

from django.utils import timezone

from grading.judging import sweeper, worker
from grading.story import history
from grading.story.march31 import STEPS
from tests.processes import wait_for

NAMES = [step.name for step in STEPS]


def start(settings) -> None:
    """Make the site a demo."""
    settings.DEMO = settings.SIMULATED = True


def live_history(sim, monkeypatch) -> None:
    """Three days of the demo's history: fifteen sessions, one without a log, and an outage on the second day."""
    for name, value in {"DAYS": 3, "OUTAGE": 2, "UNLOGGED": 3}.items():
        monkeypatch.setattr(history, name, value)
    assert len([*history.load(timezone.now(), sim)]) == 15


def states(client) -> list[str]:
    return [each.state for each in client.get("/story/").context["steps"]]


def work(client, step: str) -> None:
    """What a worker does, until the step is done."""

    def is_done() -> bool:
        sweeper.sweep()
        worker.pump()
        return states(client)[NAMES.index(step)] == "done"

    wait_for(is_done, 300)
