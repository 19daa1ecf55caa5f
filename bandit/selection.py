"""Decides what an agent does next: which arms are eligible, the odds of each, and a draw that a retry repeats.

Writes no reward.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from bandit.chance import chance, key_id, require_decision_id
from bandit.core.posterior import Posterior, chances
from bandit.core.thompson import Feedback, draw
from bandit.eligibility import (
    DRAWN,
    MIN_UNFINISHED,
    Circumstances,
    circumstances,
    consumption_feedback,
    context_of,
    is_unfinished,
    reason_against,
)
from bandit.models import Arm, Bandit, BanditKind, PolicyVersion, Selection
from bandit.reading import effective_policy, read, site_day, version_of

PURPOSE, PREVIEW_PURPOSE = "selection", "made-up selection"
# A decision without a session counts as open for this long; after that, the run is assumed to have died.
OPEN_FOR = timedelta(days=1)
# The most open decisions that an error names.
MAX_LISTED = 10


class NothingEligible(LookupError):
    """Every arm is left out. `reasons` maps each arm to the reason."""

    def __init__(self, bandit: str, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        listed = "; ".join(f"{arm}: {reason}" for arm, reason in sorted(reasons.items())) or "it has no arms"
        super().__init__(
            f"bandit {bandit!r} has nothing to choose from: {listed}. Offer other work, or name an override."
        )


class TooManyOpen(ValueError):
    """An agent has asked for as many decisions as may be open at once, and used none of them yet."""


class AlreadyCompleted(ValueError):
    """Another session closed the decision already, or the session closed another decision of the bandit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A decision before it is stored.

    `best` and `odds` map each eligible arm to P(best) and to its chance of being drawn, `left_out` the others to the
    reason. `override` is None for a draw, otherwise the arm that the caller named and the one that would have been
    drawn. `remarks` are sentences about the chosen arm.
    """

    arm: Arm
    best: Mapping[str, float]
    odds: Mapping[str, float]
    left_out: Mapping[str, str]
    feedback: Mapping[str, Feedback]
    posterior: Posterior
    override: Mapping[str, Any] | None
    remarks: tuple[str, ...]


def select(
    *,
    bandit: str,
    decision_id: str,
    agent: str = "",
    supply: Mapping[str, int] | None,
    override: str | None = None,
    context: str = "",
    exempt_agents: Collection[str] = (),
    now: datetime,
) -> Selection:
    """Choose an arm and log the decision. The same agent with the same `decision_id` gets the same decision again.

    `supply`: how many pieces of work each arm has; an arm with 0, or not named, is left out. None: all have work.
    `override`: the name of an arm to choose in any case, even one that would be left out; the decision says so.
    `context`: the name of an arm of the bandit's baseline, such as the category that a harness will work on. Arms on
    probation are only tried in low-stakes contexts.
    `exempt_agents`: agents that do not count against limits that all agents share, such as the samples' agent.

    Writes no reward. Raises UnknownBandit, UnknownArm, and NothingEligible; TooManyOpen if the agent has as
    many open decisions as the policy allows (overrides are exempt); ValueError for a decision id that is blank, too
    long or unprintable, a supply that is not a whole number from 0 up, or a context if the bandit has no baseline.
    """
    require_decision_id(decision_id)
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        _require_choice(row)
        existing = row.selections.select_related("arm").filter(agent=agent, decision_id=decision_id).first()
        if existing:
            return existing
        context_arm = context_of(row, context)
        supply_by_arm = _supply_by_arm(bandit, supply)
        version = version_of(row)
        if override is None:
            waiting = row.selections.filter(DRAWN, completed_at=None)
            require_room(version, agent, waiting, now, "An override has no limit.")
        u = chance(PURPOSE, row.name, agent, decision_id)
        choice = _choose(
            version,
            u,
            site_day(now),
            agent=agent,
            exempt_agents=exempt_agents,
            supply=supply_by_arm,
            override=override,
            context=context_arm,
        )
        return Selection.objects.create(
            bandit=row,
            decision_id=decision_id,
            arm=choice.arm,
            agent=agent,
            context="" if context_arm is None else context_arm.name,
            requested={"supply": None if supply is None else dict(supply), "override": override},
            eligible={**choice.odds, **choice.left_out},
            propensity=1.0 if choice.override else choice.odds[choice.arm.name],
            posterior_version=choice.posterior.version,
            explanation=_explain(choice),
            override=choice.override,
            key_id=key_id(),
            created=now,
        )


def preview(bandit: str, decision_id: str, now: datetime) -> tuple[Choice, dict[str, Any]]:
    """What `select` might answer now if every arm had work, with its explanation. Nothing is stored.

    The draw differs from that of a real decision with the same id, so nobody can predict one. Raises
    UnknownBandit, NothingEligible, or ValueError for a bandit that makes no choices.
    """
    row = Bandit.objects.named(bandit)
    _require_choice(row)
    u = chance(PREVIEW_PURPOSE, row.name, "", decision_id)
    choice = _choose(version_of(row), u, site_day(now), agent="", supply=None, override=None, context=None)
    return choice, _explain(choice)


def find_decision(bandit: str, agent: str, decision_id: str) -> Selection | None:
    """The agent's decision with that id, if any; decisions of earlier versions, which have no agent, match for all."""
    decisions = Selection.objects.filter(bandit__name=bandit, decision_id=decision_id, agent__in=["", agent])
    return decisions.select_related("arm").order_by("-agent").first()


def require_room(version: PolicyVersion, agent: str, decisions: QuerySet[Any], now: datetime, advice: str) -> None:
    """Raise TooManyOpen if the agent has as many open decisions as the policy allows.

    Without a limit, an agent could ask until it gets the decision that it wants. An empty `agent` has no limit.
    `decisions` are the bandit's Selections or Assignments that have no session yet; several rows may share an id.
    `advice` ends the message.
    """
    limit = version.open_decisions
    if limit is None or not agent:
        return
    waiting = decisions.filter(agent=agent, created__gt=now - OPEN_FOR).order_by("decision_id")
    open_ids = list(waiting.values_list("decision_id", flat=True).distinct())
    if len(open_ids) < limit:
        return
    listed = ", ".join(map(repr, open_ids[:MAX_LISTED]))
    more = f" and {len(open_ids) - MAX_LISTED} more" if len(open_ids) > MAX_LISTED else ""
    raise TooManyOpen(
        f"{len(open_ids)} decisions of {version.bandit.name!r} have no session yet, and the limit is {limit}: "
        f"{listed}{more}. Send the session of one of them, or ask for one again by its id: the answer is the "
        f"same. A decision counts as open for {OPEN_FOR // timedelta(hours=1)} hours. {advice}"
    )


def _require_choice(bandit: Bandit) -> None:
    """Raise ValueError for a bandit from which no single arm is chosen."""
    if bandit.kind != BanditKind.CHOICE:
        choices = ", ".join(
            Bandit.objects.filter(kind=BanditKind.CHOICE).order_by("name").values_list("name", flat=True)
        )
        raise ValueError(
            f"the bandit {bandit.name!r} doesn't choose an arm: {bandit.get_kind_display()}. Expected one of {choices}"
        )


def complete(selection: Selection, *, observation: str, executed_arm: str, now: datetime) -> Selection:
    """Close a decision with the session that it led to and the arm that ran, which may not be the chosen one.

    The reward goes to the arm that ran. Closing it again with the same session and arm changes nothing. Raises
    UnknownArm, ValueError for a blank observation, or AlreadyCompleted if the decision was closed with another session
    or arm, or the session closed another decision.
    """
    with transaction.atomic():
        decision = (
            Selection.objects.select_for_update(of=("self",)).select_related("bandit", "arm").get(pk=selection.pk)
        )
        arm = Arm.objects.resolve(decision.bandit.name, executed_arm)
        if decision.completed_at and (decision.observation, decision.executed_arm_id) == (observation, arm.pk):
            return decision
        if not observation:
            raise ValueError("a decision is completed by an observation; got a blank one")
        if decision.completed_at:
            raise AlreadyCompleted(
                f"decision {decision.decision_id!r} was closed by {decision.observation or 'an erased session'} "
                f"at {decision.completed_at:%Y-%m-%d %H:%M}; {observation} cannot close it too"
            )
        other = Selection.objects.filter(bandit=decision.bandit, observation=observation).first()
        if other:
            raise AlreadyCompleted(
                f"{observation} closed decision {other.decision_id!r} already, not {decision.decision_id!r}"
            )
        decision.observation, decision.executed_arm, decision.completed_at = observation, arm, now
        decision.save(update_fields=["observation", "executed_arm", "completed_at"])
    return decision


def _supply_by_arm(bandit: str, supply: Mapping[str, int] | None) -> dict[str, int] | None:
    """The supply by current arm name, summed over an arm's names. Raises UnknownArm, or ValueError for a bad number."""
    if supply is None:
        return None
    for name, count in supply.items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise ValueError(f"supply[{name!r}] is the number of pieces of work, a whole number from 0; got {count!r}")
    by_arm: Counter[str] = Counter()
    for name, count in supply.items():
        by_arm[Arm.objects.resolve(bandit, name).name] += count
    return dict(by_arm)


def _choose(
    version: PolicyVersion,
    u: float,
    today: date,
    *,
    agent: str,
    exempt_agents: Collection[str] = (),
    supply: dict[str, int] | None,
    override: str | None,
    context: Arm | None,
) -> Choice:
    """Compute the odds of every eligible arm and draw one by `u` in [0, 1), or take the override.

    With an override the draw is still made, for the explanation. Without one, raises NothingEligible if no arm is
    eligible.
    """
    bandit = version.bandit
    all_arms = {arm.name: arm for arm in bandit.arms.all()}
    arms = {name: arm for name, arm in all_arms.items() if arm.merged_into_id is None}
    override_arm = Arm.objects.resolve(bandit.name, override) if override else None
    policy = effective_policy(bandit, version=version).policy_on(today)
    reading = read(bandit, policy, all_arms, today)  # merged arms too, as pages read them: the cached reading is shared
    situation = circumstances(
        version, reading.rewarded, today, agent=agent, exempt_agents=exempt_agents, supply=supply, context=context
    )
    reasons = {name: reason_against(arm, situation) for name, arm in arms.items()}
    left_out = {name: reason for name, reason in reasons.items() if reason}
    consuming = [arm.name for arm in arms.values() if arm.is_consumption]
    feedback = consumption_feedback(reading.rows, consuming, version, today, reading.posterior.caps)
    factors = {name: each.factor for name, each in feedback.items()}
    best = reading.posterior.chance_of_best(arms.keys() - left_out.keys())
    odds = chances(best, policy, factors)
    drawn = draw(odds, u) if odds else None
    overridden: dict[str, Any] | None = None
    if override_arm is not None:
        arm = override_arm
        overridden = {"arm": arm.name, "drawn": drawn, "left_out": left_out.get(arm.name, "")}
    elif drawn is not None:
        arm = arms[drawn]
    else:
        raise NothingEligible(bandit.name, left_out)
    return Choice(
        arm=arm,
        best=best,
        odds=odds,
        left_out=left_out,
        feedback={name: each for name, each in feedback.items() if name in odds},
        posterior=reading.posterior,
        override=overridden,
        remarks=tuple(_remarks(arm, situation, reading.posterior)),
    )


def _remarks(arm: Arm, situation: Circumstances, posterior: Posterior) -> Iterator[str]:
    """Sentences about the chosen arm: its probation, a break of its level, and decisions without a finished session."""
    if situation.is_on_probation(arm):
        had, need = situation.rewarded.get(arm.name, 0), situation.version.probation_sessions
        yield f"{arm.name} is on probation: it has {had} of the {need} sessions with a reward that end the probation."
    broke = None if posterior.changes is None else posterior.changes.breaks.get(arm.name)
    if broke is not None:
        yield f"{arm.name} changed on {broke.day}, so its earlier rewards no longer count."
    if is_unfinished(arm):
        yield f"None of {arm.name}'s last {MIN_UNFINISHED} decisions led to a finished session."


def _explain(choice: Choice) -> dict[str, Any]:
    """The decision in sentences, and its numbers by arm."""
    name, odds = choice.arm.name, choice.odds
    if choice.override:
        drawn = choice.override["drawn"]
        otherwise = f"the draw would have chosen {drawn}" if drawn else "nothing was eligible"
        why = f"{name} was chosen because the caller overrode the draw; {otherwise}."
    else:
        arm = choice.posterior.arms[name]
        why = (
            f"{name} was drawn with probability {odds[name]:.2f} from {len(odds)} eligible arms. Its expected "
            f"reward is {arm.mean:.2f} (90 % interval {arm.low:.2f} to {arm.high:.2f})."
        )
    sentences = [why, *choice.remarks]
    sentences += [f"{arm_name}: {feedback.sentence}." for arm_name, feedback in sorted(choice.feedback.items())]
    sentences += [f"{arm_name} was left out: {reason}." for arm_name, reason in sorted(choice.left_out.items())]
    numbers = {}
    for eligible in sorted(odds):
        posterior = choice.posterior.arms[eligible]
        numbers[eligible] = {
            "mean": round(posterior.mean, 6),
            "low": round(posterior.low, 6),
            "high": round(posterior.high, 6),
            "p_best": choice.best[eligible],
            "factor": choice.feedback[eligible].factor if eligible in choice.feedback else 1.0,
            "propensity": odds[eligible],
        }
    return {"chosen": name, "sentences": sentences, "arms": numbers, "policy": choice.posterior.policy.version}
