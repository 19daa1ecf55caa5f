"""A randomised holdout: each of several matching arms, such as lessons, is taken or held out by a draw.

As nothing but chance decides what is held out, comparing both groups shows what an arm causes. Each draw is stored with
its chance when the work begins. It writes no reward.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from bandit.chance import chance, key_id, require_decision_id
from bandit.eligibility import context_of, out_of_use
from bandit.models import Arm, Assignment, Bandit, BanditKind
from bandit.reading import version_of
from bandit.selection import require_room


class Taken(ValueError):
    """The decision's session is over, so that nothing more can be drawn for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A decision's draws: `rows` in the order of their arms' names, and why each arm in `left_out` was not drawn.

    `names` maps each requested name to that of its arm.
    """

    decision_id: str
    rows: tuple[Assignment, ...]
    left_out: Mapping[str, str]
    names: Mapping[str, str]


def assign(
    bandit: str,
    decision_id: str,
    arms: Iterable[str],
    *,
    agent: str = "",
    context: str = "",
    decided: Collection[str] = (),
    now: datetime,
) -> Drawn:
    """Draw whether each of these arms is taken, and store the draws.

    The chance of being taken is 1 − holdout, or 1 − holdout_decided for arms with a verdict, named in `decided`. The
    same agent with the same `decision_id` gets the same rows again, even if policy or arms changed since; arms that are
    new to the decision are drawn and added. Arms that are retired or paused are not drawn. `context` names an arm of
    the bandit's baseline.

    Raises UnknownBandit, UnknownArm (for an arm or the context; nothing is written), Taken if arms would be drawn after
    the decision's session, TooManyOpen, or ValueError for an invalid `decision_id` or a bandit not of kind MANY.
    """
    require_decision_id(decision_id)
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        if row.kind != BanditKind.MANY:
            raise ValueError(f"expected a bandit of which many arms are taken; {row.name!r}: {row.get_kind_display()}")
        arm_by_text = {text: Arm.objects.resolve(bandit, text) for text in dict.fromkeys(arms)}
        earlier_draws = list(draws_for(bandit, decision_id, agent))
        new_arms = set(arm_by_text.values()) - {each.arm.current for each in earlier_draws}
        left_out = {}
        to_draw = []
        for arm in sorted(new_arms, key=lambda arm: arm.name):
            if reason := out_of_use(arm):
                left_out[arm.name] = reason
            else:
                to_draw.append(arm)
        context_arm = context_of(row, context)
        version = version_of(row)
        observations = [each.observation for each in earlier_draws if each.observation]
        if to_draw and observations:
            raise Taken(f"decision {decision_id!r} is over: {observations[0]} came of it; draw before the work begins")
        if to_draw and not earlier_draws:
            advice = "A session names its draws by its lessons_decision_id."
            require_room(version, agent, row.assignments.filter(observation=""), now, advice)
        assignments = []
        for arm in to_draw:
            chance_of_taking = version.chance_of_taking(is_decided=arm.name in decided)
            u = chance(f"holdout of {arm.name}", row.name, agent, decision_id)
            assignments.append(
                Assignment(
                    bandit=row,
                    decision_id=decision_id,
                    arm=arm,
                    taken=u < chance_of_taking,
                    chance=chance_of_taking,
                    key_id=key_id(),
                    agent=agent,
                    context="" if context_arm is None else context_arm.name,
                    created=now,
                )
            )
        Assignment.objects.bulk_create(assignments)
        return Drawn(
            decision_id=decision_id,
            rows=tuple(draws_for(bandit, decision_id, agent)),
            left_out=left_out,
            names={text: arm.name for text, arm in arm_by_text.items()},
        )


def draws_for(bandit: str, decision_id: str, agent: str) -> QuerySet[Assignment]:
    """The draws of this agent's decision, in the order of their arms' names."""
    rows = Assignment.objects.filter(bandit__name=bandit, agent=agent, decision_id=decision_id)
    return rows.select_related("arm__merged_into").order_by("arm__name")


def close(bandit: str, decision_id: str, *, observation: str, agent: str) -> list[Assignment]:
    """Record that the decision led to this observation. Returns its draws, none if nothing was drawn for it.

    Must run in the caller's transaction. Raises Taken if the decision led to another observation.
    """
    # Earlier versions stored draws without an agent.
    own = list(draws_for(bandit, decision_id, agent).select_for_update(of=("self",)))
    rows = own or list(draws_for(bandit, decision_id, "").select_for_update(of=("self",)))
    for row in rows:
        if row.observation not in ("", observation):
            raise Taken(f"decision {decision_id!r} was closed by {row.observation}; {observation} cannot close it too")
    Assignment.objects.filter(pk__in=[row.pk for row in rows], observation="").update(observation=observation)
    return rows
