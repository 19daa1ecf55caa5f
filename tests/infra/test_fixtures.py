"""The fixtures keep their word: real servers, and a database that is as new for every test."""

import os
import signal
import subprocess
import sys

import pytest

from bandit.models import Arm
from tests import cast
from tests.processes import for_the_site


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("turn", ["first", "second"])
def test_a_transactional_test_finds_the_seeds_and_nobody_elses_history(turn):
    from grading.core.vocabulary import Source
    from grading.models import Grade

    assert Arm.objects.filter(name="code").exists()
    assert not Grade.objects.exists()
    cast.grade(cast.session(), Source.JUDGE, 0.5)


@pytest.mark.django_db(transaction=True)
def test_another_process_sees_the_test_database():
    cast.agent("seen from outside")
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
