"""The fixtures keep their word: real servers, and a database that is as new for every test."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import hypothesis
import pytest

from bandit.models import Arm
from tests.examples import EXPLORE, USUAL
from tests.processes import for_the_site
from tests.site import Site


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", ["first", "second"])
def test_a_transactional_test_finds_the_seeds_and_nobody_elses_history(turn):
    from grading.models import Grade
    from grading.vocabulary import Source

    assert Arm.objects.filter(name="code").exists()
    assert not Grade.objects.exists()
    Site().session().graded(Source.JUDGE, 0.5)


@pytest.mark.django_db(transaction=True)
def test_another_process_sees_the_test_database():
    Site().agent("seen from outside")
    code = (
        "import django; django.setup(); from grading.models import Agent; "
        "print(Agent.objects.filter(name='seen from outside').count())"
    )
    assert subprocess.check_output([sys.executable, "-c", code], env=for_the_site(), text=True).strip() == "1"


@pytest.mark.worker
def test_the_worker_is_a_process_that_runs_tasks_and_can_be_killed(worker):
    from gradingsite.celery import app

    assert "celery.ping" not in app.control.inspect(timeout=2).registered().popitem()[1]
    os.kill(worker.pid, signal.SIGKILL)
    assert worker.wait(5) == -signal.SIGKILL
    assert not app.control.ping(timeout=0.3)


@pytest.mark.browser
def test_the_page_reaches_the_site(page):
    assert page.goto("/no-such-page").status == 404


def test_every_run_makes_the_same_examples_and_a_test_takes_its_share_of_the_profiles():
    usual, explore = (hypothesis.settings.get_profile(name) for name in (USUAL, EXPLORE))
    assert usual.derandomize
    assert not explore.derandomize
    assert explore.max_examples == 10 * usual.max_examples
    own = [path.name for path in Path("tests").rglob("*.py") if re.search(r"max_examples=\w", path.read_text())]
    assert own == ["examples.py"], "use @examples(30) of tests/examples.py: make explore multiplies it"


def test_exploring_makes_other_examples_by_its_seed_and_more_of_them(tmp_path):
    """The real options on a file of its own, run thrice."""
    (tmp_path / "test_seen.py").write_text(
        "from hypothesis import given, strategies as st\n"
        "from tests.examples import examples\n\n"
        "@examples(5)\n@given(st.integers())\n"
        "def test_seen(number):\n    open('seen', 'a').write(f'{number}\\n')\n"
    )

    def seen(*options):
        (tmp_path / "seen").unlink(missing_ok=True)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.examples", "-p", "no:django", *options]
        environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        subprocess.run([*command, "test_seen.py"], cwd=tmp_path, env=environment, check=True, stdout=subprocess.DEVNULL)
        return (tmp_path / "seen").read_text().split()

    explore = "--hypothesis-profile=explore"
    first = seen(explore, "--hypothesis-seed=1")
    assert first == seen(explore, "--hypothesis-seed=1") != seen(explore, "--hypothesis-seed=2")
    usual = seen("--hypothesis-profile=usual")
    assert usual == seen("--hypothesis-profile=usual")
    assert (len(first), len(usual)) == (50, 5)
