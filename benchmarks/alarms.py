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

The other rules compare facts of the site itself. For each of them the benchmark prints the fault of the drill, the
attack or the incident that needs it; a rule without any is listed in the figures.

    python benchmarks/alarms.py [--quick | --smoke]
"""

import json
import sys
from collections import Counter
from pathlib import Path
from statistics import fmean, median
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
        figures = measure_false_alarms(sites, days) | measure_delays(runs, first_day) | list_evidence()
        print(json.dumps(figures))


def list_evidence() -> dict[str, object]:
    from benchmarks.watched.evidence import find_evidence
    from benchmarks.watched.rules import RULES

    evidence = find_evidence(RULES)
    rows = [[rule, text or "none"] for rule, text in evidence.items() if rule not in RULES]
    print("\n" + scratch.table(["rule", "why it is needed"], rows))
    missing = [rule for rule, text in evidence.items() if not text]
    return {"rules_without_evidence": len(missing), "without": missing}


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
    per_30_days = {rule: opened[rule] * 30 / (sites * days) for rule in RULES}
    shares = {rule: open_days[rule] / (sites * days) for rule in RULES}
    print(f"{sites} healthy sites of {days} days")
    rows = [[rule, f"{per_30_days[rule]:.3f}", f"{shares[rule]:.3f}"] for rule in RULES]
    print(scratch.table(["rule", "false alarms in 30 days", "open"], rows))
    weekly = flagged / (sites * days / 7)
    print(f"Without calibration, A3 flags {weekly:.1f} sessions of {SESSIONS_PER_DAY * 7} a week for a person.")
    return {
        "worst_false_30d": round(max(per_30_days.values()), 3),
        "worst_open_share": round(max(shares.values()), 3),
    }


def measure_delays(runs: int, first_day: int) -> dict[str, float]:
    from benchmarks.watched.faults import FAULTS

    rows, medians = [], []
    for rule, title, fault in FAULTS:
        delays, mix_shifts = [], 0
        for seed in range(1000, 1000 + runs):
            days, detail = measure_delay(seed, rule, fault, first_day)
            delays.append(days)
            mix_shifts += "mix of work shifted" in detail
        medians.append(median(delays))
        note = f" ({mix_shifts} of {runs} say mix shift)" if fault is None else ""
        rows.append([rule, f"{medians[-1]:g}", f"{fmean(delays):.1f}", max(delays), title + note])
    columns = ["rule", "median days", "mean", "most", "fault"]
    print(f"\n{runs} runs of each fault\n{scratch.table(columns, rows)}")
    return {"worst_median_delay_days": max(medians)}


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
