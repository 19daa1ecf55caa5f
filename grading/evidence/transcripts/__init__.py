"""Reading transcripts of any length by an index of each, which is built once and gives pages and search hits at once.

announce, request_index ─► build (a worker, or a thread) ─► the cache ─► page, find
"""

from grading.evidence.transcripts.building import announce, build
from grading.evidence.transcripts.cache import IndexProgress, cached_hashes, forget
from grading.evidence.transcripts.index import PAGE, SearchHits
from grading.evidence.transcripts.lines import TranscriptLine
from grading.evidence.transcripts.pages import TranscriptPage, find, hidden_in, page, page_number
