"""Groups sessions of like work, which are compared with one another."""

from dataclasses import dataclass

import numpy as np

from grading.insight.core.cells import Booleans, CellTable, Floats, Integers, group_sums

# A project of a category is compared by itself with at least MIN_PROJECT sessions on each side of the comparison, and a
# category with at least MIN_CATEGORY.
MIN_PROJECT, MIN_CATEGORY = 10, 5
OTHER_CATEGORIES = "other categories"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkCells:
    """The cells of like work: `codes[i]` is the cell of row i, and `categories[k]` the category's name of cell k."""

    codes: Integers
    categories: tuple[str, ...]


def group_work(table: CellTable, counts: tuple[Floats, Floats], *, by_project: bool = True) -> WorkCells:
    """Group rows by category and project. `counts` has each row's number of sessions on either side of the comparison.

    - A project with too few sessions is pooled with the others of its category.
    - A small category is pooled with other small ones that have the same grader. Kinds of work have rubrics of their
      own: if they were pooled, a change of the work would look like a change of the graders.
    - Work that only one side has much of stays by itself. Pooled, other work would look like a change of like work.
    """
    category, project = table.columns["category"], table.columns["project"]
    categories, projects = len(category.labels), len(project.labels)
    # Three ranges of codes: pairs of category and project; from `first_category`, whole categories; and from
    # `first_pool`, pools of small categories by their grader.
    first_category = categories * projects
    first_pool = first_category + categories
    by_pair = category.codes * projects + project.codes
    by_category = first_category + category.codes
    by_pool = first_pool + _main_graders(table, counts)[category.codes]
    codes = np.where(_is_separate(by_pair, counts, MIN_PROJECT), by_pair, by_category) if by_project else by_category
    is_separate = (codes < first_category) | _is_separate(codes, counts, MIN_CATEGORY)
    codes = np.where(is_separate, codes, by_pool)
    used, compact = np.unique(codes, return_inverse=True)
    names = []
    for code in used:
        if code >= first_pool:
            names.append(OTHER_CATEGORIES)
        else:
            number = code // projects if code < first_category else code - first_category
            names.append(str(category.labels[number]))
    return WorkCells(codes=compact.astype(np.int64), categories=tuple(names))


def _main_graders(table: CellTable, counts: tuple[Floats, Floats]) -> Integers:
    """For each category, the code of the grader that gave most of its values, as an array (categories,).

    The values of both sides count. If several graders gave as many, the first by its text is taken.
    """
    category, grader = table.columns["category"], table.columns["grader"]
    shape = (len(category.labels), len(grader.labels))
    pairs = category.codes * shape[1] + grader.codes
    values = group_sums(pairs, counts[0] + counts[1], shape[0] * shape[1]).reshape(shape)
    by_text = np.array(sorted(range(shape[1]), key=lambda code: str(grader.labels[code])), dtype=np.int64)
    return np.asarray(by_text[values[:, by_text].argmax(axis=1)], dtype=np.int64)


def _is_separate(codes: Integers, counts: tuple[Floats, Floats], least: int) -> Booleans:
    """For each row, whether its group has at least `least` sessions on both sides, or is work that only one side has.

    `codes` has the group of each row.
    """
    size = int(codes.max(initial=0)) + 1
    sides = [group_sums(codes, count, size) for count in counts]
    smaller, larger = np.minimum(*sides), np.maximum(*sides)
    separate = (smaller >= least) | ((larger >= MIN_PROJECT) & (smaller < MIN_CATEGORY))
    return np.asarray(separate[codes], dtype=bool)
