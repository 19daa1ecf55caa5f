"""How often do the rules raise a false alarm on a site where all is well, and how soon does each find its fault?

A simulated site: 8 categories, 2 harnesses, 2 agents, 50 sessions a day; 10–30 % of a category's sessions leave nothing
to grade, one in ten of those because infrastructure ended them; of the others 85 % are judged. Judge and trajectory see
the same quality, each with an error and on a scale of its own; one session in six came only so far, which holds its
score at .6. What goes wrong on a site where all is well: verdicts take minutes, and up to a day when the judge is
overloaded, once a month; one in 1,000 is given up; one session in 1,000 comes with what had come before; 1.5 % lack a
field; one log in 1,000 has a call that cannot be read. These rates are assumptions. Everything is drawn by a seed.

The site's own rules (`grading.monitoring`) look every day, A14 twice, at rows as their queries would give them. A false
alarm is one that opens, of each thing apart; `open` is the share of days on which a rule has any open. Then, in a new
site, each rule's fault begins after 100 days, and the days from there to its alarm are counted, as the mean of the
runs; what had been open before does not count, and a fault that is never found counts as PATIENCE days.

    python benchmarks/alarms.py [--quick | --smoke]
"""

import json
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks import scratch
from benchmarks.scratch import Size

PATIENCE = 28
# Healthy sites of a year (its days); runs of each fault, and the day on which it begins.
SIZES = {Size.FULL: (10, 365, 12, 100), Size.QUICK: (1, 365, 3, 100), Size.SMOKE: (1, 14, 1, 40)}


def healthy(seed: int, days: int) -> tuple[dict[str, tuple[int, int]], int]:
    """By rule, where all is well: alarms that opened, and days with one open; and how many sessions A3 flags."""
    from benchmarks.watched.rules import RULES, looked, wide
    from benchmarks.watched.site import Site

    site, held = Site(seed), {rule: set() for rule in RULES}
    opened, open_days = Counter(), Counter()
    for _ in range(days):
        site.live()
        for rule in RULES:
            now = set(looked(site, rule, held[rule]))
            opened[rule] += len(now - held[rule])
            open_days[rule] += bool(now)
            held[rule] = now
    return {rule: (opened[rule], open_days[rule]) for rule in RULES}, wide(site.last(days))


def delay(seed: int, number: int, since: int) -> tuple[int, str]:
    """Days from that fault of FAULTS to the first alarm that was not open before, and what that says."""
    from benchmarks.watched.faults import FAULTS
    from benchmarks.watched.rules import looked
    from benchmarks.watched.site import Site

    rule, _words, fault = FAULTS[number]
    site = Site(seed, fault, since, mix=fault is None)
    for _ in range(since):
        site.live()
    before = set(looked(site, rule, set()))
    held = before
    for day in range(1, PATIENCE + 1):
        site.live()
        found = looked(site, rule, held)
        held = set(found)
        if held - before:
            return day, " ".join(found[about] for about in sorted(held - before))
    return PATIENCE, ""


def main() -> None:
    parser = scratch.parser(__doc__, quick="one healthy year, 3 runs of each fault", smoke="two weeks, one run")
    size = parser.parse_args().size
    with TemporaryDirectory() as state:
        scratch.code(state)
        print(json.dumps(measure(*SIZES[size])))


def measure(sites: int, days: int, runs: int, since: int) -> dict[str, float]:
    """Healthy sites of so many days, runs of each fault from that day on; prints a table of each."""
    from benchmarks.watched.faults import FAULTS
    from benchmarks.watched.rules import RULES
    from benchmarks.watched.site import A_DAY

    found = [healthy(seed, days) for seed in range(sites)]
    false = {rule: sum(each[rule][0] for each, _wide in found) * 365 / (sites * days) for rule in RULES}
    shares = {rule: sum(each[rule][1] for each, _wide in found) / (sites * days) for rule in RULES}
    print(f"{sites} healthy sites of {days} days")
    print("rule  false alarms a year   open")
    for rule in RULES:
        print(f"{rule:4}  {false[rule]:19.2f}  {shares[rule]:5.3f}")
    flagged = sum(wide for _rules, wide in found) / (sites * days / 7)
    print(f"A3 flags {flagged:.1f} sessions of {A_DAY * 7} a week for a person, without a map to the judge's scale")
    print(f"\n{runs} runs of each fault\nrule  days: mean, slowest   fault")
    delays = []
    for number, (rule, words, fault) in enumerate(FAULTS):
        took = [delay(1000 + seed, number, since) for seed in range(runs)]
        delays.append(float(np.mean([each for each, _said in took])))
        mixed = sum("A mix shift" in said for _day, said in took)
        more = f"  ({mixed} of {runs} say mix shift)" if fault is None else ""
        print(f"{rule:4}  {delays[-1]:10.1f}, {max(each for each, _said in took):7d}   {words}{more}")
    return {
        "false_per_year": round(max(false.values()), 2),
        "worst_open_share": round(max(shares.values()), 3),
        "worst_delay_days": round(max(delays), 1),
    }


if __name__ == "__main__":
    main()
