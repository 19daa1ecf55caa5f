"""Like work: which sessions of a table are compared with which."""

from dataclasses import dataclass

import numpy as np

from grading.insight.core.cells import Booleans, CellTable, Floats, Integers, group_sums

# A project of a category is compared by itself with this many sessions on each side, and a category with so many.
MIN_PROJECT, MIN_CATEGORY = 10, 5
OTHER_CATEGORIES = "other categories"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCells:
    """The cells of like work: `codes[i]` is that of row i, `categories[k]` the name of the category of cell k."""

    codes: Integers
    categories: tuple[str, ...]


def group_work(table: CellTable, counts: tuple[Floats, Floats], *, by_project: bool = True) -> WorkCells:
    """Group rows by category and project. `counts`: for each row, how many of its sessions are on either side of the
    comparison.

    A project with too few sessions is pooled with the others of its category, and a small category with the other small
    ones of the same grader: kinds of work have rubrics of their own, and pooled across them, other work would look like
    other graders. Work that one side has hardly any of, and the other has much of, stays by itself: pooled, other work
    would look like a change of the same work.
    """
    category, project = table.columns["category"], table.columns["project"]
    width = len(project.labels)
    # Codes of categories follow those of the pairs, and then come those of small categories by their grader.
    base = len(category.labels) * width
    codes = base + category.codes
    if by_project:
        pairs = category.codes * width + project.codes
        codes = np.where(_is_separate(pairs, counts, MIN_PROJECT), pairs, codes)
    separate = (codes < base) | _is_separate(codes, counts, MIN_CATEGORY)
    codes = np.where(separate, codes, base + len(category.labels) + _main_graders(table, counts)[category.codes])
    used, compact = np.unique(codes, return_inverse=True)
    names = []
    for code in used:
        number = code // width if code < base else code - base
        names.append(str(category.labels[number]) if number < len(category.labels) else OTHER_CATEGORIES)
    return WorkCells(codes=compact.astype(np.int64), categories=tuple(names))


def _main_graders(table: CellTable, counts: tuple[Floats, Floats]) -> Integers:
    """The code of the grader that gave most values of each category, on both sides together; of several, the first by
    its text.
    """
    category, grader = table.columns["category"], table.columns["grader"]
    shape = (len(category.labels), len(grader.labels))
    pairs = category.codes * shape[1] + grader.codes
    values = group_sums(pairs, counts[0] + counts[1], shape[0] * shape[1]).reshape(shape)
    by_text = np.array(sorted(range(shape[1]), key=lambda code: str(grader.labels[code])), dtype=np.int64)
    return np.asarray(by_text[values[:, by_text].argmax(axis=1)], dtype=np.int64)


def _is_separate(codes: Integers, counts: tuple[Floats, Floats], least: int) -> Booleans:
    """For each row, whether its group is large enough on both sides, or is work of one side alone."""
    size = int(codes.max(initial=0)) + 1
    sides = [group_sums(codes, each, size) for each in counts]
    smaller, larger = np.minimum(*sides), np.maximum(*sides)
    separate = (smaller >= least) | ((larger >= MIN_PROJECT) & (smaller < MIN_CATEGORY))
    return np.asarray(separate[codes], dtype=bool)
