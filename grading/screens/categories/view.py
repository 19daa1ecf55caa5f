"""Categories: the rules, the sessions that each matches now, and the effect of applying them."""

import uuid
from collections import Counter
from typing import Any

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.response import TemplateResponse
from django.utils import timezone

from grading.intake.categories import changes, edits, preview, reach, rules
from grading.intake.categories.changes import ChangeRefused
from grading.intake.categories.reach import RuleReach
from grading.models import CategoryChange, CategoryRule, CategoryWord, Session
from grading.models.sessions import CategoryOrigin
from grading.plain import counted, primary_key
from grading.screens.categories import effect
from grading.screens.categories.draft import RuleDraft, categories, choices, uuid_of
from grading.screens.http import StaffRequest, staff_view
from grading.signals import conditions

CHANGE_RULES = "grading.change_categoryrule"
# The most matches named, changes listed, and sessions counted for a line.
NAMED, LISTED, COUNTED = 3, 8, 10_000
EFFECT = 2_000


def uncategorised() -> dict[str, Any]:
    """How many sessions have no category, for a line on other pages; up to 10,000. One query."""
    count = Session.objects.uncategorised().order_by()[: COUNTED + 1].count()
    return {"count": min(count, COUNTED), "is_more": count > COUNTED}


@staff_view("grading.view_session", to_post=CHANGE_RULES)
def show(request: StaffRequest) -> HttpResponse:
    """The page; a POST previews, saves, moves, switches or deletes a rule, or applies all rules, as `do` says."""
    if request.method != "POST":
        edit = request.GET.get("edit", "")
        draft = None
        if edit and request.user.has_perm(CHANGE_RULES):
            draft = RuleDraft.from_rule(None if edit == "new" else get_object_or_404(_rules(), pk=primary_key(edit)))
        return TemplateResponse(request, "categories/categories.html", page(draft))
    do, key = request.POST.get("do", ""), primary_key(request.POST.get("rule", ""))
    rule = get_object_or_404(_rules(), pk=key) if key else None
    if do in {"preview", "panel", "save", "save_set"}:
        draft = RuleDraft.typed(request.POST, rule)
        if do == "panel":
            return render(request, "categories/_reach.html", page(draft))
        if do == "preview" or draft.problem:
            return TemplateResponse(request, "categories/categories.html", {**page(draft), "previewed": True})
        edits.save(draft.row())
        messages.success(request, "The rule is saved. New sessions that match it get its category.")
    elif rule is not None and do in {"up", "down"}:
        edits.move(rule, up=do == "up")
    elif rule is not None and do in {"on", "off"}:
        edits.switch(rule, is_on=do == "on")
    elif rule is not None and do == "delete":
        edits.delete(rule)
    if do in {"set", "save_set"}:
        apply(request)
    return redirect("admin:categories")


def page(draft: RuleDraft | None) -> dict[str, Any]:
    """The context of the page: the rules with their matches, with the draft in its place, and the effect of applying
    them.
    """
    saved = rows = list(_rules())
    if draft is not None and draft.is_complete:
        draft_row = draft.row()
        rows = [draft_row if row.pk == draft_row.pk else row for row in saved]
        if draft_row.pk is None:
            rows.append(draft_row)
    uncategorised_reach = reach.uncategorised(rows)
    others = reach.others(rows)
    reaches = [uncategorised_reach, others] if draft is not None and draft.others else [uncategorised_reach]
    reaches_of_enabled = iter(uncategorised_reach.rules)  # in the order of the rows, without those of disabled rules
    own_reach = None
    lines = []
    for row in rows:
        rule_reach = next(reaches_of_enabled) if row.is_on else RuleReach()
        is_draft = draft is not None and (row.pk is None or (draft.rule is not None and row.pk == draft.rule.pk))
        if is_draft:
            own_reach = rule_reach
        lines.append({"rule": row, "conditions": _conditions(row), "reach": rule_reach, "is_draft": is_draft})
    count = sum(each.count for each in reaches)
    new_categories = {pk: match.rule.category for each in reaches for pk, match in each.why.items()}
    effect_preview = None
    if draft is None or not draft.problem:
        effect_preview = preview.preview(dict(list(new_categories.items())[:EFFECT]), timezone.now())
    parts = [str(each.count) for each in uncategorised_reach.rules if each.count]
    examples = dict(list(uncategorised_reach.why.items())[:NAMED])
    return {
        "title": "Categories",
        "lines": [line for line in lines if line["rule"].pk is not None],
        "draft": draft,
        "draft_number": draft.rule.position if draft and draft.rule else len(saved) + 1,
        "own": own_reach,
        "caught": Session.objects.filter(pk__in=own_reach.caught[:NAMED]) if own_reach else (),
        "caught_rest": max(0, own_reach.count - NAMED) if own_reach else 0,
        "found": uncategorised_reach,
        "others": others,
        "count": count,
        "preview": effect_preview if count else None,
        "effects": effect.bandit_effects(effect_preview) if effect_preview and count else (),
        "all": Session.objects.yours().count(),
        "origins_by_category": origins_by_category(),
        "unread": rules.without_traits().count(),
        "examples": [(each, examples[each.pk]) for each in Session.objects.filter(pk__in=examples)],
        "sum": " + ".join(parts) if len(parts) > 1 else "",
        "changes": recent(),
        "categories": categories(),
        "name": uuid.uuid4(),
        **choices(),
    }


def origins_by_category() -> list[dict[str, Any]]:
    """The categories that sessions have, by name, each with the number of its sessions and where it came from."""
    origins = Session.objects.yours().exclude(category=None).order_by()
    counts_by_name: dict[str, Counter[CategoryOrigin]] = {}
    for name, origin, n in origins.values_list("category__name", "category_from").annotate(n=Count("pk")):
        if origin:
            counts_by_name.setdefault(name, Counter())[CategoryOrigin(origin)] += n
    return [
        {
            "name": name,
            "total": counts.total(),
            "origins": [(origin.words, counts[origin]) for origin in CategoryOrigin if counts[origin]],
        }
        for name, counts in sorted(counts_by_name.items())
    ]


def _conditions(row: CategoryRule) -> list[conditions.Condition]:
    try:
        return list(conditions.parse(row.conditions))
    except conditions.InvalidCondition:
        return []


def _rules() -> Any:
    return CategoryRule.objects.select_related("category__merged_into")


def apply(request: StaffRequest) -> None:
    """Apply the rules to the sessions that they catch, unless their number differs from the one that the page
    showed.
    """
    try:
        change = changes.apply_rules(
            request.user,
            others="others" in request.POST,
            expected=primary_key(request.POST.get("expected", "")),
            name=uuid_of(request.POST.get("name", "")),
        )
    except ChangeRefused as error:
        messages.error(request, str(error))
        return
    remaining = len(change.todo)
    rest = f" A worker changes the remaining {remaining} within minutes." if remaining else ""
    sessions = counted(change.total, "session")
    messages.success(request, f"Categories of {sessions} set. You can undo it below.{rest}")


def recent() -> list[dict[str, Any]]:
    """The latest changes of categories by people. Two queries."""
    rows = list(CategoryChange.objects.select_related("by", "undone_by")[:LISTED])
    words = CategoryWord.objects.filter(change__in=rows).order_by().values_list("change", "category__name")
    counts_by_change: dict[int, list[tuple[str, int]]] = {}
    for change, category, n in words.annotate(n=Count("pk")):
        counts_by_change.setdefault(change, []).append((category, n))
    return [
        {
            "change": row,
            "by_rules": row.origin == CategoryOrigin.RULE,
            "categories": sorted(counts_by_change.get(row.pk, []), key=lambda each: (-each[1], each[0])),
            "left": len(row.todo),
        }
        for row in rows
    ]
