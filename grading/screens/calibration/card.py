"""A bandit's calibration: the card with the next version on the bandit's page, and its part of the calibration page."""

import datetime as dt
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from bandit.core.calibration import (
    ENOUGH_VERDICTS,
    MAX_PSEUDO,
    FallbackCalibration,
    JudgedSession,
    Kind,
    KindEstimate,
    fit,
)
from bandit.core.machine_human import Offset
from bandit.core.moves import ArmMove, moves
from bandit.core.posterior import SourceEvidence
from bandit.core.table import ABSTAINED
from bandit.models import Bandit, BanditKind, CalibrationVersion
from bandit.reading import EffectivePolicy, effective_policy, version_of, weights_of
from bandit.versions import latest
from grading.plain import counted
from grading.reward import calibrating
from grading.reward.calibrating import MAX_AUTOMATIC_MOVE, NORMAL_90, SOURCES, CalibrationProposal
from grading.reward.explain import number, weight
from grading.reward.judged_pairs import Judgements
from grading.screens.http import StaffRequest, staff_view
from grading.screens.moves import describe_moves
from grading.vocabulary import Reason

VERSIONS_SHOWN, ARMS_SHOWN, MOVES_SHOWN = 30, 40, 24
# A smaller move of an arm's mean isn't mentioned.
MIN_MOVE = 0.005


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmPairs:
    """The pairs of one kind of session in one arm.

    `pairs` is their number. `fallback` is the mean of their fallback grades, None for abstentions. `judge` is the mean
    of their verdicts, None without verdicts. `difference` is the estimated difference between the kind's sessions in
    this arm and the arm's mean.
    """

    arm: str
    pairs: int
    fallback: float | None
    judge: float | None
    difference: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """The estimate for one kind of unjudged sessions. `arms` has those with most pairs, `more` counts the others."""

    estimate: KindEstimate
    arms: Sequence[ArmPairs]
    more: int

    @property
    def is_abstention(self) -> bool:
        return self.estimate.source == ABSTAINED

    @property
    def reason(self) -> str:
        """Why these sessions have no grade; empty for fallbacks."""
        reason = self.estimate.reason
        return Reason(reason).words if reason in set(Reason) else reason

    @property
    def half_width(self) -> float:
        """Half of the width of the 90 % interval for the verdict that a session of this kind would get."""
        return NORMAL_90 * self.estimate.deviation


@dataclass(frozen=True, kw_only=True)
class BanditCalibration:
    """A bandit's part of the calibration page. `kinds` are those of the version in force if it is fitted, otherwise
    estimates from today's pairs. `history` has the latest versions.
    """

    bandit: Bandit
    last: CalibrationVersion | None
    is_in_force: bool
    kinds: Sequence[KindRow]
    pairs: int
    status: str
    todo: str
    history: Sequence[CalibrationVersion]


def load_bandit_calibrations(judgements: Judgements) -> list[BanditCalibration]:
    """The calibration of every bandit that learns."""
    bandits = []
    for bandit in Bandit.objects.that_learn():
        pairs, last = judgements.pairs.get(bandit.name, ()), latest(bandit.calibrations.all())
        current = None if last is None else last.fallback_calibration
        is_in_force = current is not None and bool(current.kinds)
        calibration = current if current is not None and is_in_force else fit(pairs, SOURCES)
        part = BanditCalibration(
            bandit=bandit,
            last=last,
            is_in_force=is_in_force,
            kinds=_kinds(calibration, pairs, {arm.name: str(arm) for arm in bandit.arms.all()}),
            pairs=calibration.n,
            status=status(last),
            todo=_next_step(last, len(pairs)),
            history=list(bandit.calibrations.order_by("-version")[:VERSIONS_SHOWN]),
        )
        bandits.append(part)
    return bandits


def status(last: CalibrationVersion | None) -> str:
    """How fallbacks are read now, as text."""
    if last is None:
        return "This bandit has never been calibrated, so every grade is used unchanged."
    if last.fallback_calibration is None:
        return "Calibration is off, so every grade is used unchanged."
    n = last.fallback_calibration.n
    if not n:
        return "Calibration has no data yet, so fallback grades are used unchanged."
    whose = f" of {last.target}" if last.target else ""
    return f"Version {last.version} compares fallback grades with {counted(n, 'verdict')}{whose}."


def weight_rule(bandit: Bandit, last: CalibrationVersion | None) -> str:
    """How much a fallback counts in this bandit, as text."""
    weights = weights_of(version_of(bandit))
    counts = " and ".join(f"a {source} {weight(weights.get(source, 0.0))}" for source in reversed(SOURCES))
    if last is None or last.fallback_calibration is None:
        return f"Compared with a verdict, the weights are: {counts}."
    return (
        f"In an arm without verdicts, fallbacks have these weights compared with a verdict: {counts}. Together they "
        f"count as at most {MAX_PSEUDO:g} observations. Each verdict reduces both by a fifth. With "
        f"{ENOUGH_VERDICTS} or more verdicts, fallbacks don’t count."
    )


def _next_step(last: CalibrationVersion | None, pairs: int) -> str:
    """What the operator can do, or waits for; empty if the calibration in force has estimates."""
    if not pairs:
        return (
            "No judged session of this bandit has a trajectory or journal grade yet. Sessions that the judge has read "
            "and that have a transcript, facts or a journal can be compared."
        )
    if last is None or not last.enabled:
        return (
            f"{pairs:,} judged sessions can be compared. Check what the calibration would change, then put it in force."
        )
    calibration = last.fallback_calibration
    has_no_estimates_yet = calibration is not None and not calibration.kinds
    if has_no_estimates_yet:
        return f"The next version, computed tonight, will compare {pairs:,} judged sessions."
    return ""


def _kinds(
    calibration: FallbackCalibration, pairs: Sequence[JudgedSession], titles: Mapping[str, str]
) -> list[KindRow]:
    """A row for each kind, fallbacks before abstentions, most pairs first. `titles` has the arms' titles by name."""
    by_arm: dict[tuple[Kind, str], list[JudgedSession]] = defaultdict(list)
    for pair in pairs:
        by_arm[pair.kind, pair.arm].append(pair)
    rows = []
    for estimate in sorted(calibration.kinds, key=lambda kind: (kind.source == ABSTAINED, -kind.n, kind.kind)):
        is_abstention = estimate.source == ABSTAINED
        arms = []
        for name, n in estimate.pairs.items():
            arm_pairs = by_arm.get((estimate.kind, name), ())
            arm = ArmPairs(
                arm=titles.get(name, name),
                pairs=n,
                fallback=fmean(pair.fallback for pair in arm_pairs) if arm_pairs and not is_abstention else None,
                judge=fmean(pair.judge for pair in arm_pairs) if arm_pairs else None,
                difference=estimate.difference_in(name),
            )
            arms.append(arm)
        arms.sort(key=lambda each: (-each.pairs, each.arm))
        rows.append(KindRow(estimate=estimate, arms=arms[:ARMS_SHOWN], more=max(len(arms) - ARMS_SHOWN, 0)))
    return rows


@dataclass(frozen=True, kw_only=True)
class CalibrationCard:
    """The card on a bandit's page: the proposal, how grades are read now (`status`), and `why` the proposal waits.

    `offsets` are those of strata with pairs or rewards, as (offset, number of rewards). `moves` are the largest
    changes of arms, `more` is the number of the others. `has_shares`: the bandit chooses between its arms.
    """

    proposed: CalibrationProposal
    status: str
    why: str
    offsets: Sequence[tuple[Offset, int]]
    moves: Sequence[ArmMove]
    more: int
    effect: str
    has_shares: bool

    @property
    def is_new(self) -> bool:
        """Whether there is something to put in force."""
        return not self.proposed.is_in_force and (self.proposed.is_fitted or self.proposed.last is None)

    @property
    def heading(self) -> str:
        """The head of the column of changes."""
        return f"Version {self.proposed.version}"


def load_card(
    bandit: Bandit, now: dt.datetime, *, may_operate: bool, current: EffectivePolicy | None = None
) -> CalibrationCard:
    """The card of a bandit. `current` is its policy, if already loaded."""
    current = current or effective_policy(bandit)
    proposed = calibrating.proposal(bandit.name, now, current=current)
    changes = moves(bandit.name, proposed.now, proposed.after)
    has_shares = bandit.kind == BanditKind.CHOICE
    offsets = [(offset, proposed.rewards.get(offset.key, 0)) for offset in proposed.offsets]
    return CalibrationCard(
        proposed=proposed,
        status=f"{status(proposed.last)} {weight_rule(bandit, proposed.last)}",
        why=_why_it_waits(proposed, who="you" if may_operate else "an operator"),
        offsets=[(offset, rewards) for offset, rewards in offsets if rewards or offset.pairs],
        moves=changes[:MOVES_SHOWN],
        more=max(len(changes) - MOVES_SHOWN, 0),
        effect=describe_moves(changes, shares=has_shares),
        has_shares=has_shares,
    )


def _why_it_waits(proposed: CalibrationProposal, who: str) -> str:
    """Why the version waits for `who`, or that it takes effect by itself; empty if it is in force or has no data."""
    last, version = proposed.last, proposed.version
    if proposed.is_in_force:
        return ""
    if last is None:
        return f"This bandit has never been calibrated, so version {version} waits for {who}."
    if not proposed.is_fitted:
        return ""
    if not last.enabled:
        return (
            f"{last.by} switched calibration off with version {last.version}, so version {version} waits for {who} "
            "even if it changes little."
        )
    arm, move = proposed.largest
    if proposed.comes_by_itself:
        most = f" (most: {arm}, by {number(abs(move))})" if abs(move) >= MIN_MOVE else ""
        return (
            f"This version changes no arm by more than {number(MAX_AUTOMATIC_MOVE)} from the one that a person last "
            f"accepted{most}, so it takes effect automatically tonight."
        )
    return (
        f"Version {version} would change {arm} by {number(abs(move))} from the version that a person last accepted. "
        f"That is over {number(MAX_AUTOMATIC_MOVE)}, so it waits for {who}."
    )


class ChangeForm(forms.Form):
    """`fingerprint` names the proposal to put in force, the one on the page. If it is empty, calibration is switched
    off.
    """

    version = forms.IntegerField(min_value=1)
    fingerprint = forms.CharField(max_length=16, required=False)
    note = forms.CharField(max_length=500, required=False)


@staff_view("bandit.change_bandit", methods=["POST"])
def change(request: StaffRequest, name: str) -> HttpResponse:
    """Put the proposed calibration in force, or switch calibration off: one more version, with the user's name."""
    bandit = Bandit.objects.that_learn().filter(name=name).first()
    if bandit is None:
        raise Http404(f"there is no bandit {name} that learns")
    form = ChangeForm(request.POST)
    if not form.is_valid():
        messages.error(
            request,
            "Nothing was saved, because the form didn’t say which version it replaces. Reload the page and submit "
            "again.",
        )
        return redirect("admin:bandit", name=name)
    try:
        messages.success(request, _apply(bandit, request, form.cleaned_data))
    except ValueError as error:
        messages.error(request, str(error))
    return redirect("admin:bandit", name=name)


def _apply(bandit: Bandit, request: HttpRequest, data: Mapping[str, Any]) -> str:
    """Store the change, and describe it. Raises ValueError if that isn't possible."""
    fields: Any = {"by": request.user, "version": data["version"], "note": data["note"].strip()}
    if not data["fingerprint"]:
        row = calibrating.switch_off(bandit.name, **fields)
        return f"Calibration is off as of version {row.version}. Every grade is used unchanged."
    proposed = calibrating.proposal(bandit.name, timezone.now())
    row = calibrating.put_in_force(proposed, fingerprint=data["fingerprint"], **fields)
    changes = moves(bandit.name, proposed.now, proposed.after)
    return f"Version {row.version} is in force: {describe_moves(changes, shares=bandit.kind == BanditKind.CHOICE)}."


def describe_fallbacks(evidence: Iterable[SourceEvidence]) -> list[str]:
    """How an arm's fallbacks and abstentions count, one sentence per source.

    For example "trajectory: 42, mean .20, each counts as .06 of a verdict".
    """
    sentences = []
    for each in evidence:
        if each.is_estimated:
            what = "not graded" if each.source == ABSTAINED else f"graded by {each.source} alone"
            sentences.append(f"{each.n} {what}: estimated at ≈ {number(each.mean)} from comparable judged sessions")
        elif each.source in SOURCES:
            counts = f"each counts as {number(each.counts)} of a verdict"
            sentences.append(f"{each.source}: {each.n}, mean {number(each.mean)}, {counts}")
    return sentences
