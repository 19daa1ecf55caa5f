"""The kind of work of each category, which decides the rubric."""

from bandit.models import Arm
from grading.vocabulary import WorkKind

CATEGORIES = "category"


def categories() -> list[int]:
    """The primary keys of all categories, merged ones too. One query."""
    return list(Arm.objects.filter(bandit__name=CATEGORIES).values_list("pk", flat=True))


def of_categories() -> dict[int, WorkKind]:
    """The kind of work by category (primary key), only of those whose kind is not production. A merged category has the
    kind of its target. One query.
    """
    kinds = {}
    for arm in Arm.objects.filter(bandit__name=CATEGORIES).select_related("merged_into"):
        if arm.current.is_consumption:
            kinds[arm.pk] = WorkKind.CONSUMPTION
        elif arm.current.is_looking:
            kinds[arm.pk] = WorkKind.LOOKING
    return kinds
