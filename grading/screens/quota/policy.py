"""Operators' actions on the judge: pause, resume, probe, change how the quota is spent."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse

from grading.judging import sweeper
from grading.judging.allowance import budget, quota
from grading.judging.outlook import attempts
from grading.models import JudgePolicy, Quota
from grading.models.quota import QuotaState
from grading.screens.http import StaffRequest, staff_view
from grading.screens.quota.judge_state import first_quota
from grading.templatetags.gradingsite_tags import share_of_one, usd
from grading.vocabulary import Reason

LISTED = 50
MOST_USD = 100_000
NO_BUDGET = f"The budget is an amount from 0 to {MOST_USD:,} dollars, such as 5 or 2.50. Empty means no limit."
NAMES = {
    "daily_budget_usd": "budget",
    "reserved_share": "reserve for new sessions",
    "abstention_share": "abstentions judged first",
    "repeat_share": "asked twice",
    "second_share": "second opinion",
    "use_batches": "backlog in batches",
}


# --- pause, resume, probe --------------------------------------------------------------------------------------------


class PauseForm(forms.Form):
    note = forms.CharField(
        label="Reason",
        max_length=300,
        error_messages={"required": "Give a reason, so that others know whether to resume the judge."},
    )


@staff_view("grading.change_quota")
def pause(request: StaffRequest) -> HttpResponse:
    """The confirmation page for pausing the judge."""
    if not quota.is_configured():
        messages.error(request, "There is no judge to pause.")
        return redirect("admin:quota")
    form = PauseForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        quota.pause(by=request.user, note=form.cleaned_data["note"])
        messages.success(request, "The judge is paused. Calls in progress still finish.")
        return redirect("admin:quota")
    context = {"title": "Pause the judge", "form": form, "waiting": attempts.waiting_jobs()}
    return TemplateResponse(request, "quota/quota_pause.html", context)


@staff_view("grading.change_quota", methods=["POST"])
def resume(request: StaffRequest) -> HttpResponse:
    paused = first_quota()
    if paused is None or paused.state != QuotaState.PAUSED:
        messages.info(request, "The judge is not paused. Somebody else has already resumed it.")
        return redirect("admin:quota")
    quota.resume(by=request.user)
    resumed = first_quota()
    if resumed is not None and resumed.is_out:
        messages.info(
            request, "The pause is over, but the judge is still unavailable for the same reason as before the pause."
        )
    else:
        messages.success(request, "Judging continues, with the most urgent session first.")
    return redirect("admin:quota")


@staff_view("grading.change_quota", methods=["POST"])
def probe(request: StaffRequest) -> HttpResponse:
    judge_quota = first_quota()
    why_not = "There is no judge." if judge_quota is None else why_not_probe(judge_quota, attempts.waiting_jobs().jobs)
    if why_not:
        messages.error(request, f"No probe was sent. {why_not}")
        return redirect("admin:quota")
    quota.probe_now()
    messages.success(request, "One call is sent within seconds. If it succeeds, judging continues.")
    return redirect("admin:quota")


@staff_view("grading.change_quota", methods=["POST"])
def try_now(request: StaffRequest) -> HttpResponse:
    """Retry all stuck sessions now."""
    count = sweeper.try_now(by=request.user)
    if count:
        sessions = "1 session is" if count == 1 else f"{count:,} sessions are"
        messages.success(request, f"{sessions} being retried. Sessions whose call fails again will wait again.")
    else:
        messages.info(request, "No sessions are stuck any more.")
    return redirect("admin:quota")


def why_not_probe(judge_quota: Quota, jobs: int) -> str:
    """Why a probe is pointless now; "" if it isn't."""
    if judge_quota.state in {QuotaState.OPEN, QuotaState.PACING}:
        return "The site is already calling the judge."
    if judge_quota.state == QuotaState.PAUSED:
        return "The judge is paused. Resume it instead."
    if judge_quota.reason == Reason.BUDGET_SPENT:
        return "The budget is spent. Raise it instead."
    return "" if jobs else "No job is waiting, so there is nothing to send."


# --- the policy ------------------------------------------------------------------------------------------------------


class PercentField(forms.FloatField):
    """A share in [0, 1], shown and typed in percent."""

    def prepare_value(self, value: Any) -> Any:
        return value if value is None or isinstance(value, str) else round(100 * value, 6)

    def clean(self, value: Any) -> Any:
        percent = super().clean(value)
        return None if percent is None else percent / 100


def _share(label: str, help_text: str) -> PercentField:
    wrong = f"{label} is a percentage from 0 to 100, for example 20."
    error_texts = dict.fromkeys(("required", "invalid", "min_value", "max_value"), wrong)
    label = f"{label}, %"
    return PercentField(min_value=0, max_value=100, label=label, help_text=help_text, error_messages=error_texts)


class JudgePolicyForm(forms.Form):
    """The six numbers of a policy, with bounds. `confirmed` is required if the change allows more spending."""

    daily_budget_usd = forms.FloatField(
        required=False,
        min_value=0,
        max_value=MOST_USD,
        label="Daily budget in dollars",
        help_text="Checked before each call. Calls with an unknown cost count with their estimate. Empty: no limit.",
        error_messages=dict.fromkeys(("invalid", "min_value", "max_value"), NO_BUDGET),
    )
    reserved_share = _share(
        "Reserve for new sessions",
        "Share of the rate limit that the backlog leaves free for new sessions.",
    )
    abstention_share = _share(
        "Abstentions judged first",
        "Share of each arm’s ungraded sessions that is drawn at random and judged first, so that work without "
        "visible results counts too. Lowering the share does not undo earlier draws.",
    )
    repeat_share = _share(
        "Asked twice",
        (
            "Share of sessions that the judge grades twice, to measure how repeatable its grades are. The second "
            "grades change no reward."
        ),
    )
    second_share = _share(
        "Second opinion",
        "Share of sessions that a second judge also grades, if one is set. Its verdicts change no reward.",
    )
    use_batches = forms.BooleanField(
        required=False,
        label="Send the backlog in batches",
        help_text="Batches cost half the price, but a verdict may take up to a day.",
    )
    confirmed = forms.BooleanField(required=False)

    def __init__(self, data: Mapping[str, Any] | None, *, current: JudgePolicy) -> None:
        super().__init__(data, initial=numbers(current))
        self.current = current
        self.costs_more = ""

    def clean(self) -> dict[str, Any]:
        chosen = super().clean() or {}
        if not self.errors:
            self.costs_more = costs_more(numbers(self.current), chosen)
            if self.costs_more and not chosen.get("confirmed"):
                raise forms.ValidationError(self.costs_more)
        return chosen


def numbers(policy: JudgePolicy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in NAMES}


def costs_more(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """How a policy allows more spending than the one before; "" if it doesn't."""
    was, will = before["daily_budget_usd"], after["daily_budget_usd"]
    if will is None and was is not None:
        return f"This removes the budget of {usd(was)} a day. Then only the provider’s limits restrict spending."
    if was is not None and will > was:
        return f"This lets the judge spend up to {usd(will)} a day instead of {usd(was)}."
    more = [name for name in ("repeat_share", "second_share") if after[name] > before[name]]
    if not more:
        return ""
    calls_before, calls_after = (1 + policy["repeat_share"] + policy["second_share"] for policy in (before, after))
    if calls_after > calls_before:
        return f"This raises the calls for each session from {calls_before:.2f} to {calls_after:.2f} on average."
    # As many calls or fewer may cost more, since the second judge has another price.
    name = more[0]
    old, new = display_value(name, before[name]), display_value(name, after[name])
    return f"This raises the share “{NAMES[name]}” from {old} to {new}."


@staff_view("grading.change_quota")
def policy(request: StaffRequest) -> HttpResponse:
    """The form, and the latest policies. Going back to one of them posts its numbers through the same form."""
    current = JudgePolicy.objects.current()
    form = JudgePolicyForm(request.POST or None, current=current)
    if request.method == "POST" and form.is_valid():
        chosen = {name: form.cleaned_data[name] for name in NAMES}
        changed = changes(numbers(current), chosen)
        if not changed:
            messages.info(request, "Nothing was changed, because this is already the current policy.")
            return redirect("admin:quota_policy")
        budget.set_policy(by=request.user, **chosen)
        messages.success(request, f"The policy applies from now on: {'; '.join(changed)}.")
        return redirect("admin:quota")
    context = {"title": "Judge policy", "form": form, "history": history()}
    return TemplateResponse(request, "quota/quota_policy.html", context)


def history() -> list[dict[str, Any]]:
    """The latest policies, the current one first, with what each changed."""
    rows = list(JudgePolicy.objects.select_related("by")[: LISTED + 1])
    earlier = [numbers(row) for row in rows[1:]]
    if 0 < len(rows) <= LISTED:  # the first policy is among them, and changed the defaults
        earlier.append(numbers(JudgePolicy()))
    return [
        {"row": row, "numbers": _typed(numbers(row)), "changes": changes(before, numbers(row))}
        for row, before in zip(rows[:LISTED], earlier, strict=True)
    ]


def _typed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as the form's fields take them."""
    return {name: JudgePolicyForm.base_fields[name].prepare_value(value) for name, value in values.items()}


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """What differs between two policies, in words."""
    return [
        f"{label} {display_value(name, before[name])} → {display_value(name, after[name])}"
        for name, label in NAMES.items()
        if before[name] != after[name]
    ]


def display_value(name: str, value: Any) -> str:
    if name == "daily_budget_usd":
        return "none" if value is None else usd(value)
    if name == "use_batches":
        return "yes" if value else "no"
    return share_of_one(value)
