"""The glossary: what each term means here, read from docs/words.md."""

import re
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from django.template.response import TemplateResponse
from django.utils.text import slugify

from grading.screens.http import StaffRequest, staff_view
from gradingsite.state import RESOURCES

ROW = re.compile(r"^\| (?P<word>[^|]+?) \| (?P<meaning>[^|]+?) \|$", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """A term and its meaning; `anchor` is its place on the page of words."""

    word: str
    meaning: str

    @property
    def anchor(self) -> str:
        return slugify(self.word)

    @property
    def initial(self) -> str:
        return self.word[0].upper()


# What a newcomer meets first, in the order in which the pages build on each other.
FIRST_TERMS = (
    "session",
    "reward",
    "source",
    "verdict",
    "provisional",
    "bandit",
    "arm",
    "category",
    "harness",
    "outcome",
)


@cache
def terms() -> tuple[Term, ...]:
    """Every term of docs/words.md, in alphabetical order."""
    text = (RESOURCES / "docs" / "words.md").read_text(encoding="utf-8")
    rows = [Term(word=row["word"], meaning=LINK.sub(r"\1", row["meaning"])) for row in ROW.finditer(text)]
    return tuple(row for row in rows if row.word not in {"word", "---"})


@cache
def _by_name() -> MappingProxyType[str, Term]:
    return MappingProxyType({name: term for term in terms() for name in term.word.split(", ")})


def find(text: str) -> Term | None:
    """The term with this name, in the singular or with an s; None if the glossary has none."""
    name, by_name = text.strip().lower(), _by_name()
    return by_name.get(name) or by_name.get(name.removesuffix("s"))


@staff_view("grading.view_session")
def show(request: StaffRequest) -> TemplateResponse:
    """The glossary; `q` keeps the terms that contain it."""
    text = request.GET.get("q", "").strip()
    matching = [term for term in terms() if text.lower() in f"{term.word} {term.meaning}".lower()]
    first_terms = [] if text else [_by_name()[name] for name in FIRST_TERMS]
    context = {"title": "Glossary", "terms": matching, "text": text, "first_terms": first_terms}
    return TemplateResponse(request, "words/words.html", context)
