"""What a session is worth now: its sources, its outcome, the judge, the reward, and what people should look at.

Whoever changes what counts for a session ends here: an intake, an erasure, new rules.
"""

from collections.abc import Sequence

from grading import judging, review
from grading.evidence import ownership
from grading.models import Artifact, Session
from grading.reward import rewards, sources
from grading.reward.workings import Workings


def assess(
    session: Session, workings: Workings | None = None, *, ask: bool = True, alarms: bool = True
) -> list[Session]:
    """Grade, settle and inspect a session that the caller has locked; where nothing changed, nothing is written.

    `workings` are as in `sources.grade`, and so are the sessions that it returns. `ask`: see to it that the judge is
    asked about what it has not read. `alarms`: let them say at once what holds now.
    """
    copies = sources.grade(session, workings)
    if ask:
        judging.enqueue(session)
    rewards.settle(session)
    review.recheck(session, alarms=alarms)
    if ask and judging.read_again(session) is not None:
        rewards.settle(session)
    return copies


def assess_with_others(
    session: Session, claims: Sequence[Artifact] = (), workings: Workings | None = None, *, alarms: bool = True
) -> None:
    """`assess` a session whose evidence or dates changed, and every other that wins or loses something by it.

    `claims` are those from facts that are not saved yet. In the caller's transaction, after `ownership.alone`.
    """
    moved = ownership.update([session], claims) - {session.pk}
    others = ownership.locked(moved)
    copies = assess(session, workings, alarms=alarms)
    for other in (*others, *(copy for copy in copies if copy.pk not in moved)):
        assess(other, alarms=alarms)
