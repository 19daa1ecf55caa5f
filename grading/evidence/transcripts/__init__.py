"""Reading transcripts of any length: an index of each, made once, from which pages and hits come at once.

announce, ask ─► build (a worker, or a thread) ─► the shelf ─► page, find
"""

from grading.evidence.transcripts.building import announce, build
from grading.evidence.transcripts.index import PAGE, Found
from grading.evidence.transcripts.lines import Line
from grading.evidence.transcripts.pages import Page, find, page
from grading.evidence.transcripts.shelf import Progress, forget

__all__ = ["PAGE", "Found", "Line", "Page", "Progress", "announce", "build", "find", "forget", "page"]
