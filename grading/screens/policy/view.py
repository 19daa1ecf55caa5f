"""A bandit's policy: its numbers explained, a preview of what a change would do, and the history of versions."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone

from bandit import policies
from bandit.core.machine_human import CapAdvice, advise_cap
from bandit.core.moves import moves
from bandit.eligibility import SUPPLY_DECISIONS, supply_bound
from bandit.models import Bandit, BanditKind, PolicyVersion
from bandit.policies import PolicyPreview
from bandit.reading import policy_of, rows_of, site_day, version_of
from bandit.versions import StaleVersion, current_calibration
from grading.reward.human_pairs import human_pairs
from grading.screens.arms.view import bandit_or_404
from grading.screens.http import StaffRequest, staff_view
from grading.screens.moves import describe_moves
from grading.screens.policy.form import SOURCES, BanditPolicyForm, changes, form_values
from grading.screens.policy.presets import PRESETS

LISTED = 50
# Digits of a version's number.
MAX_DIGITS = 9
# Numbers of a version whose names begin with these apply at each decision and nowhere else.
AT_DECISIONS = ("consumption_", "probation_", "open_")


@staff_view("grading.change_quota")
def show(request: StaffRequest, name: str) -> HttpResponse:
    """The policy form, or a preview of what other numbers would do. A POST puts numbers in force.

    The query says which numbers to preview: with `preview` those in the query itself, with `to` those of an earlier
    version, with `preset` those of a preset.
    """
    bandit = bandit_or_404(name)
    if bandit.kind == BanditKind.NAMES:
        raise Http404(f"{name} has no policy: {bandit.get_kind_display()}")
    current = version_of(bandit)
    if request.method == "POST":
        return _put_in_force(request, current)
    if "to" in request.GET:
        to = request.GET["to"]
        try:
            is_number = to.isdecimal() and len(to) <= MAX_DIGITS
            number = int(to) if is_number else 0  # no version has this number
            earlier = policies.find_policy_version(bandit, number)
            preview = policies.preview(bandit.name, policies.numbers_of(earlier), timezone.now())
        except ValueError as error:
            messages.error(request, str(error))
            return redirect("admin:policy", name=bandit.name)
        except ValidationError as error:
            messages.error(request, f"Version {to} cannot be restored unchanged. {' '.join(error.messages)}")
            return redirect("admin:policy", name=bandit.name)
        return _preview_page(request, preview, f"Back to version {earlier.version}.")
    preset = next((each for each in PRESETS if each.name == request.GET.get("preset")), None)
    if preset is not None:
        try:
            preview = policies.preview(bandit.name, preset.changed_numbers(current), timezone.now())
        except ValidationError as error:
            messages.error(request, f"{preset.title} does not fit your other numbers. {' '.join(error.messages)}")
            return redirect("admin:policy", name=bandit.name)
        return _preview_page(request, preview, f"Preset {preset.title}.")
    form = BanditPolicyForm(request.GET or None, current=current)
    if "preview" in request.GET and form.is_valid():
        try:
            preview = policies.preview(bandit.name, form.numbers(), timezone.now())
        except ValidationError as error:
            form.refuse(error)
        else:
            return _preview_page(request, preview, form.cleaned_data["note"])
    return _form_page(request, form, current)


def _put_in_force(request: StaffRequest, current: PolicyVersion) -> HttpResponse:
    """Put the posted numbers in force, unless another version was made since the page with the form was loaded."""
    bandit = current.bandit
    form = BanditPolicyForm(request.POST, current=current)
    is_valid = form.is_valid()
    version = form.cleaned_data.get("version")
    if version is None:
        messages.error(
            request,
            "Nothing was saved, because the form didn’t say which version it replaces. Reload the page and submit "
            "again.",
        )
        return redirect("admin:policy", name=bandit.name)
    if not is_valid:
        return _form_page(request, form, current)
    try:
        made = policies.set_policy(
            bandit.name,
            form.numbers(),
            version=version,
            by=request.user.get_username(),
            note=form.cleaned_data["note"].strip(),
        )
    except StaleVersion as error:
        messages.error(request, str(error))
        return redirect("admin:policy", name=bandit.name)
    except ValidationError as error:
        form.refuse(error)
        return _form_page(request, form, current)
    summary = "; ".join(changes(current, made)) or "the same numbers again"
    messages.success(request, f"Version {made.version} is in force: {summary}.")
    return redirect("admin:policy", name=bandit.name)


def _preview_page(request: HttpRequest, preview: PolicyPreview, note: str) -> TemplateResponse:
    bandit = preview.version.bandit
    arm_moves = moves(bandit.name, preview.before, preview.after)
    bound = supply_bound(bandit)
    chooses = bandit.kind == BanditKind.CHOICE
    at_decisions = [name for name in policies.NUMBERS if name.startswith(AT_DECISIONS)]
    context = {
        "title": f"Preview of version {preview.version.version}",
        "bandit": bandit,
        "preview": preview,
        "changes": changes(preview.current, preview.version),
        "moves": arm_moves,
        # An arm without work gains nothing from being chosen more often.
        "notes": {
            move.arm: f"limited by supply: no work was available in {bound[move.arm]} of the latest {SUPPLY_DECISIONS} "
            "decisions, so a higher probability has no effect"
            for move in arm_moves
            if move.arm in bound and move.share_moves > 0
        },
        "effect": describe_moves(arm_moves, shares=chooses),
        "at_decisions": any(getattr(preview.current, name) != getattr(preview.version, name) for name in at_decisions),
        "chooses": chooses,
        "dependents": Bandit.objects.filter(baseline=bandit).order_by("pk"),
        "numbers": {name: value for name, value in form_values(preview.version).items() if value is not None},
        "note": note,
    }
    return TemplateResponse(request, "policy/policy_preview.html", context)


def _form_page(request: HttpRequest, form: BanditPolicyForm, current: PolicyVersion) -> TemplateResponse:
    bandit, now = current.bandit, timezone.now()
    costs_by_arm = policies.costs_of(rows_of(bandit, policy_of(bandit), site_day(now)))
    arms = [arm for arm, cost in costs_by_arm.items() if cost.n]
    arms.sort(key=lambda arm: (-(costs_by_arm[arm].each or 0.0), arm))  # the most expensive first
    # Each preset with what it would change; nothing if it is in force.
    presets = [
        (preset, changes(current, policies.build_version(bandit, preset.changed_numbers(current))))
        for preset in PRESETS
    ]
    is_preset = any(not differences for _preset, differences in presets)
    context = {
        "title": f"{bandit} policy",
        "bandit": bandit,
        "bandits": Bandit.objects.that_learn(),
        "current": current,
        "form": form,
        "grouped": form.grouped(),
        "sources": form.by_source(advice(bandit)),
        "memory": policies.memory_of(current, now),
        "costs": [(arm, costs_by_arm[arm]) for arm in arms],
        "history": history(bandit),
        "presets": presets,
        "is_custom": not is_preset,
        "chooses": bandit.kind == BanditKind.CHOICE,
    }
    return TemplateResponse(request, "policy/policy.html", context)


def advice(bandit: Bandit) -> dict[str, CapAdvice | None]:
    """The cap for each source that people's grades of the random check suggest, under the calibration in force."""
    calibration = current_calibration(bandit)
    pairs = human_pairs(bandit, None if calibration is None else calibration.fallback_calibration)
    return {source: advise_cap(pairs, source) for source in SOURCES}


def history(bandit: Bandit) -> list[dict[str, Any]]:
    """The latest versions, newest first, each with what it changed; None for the first version."""
    versions = list(bandit.policies.order_by("-version")[: LISTED + 1])
    with_previous = zip(versions[:LISTED], [*versions[1:], None], strict=False)
    return [{"row": row, "changes": None if old is None else changes(old, row)} for row, old in with_previous]
