"""Reading transcripts of any length: an index of each, made once, from which pages and hits come at once.

announce, ask ─► build (a worker, or a thread) ─► the shelf ─► page, find
"""

from grading.evidence.transcripts.building import announce, build
from grading.evidence.transcripts.index import PAGE, SearchHits
from grading.evidence.transcripts.lines import TranscriptLine
from grading.evidence.transcripts.pages import TranscriptPage, find, page
from grading.evidence.transcripts.shelf import IndexProgress, forget

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
    "page",
]
