"""The rows of the page's table of arms: each arm's posterior, its evidence, and a comparison with another outlook."""

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
from grading.screens.bandit import breaks
from grading.screens.bandit.breaks import ArmBreak
from grading.screens.bandit.record import Record
from grading.screens.bandit.travel import BanditSnapshot
from grading.screens.calibration.card import describe_fallbacks
from grading.screens.charts import bars, posteriors
from grading.screens.charts.bars import STACK
from grading.screens.charts.posteriors import Beta
from grading.templatetags.gradingsite_tags import mean3


@dataclass(frozen=True, kw_only=True)
class AlternativeOutlook:
    """Another outlook that the arms are compared with, drawn as dashed lines of the CSS class `css`.

    `moves` is by arm. `heading` names the outlook in a table's head, `sentence` says what moves and why.
    """

    outlook: Outlook
    moves: Mapping[str, ArmMove]
    css: str
    heading: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRow:
    """One arm. `half_width` is half of the central 90 % interval, `share` the expected number of the next hundred.

    `graded` is the sum of the pseudo-observations, and `pending` the number of verdicts still to come. `unconfirmed`
    sessions, which count as `unconfirmed_weight`, have grades behind which there is no judge, person or artifact.
    `stability` describes how the arm's level moves, "" for an arm with few rewards. `capped` has a sentence for each
    agent whose sessions are capped. `ledger` is the address of the arm's ledger entries.
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
        """Pseudo-observations by source, in the order of the legend; those of abstentions at the end."""
        pseudo = {each.source: each.pseudo for each in self.posterior.evidence}
        return [pseudo.get(source, 0.0) for source in (*STACK[:-1], ABSTAINED)]

    @property
    def shared(self) -> str:
        """The prior that the arm shares with others by its parts, as text; empty if it shares none."""
        prior = self.posterior.shared
        if prior is None:
            return ""
        parts = " and ".join(part for part in prior.parts if part)
        return (
            f"starts from what is known about {parts}: {mean3(prior.mean)}, weighted as {prior.strength:.1f} "
            "observations"
        )

    @property
    def has_faded(self) -> bool:
        """Whether the arm's sessions count for less than half their number, for no other reason than their age."""
        return not self.unconfirmed and not self.capped and self.graded < self.record.n / 2

    @property
    def fallbacks(self) -> list[str]:
        """How its fallbacks and abstentions are read, a sentence for each source."""
        return describe_fallbacks(self.posterior.evidence)


def arm_rows(
    snapshot: BanditSnapshot,
    arms: Mapping[str, Arm],
    records: Mapping[str, Record],
    pending: Mapping[str, int],
    alternative: AlternativeOutlook | None,
) -> list[ArmRow]:
    """The rows of the arms that were not merged, the most chosen first and retired ones last."""
    arm_posteriors = {name: arm for name, arm in snapshot.outlook.arms.items() if arms[name].merged_into_id is None}
    if alternative is None:
        ridges = posteriors.ridges(_betas(arm_posteriors))
    else:
        # Only the arms whose displayed mean differs get a second curve.
        others = {name: alternative.outlook.arms[name] for name in arm_posteriors if alternative.moves[name].mean_moves}
        ridges = posteriors.ridges(_betas(arm_posteriors), _betas(others), alternative.css)
    weights = {name: {each.source: each.pseudo for each in arm.evidence} for name, arm in arm_posteriors.items()}
    full = max((sum(weights[name].values()) + pending.get(name, 0) for name in arm_posteriors), default=1.0)
    broke, stability = breaks.describe_breaks(snapshot, arms), breaks.stability(snapshot)
    capped = describe_caps(snapshot.outlook.posterior.caps)
    rows = []
    for name, arm in arm_posteriors.items():
        graded = sum(weights[name].values())
        unconfirmed_weight = sum(pseudo for source, pseudo in weights[name].items() if source in UNJUDGED)
        row = ArmRow(
            arm=arms[name],
            posterior=arm,
            ridge=ridges[name],
            half_width=(arm.high - arm.low) / 2,
            share=snapshot.outlook.next_100(name),
            proof=bars.proof(weights[name], pending.get(name, 0), full),
            graded=graded,
            unconfirmed=sum(each.n for each in arm.evidence if each.source in UNJUDGED),
            unconfirmed_weight=unconfirmed_weight,
            pending=pending.get(name, 0),
            record=records[name],
            ledger=f"{reverse('admin:bandit_ledgerentry_changelist')}?arm__id__exact={arms[name].pk}",
            move=None if alternative is None else alternative.moves[name],
            is_tried=snapshot.is_tried(arms[name]),
            capped=capped.get(name, ()),
            broke=broke.get(name),
            stability=stability.get(name, ""),
        )
        rows.append(row)
    return sorted(rows, key=lambda row: (row.arm.retired_at is not None, -row.share, row.arm.name))


def describe_caps(caps: AgentCaps) -> dict[str, list[str]]:
    """A sentence for each agent whose sessions with an arm are capped, by arm."""
    sentences: dict[str, list[str]] = {}
    for (arm, agent, is_abstention), days, n, counted in sorted(caps.by_group()):
        if is_abstention or not days:
            continue
        when = f"on {days[0]:%-d %b}" if len(days) == 1 else f"on {len(days)} days"
        sentences.setdefault(arm, []).append(
            f"{n} sessions of {agent} {when} count as {counted}, because of the cap on agents"
        )
    return sentences


def _betas(arms: Mapping[str, ArmPosterior]) -> dict[str, Beta]:
    return {name: Beta(alpha=arm.alpha, beta=arm.beta) for name, arm in arms.items()}
