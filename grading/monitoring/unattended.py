"""Whether a calibration waits for a person (A40)."""

import datetime as dt
from collections.abc import Iterable

from bandit.models import Bandit
from grading.monitoring.rule import Finding, Rule, Severity
from grading.reward import calibrating
from grading.reward.calibrating import MAX_AUTOMATIC_MOVE
from grading.reward.explain import number
from grading.reward.judged_pairs import read_judgements


class Unattended(Rule):
    """A40. A calibration that is fitted and never put in force helps nobody."""

    id = "A40"
    title = "A calibration needs a person’s decision"
    means = (
        "Opens when, at night, a bandit’s new calibration would move an arm by more than "
        f"{number(MAX_AUTOMATIC_MOVE)} from where it was when somebody last looked, or when a bandit with rewards has "
        "never had one."
    )
    todo = (
        "On the calibration page, open the bandit and see what the new version would change; then put it in force "
        "or turn calibration off."
    )
    page = "admin:calibration"
    severity = Severity.ADVISORY
    every = dt.timedelta(days=1)
    nightly = True

    def look(self, now: dt.datetime) -> Iterable[Finding]:
        judgements = read_judgements(now)
        for bandit in Bandit.objects.that_learn():
            proposed = calibrating.proposal(bandit.name, now, judgements)
            if not proposed.waits:
                continue
            if proposed.last is None:
                detail = (
                    f"{bandit}: it has rewards but has never been calibrated, so every grade is taken at face value. "
                    "Look at what version 1 would move, then put it in force."
                )
            else:
                arm, move = proposed.largest
                detail = (
                    f"{bandit}: version {proposed.version}, from {proposed.pairs:,} judged sessions, moves {arm} by "
                    f"{number(abs(move))} since somebody last looked at it: over {number(MAX_AUTOMATIC_MOVE)}, so it "
                    f"waits for a person. Until then, version {proposed.last.version} holds."
                )
            yield Finding(about=f"{bandit.name}: waits", detail=detail)
