"""A randomised holdout: each of several arms that match is taken or, by a chance on record, held out.

What is held out by chance and by nothing else tells what an arm causes. Each draw is a row with its chance, written
when the work begins; it gives no reward (L12).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from bandit.core.thompson import uniform
from bandit.eligibility import context_of, out_of_use
from bandit.models import Arm, Assignment, Bandit, BanditKind
from bandit.names import checked_id
from bandit.reading import version_of


class Taken(ValueError):
    """The decision's id cannot be used for this: it is another agent's, or its session is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The `rows` of a decision in the order of their arms, and why arms that were asked for have none.

    `names` maps each name that was asked for to its arm's own.
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
    """Take each of these arms with the policy's chance, by a hash of (bandit, decision id, arm), and log it.

    That is 1 − holdout, or 1 − holdout_decided of an arm among `decided`: those of which enough is known at `now`.

    Asked again with the same `decision_id`, the same rows come back, whatever became of policy and arms; arms that are
    new to it are drawn and added. `context` is the circumstance, as the name of an arm of the bandit's baseline.
    Raises UnknownBandit, UnknownArm (of an arm or a context; nothing is then written), Taken, or ValueError for an id
    as in `names.checked_id`, or a bandit that takes one of its arms only.
    """
    checked_id(decision_id)
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        if row.kind != BanditKind.MANY:
            raise ValueError(f"expected a bandit of which many arms are taken; {row.name!r}: {row.get_kind_display()}")
        known = {text: Arm.objects.resolve(bandit, text) for text in dict.fromkeys(arms)}
        held = list(of_decision(bandit, decision_id))
        fresh = sorted(set(known.values()) - {each.arm.current for each in held}, key=lambda arm: arm.name)
        left_out = {arm.name: reason for arm in fresh if (reason := out_of_use(arm))}
        drawn = [arm for arm in fresh if arm.name not in left_out]
        _require_free(decision_id, held, agent, adds=bool(drawn))
        where = context_of(row, context)
        version = version_of(row)
        chances = {arm: version.chance_of_taking(is_decided=arm.name in decided) for arm in drawn}
        Assignment.objects.bulk_create(
            Assignment(
                bandit=row,
                decision_id=decision_id,
                arm=arm,
                taken=uniform(row.name, f"{decision_id}\0{arm.name}") < chance,
                chance=chance,
                agent=agent,
                context="" if where is None else where.name,
                created=now,
            )
            for arm, chance in chances.items()
        )
        return Drawn(
            decision_id=decision_id,
            rows=tuple(of_decision(bandit, decision_id)),
            left_out=left_out,
            names={text: arm.name for text, arm in known.items()},
        )


def of_decision(bandit: str, decision_id: str) -> QuerySet[Assignment]:
    """The draws of a decision, in the order of their arms' names."""
    rows = Assignment.objects.filter(bandit__name=bandit, decision_id=decision_id)
    return rows.select_related("arm__merged_into").order_by("arm__name")


def close(bandit: str, decision_id: str, *, observation: str, agent: str) -> list[Assignment]:
    """The draws of a decision, which this observation came of; none where nothing was drawn for this agent.

    Must run in the caller's transaction. Raises Taken where another observation came of them.
    """
    rows = list(of_decision(bandit, decision_id).filter(agent__in=["", agent]).select_for_update(of=("self",)))
    for row in rows:
        if row.observation not in ("", observation):
            raise Taken(f"decision {decision_id!r} was closed by {row.observation}; {observation} cannot close it too")
    Assignment.objects.filter(pk__in=[row.pk for row in rows], observation="").update(observation=observation)
    return rows


def _require_free(decision_id: str, held: Iterable[Assignment], agent: str, *, adds: bool) -> None:
    for row in held:
        if row.agent != agent:
            raise Taken(f"decision {decision_id!r} is another agent's; choose an id of your own")
        if row.observation and adds:
            raise Taken(f"decision {decision_id!r} is over: {row.observation} came of it; draw before the work begins")
