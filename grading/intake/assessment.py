"""What a session is worth now: its sources, its outcome, the judge, the reward, and what people should look at.

Whoever changes what counts for a session ends here: an intake, an erasure, new rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from grading import judging, review
from grading.evidence import ownership
from grading.models import Artifact, Session
from grading.reward import rewards, sources
from grading.reward.sources import NOTHING_PARSED, ParsedFiles


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessed:
    """The session that was assessed; `copies` as in `sources.grade`; `flagged`: whether a flag went up or down."""

    session: Session
    copies: Sequence[Session] = ()
    flagged: bool = False


def assess(
    session: Session,
    parsed: ParsedFiles = NOTHING_PARSED,
    *,
    ask: bool = True,
    is_new: bool = False,
    alarms: bool = True,
) -> Assessed:
    """Grade, settle and inspect a session of `Session.objects.for_grading()`; where nothing changed, write nothing.

    `parsed` as in `sources.grade`. `ask`: enqueue the session for the judge where it has not read everything. `is_new`
    as in `judging.enqueue`. `alarms`: check the alarms at once.
    """
    copies = sources.grade(session, parsed)
    if ask:
        judging.enqueue(session, is_new=is_new)
    rewards.settle(session)
    flagged = review.recheck(session, alarms=alarms)
    if ask and judging.read_again(session) is not None:
        rewards.settle(session)
    return Assessed(session=session, copies=copies, flagged=flagged)


def assess_with_affected(
    session: Session,
    new_claims: Sequence[Artifact] = (),
    parsed: ParsedFiles = NOTHING_PARSED,
    *,
    is_new: bool = False,
    alarms: bool = True,
) -> Assessed:
    """`assess` a session whose evidence or dates changed, and every other that wins or loses something by it.

    `new_claims` are those from facts, not saved yet. `is_new`: the session has new evidence. Returns the session as it
    was graded, and whether a flag of any session went up or down. Runs in the caller's transaction, after
    `ownership.alone`.
    """
    affected = ownership.update([session], new_claims) | {session.pk}
    graded, *others = sorted(ownership.locked(affected), key=lambda each: each.pk != session.pk)
    own = assess(graded, parsed, is_new=is_new, alarms=alarms)
    others += [copy for copy in own.copies if copy.pk not in affected]
    flagged = [assess(other, alarms=alarms).flagged for other in others]
    return replace(own, flagged=own.flagged or any(flagged))
