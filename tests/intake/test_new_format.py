"""A log format that is added: its first log, and the places that list the harnesses."""

import json
from pathlib import Path

import pytest

from bandit.models import Arm
from grading import formats
from grading.agent.submit_session import HOOK_SETTINGS, LOG_FOLDERS
from grading.formats.gptme.parser import Gptme
from grading.formats.registry import HARNESSES
from grading.vocabulary import Source, Status
from tests.casts import logs

pytestmark = pytest.mark.django_db


class Newcomer(Gptme):
    """Messages as gptme writes them, in an envelope."""

    format, title = "newcomer", "Newcomer"

    @staticmethod
    def score(record):
        return 1.0 if "newcomer" in record else 0.0

    def feed(self, record):
        return super().feed(record["newcomer"])


def log() -> bytes:
    call = '@shell(c1): {"command": "git commit -m fix"}'
    result = "Ran command: `git commit -m fix`\n\n```stdout\n[main 1a2b3c4] fix\n```\n\nReturn code: 0"
    turns = logs.gptme(("user", "x" * 6_000), ("assistant", call), ("system", result), ("assistant", "Done."))
    return b"".join(json.dumps({"newcomer": json.loads(line)}).encode() + b"\n" for line in turns.splitlines())


def test_log_of_a_new_format_is_no_error(site, monkeypatch):
    """The site reads it, although the harness is no arm of a bandit yet."""
    monkeypatch.setitem(formats.PARSERS, "newcomer", Newcomer)
    receipt = site.upload("s", log())
    assert [(problem.code, problem.is_error) for problem in receipt.problems] == [("unknown_harness", False)]
    assert receipt.session.grades.filter(source=Source.TRAJECTORY, status=Status.SCORED).exists()


def test_harnesses_are_the_same_everywhere():
    """The hook, which can import nothing of the site, and the arms of a new site know each harness with a hook."""
    hooked = sorted(harness.format for harness in HARNESSES if harness.hook)
    assert sorted(HOOK_SETTINGS) == sorted(LOG_FOLDERS) == hooked
    assert set(hooked) <= set(Arm.objects.filter(bandit__name="harness").values_list("name", flat=True))


def test_first_session_of_a_known_harness_makes_its_arm(site):
    """The arm is on probation, and the receipt has no problem."""
    log = Path(__file__).parents[1] / "formats" / "copilot_cli" / "logs" / "10fb4666-56f0-4352-90fc-715caf95b418.jsonl"
    receipt = site.upload("10fb4666-56f0-4352-90fc-715caf95b418", log.read_bytes())
    assert receipt.problems == ()
    arm = receipt.session.harness
    assert (arm.name, arm.title, arm.probation) == ("copilot-cli", "Copilot CLI", True)


def test_submitted_harness_that_is_known_makes_its_arm(site):
    receipt = site.upload("s", None, harness="Gemini_CLI")
    assert receipt.problems == ()
    assert receipt.session.harness.name == "gemini-cli"
