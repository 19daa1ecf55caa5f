"""Imports from folders: the list, and one import with the result for each file."""

from collections import defaultdict

from django.core.paginator import Paginator
from django.db.models import Count
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse

from grading.formats.registry import PARSERS
from grading.intake.importing import IMPORTS_WITH_FILES
from grading.models import LogImport
from grading.models.imports import Fate
from grading.screens.http import StaffRequest, staff_view

LISTED, FILES_SHOWN = 50, 100
WHYS_SHOWN = 6


@staff_view("grading.view_logimport")
def show(request: StaffRequest) -> TemplateResponse:
    page = Paginator(LogImport.objects.select_related("agent"), LISTED).get_page(request.GET.get("page"))
    places = [(parser.title, parser.logs.split(";")[0]) for parser in PARSERS.values()]
    context = {
        "title": "Imports",
        "page": page,
        "folders": [(title, place) for title, place in places if place.startswith("~")],  # others write where told
    }
    return TemplateResponse(request, "imports/imports.html", context)


@staff_view("grading.view_logimport")
def detail(request: StaffRequest, pk: int) -> TemplateResponse:
    """One import with its files; `fate` filters them."""
    row = get_object_or_404(LogImport.objects.select_related("agent"), pk=pk)
    chosen = next((fate for fate in Fate if fate == request.GET.get("fate")), None)
    files = row.found.select_related("session")
    if chosen is not None:
        files = files.filter(fate=chosen)
    whys: dict[str, list[str]] = defaultdict(list)
    reasons = row.found.exclude(why="").values_list("fate", "why").annotate(n=Count("pk")).order_by("-n", "why")
    for fate, why, count in reasons:
        whys[fate].append(f"{why} ({count:,})")
    context = {
        "title": f"Import {row.pk}",
        "import": row,
        "rows": [
            {"fate": fate, "count": count, "why": whys[fate][:WHYS_SHOWN], "more": len(whys[fate][WHYS_SHOWN:])}
            for fate, count in row.tally
        ],
        "chosen": chosen,
        "page": Paginator(files, FILES_SHOWN).get_page(request.GET.get("page")),
        "query": f"fate={chosen}" if chosen else "",
        "kept": IMPORTS_WITH_FILES,
    }
    return TemplateResponse(request, "imports/import.html", context)
