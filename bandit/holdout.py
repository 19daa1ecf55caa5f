"""A randomised holdout: each of several arms that match is taken or, by a chance on record, held out.

What is held out by chance and by nothing else tells what an arm causes. Each draw is a row with its chance, written
when the work begins; it gives no reward (L12).
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from bandit.chance import chance, key_id
from bandit.eligibility import context_of, out_of_use
from bandit.models import Arm, Assignment, Bandit, BanditKind, PolicyVersion
from bandit.names import checked_id
from bandit.reading import version_of
from bandit.selection import MAX_LISTED, OPEN_FOR, TooManyOpen


class Taken(ValueError):
    """Nothing more can be drawn under this id: its session is over."""


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
    """Take each of these arms with the policy's chance, by a keyed draw for (bandit, agent, decision id, arm), and log
    it.

    That is 1 − holdout, or 1 − holdout_decided of an arm among `decided`: those of which enough is known at `now`.

    Asked again by that agent with the same `decision_id`, the same rows come back, whatever became of policy and arms;
    arms that are new to it are drawn and added. An id is its agent's own. `context` is the circumstance, as the name of
    an arm of the bandit's baseline. Raises UnknownBandit, UnknownArm (of an arm or a context; nothing is then written),
    Taken, TooManyOpen, or ValueError for an id as in `names.checked_id`, or a bandit that takes one of its arms only.
    """
    checked_id(decision_id)
    with transaction.atomic():
        row = Bandit.objects.locked(bandit)
        if row.kind != BanditKind.MANY:
            raise ValueError(f"expected a bandit of which many arms are taken; {row.name!r}: {row.get_kind_display()}")
        known = {text: Arm.objects.resolve(bandit, text) for text in dict.fromkeys(arms)}
        held = list(of_decision(bandit, decision_id, agent))
        fresh = sorted(set(known.values()) - {each.arm.current for each in held}, key=lambda arm: arm.name)
        left_out = {arm.name: reason for arm in fresh if (reason := out_of_use(arm))}
        drawn = [arm for arm in fresh if arm.name not in left_out]
        where = context_of(row, context)
        version = version_of(row)
        over = [each.observation for each in held if each.observation]
        if drawn and over:
            raise Taken(f"decision {decision_id!r} is over: {over[0]} came of it; draw before the work begins")
        if drawn and not held:
            _require_room(row, version, agent, now)
        shares = {arm: version.chance_of_taking(is_decided=arm.name in decided) for arm in drawn}
        Assignment.objects.bulk_create(
            Assignment(
                bandit=row,
                decision_id=decision_id,
                arm=arm,
                taken=chance(f"holdout of {arm.name}", row.name, agent, decision_id) < share,
                chance=share,
                key_id=key_id(),
                agent=agent,
                context="" if where is None else where.name,
                created=now,
            )
            for arm, share in shares.items()
        )
        return Drawn(
            decision_id=decision_id,
            rows=tuple(of_decision(bandit, decision_id, agent)),
            left_out=left_out,
            names={text: arm.name for text, arm in known.items()},
        )


def of_decision(bandit: str, decision_id: str, agent: str) -> QuerySet[Assignment]:
    """The draws of this agent's decision, in the order of their arms' names."""
    rows = Assignment.objects.filter(bandit__name=bandit, agent=agent, decision_id=decision_id)
    return rows.select_related("arm__merged_into").order_by("arm__name")


def close(bandit: str, decision_id: str, *, observation: str, agent: str) -> list[Assignment]:
    """The draws of a decision, which this observation came of; none where nothing was drawn for this agent. From before
    draws had agents they may be anybody's.

    Must run in the caller's transaction. Raises Taken where another observation came of them.
    """
    own = list(of_decision(bandit, decision_id, agent).select_for_update(of=("self",)))
    rows = own or list(of_decision(bandit, decision_id, "").select_for_update(of=("self",)))
    for row in rows:
        if row.observation not in ("", observation):
            raise Taken(f"decision {decision_id!r} was closed by {row.observation}; {observation} cannot close it too")
    Assignment.objects.filter(pk__in=[row.pk for row in rows], observation="").update(observation=observation)
    return rows


def _require_room(bandit: Bandit, version: PolicyVersion, agent: str, now: datetime) -> None:
    """As for decisions: who may draw without end can draw until it suits."""
    limit = version.open_decisions
    if limit is None or not agent:
        return
    waiting = bandit.assignments.filter(agent=agent, observation="", created__gt=now - OPEN_FOR)
    held = list(waiting.order_by("decision_id").values_list("decision_id", flat=True).distinct()[:limit])
    if len(held) >= limit:
        raise TooManyOpen(
            f"draws of lessons wait for {limit} sessions, and no more may: {', '.join(map(repr, held[:MAX_LISTED]))}. "
            "Send one of these sessions with its lessons_decision_id, or begin it: asked again with that id, its draws "
            "are as before. One that came to nothing gives its place back "
            f"{OPEN_FOR // timedelta(hours=1)} hours after it was asked for."
        )
