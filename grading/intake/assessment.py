"""Assessing a session: grading it by its sources, its outcome, the judge, the reward, and its flags.

It runs after every change of what counts for a session: an intake, an erasure, new rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db.models import prefetch_related_objects

from grading import spending
from grading.evidence import ownership
from grading.judging import enqueuing
from grading.models import Artifact, Session, Settlement
from grading.review import queue
from grading.reward import rewards, sources
from grading.reward.sources import NOTHING_PARSED, ParsedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessed:
    """The result of an assessment: the session's current `settlement`; `copies`, the sessions with copies of its
    artifacts, which must be assessed too; and whether a flag went up or down.
    """

    settlement: Settlement
    copies: Sequence[Session]
    flagged: bool


def assess(
    session: Session,
    parsed: ParsedFiles = NOTHING_PARSED,
    *,
    enqueue: bool = True,
    is_new: bool = False,
    alarms: bool = True,
) -> Assessed:
    """Grade and settle a session that the caller has locked, and update its cost and its flags. Writes nothing if
    nothing changed.

    `parsed`: the files that were parsed before. `enqueue`: have the judge read the session unless it has read
    everything. `is_new`: the session has new evidence. `alarms`: check the alarms at once.
    """
    # Grading adds no facts, claims or parts. The artifacts that it adds are loaded again where they matter.
    prefetch_related_objects([session], "evidence", "artifacts", "parts")
    copies = sources.grade(session, parsed)
    spending.record(session)
    if enqueue:
        prefetch_related_objects([session], "grades", "judge_jobs")
        job = enqueuing.enqueue(session, is_new=is_new)
        has_changed = ["grades"] if job is None else ["grades", "judge_jobs"]
        session.refresh_from_db(fields=has_changed)  # only drops these prefetched rows
    # No more grades are added; flags only by the rules.
    prefetch_related_objects([session], "grades", "flags", "judge_jobs")
    settlement = rewards.settle_locked(session)
    flagged = queue.recheck(session, alarms=alarms)
    if enqueue and enqueuing.read_again(session) is not None:
        settlement = rewards.settle(session)  # the reward depends on whether a further reading may come
    elif flagged:  # `recheck` settled the session again
        settlement = rewards.live(session) or settlement
    return Assessed(settlement=settlement, copies=copies, flagged=flagged)


def assess_with_affected(
    session: Session,
    new_claims: Sequence[Artifact] = (),
    parsed: ParsedFiles = NOTHING_PARSED,
    *,
    is_new: bool = False,
    alarms: bool = True,
) -> Assessed:
    """`assess` a session whose evidence or dates changed, and every other that gains or loses something by it.

    `new_claims` are unsaved claims from facts. `is_new`: the session has new evidence. Returns the session's assessment
    with the flags of all of them. Runs in the caller's transaction, after `ownership.lock`.
    """
    affected = ownership.update([session], new_claims) - {session.pk}
    others = ownership.lock_sessions(affected)
    own = assess(session, parsed, is_new=is_new, alarms=alarms)
    others += [copy for copy in own.copies if copy.pk not in affected]
    flags = [own.flagged, *(assess(other, alarms=alarms).flagged for other in others)]
    return replace(own, flagged=any(flags))
