"""What starting costs stays small: nothing heavy is loaded before it is used, and one process runs the schedule."""

import subprocess
import sys

import pytest

from tests.processes import for_the_site, started, wait_for

# Tens of megabytes or a tenth of a second each.
HEAVY = {"anthropic", "celery", "scipy", "redis", "httpx2"}


def loaded(code: str) -> set[str]:
    """The packages that a new process has loaded after this code."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], env=for_the_site(), check=True, capture_output=True, text=True)
    return set(done.stdout.split())


def test_the_whole_site_is_loaded_without_what_only_some_work_needs():
    code = "import django; django.setup(); from django.urls import get_resolver; get_resolver().url_patterns"
    assert loaded(code) & HEAVY == set()


def test_rules_that_have_little_to_compare_load_no_scipy():
    code = """if True:
        import datetime as dt
        import django
        django.setup()
        from bandit.core.table import RewardRow
        from grading.monitoring import apart, change_points, operation, picking, sameness
        one = RewardRow(arm="code", source="judge", agent="alice", day=dt.date(2026, 3, 31), n=1, s=1, q=1)
        assert not apart.find_outliers([one])
        assert not change_points.find_changes([0.5, 0.6], limit=5.0)
        assert not operation.is_missing_too_often(0, 3)
        assert picking.find_picking([]) is None
        assert sameness.find_levelled([("code", 0.5)], [("code", 0.6)]) is None
    """
    assert "scipy" not in loaded(code)


def test_the_supervisor_loads_nothing_of_the_site():
    assert loaded("import gradingsite.supervisor") & {"django", "celery", "grading", "numpy"} == set()


@pytest.mark.worker
def test_a_worker_with_the_scheduler_does_the_periodic_jobs(start_worker):
    from grading.models import RuleRun

    start_worker("--with-scheduler", SWEEP_SECONDS="0.2")
    wait_for(RuleRun.objects.exists)


@pytest.mark.worker
@pytest.mark.django_db(transaction=True)
def test_a_worker_whose_scheduler_falls_ends_to_be_started_again(redis_url):
    code = """if True:
        from celery.beat import Scheduler
        from gradingsite.celery import app

        class Falling(Scheduler):
            def tick(self, **options):
                raise RuntimeError("it falls")

        app.conf.beat_scheduler = Falling
        app.worker_main(["-q", "worker", "--with-scheduler", "--without-mingle", "-n", "falling@tests"])
    """
    with started([sys.executable, "-c", code], env=for_the_site(), stderr=subprocess.PIPE, text=True) as process:
        said = process.communicate(timeout=90)[1]
    assert "the scheduler failed; this worker ends" in said
    assert process.returncode == 0
