"""`python -m benchmarks.selecting.ledger STATE ROWS REPEATS [URL]`: replay and corrections on one database, as JSON."""

import json
import statistics
import sys
from datetime import timedelta
from random import Random

from benchmarks import scratch
from benchmarks.selecting import site
from benchmarks.selecting.clock import clocked

ARMS = 8


def main(state: str, rows: str, repeats: str, url: str = "") -> None:
    scratch.site(state, database=url)
    from bandit.audit import replay

    bandit, names = site.bandit_with(ARMS)
    site.fill(bandit, int(rows))
    written = clocked(lambda: replay(write=True))
    replays = [clocked(replay) for _ in range(3)]
    is_equal = site.by_hand() == site.stored()
    corrections = correct(bandit.name, names, int(rows), int(repeats))
    figures = {
        "replay_s": statistics.median(replays) / 1000,
        "written_s": written / 1000,
        "correction_ms": statistics.median(corrections),
        "correction_worst_ms": max(corrections),
        "bit_equal": is_equal and not replay().differences,
    }
    print(json.dumps(figures))


def correct(bandit: str, names: list[str], rows: int, repeats: int) -> list[float]:
    """Milliseconds of corrections of sessions all over the ledger: another value, by a person, committed."""
    dice, times = Random(2), []
    for _ in range(repeats):
        number = dice.randrange(rows // 2)
        times.append(clocked(lambda number=number: reward(bandit, names, number, dice.random())))
    return times


def reward(bandit: str, names: list[str], number: int, value: float) -> None:
    """Give the session of this number another reward, by the ledger's one door."""
    from django.db import transaction

    from bandit.ledger import Credit, GraderKey, set_reward

    with transaction.atomic():
        change = set_reward(
            bandit=bandit,
            observation=f"session-{number}",
            credits={names[number // 3 % len(names)]: Credit(value=value, grader=GraderKey(source="human"))},
            effective_day=site.FIRST_DAY + timedelta(days=number % site.DAYS),
            settlement="bench",
            policy_version="bench",
        )
    assert len(change.reversed) == len(change.applied) == 1, "a correction reverses one reward and applies one"  # noqa: S101


if __name__ == "__main__":
    main(*sys.argv[1:])
