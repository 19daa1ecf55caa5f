"""People review: whom the queue hands them, what they say, and what that says of the machines."""

from collections.abc import Iterable

from bandit.core.recalibration import MachineHumanPair, fit
from bandit.core.rectify import Stratum
from benchmarks.simulation.sessions import Session
from benchmarks.simulation.site import Site
from benchmarks.simulation.world import ARMS, SLICE
from grading.vocabulary import Source

# What a person misses the truth by: a good review reads the evidence; a careless one starts from the number shown,
# goes three tenths of the way, and is off by as much as a guess.
GOOD, CARELESS, ANCHOR = 0.05, 0.25, 0.7


def review(site: Site) -> list[MachineHumanPair]:
    """A week's reviews: of the slice, flagged ones first as the queue has them, then the newest. What they compare."""
    waiting = [session for session in site.sessions if session.facts.in_slice and not session.reviewed]
    waiting.sort(key=lambda session: (not session.is_flagged, -session.facts.day))
    compared = [_reviewed(site, session) for session in waiting[: site.regime.reviews]]
    return [pair for pair in compared if pair is not None]


def offsets(pairs: Iterable[MachineHumanPair]) -> dict[Stratum, float]:
    """What the site would put in force: every arm with every source and stratum that was looked at."""
    pairs = list(pairs)
    kinds = {(pair.source, pair.stratum) for pair in pairs}
    return {each.key: each.offset for each in fit(pairs, {(arm, *kind) for arm in ARMS for kind in kinds})}


def _reviewed(site: Site, session: Session) -> MachineHumanPair | None:
    """A person's grade outranks the machine's; None where no machine had given a reward."""
    machine, facts = session.credit, session.facts
    off = facts.human * (GOOD if site.regime.careful else CARELESS)
    start = ANCHOR if machine is not None and not site.regime.careful else 0.0
    shown = 0.0 if machine is None else machine.value
    human = min(max(start * shown + (1 - start) * facts.quality + off, 0.0), 1.0)
    session.add(Source.HUMAN, human)
    session.reviewed = True
    site.settle(session)
    if machine is None:
        return None
    return MachineHumanPair(
        arm=ARMS[facts.arm],
        source=machine.source,
        stratum=machine.stratum,
        machine=machine.value,
        human=human,
        probability=SLICE,
    )
