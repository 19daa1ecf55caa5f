"""Reading transcripts of any length: an index of each, made once, from which pages and hits come at once.

announce, ask ─► build (a worker, or a thread) ─► the cache ─► page, find
"""

from grading.evidence.transcripts.building import announce, build
from grading.evidence.transcripts.cache import IndexProgress, forget
from grading.evidence.transcripts.index import PAGE, SearchHits
from grading.evidence.transcripts.lines import TranscriptLine
from grading.evidence.transcripts.pages import TranscriptPage, find, hidden_in, page

__all__ = [
    "PAGE",
    "IndexProgress",
    "SearchHits",
    "TranscriptLine",
    "TranscriptPage",
    "announce",
    "build",
    "find",
    "forget",
    "hidden_in",
    "page",
]
