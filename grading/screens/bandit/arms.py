"""The arms as the page shows them: what is believed, what it is compared with, and what it rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.safestring import SafeString

from bandit.core.agents import AgentCaps
from bandit.core.moves import ArmMove
from bandit.core.posterior import ArmPosterior, Outlook
from bandit.core.table import ABSTAINED
from bandit.models import Arm
from grading.reward.calibrating import UNJUDGED
from grading.screens import charts
from grading.screens.bandit import breaks
from grading.screens.bandit.breaks import ArmBreak
from grading.screens.bandit.record import Record
from grading.screens.bandit.travel import Belief
from grading.screens.calibration.card import describe_fallbacks
from grading.templatetags.gradingsite_tags import mean3


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What the arms are compared with: another outlook, drawn as dashed lines of the class `css`.

    `heading` names it in a table's head, `words` say what moves and why.
    """

    outlook: Outlook
    moves: Mapping[str, ArmMove]
    css: str
    heading: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRow:
    """One arm on the page: `half_width` is half the central 90 % interval; `pending` counts verdicts still to come.

    `unconfirmed_weight` is what its `unconfirmed` sessions count as, those whose grades no judge, person or artifact
    stands behind. `stability` describes how its level moves, "" for an arm with few rewards. `capped` says where the
    cap on agents acts.
    """

    arm: Arm
    posterior: ArmPosterior
    ridge: SafeString
    half_width: float
    share: float
    proof: SafeString
    graded: float
    unconfirmed: int
    unconfirmed_weight: float
    pending: int
    record: Record
    ledger: str
    move: ArmMove | None = None
    capped: Sequence[str] = ()
    broke: ArmBreak | None = None
    stability: str = ""
    is_tried: bool = False

    @property
    def by_source(self) -> list[float]:
        """Pseudo-observations, in the order of the legend; what abstentions are read as at the end."""
        found = {each.source: each.pseudo for each in self.posterior.evidence}
        return [found.get(source, 0.0) for source in (*charts.STACK[:-1], ABSTAINED)]

    @property
    def shared(self) -> str:
        """What the arm starts from by its parts; empty where it shares nothing."""
        prior = self.posterior.shared
        if prior is None:
            return ""
        parts = " and ".join(part for part in prior.parts if part)
        return f"shares what is known about {parts}: {mean3(prior.mean)}, counted as {prior.strength:.1f} observations"

    @property
    def fallbacks(self) -> list[str]:
        """How its fallbacks and abstentions are read, a sentence per source."""
        return describe_fallbacks(self.posterior.evidence)


def arm_rows(
    belief: Belief,
    arms: Mapping[str, Arm],
    records: Mapping[str, Record],
    pending: Mapping[str, int],
    beside: Beside | None,
) -> list[ArmRow]:
    """The arms, the most chosen first and retired ones last; those merged into others are left out."""
    shown = {name: arm for name, arm in belief.outlook.arms.items() if arms[name].merged_into_id is None}
    if beside is None:
        drawn = charts.ridges(_betas(shown))
    else:
        # The other curves of the arms that are seen to move.
        others = {name: beside.outlook.arms[name] for name in shown if beside.moves[name].mean_moves}
        drawn = charts.ridges(_betas(shown), _betas(others), beside.css)
    weights = {name: {each.source: each.pseudo for each in arm.evidence} for name, arm in shown.items()}
    full = max((sum(weights[name].values()) + pending.get(name, 0) for name in shown), default=1.0)
    broke, stability = breaks.of_arms(belief, arms), breaks.stability(belief)
    capped = caps_in_words(belief.outlook.posterior.caps)
    rows = []
    for name, arm in shown.items():
        graded = sum(weights[name].values())
        unconfirmed = sum(n for source, n in weights[name].items() if source in UNJUDGED)
        row = ArmRow(
            arm=arms[name],
            posterior=arm,
            ridge=drawn[name],
            half_width=(arm.high - arm.low) / 2,
            share=belief.outlook.share_of_next_100(name),
            proof=charts.proof(weights[name], pending.get(name, 0), full),
            graded=graded,
            unconfirmed=sum(each.n for each in arm.evidence if each.source in UNJUDGED),
            unconfirmed_weight=unconfirmed,
            pending=pending.get(name, 0),
            record=records[name],
            ledger=f"{reverse('admin:bandit_ledgerentry_changelist')}?arm__id__exact={arms[name].pk}",
            move=None if beside is None else beside.moves[name],
            is_tried=belief.is_tried(arms[name]),
            capped=capped.get(name, ()),
            broke=broke.get(name),
            stability=stability.get(name, ""),
        )
        rows.append(row)
    return sorted(rows, key=lambda row: (row.arm.retired_at is not None, -row.share, row.arm.name))


def caps_in_words(caps: AgentCaps) -> dict[str, list[str]]:
    """What the cap on agents does, a sentence for each arm and agent, by arm."""
    found: dict[str, list[str]] = {}
    for (arm, agent, is_abstention), days, n, counted in sorted(caps.by_group()):
        if is_abstention or not days:
            continue
        when = f"on {days[0]:%-d %b}" if len(days) == 1 else f"on {len(days)} days"
        found.setdefault(arm, []).append(f"{n} sessions of {agent} {when} count as {counted}: the cap on agents")
    return found


def _betas(arms: Mapping[str, ArmPosterior]) -> dict[str, charts.Beta]:
    return {name: charts.Beta(alpha=arm.alpha, beta=arm.beta) for name, arm in arms.items()}
