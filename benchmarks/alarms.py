"""How often do the rules raise a false alarm on a healthy site, and how soon does each one find its fault?

A simulated site: 8 categories, 2 harnesses, 2 agents, 50 sessions a day. Of a category's sessions, 10–30 % leave
nothing to grade, one in ten of those because infrastructure ended them. Of the others, 85 % are judged. Judge and
grade the same quality, each with an error and on its own scale; one session in six was only partly done, which limits
its score to .6. On a healthy site, verdicts take minutes, and up to a day when the judge is overloaded, once a month;
one in 1,000 is given up; one session in 1,000 repeats an earlier one; 1.5 % lack a field; one log in 1,000 has a call
that can't be read. These rates are assumptions. Everything is drawn from a seed.

The site's own rules (`grading.monitoring`) run every day, A14 twice, on rows as their queries would give them. A false
alarm is one that opens, counted for each subject; "open" is the share of days on which a rule has an open alarm. Then,
on a new site, each rule's fault begins after 100 days, and the days until its alarm are counted. Alarms that were open
before don't count, and a fault that is never found counts as MAX_DELAY_DAYS.

    python benchmarks/alarms.py [--quick | --smoke]
"""

import json
import sys
from collections import Counter
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size

MAX_DELAY_DAYS = 28
# Healthy sites of a year (its days); runs of each fault, and the day on which it begins.
SIZES = {Size.FULL: (10, 365, 12, 100), Size.QUICK: (1, 365, 3, 100), Size.SMOKE: (1, 14, 1, 40)}


def main() -> None:
    parser = scratch.parser(__doc__, quick="one healthy year, 3 runs of each fault", smoke="two weeks, one run")
    sites, days, runs, first_day = SIZES[parser.parse_args().size]
    with TemporaryDirectory() as state:
        scratch.code(state)
        print(json.dumps(measure_false_alarms(sites, days) | measure_delays(runs, first_day)))


def measure_false_alarms(sites: int, days: int) -> dict[str, float]:
    from benchmarks.watched.rules import RULES, count_wide_disagreements, find
    from benchmarks.watched.site import SESSIONS_PER_DAY, WatchedSite

    opened, open_days, flagged = Counter[str](), Counter[str](), 0
    for seed in range(sites):
        site = WatchedSite(seed)
        alarms: dict[str, set[str]] = {rule: set() for rule in RULES}
        for _ in range(days):
            site.live_a_day()
            for rule in RULES:
                now_open = set(find(site, rule, alarms[rule]))
                opened[rule] += len(now_open - alarms[rule])
                open_days[rule] += bool(now_open)
                alarms[rule] = now_open
        flagged += count_wide_disagreements(site.sessions_of_last(days))
    per_year = {rule: opened[rule] * 365 / (sites * days) for rule in RULES}
    shares = {rule: open_days[rule] / (sites * days) for rule in RULES}
    print(f"{sites} healthy sites of {days} days")
    rows = [[rule, f"{per_year[rule]:.2f}", f"{shares[rule]:.3f}"] for rule in RULES]
    print(scratch.table(["rule", "false alarms a year", "open"], rows))
    weekly = flagged / (sites * days / 7)
    print(f"Without calibration, A3 flags {weekly:.1f} sessions of {SESSIONS_PER_DAY * 7} a week for a person.")
    return {
        "false_per_year": round(max(per_year.values()), 2),
        "worst_open_share": round(max(shares.values()), 3),
    }


def measure_delays(runs: int, first_day: int) -> dict[str, float]:
    from benchmarks.watched.faults import FAULTS

    rows, means = [], []
    for rule, title, fault in FAULTS:
        delays, mix_shifts = [], 0
        for seed in range(1000, 1000 + runs):
            days, detail = measure_delay(seed, rule, fault, first_day)
            delays.append(days)
            mix_shifts += "A mix shift" in detail
        means.append(fmean(delays))
        note = f" ({mix_shifts} of {runs} say mix shift)" if fault is None else ""
        rows.append([rule, f"{means[-1]:.1f}", max(delays), title + note])
    print(f"\n{runs} runs of each fault\n{scratch.table(['rule', 'mean days', 'most days', 'fault'], rows)}")
    return {"worst_delay_days": round(max(means), 1)}


def measure_delay(seed: int, rule: str, fault: object, first_day: int) -> tuple[int, str]:
    """Days from the fault to the first alarm that was not open before, and its text. None is a shift of the mix."""
    from benchmarks.watched.rules import find
    from benchmarks.watched.site import WatchedSite

    site = WatchedSite(seed, fault, first_day, shifts_mix=fault is None)
    for _ in range(first_day):
        site.live_a_day()
    open_before = set(find(site, rule, set()))
    alarms = open_before
    for day in range(1, MAX_DELAY_DAYS + 1):
        site.live_a_day()
        findings = find(site, rule, alarms)
        alarms = set(findings)
        if new := sorted(alarms - open_before):
            return day, " ".join(findings[about] for about in new)
    return MAX_DELAY_DAYS, ""


if __name__ == "__main__":
    main()
