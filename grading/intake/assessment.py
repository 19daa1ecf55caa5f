"""What a session is worth now: its sources, its outcome, the judge, the reward, and what people should look at.

Whoever changes what counts for a session ends here: an intake, an erasure, new rules.
"""

from collections.abc import Mapping

from grading import judging, review
from grading.models import Session
from grading.reward import rewards, sources
from grading.signals import Signals


def assess(session: Session, parsed: Mapping[str, Signals] | None = None, *, ask: bool = True) -> list[Session]:
    """Grade, settle and inspect a session that the caller has locked; where nothing changed, nothing is written.

    `parsed` is as in `sources.grade`, and so are the sessions that it returns. `ask`: see to it that the judge is asked
    about what it has not read.
    """
    copies = sources.grade(session, parsed)
    if ask:
        judging.enqueue(session)
    rewards.settle(session)
    review.recheck(session)
    if ask and judging.read_again(session) is not None:
        rewards.settle(session)
    return copies
