"""Which kind of work each category is, and so which rubric its sessions are judged by, for many sessions at once."""

from bandit.models import Arm
from grading.vocabulary import WorkKind

CATEGORIES = "category"


def categories() -> list[int]:
    """Every category there is or was. One query."""
    return list(Arm.objects.filter(bandit__name=CATEGORIES).values_list("pk", flat=True))


def of_categories() -> dict[int, WorkKind]:
    """The kind of work of each category that is not production; a merged one is what it became. One query."""
    found = {}
    for arm in Arm.objects.filter(bandit__name=CATEGORIES).select_related("merged_into"):
        if arm.current.is_consumption:
            found[arm.pk] = WorkKind.CONSUMPTION
        elif arm.current.is_looking:
            found[arm.pk] = WorkKind.LOOKING
    return found
