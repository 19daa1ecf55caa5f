"""A session's transcript: the page that a screen begins with, its neighbours as they are scrolled to, and a search."""

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_GET

from grading.evidence import store, transcripts
from grading.evidence.transcripts import IndexProgress, TranscriptPage
from grading.models import Evidence, Session
from grading.models.evidence import EvidenceKind

NONE = "No transcript that could be used was received."
QUERY_LIMIT = 200
CITED_LIMIT = 1000
BAD_REQUEST, NOT_FOUND = 400, 404


def page(session: Session, event: str) -> TranscriptPage:
    """The page that holds event number `event`; the first for what is no number."""
    row = _row(session)
    return TranscriptPage(problem=NONE) if row is None else transcripts.page(row, _number(event) or 1)


@require_GET
def events(request: HttpRequest, pk: int) -> HttpResponse:
    """`?from=N`: the page that holds event N as HTML. `cited` and `flagged` are numbers, as "3,118", to be marked."""
    number = _number(request.GET.get("from", ""))
    cited, flagged = _numbers(request.GET.get("cited", "")), _numbers(request.GET.get("flagged", ""))
    if number is None or cited is None or flagged is None:
        expected = "from, the number of an event from 1, and in cited and flagged such numbers with commas between"
        return _plain(f"Expected {expected}. Change the address.", BAD_REQUEST)
    found = page(get_object_or_404(Session, pk=pk), str(number))
    if found.problem:
        return _plain(found.problem, NOT_FOUND)
    context = {"transcript": found, "citations": cited, "flag_citations": flagged}
    return render(request, "session/_events.html", context)


@require_GET
def find(request: HttpRequest, pk: int) -> JsonResponse:
    """`?q=…&after=N`: the events after N that have q in them, whatever its case.

    `hits` up to event `searched`, of `last` events; `more` where others follow, to be asked for after `searched`; or
    `reading`, how far the index is, in words: ask again in a moment.
    """
    query, after = request.GET.get("q", ""), _number(request.GET.get("after", "0"), least=0)
    if not query.strip() or len(query) > QUERY_LIMIT or after is None:
        expected = f"q, 1 to {QUERY_LIMIT} characters to look for, and in after the number of an event"
        return JsonResponse({"error": f"Expected {expected}. Change what you look for."}, status=BAD_REQUEST)
    row = _row(get_object_or_404(Session, pk=pk))
    found = IndexProgress(problem=NONE) if row is None else transcripts.find(row, query, after)
    if isinstance(found, IndexProgress):
        if found.problem:
            return JsonResponse({"error": found.problem}, status=NOT_FOUND)
        return JsonResponse({"reading": str(found)})
    return JsonResponse({"hits": found.hits, "searched": found.searched, "more": found.more})


def _row(session: Session) -> Evidence | None:
    return store.usable(session, EvidenceKind.TRANSCRIPT)


def _number(text: str, least: int = 1) -> int | None:
    """An event's number, or None. No absurd ones."""
    return int(text) if text.isdecimal() and len(text) < 10 and int(text) >= least else None  # noqa: PLR2004


def _numbers(text: str) -> list[int] | None:
    found = [_number(part) for part in text.split(",")] if text else []
    known = [number for number in found if number is not None]
    return known if len(known) == len(found) <= CITED_LIMIT else None


def _plain(words: str, status: int) -> HttpResponse:
    return HttpResponse(words, status=status, content_type="text/plain; charset=utf-8")
