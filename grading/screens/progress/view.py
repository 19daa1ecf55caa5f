"""Progress: what each person has reviewed, how far they are from each other and from the judge, what waits for them."""

from django.template.response import TemplateResponse

from grading.review import progress
from grading.screens.http import StaffRequest, staff_view


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    """A constant number of queries."""
    told = progress.progress()
    context = {
        "title": "Progress",
        "total": told.total,
        "rows": told.rows,
        "days": progress.DAYS,
        "lean": lean(told.total.judge.bias),
    }
    return TemplateResponse(request, "progress/progress.html", context)


def lean(bias: float | None) -> dict[str, object] | None:
    """On which side of the judge people grade, and by how much; None where no shown digit differs."""
    if bias is None or not round(bias, 2):
        return None
    return {"size": abs(bias), "side": "lower" if bias < 0 else "higher"}
