"""Whether what the bandits read is what the ledger says."""

import datetime as dt
from collections.abc import Iterable

from bandit.audit import audit
from grading.monitoring.rule import Finding, Rule


class BucketsDiffer(Rule):
    """A33. Buckets are the ledger's sums; whatever else wrote to them taught what nobody graded."""

    id = "A33"
    title = "The bandits read what the ledger does not say"
    means = "Raises where, at night, a bucket of rewards is not exactly the sum of its ledger entries."
    todo = (
        "Find out what wrote to the buckets (a restored copy, a script, a hand in the database), then run "
        "`manage.py replay --write`: it puts the ledger's sums in their place."
    )
    every = dt.timedelta(days=1)
    nightly = True
    told = 5

    def look(self, now: dt.datetime) -> Iterable[Finding]:  # noqa: ARG002 - the ledger has no clock
        differences = audit()
        if differences:
            said = "; ".join(map(str, differences[: self.told]))
            more = len(differences) - self.told
            others = f"; and {more:,} more" if more > 0 else ""
            yield Finding(detail=f"{len(differences):,} buckets differ from the ledger. {said}{others}. {self.todo}")
