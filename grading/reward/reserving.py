"""Abstentions that are judged first, so that silence speaks through judged samples: drawn once, by keyed chance.

Where failures leave no trace and successes do, an arm looks good by what is missing. So of each arm's sessions that
nobody could grade some are judged whatever else waits, and can stand for the others: chosen by nobody, foreseen by
nobody, and for good.
"""

from bandit.chance import chance, key_id
from grading.models import AbstentionDraw, JudgePolicy, Session
from grading.models.judging import Purpose
from grading.reward.reserve import draw as drawn_by

BANDIT = "category"


def draw(session: Session) -> None:
    """Draw a session that abstains, unless it was drawn or passed over in this arm before; its waiting job goes first.

    To be called with the category bandit locked, so that an arm's abstentions come one after the other.
    """
    arm = session.category
    if arm is None or AbstentionDraw.objects.filter(session=session, arm=arm).exists():
        return
    # The arm is part of the question: in another it is another draw.
    number = chance(f"abstention of {arm.name}", BANDIT, session.agent.name, session.external_id)
    share = JudgePolicy.objects.current().abstention_share
    abstentions = AbstentionDraw.objects.of_arm(arm.current.pk).order_by("-pk")
    last_drawn = abstentions.drawn().values_list("pk", flat=True).first()
    found = drawn_by(number, share, passed_over=abstentions.filter(pk__gt=last_drawn or 0).count())
    AbstentionDraw.objects.create(session=session, arm=arm, drawn=found.drawn, chance=found.chance, key_id=key_id())
    if found.drawn:
        session.judge_jobs.open().filter(purpose=Purpose.VERDICT).update(reserved=True)


def is_reserved(session: Session) -> bool:
    """Whether the session was drawn, in whatever arm."""
    return AbstentionDraw.objects.drawn().filter(session=session).exists()
