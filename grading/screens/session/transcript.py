"""The transcript's tab: one page of events, the citations before and after it, and a search of the whole transcript."""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from grading.evidence import store, transcripts
from grading.evidence.transcripts import PAGE, IndexProgress, SearchHits, TranscriptPage
from grading.models import Evidence, Session
from grading.models.evidence import EvidenceKind
from grading.monitoring.log_formats import describe_unknown

NONE = "No usable transcript was received."
QUERY_LIMIT = 200
# The URL parameters of a position in the transcript.
PLACE = ("tab", "event", "page", "q", "after", "saved")


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search of the transcript and one hit. `result` says which of how many it is, or why there is none; `event` is
    its number. `previous` and `following` are queries for other hits, or for continuing the search. `waits`: the index
    is not built yet.
    """

    query: str = ""
    result: str = ""
    event: int | None = None
    previous: str = ""
    following: str = ""
    waits: bool = False


def context(request: HttpRequest, session: Session, citations: list[int]) -> dict[str, Any]:
    """The page of the transcript with `?event=N`, or `?page=N`, else the first; with `?q=…`, that of the next hit."""
    row = store.usable(session, EvidenceKind.TRANSCRIPT)
    if row is None:
        return {"transcript": TranscriptPage(problem=NONE)}
    event, page_number = _number(request.GET.get("event", "")), _number(request.GET.get("page", "")) or 1
    start = event or (page_number - 1) * PAGE + 1
    query, search = request.GET.get("q", "").strip()[:QUERY_LIMIT], Search()
    if query:
        search = _search(row, query, after=_number(request.GET.get("after", "")) or 0, start=start)
        event = search.event or event
    cited = sorted(citations)
    at = bisect_left(cited, event or start)
    is_cited = event in cited
    following = at + 1 if is_cited else at
    others = request.GET.copy()
    for name in PLACE:
        others.pop(name, None)
    others["tab"] = "transcript"
    return {
        "transcript": transcripts.page(row, event or start),
        "unknown_parts": describe_unknown(row.report),
        "event": event,
        "search": search,
        "others": others,
        "citation": at + 1 if is_cited else None,
        # Wraps around at the ends.
        "previous_citation": cited[at - 1] if cited else None,
        "next_citation": cited[following % len(cited)] if cited else None,
    }


def _search(row: Evidence, query: str, *, after: int, start: int) -> Search:
    """Search the events after number `after`, and return the first hit at or after event `start`; the first hit of all
    if there is none.
    """
    matches = transcripts.find(row, query, after)
    if isinstance(matches, SearchHits) and matches.more and matches.searched < start:
        after = start - 1  # the search stopped before the event from which it should find a hit
        matches = transcripts.find(row, query, after)
    if isinstance(matches, IndexProgress):
        return Search(query=query, result=matches.problem or str(matches), waits=not matches.problem)
    hits = matches.hits
    rest = _query(query, matches.searched, matches.searched + 1) if matches.more else ""
    if not hits:
        if not rest and not after:
            return Search(query=query, result="no event has it")
        result = f"not in events {after + 1:,} to {matches.searched:,}"
        return Search(query=query, result=result, following=rest or _query(query, 0, 1))
    index = bisect_left(hits, start) % len(hits)
    is_last = index == len(hits) - 1
    total = f"the first {len(hits):,}" if rest else f"{len(hits):,}"
    result = f"{index + 1:,} of {total}"
    return Search(
        query=query,
        result=f"{result} after {after:,}" if after else result,
        event=hits[index],
        previous=_query(query, after, hits[index - 1]),
        following=rest if rest and is_last else _query(query, after, hits[(index + 1) % len(hits)]),
    )


def _query(query: str, after: int, event: int) -> str:
    """The query string for a search of the events after number `after`, from the first hit at or after `event`."""
    return urlencode({"q": query, "after": after, "event": event})


def _number(text: str) -> int | None:
    """A number from 1 to 999,999,999, or None."""
    return int(text) if text.isdecimal() and len(text) < 10 and int(text) else None  # noqa: PLR2004
