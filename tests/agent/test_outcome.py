"""CI reports what became of a session's work with the hook's file."""

import subprocess
import sys

import pytest

from grading.models import ApiToken
from grading.models.agents import TokenScope
from tests.agent.test_hook import HOOK, free_port


@pytest.fixture
def session(site, transactional_db):
    return site.session(external_id="run/7 a").settle()


@pytest.fixture
def report(tmp_path, session, live_server):
    """Runs the file as CI does; its exit status and line."""

    def run(*arguments, scope=TokenScope.OUTCOMES, url=""):
        _, secret = ApiToken.objects.issue(session.agent, scope=scope)
        environment = {"HOME": str(tmp_path), "GRADINGSITE_URL": url or live_server.url, "GRADINGSITE_TOKEN": secret}
        command = [sys.executable, str(HOOK), *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert not done.stderr
        return done.returncode, done.stdout.strip()

    return run


def test_an_outcome_is_reported(report, session):
    url = "https://ci.example.test/9"
    assert report("--outcome", "ci=pass", "--session", "run/7 a", "--url", url, "--detail", "12 jobs") == (
        0,
        "gradingsite: ci pass reported",
    )
    assert report("--outcome", "coverage=0.8", "--session", str(session.pk))[0] == 0
    records = session.outcomes.order_by("pk").values_list("kind", "result", "number", "url", "detail")
    assert list(records) == [("ci", "pass", None, url, "12 jobs"), ("coverage", "number", 0.8, "", "")]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--outcome", "ci"], "expected --outcome KIND=VALUE"),
        (["--outcome", "ci=pass"], "expected --outcome KIND=VALUE"),
        (["--outcome", "ci=pass", "--session", "run/7 a", "--sha", "1"], "expected --outcome KIND=VALUE"),
        (["--outcome", "ci=passed", "--session", "run/7 a"], "not accepted, 422"),
        (["--outcome", "ci=pass", "--session", "nobody"], "not accepted, 404"),
    ],
)
def test_what_was_wrong_is_said(report, session, arguments, words):
    status, line = report(*arguments)
    assert status == 1
    assert words in line
    assert not session.outcomes.exists()


def test_the_hooks_token_and_a_site_that_is_away(report, session):
    arguments = ("--outcome", "ci=pass", "--session", "run/7 a")
    status, line = report(*arguments, scope=TokenScope.HOOK)
    assert (status, "403" in line) == (1, True)
    status, line = report(*arguments, url=f"http://127.0.0.1:{free_port()}")
    assert (status, "does not answer" in line) == (1, True)
