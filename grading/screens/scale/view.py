"""One scale on the pages: the lines by which fallbacks are read as verdicts, what new ones would move, the switch."""

import datetime as dt
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from bandit.core.calibration import (
    ANY,
    NORMAL_90,
    STALE_AFTER,
    START_WEIGHT,
    CalibrationLine,
    JudgedSession,
    Key,
    Scale,
)
from bandit.core.moves import ArmMove, moves
from bandit.core.table import ABSTAINED
from bandit.models import Bandit, BanditKind, CalibrationVersion, PolicyVersion
from bandit.reading import EffectivePolicy, effective_policy, version_of, weights_of
from bandit.versions import latest, scale_of
from grading.reward import one_scale
from grading.reward.explain import number, weight
from grading.reward.one_scale import MAX_AUTOMATIC_MOVE, SOURCES, Judgements, ScaleProposal
from grading.reward.trajectory import EvidenceView
from grading.screens import charts
from grading.screens.moves import in_words
from grading.screens.scale.switch import answer
from grading.vocabulary import Reason, Source

# Versions listed, arms in a table, and arms whose move is drawn: the most moved ones.
LISTED, ARMS, SHOWN = 30, 40, 24
# A move of less is not worth naming.
LEAST_SAID = 0.005
VIEWS = {
    EvidenceView.FULL: "full log",
    EvidenceView.PART: "part of the log",
    EvidenceView.FACTS: "facts and patch only",
    EvidenceView.LOOKED: "looked, found nothing to do",
    EvidenceView.FAILED: "seen to fail",
    ANY: "any other",
    "": "–",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OnLine:
    """One arm's pairs on a line: its mean fallback (None of abstentions) and mean verdict (None where they are not of
    late), δ, and what its mean fallback is read as.
    """

    arm: str
    pairs: int
    fallback: float | None
    judge: float | None
    offset: float
    read_as: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRow:
    """One line in words and numbers: `weight` is what a session read by it counts today, before any cap."""

    line: CalibrationLine
    view: str
    weight: float
    arms: Sequence[OnLine]
    more: int
    picture: SafeString | None

    @property
    def is_silent(self) -> bool:
        """Whether it reads abstentions."""
        return self.line.source == ABSTAINED

    @property
    def level(self) -> float:
        """What it makes of the mean of its arms."""
        return self.line.clipped("", self.line.centre)

    @property
    def half_width(self) -> float:
        """Half of the 90 % interval of one session's verdict about what it is read as, where the line is centred."""
        return NORMAL_90 * self.line.error("", self.line.centre)


@dataclass(frozen=True, kw_only=True)
class BanditScale:
    """A bandit's part of the calibration page. `is_in_force`: the lines shown are those that count, not only what
    today's pairs say. `holds` and `todo` in words. `history`: the latest versions, each with its `row` and its number
    of `pairs`, None where it switched off, 0 at the start.
    """

    bandit: Bandit
    held: CalibrationVersion | None
    target: str
    is_in_force: bool
    lines: Sequence[LineRow]
    pairs: int
    holds: str
    todo: str
    is_stale: bool
    history: Sequence[Mapping[str, Any]]


def parts(judged: Judgements, now: dt.datetime) -> list[BanditScale]:
    """Every bandit that learns."""
    today = timezone.localdate(now)
    found = []
    for bandit in Bandit.objects.that_learn():
        pairs, target = judged.pairs(bandit), judged.target
        held = latest(CalibrationVersion, bandit)
        in_force = scale_of(held)
        counts = in_force is not None and not in_force.is_start
        shown = in_force if in_force is not None and counts else judged.scale(bandit)
        titles = {arm.name: str(arm) for arm in bandit.arms.all()}
        versions = ((row, scale_of(row)) for row in bandit.calibrations.order_by("-version")[:LISTED])
        part = BanditScale(
            bandit=bandit,
            held=held,
            target=held.target if held is not None and counts else str(target or ""),
            is_in_force=counts,
            lines=_rows(shown, pairs, titles, today),
            pairs=shown.n,
            holds=what_holds(version_of(bandit), held, today),
            todo=_todo(held, len(pairs)),
            is_stale=in_force is not None and in_force.is_stale(today),
            history=[{"row": row, "pairs": None if scale is None else scale.n} for row, scale in versions],
        )
        found.append(part)
    return found


def what_holds(version: PolicyVersion, held: CalibrationVersion | None, today: dt.date) -> str:
    """How fallbacks are read now by this version of a bandit's policy and the calibration, and what they count."""
    scale, weights = scale_of(held), weights_of(version)
    counts = " and ".join(f"{source} {weight(weights.get(source, 0.0))}" for source in reversed(SOURCES))
    if held is None:
        return (
            f"Never used here: every source is read as it stands, and a session counts what the policy says, {counts}."
        )
    if scale is None:
        return f"Off: every source is read as it stands, and a session counts what the policy says, {counts}."
    if scale.is_start and not one_scale.has_verdicts(version.bandit):
        return (
            f"Starting point: without a verdict every source is read as it stands, and a session counts what the "
            f"policy says, {counts}."
        )
    if scale.is_start:
        return (
            "Starting point: there are verdicts, but no pairs fitted yet. Fallbacks are read with slope 1, shifted to "
            f"the mean verdict, and a session counts {number(START_WEIGHT)}."
        )
    whose = f"the scale of {held.target}" if held.target else "the judge’s scale"
    told = f"Version {held.version} reads fallbacks on {whose}, from {scale.n:,} judged sessions"
    newest = f"; the newest is of {scale.latest:%-d %b %Y}." if scale.latest else "."
    halved = f" No new pair for {STALE_AFTER.days} days: a session counts half of what it did."
    return told + newest + halved * scale.is_stale(today)


def _todo(held: CalibrationVersion | None, pairs: int) -> str:
    if not pairs:
        return (
            "No judged session has a trajectory or journal grade yet. Each "
            "one that is judged and has a transcript, facts or a journal is a pair, and nothing else is needed."
        )
    if held is None or not held.enabled:
        return f"{pairs:,} judged sessions say what it could be. See what that moves, then put it in force."
    scale = scale_of(held)
    if scale is not None and scale.is_start:
        return (
            f"{pairs:,} judged sessions say what it could be. It takes effect by itself at night if it moves no arm "
            f"by more than {number(MAX_AUTOMATIC_MOVE)}; otherwise it waits for an operator."
        )
    return ""


def _rows(scale: Scale, pairs: Sequence[JudgedSession], titles: Mapping[str, str], today: dt.date) -> list[LineRow]:
    by_line: dict[Key, dict[str, list[JudgedSession]]] = defaultdict(lambda: defaultdict(list))
    for pair in pairs:
        by_line[pair.key][pair.arm].append(pair)
    weighs = scale.weights_on(today)
    # Where a source has one line, what stands in for others says the same again.
    of_source = Counter(line.source for line in scale.own_lines)
    lines = [line for line in scale.lines if not line.stands_in or of_source[line.source] != 1]
    places = {Source.TRAJECTORY.value: 0, Source.JOURNAL.value: 1, ABSTAINED: 2}
    lines.sort(key=lambda line: (places.get(line.source, len(places)), line.stands_in, -line.n))
    return [
        _row(line, by_line.get(line.key, {}), titles, 0.0 if line.backwards else weighs.get(line.source, 0.0))
        for line in lines
    ]


def _row(
    line: CalibrationLine, pairs: Mapping[str, Sequence[JudgedSession]], titles: Mapping[str, str], counts: float
) -> LineRow:
    arms = []
    for name, count in line.pairs.items():
        own = pairs.get(name, ())
        n = len(own)
        fallback = sum(pair.fallback for pair in own) / n if n and line.source != ABSTAINED else None
        arm = OnLine(
            arm=titles.get(name, name),
            pairs=count,
            fallback=fallback,
            judge=sum(pair.judge for pair in own) / n if n else None,
            offset=round(line.offsets.get(name, 0.0), 2) + 0.0,
            read_as=None if fallback is None else line.clipped(name, fallback),
        )
        arms.append(arm)
    arms.sort(key=lambda each: (-each.pairs, each.arm))
    picture = None
    if line.source != ABSTAINED and not line.stands_in:
        dots = [
            charts.Dot(name=each.arm, x=each.fallback, y=each.judge, n=each.pairs)
            for each in arms
            if each.fallback is not None and each.judge is not None
        ]
        picture = charts.against(dots, lambda x: line.intercept + line.slope * x, line.source)
    # What such a grade rests on, or why there is none.
    if line.source == ABSTAINED and line.view in set(Reason):
        view = Reason(line.view).words
    elif line.source == Source.JOURNAL and not line.view:
        view = "what the agent wrote"
    else:
        view = VIEWS.get(line.view, line.view)
    return LineRow(
        line=line,
        view=view,
        weight=counts,
        arms=() if line.stands_in else arms[:ARMS],
        more=0 if line.stands_in else max(len(arms) - ARMS, 0),
        picture=picture,
    )


@dataclass(frozen=True, kw_only=True)
class ScaleCard:
    """The card on a bandit's page: what is `proposed`, the arms it moves most, `why` it waits or comes by itself."""

    proposed: ScaleProposal
    holds: str
    why: str
    moves: Sequence[ArmMove]
    more: int
    effect: str
    chooses: bool
    is_new: bool

    @property
    def heading(self) -> str:
        """Of the figures that would hold."""
        return f"Version {self.proposed.version}"


def card(bandit: Bandit, now: dt.datetime, *, may_operate: bool, held: EffectivePolicy | None = None) -> ScaleCard:
    """What the card shows of a bandit, fresh from the database; `held` is what it is read by, where that is known."""
    held = held or effective_policy(bandit)
    proposed = one_scale.proposal(bandit.name, now, current=held)
    found = moves(bandit.name, proposed.now, proposed.after)
    chooses = bandit.kind == BanditKind.CHOICE
    return ScaleCard(
        proposed=proposed,
        holds=what_holds(held.version, proposed.last, timezone.localdate(now)),
        why=_why(proposed, who="you" if may_operate else "an operator"),
        moves=found[:SHOWN],
        more=max(len(found) - SHOWN, 0),
        effect=in_words(found, shares=chooses),
        chooses=chooses,
        is_new=not proposed.is_in_force and (bool(proposed.pairs) or proposed.last is None),
    )


def _why(proposed: ScaleProposal, who: str) -> str:
    """Whether the proposed version waits for somebody, and why."""
    held, version = proposed.last, proposed.version
    if proposed.is_in_force:
        return ""
    if held is None:
        return f"No calibration was ever in force here, so version {version} waits for {who}."
    if not proposed.pairs:
        return ""
    if not held.enabled:
        return (
            f"{held.by} switched off with version {held.version}: version {version} waits for {who}, whatever it moves."
        )
    arm, move = proposed.largest
    if proposed.comes_by_itself:
        most = f" (most: {arm}, by {number(abs(move))})" if abs(move) >= LEAST_SAID else ""
        return (
            f"It moves no arm by more than {number(MAX_AUTOMATIC_MOVE)} since somebody last looked at it{most}, so it "
            "takes effect by itself at night."
        )
    return (
        f"Version {version} moves {arm} by {number(abs(move))} since somebody last looked at it: over "
        f"{number(MAX_AUTOMATIC_MOVE)}, so it waits for {who}."
    )


@require_POST
def change(request: HttpRequest, name: str) -> HttpResponse:
    """Put the proposed calibration in force, or switch it off: one more version, with the user's name."""
    bandit = Bandit.objects.that_learn().filter(name=name).first()
    if bandit is None:
        raise Http404(f"there is no bandit {name} that learns")

    def act(by: User, asked: dict[str, Any], fingerprint: str) -> str:
        if not fingerprint:
            row = one_scale.switch_off(name, by, **asked)
            return f"The calibration is off since version {row.version}: every source is read as it stands."
        proposed = one_scale.proposal(name, timezone.now())
        row = one_scale.put_in_force(proposed, by, fingerprint=fingerprint, **asked)
        found = moves(name, proposed.now, proposed.after)
        return f"Version {row.version} is in force: {in_words(found, shares=bandit.kind == BanditKind.CHOICE)}."

    return answer(request, name, act)


def said_by_source(evidence: Iterable[Any]) -> list[str]:
    """What stands behind an arm where it is read on the judge's scale, a sentence a source: "trajectory: 42, raw .20,
    ≈ .63 on the judge's scale, counts .31 each".
    """
    told = []
    for each in evidence:
        if each.mapped is None:
            continue
        if each.source == ABSTAINED:
            told.append(f"{each.n} not graded, read as ≈ {number(each.mapped)}, as judged ones were")
        else:
            scaled = f"≈ {number(each.mapped)} on the judge’s scale, counts {number(each.counts)} each"
            told.append(f"{each.source}: {each.n}, raw {number(each.mean)}, {scaled}")
    return told
