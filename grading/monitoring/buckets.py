"""Whether what the bandits and the lists read is what the ledger and the rewards say."""

import datetime as dt
from collections.abc import Iterable

from bandit.audit import audit, doubled
from grading.monitoring.rule import Finding, Rule, Severity
from grading.reward import state


class BucketsDiffer(Rule):
    """A33. Buckets are the ledger's sums; whatever else wrote to them taught what nobody graded."""

    id = "A33"
    title = "Bandit state differs from the ledger"
    means = (
        "Opens when the nightly audit finds a bucket of rewards that isn’t exactly the sum of its ledger entries, "
        "or a session that has rewarded two arms of a bandit that chooses one."
    )
    todo = (
        "Find out what wrote to the buckets (a restored copy, a script, a manual edit of the database), then run "
        "`manage.py rebuild --repair`: it rebuilds them from the ledger and leaves each session its latest reward."
    )
    every = dt.timedelta(days=1)
    nightly = True
    told = 5

    def look(self, now: dt.datetime) -> Iterable[Finding]:  # noqa: ARG002 - the ledger has no clock
        differences, twice = audit(), doubled()
        wrong = [*differences, *twice]
        if wrong:
            counts = []
            if differences:
                counts.append(f"{len(differences):,} buckets differ from the ledger.")
            if twice:
                counts.append(f"Sessions that count more than once: {len(twice):,}.")
            more = len(wrong) - self.told
            others = f"; and {more:,} more" if more > 0 else ""
            yield Finding(detail=f"{' '.join(counts)} {'; '.join(map(str, wrong[: self.told]))}{others}. {self.todo}")


class StatesDiffer(Rule):
    """A49. What lists, filters and counts read of a session is written where its reward moves, and nowhere else."""

    id = "A49"
    title = "Lists don’t match the rewards"
    means = (
        "Opens when the nightly audit finds that the row behind a session’s entry in lists and counts disagrees "
        "with its rewards, verdicts and flags. It checks every session that changed within two days and one in a "
        "hundred of the rest."
    )
    todo = (
        "Find out what else wrote to the database (a script, a manual edit), then run "
        "`manage.py rebuild --repair`, which repairs the rows. Rewards and bandits don’t depend on them."
    )
    severity = Severity.ADVISORY
    every = dt.timedelta(days=1)
    nightly = True
    told = 5

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        wrong = state.audit(now)
        if wrong:
            more = len(wrong) - self.told
            others = f"; and {more:,} more" if more > 0 else ""
            first = "; ".join(map(str, wrong[: self.told]))
            yield Finding(detail=f"{len(wrong):,} sessions have a wrong state: {first}{others}. {self.todo}")
