"""How much of a rate limit is used, and how often is one refused? Our workers beside two that people would write.

A simulator with real token buckets, two worker processes with eight threads each, a backlog of 2,000 short sessions:
judged by our own path, by tasks that leave a 429 to the SDK's retries and queue again what failed, and by tasks that
leave it to Celery's autoretry with backoff and jitter. Each has a simulator, a broker and the limits to itself.

The steady state begins when the first burst is over, that is when the bucket of the tightest dimension is as low as it
gets, and ends when fewer sessions are left than there are threads. Used is what was served then ÷ what could be: limit
× time, and what the bucket held more at first than at last. Answered 429 is refusals ÷ calls then. Calls that gave no
verdict, over the whole run, are wasted.

    python benchmarks/quota.py [--quick | --smoke]
"""

import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.backlog import rivals, stand, work
from benchmarks.backlog.stand import CELERY, THREADS, WORKERS, Contender, Run, Stand
from benchmarks.backlog.window import Window, steady
from benchmarks.backlog.work import Size

FULL = Size(sessions=2000, rate=5, filled=1.0, reserved=0.2, latency=1.0, longest=700)
# Buckets that are nearly empty at first have their steady state at once.
QUICK = Size(sessions=64, rate=4, filled=0.1, reserved=0.0, latency=0.4, longest=12)
# Judged in this process, one after the other: there is no steady state, and no rival.
SMOKE = Size(sessions=3, rate=50, filled=1.0, reserved=0.0, latency=0.0, longest=5)
SIZES = {scratch.Size.FULL: FULL, scratch.Size.QUICK: QUICK, scratch.Size.SMOKE: SMOKE}
RIVALS = {
    "sdk": "the SDK's retries, then queued again",
    "celery": "Celery's autoretry, backoff and jitter",
}


def main() -> None:
    parser = scratch.parser(
        __doc__,
        quick="64 sessions against buckets that are nearly empty at first, ours beside the rivals",
        smoke="three sessions, without workers and rivals",
    )
    size = SIZES[parser.parse_args().size]
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        work.site(place)
        limits = work.backlog(place, size)
        if size is SMOKE:
            judge_here(limits)
            print(json.dumps({"used": None, "answered_429": None, "lost": lost()}))
            return
        # One after another, so that none takes the processor from another; a quick look has no time for that.
        with ThreadPoolExecutor(1) as beside:
            early = beside.submit(ours, place, size, limits) if size is QUICK else None
            windows = {name: rival(place, name, words, size, limits) for name, words in RIVALS.items()}
            windows["ours"] = early.result() if early else ours(place, size, limits)
        if size is QUICK:
            print("A quick look: windows of seconds, one processor for all of them. Figures come from the full run.")
        print(json.dumps(figures(windows, lost())))


# --- the runs --------------------------------------------------------------------------------------------------------


def judge_here(limits: Mapping[str, int]) -> None:
    from django.conf import settings

    from grading import judging
    from grading.simulator import Limits, Simulator

    allowed = Limits(**{name.replace("-", "_"): limit for name, limit in limits.items()})
    with Simulator(limits=allowed) as simulator:
        settings.ANTHROPIC_BASE_URL = simulator.url
        judging.pump()


def rival(place: Path, name: str, words: str, size: Size, limits: Mapping[str, int]) -> Window:
    def enqueue(held: Stand) -> None:
        rivals.app.conf.broker_url = held.broker.url
        with rivals.app.connection_for_write() as connection:
            for number in range(size.sessions):
                rivals.app.send_task(f"benchmarks.backlog.rivals.{name}", args=[str(number)], connection=connection)

    contender = Contender(name=name, app="benchmarks.backlog.rivals")
    with Stand(place / name) as held:
        run = compete(held, contender, size, limits, enqueue)
        return report(words, run, size, limits)


def ours(place: Path, size: Size, limits: Mapping[str, int]) -> Window:
    beat = [*CELERY, "-A", "gradingsite", "beat", "--pidfile=", f"--schedule={place / 'beat'}"]
    contender = Contender(name="ours", app="gradingsite", beside=[beat])
    with Stand(place / "ours") as held:
        run = compete(held, contender, size, limits, lambda _held: None)
        stand.wait(is_judged, 60)
        return report("ours", run, size, limits)


def compete(
    held: Stand, contender: Contender, size: Size, limits: Mapping[str, int], enqueue: Callable[[Stand], None]
) -> Run:
    options = [f"--{name}={limit}" for name, limit in limits.items()]
    url = held.simulator([*options, f"--latency={size.latency}", f"--filled={size.filled}"])
    enqueue(held)
    return stand.watch(url, held.workers(contender), sessions=size.sessions, seconds=size.longest)


def is_judged() -> bool:
    """Whether the last replies are applied."""
    from grading.models import JudgeJob

    return not JudgeJob.objects.open().exists()


def lost() -> int:
    """Sessions of ours that have no verdict."""
    from grading.models import Grade, Session

    judged = Grade.objects.filter(source="judge", status="scored").values("session")
    return Session.objects.exclude(pk__in=judged).count()


# --- the figures -----------------------------------------------------------------------------------------------------


def report(words: str, run: Run, size: Size, limits: Mapping[str, int]) -> Window:
    state = run.state
    seconds = {int(second): counts for second, counts in state["seconds"].items()}
    window = steady(seconds, limits, sessions=size.sessions, threads=WORKERS * THREADS, filled=size.filled)
    refused, done = sum(state["answered_429"].values()), min(state["served"], size.sessions)
    print(
        f"{words:40} {window.used:6.1%} of {window.tightest} used, {window.answered_429:6.1%} answered 429 "
        f"in seconds {window.start}-{window.end}; in all {state['calls']:,} calls, {refused:,} refused, "
        f"{refused + state['served'] - done:,} wasted, {done:,} done in {run.elapsed:.0f} s, "
        f"{1000 * run.cpu / max(done, 1):.0f} ms CPU each",
        flush=True,
    )
    return window


def figures(windows: Mapping[str, Window], lost_sessions: int) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, window in (("ours", windows["ours"]), *windows.items()):
        prefix = "" if name == "ours" else f"{name}_"
        found[f"{prefix}used"] = round(window.used, 4)
        found[f"{prefix}answered_429" if name == "ours" else f"{prefix}429"] = round(window.answered_429, 4)
    return {**found, "lost": lost_sessions}


if __name__ == "__main__":
    main()
