"""Draws abstentions that are judged first, once for each session and arm, by keyed chance.

If failures leave no trace and successes do, an arm looks better than it is. So some of each arm's sessions that no
source could grade are judged before all others, and represent the rest. Nobody can choose, predict or repeat the draw.
"""

from bandit.chance import chance, key_id
from grading.models import AbstentionDraw, JudgePolicy, Session
from grading.models.judging import Purpose
from grading.reward.reserve import draw_next

BANDIT = "category"


def draw(session: Session) -> None:
    """Draw a session that abstains, unless it was drawn or passed over in this arm before.

    If it is drawn, its open judge job is reserved. Call this with the category bandit locked, so that an arm's
    abstentions are drawn one after the other.
    """
    arm = session.category
    if arm is None or AbstentionDraw.objects.filter(session=session, arm=arm).exists():
        return
    # The arm is part of the key: in another arm it is another draw.
    number = chance(f"abstention of {arm.name}", BANDIT, session.agent.name, session.external_id)
    share = JudgePolicy.objects.current().abstention_share
    abstentions = AbstentionDraw.objects.of_arm(arm.current.pk).order_by("-pk")
    last_drawn = abstentions.drawn().values_list("pk", flat=True).first()
    drawing = draw_next(number, share, passed_over=abstentions.filter(pk__gt=last_drawn or 0).count())
    AbstentionDraw.objects.create(session=session, arm=arm, drawn=drawing.drawn, chance=drawing.chance, key_id=key_id())
    if drawing.drawn:
        session.judge_jobs.open().filter(purpose=Purpose.VERDICT).update(reserved=True)


def is_reserved(session: Session) -> bool:
    """Whether the session was drawn in any arm."""
    return AbstentionDraw.objects.drawn().filter(session=session).exists()
