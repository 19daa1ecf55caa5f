"""The editor of rubrics: begins from an existing one, adds and removes rows, previews, and saves a new version.

It needs no script: every button posts the whole form and gets it back with all that was typed.
"""

from dataclasses import dataclass, field
from typing import Self
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse

from grading.judging.core import rubric as core
from grading.judging.rubrics import examples, versions
from grading.models import Grade, Rubric
from grading.plain import primary_key
from grading.reward.explain import weight
from grading.screens.http import StaffRequest, staff_view
from grading.screens.rubrics.preview import PromptPreview, find_session, recent_sessions
from grading.vocabulary import Source

OFFERED = 12
DIMENSION, BAND = ("name", "weight", "text"), ("name", "low", "text")
BLANK_ROWS: dict[str, dict[str, str]] = {"dimensions": dict.fromkeys(DIMENSION, ""), "bands": dict.fromkeys(BAND, "")}


@dataclass(slots=True, kw_only=True)
class RubricDraft:
    """The form as typed. `examples` are the grades chosen, by primary key."""

    title: str
    text: str
    note: str = ""
    dimensions: list[dict[str, str]] = field(default_factory=list)
    bands: list[dict[str, str]] = field(default_factory=list)
    examples: list[int] = field(default_factory=list)
    shows_examples: bool = False

    @classmethod
    def from_rubric(cls, rubric: Rubric) -> Self:
        """A rubric as it would have been typed."""
        return cls(
            title=rubric.title,
            text=rubric.text,
            dimensions=[{**row, "weight": weight(row["weight"])} for row in rubric.dimensions],
            bands=[{**row, "low": weight(row["low"])} for row in rubric.bands],
            examples=[example["grade"] for example in rubric.examples],
            shows_examples=bool(rubric.examples),
        )

    @classmethod
    def posted(cls, post: QueryDict) -> Self:
        """The submitted rows, blank ones too."""
        return cls(
            title=_plain(post.get("title", "")).strip(),
            text=_plain(post.get("text", "")).strip(),
            note=_plain(post.get("note", "")).strip()[: core.NOTE_LIMIT],
            dimensions=_rows(post, "dimension", DIMENSION),
            bands=_rows(post, "band", BAND),
            examples=[key for text in post.getlist("example") if (key := primary_key(text))],
            shows_examples="shows_examples" in post,
        )

    def drop_blank_rows(self) -> None:
        self.dimensions = [row for row in self.dimensions if not core.is_blank(row)]
        self.bands = [row for row in self.bands if not core.is_blank(row)]

    def problems(self) -> core.Problems:
        example_count = len(self.examples) if self.shows_examples else 0
        return core.problems(
            title=self.title, text=self.text, dimensions=self.dimensions, bands=self.bands, examples=example_count
        )

    def rubric(self, parent: Rubric) -> Rubric:
        """The unsaved rubric of a draft without problems. Raises what reading the evidence of a new example raises."""
        # In the order in which they were chosen. Those of the parent are copied unchanged.
        chosen = list(dict.fromkeys(self.examples)) if self.shows_examples else []
        stored = {example["grade"]: example for example in parent.examples}
        grades = examples.labelled().in_bulk([pk for pk in chosen if pk not in stored])
        made = {pk: examples.make_example(grade) for pk, grade in grades.items()} | stored
        return Rubric(
            title=self.title,
            text=self.text,
            note=self.note,
            dimensions=[core.cleaned_row(row, "weight") for row in self.dimensions],
            bands=[core.cleaned_row(row, "low") for row in self.bands],
            examples=[made[pk] for pk in chosen if pk in made],
            parent=parent,
        )


@staff_view("grading.add_rubric")
def show(request: StaffRequest, pk: int) -> HttpResponse:
    parent = get_object_or_404(Rubric, pk=pk)
    posting = request.method == "POST"
    draft = RubricDraft.posted(request.POST) if posting else RubricDraft.from_rubric(parent)
    unsaved, problems = None, dict[str, str]()
    if posting and not _add_or_remove_row(draft, request.POST):
        draft.drop_blank_rows()
        problems = draft.problems()
        try:
            unsaved = None if problems else draft.rubric(parent)
        except OSError as error:
            problems = {"examples": f"The evidence of an example could not be read ({error}). Remove the example."}
        if unsaved is not None and request.POST.get("do") in {"save", "try"}:
            return _save_and_redirect(request, unsaved)
    try:
        total = round(sum(float(row["weight"]) for row in draft.dimensions), 6)
    except ValueError:
        total = None
    recent = recent_sessions()
    named = request.POST.get("session", "") or (recent[0]["value"] if recent else "")
    session, missing = find_session(named)
    preview = None
    if request.POST.get("do") == "preview" and unsaved is not None and session is not None:
        preview = PromptPreview.for_session(session, unsaved)
    # The chosen grades first, then others that people gave, by what was searched for.
    search = request.POST.get("find", "")
    grades = Grade.objects.filter(source=Source.HUMAN, pk__in=draft.examples)
    chosen = grades.select_related("session__category", "author")
    others = examples.labelled(search.strip()).exclude(pk__in=draft.examples)[:OFFERED]
    return TemplateResponse(
        request,
        "rubrics/rubric_edit.html",
        {
            "title": "A new version of a rubric",
            "parent": parent,
            "draft": draft,
            "problems": problems,
            "sum": total,
            "find": search,
            "offered": [{"grade": grade, "chosen": grade.pk in draft.examples} for grade in [*chosen, *others]],
            "most": core.MOST_EXAMPLES,
            "named": named,
            "recent": recent,
            "preview": preview,
            "missing": missing,
        },
    )


def _plain(typed: str) -> str:
    """The text with the line ends of Unix, and without the character that a database refuses."""
    return typed.replace("\r\n", "\n").replace("\0", "")


def _rows(post: QueryDict, noun: str, columns: tuple[str, ...]) -> list[dict[str, str]]:
    typed = [map(_plain, post.getlist(f"{noun}_{column}")) for column in columns]
    return [dict(zip(columns, row, strict=True)) for row in zip(*typed, strict=False)]


def _add_or_remove_row(draft: RubricDraft, post: QueryDict) -> bool:
    """Add or remove a row if the pressed button does that. Returns whether it does; nothing is checked then."""
    section, _, index = post.get("remove", "").partition("-")
    rows = {"dimensions": draft.dimensions, "bands": draft.bands}
    if section in rows and index in map(str, range(len(rows[section]))):
        del rows[section][int(index)]
        return True
    added = post.get("do", "").removeprefix("add-")
    if added in rows:
        rows[added].append(dict(BLANK_ROWS[added]))
        return True
    return False


def _save_and_redirect(request: StaffRequest, unsaved: Rubric) -> HttpResponse:
    saved, is_new = versions.save(unsaved, author=request.user)
    if is_new:
        messages.success(
            request, f"Saved as {saved}. The new rubric is not in force yet. Try it, then put it in force."
        )
    else:
        messages.info(request, f"Nothing was saved, because this rubric already exists as {saved}.")
    if request.POST.get("do") == "try":
        session = urlencode({"session": request.POST.get("session", "")})
        return redirect(f"{reverse('admin:rubric_try', args=[saved.pk])}?{session}")
    return redirect("admin:rubric", pk=saved.pk)
