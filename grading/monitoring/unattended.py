"""Whether what fallbacks are read by is looked after: a calibration that waits, and one that nothing new speaks for."""

import datetime as dt
from collections.abc import Iterable

from django.db.models import Sum
from django.utils import timezone

from bandit import versions
from bandit.core.calibration import STALE_AFTER
from bandit.models import Bandit, Bucket
from grading.monitoring.rule import Finding, Rule, Severity
from grading.reward import one_scale
from grading.reward.explain import number
from grading.reward.one_scale import ScaleProposal

DAYS = STALE_AFTER.days


class Unattended(Rule):
    """A40. What is fitted and never put in force helps nobody; what nothing new speaks for may no longer hold."""

    id = "A40"
    title = "A calibration needs a person’s decision"
    means = (
        "Opens when, at night, a bandit’s new calibration would move an arm by more than "
        f"{number(one_scale.MAX_AUTOMATIC_MOVE)} from where it was when somebody last looked, or when a bandit with "
        f"rewards has never had one. Also when a calibration is in use but no judged session has been added for {DAYS} "
        "days; fallback grades then count half."
    )
    todo = (
        "On the calibration page, open the bandit and see what the new version would change; then put it in force "
        "or turn calibration off. If no new pairs come in, find out why no session with a transcript or journal "
        "is being judged."
    )
    page = "admin:calibration"
    severity = Severity.ADVISORY
    every = dt.timedelta(days=1)
    nightly = True

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        judged = one_scale.read_judgements(now)
        for bandit in Bandit.objects.that_learn():
            proposed = one_scale.proposal(bandit.name, now, judged)
            if proposed.waits:
                arm, move = proposed.largest
                detail = (
                    f"{bandit}: it has rewards but has never been calibrated, so every source is taken at face value. "
                    "Look at what version 1 would move, then put it in force."
                )
                if proposed.last is not None:
                    detail = (
                        f"{bandit}: version {proposed.version}, from {proposed.pairs:,} judged sessions, moves {arm} "
                        f"by {number(abs(move))} since somebody last looked at it: over "
                        f"{number(one_scale.MAX_AUTOMATIC_MOVE)}, so it waits for a person. Until then, version "
                        f"{proposed.last.version} holds."
                    )
                yield Finding(about=f"{bandit.name}: waits", detail=detail)
            stale = _stale(proposed, now)
            if stale:
                yield Finding(about=f"{bandit.name}: old pairs", detail=stale)


def _stale(proposed: ScaleProposal, now: dt.datetime) -> str:
    """What is wrong where the calibration in force rests on old pairs, and nothing newer is there."""
    scale, today = versions.scale_of(proposed.last), timezone.localdate(now)
    if proposed.last is None or scale is None or scale.latest is None or not scale.is_stale(today):
        return ""
    if proposed.scale.latest is not None and not proposed.scale.is_stale(today):
        return ""
    lately = Bucket.objects.filter(bandit=proposed.bandit, effective_day__gt=today - STALE_AFTER)
    read = lately.filter(grader__source__in=scale.sources).aggregate(n=Sum("n"))["n"] or 0
    if not read:
        return ""
    return (
        f"{proposed.bandit}: the newest of {scale.n:,} judged sessions behind version "
        f"{proposed.last.version} is of {scale.latest:%-d %b %Y}. No new one came for {DAYS} days, while it read "
        f"{int(read):,} session{'s' * (read != 1)}: each weighs half of what it did until verdicts come again."
    )
