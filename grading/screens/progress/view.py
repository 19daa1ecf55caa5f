"""Progress of reviewing: the answers of each person, how much people differ from each other and from the judge."""

from django.template.response import TemplateResponse

from grading.review import progress
from grading.screens.http import StaffRequest, staff_view


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    """The page of reviewers' progress, in a constant number of queries."""
    report = progress.progress()
    context = {
        "title": "Progress",
        "total": report.total,
        "rows": report.rows,
        "days": progress.DAYS,
        "lean": lean(report.total.judge.bias),
    }
    return TemplateResponse(request, "progress/progress.html", context)


def lean(bias: float | None) -> dict[str, object] | None:
    """Whether people grade higher or lower than the judge, and by how much; None if the two-digit bias is 0."""
    if bias is None or not round(bias, 2):
        return None
    return {"size": abs(bias), "side": "lower" if bias < 0 else "higher"}
