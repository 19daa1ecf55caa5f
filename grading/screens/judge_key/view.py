"""The judge's key: typed and tested here, stored encrypted, never shown again."""

from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import Count, Sum
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters

from grading.access.recording import record
from grading.days import start_of_day
from grading.judging import earlier, judges, key_tests
from grading.judging.allowance import budget
from grading.judging.key_tests import KeyTest
from grading.models import JudgeAttempt, JudgeKey, JudgeKeyTest, JudgePolicy
from grading.models.audit import AuditKind
from grading.models.judge_keys import HINT_LENGTH, KEY, MAX_KEY_LENGTH
from grading.models.judging import AttemptOutcome
from grading.monitoring.watch import refresh_alarms
from grading.screens.http import StaffRequest, staff_view
from grading.screens.quota.judge_state import first_quota
from grading.templatetags.gradingsite_tags import fine_usd
from grading.vocabulary import Reason

# The explanation of a failed test, by its reason. The provider's message follows it.
TEST_WORDS = {
    Reason.AUTH: "The key was refused. It is wrong or may not use this model. Copy it again from your provider.",
    Reason.QUOTA_EXHAUSTED: (
        "The key is right, but its account has no quota left. Verdicts resume when the quota is back."
    ),
    Reason.RATE_LIMITED: "The key is right, but too many calls use it right now. Judging continues automatically.",
    Reason.CONNECTION: "Nothing answers at this address.",
    Reason.TIMEOUT: "The address did not answer in time.",
    Reason.OVERLOADED: "The service is overloaded, or this is not the address of a judge.",
    Reason.NEEDS_ATTENTION: "The answer did not come from a judge. Check the address and JUDGE_MODEL.",
}


class JudgeKeyForm(forms.Form):
    """A key and the address that it is sent to. They are set together, so that a key never goes elsewhere."""

    # Whether the key's test failed for a reason that may pass.
    may_save_anyway = False

    base_url = forms.CharField(max_length=MAX_KEY_LENGTH, required=False)
    api_key = forms.CharField(
        max_length=MAX_KEY_LENGTH,
        strip=True,
        error_messages={
            "required": ("Enter the key. A stored key is sent only to the address that it was entered for.")
        },
    )

    def clean_base_url(self) -> str:
        if settings.ANTHROPIC_BASE_URL:
            return settings.ANTHROPIC_BASE_URL
        text: str = self.cleaned_data["base_url"].rstrip("/")
        try:
            parts = urlsplit(text)
            is_http = parts.scheme in {"http", "https"} and parts.hostname and not (parts.username or parts.query)
        except ValueError:
            is_http = False
        if text and not is_http:
            raise forms.ValidationError(
                "Expected an address such as https://gateway.example, or nothing for Anthropic."
            )
        return text

    def clean_api_key(self) -> str:
        key: str = self.cleaned_data["api_key"]
        if not KEY.fullmatch(key):
            raise forms.ValidationError(f"A key has 8 to {MAX_KEY_LENGTH} letters, digits and signs, and no spaces.")
        return key


class EarlierSessionsForm(forms.Form):
    """Which of the sessions from before the key to judge. `count` is how many of them the page showed."""

    choice = forms.ChoiceField(choices=[(choice, choice) for choice in earlier.CHOICES])
    count = forms.IntegerField(min_value=0, max_value=999_999_999)


@staff_view("grading.change_quota")
@sensitive_post_parameters("api_key")
def show(request: StaffRequest) -> HttpResponse:
    """The page. The `do` of a POST is "save" (if a test succeeds), "save_anyway" (whether it succeeds or not), "test"
    (the key in use), "remove", or "judge" (sessions received before there was a judge).
    """
    acts = {"save": _save, "save_anyway": _save, "test": _test, "remove": _remove, "judge": _judge_earlier}
    form = JudgeKeyForm(initial={"base_url": JudgeKey.objects.access().base_url})
    if request.method == "POST":
        act = acts.get(request.POST.get("do", ""))
        if act is None:
            messages.error(request, "Nothing was changed: expected save, save_anyway, test, remove or judge.")
            return redirect("admin:judge_key")
        invalid_form = act(request)
        if invalid_form is None:
            return redirect("admin:judge_key")
        form = invalid_form
    return TemplateResponse(request, "judge_key/judge_key.html", {"title": "The judge’s key", "form": form, **_state()})


def _state() -> dict[str, object]:
    access, stored = JudgeKey.objects.access(), JudgeKey.objects.select_related("by").first()
    now, limit = timezone.now(), JudgePolicy.objects.current().daily_budget_usd
    tests = JudgeKeyTest.objects.filter(started_at__gte=start_of_day(now), canary=None).aggregate(
        count=Count("pk"), usd=Sum("cost_usd")
    )
    quota = first_quota()
    tests_of_key = JudgeKeyTest.objects.filter(hint=access.api_key[-HINT_LENGTH:], canary=None)
    last = tests_of_key.first() if access.api_key else None
    verdicts = JudgeAttempt.objects.filter(model=settings.JUDGE_MODEL, outcome=AttemptOutcome.GRADED)
    return {
        "access": access,
        "hint": access.api_key[-HINT_LENGTH:],
        "has_answered": quota is not None and quota.has_answered,
        "host": urlsplit(access.base_url).netloc or judges.DEFAULT_HOST,
        "stored": stored,
        "model": settings.JUDGE_MODEL,
        "fixed_address": settings.ANTHROPIC_BASE_URL,
        "last": last,
        "last_answer": verdicts.order_by("-finished_at").first(),
        "last_words": "" if last is None else TEST_WORDS.get(Reason(last.reason), ""),
        "tests": tests,
        "earlier": earlier.load_earlier(now),
        "budget": limit,
        "remaining": None if limit is None else max(limit - budget.spent_today(now), 0.0),
    }


def _save(request: StaffRequest) -> JudgeKeyForm | None:
    """Test the key and store it if the judge answered. A key that the judge refuses is never stored; one whose test
    failed for another reason only on "save_anyway". Returns the form if it must be filled in again.
    """
    form = JudgeKeyForm(request.POST)
    if settings.ANTHROPIC_API_KEY:
        messages.error(
            request,
            "Nothing was saved, because ANTHROPIC_API_KEY is set and takes precedence over a key entered here.",
        )
        return None
    if not form.is_valid():
        return form
    key, base_url = form.cleaned_data["api_key"], form.cleaned_data["base_url"]
    judge = judges.with_key(key, base_url)
    tested = key_tests.test(judge, request.user)
    if tested.refused or (tested.error is not None and request.POST.get("do") != "save_anyway"):
        messages.error(request, f"Nothing was saved. {_describe_test(tested)}")
        form.may_save_anyway = not tested.refused
        return form
    replaced = JudgeKey.objects.first()
    row = JudgeKey.objects.put(key, base_url, request.user)
    key_tests.learn(judge, tested)
    before = f"in place of …{replaced.hint}, " if replaced else ""
    record(AuditKind.TOKEN, f"set the judge’s key …{row.hint}", detail=f"{before}for {judge.route}")
    if tested.error is None:
        messages.success(request, f"Saved. {_describe_test(tested)} Workers now use the key for new sessions.")
    else:
        messages.error(request, f"Saved, but the test failed. {_describe_test(tested)}")
    return None


def _test(request: StaffRequest) -> None:
    """Test the key in use by one call, and show the result."""
    judge = judges.first()
    if judge is None:
        messages.error(request, "There is no key to test.")
        return
    tested = key_tests.test(judge, request.user)
    key_tests.learn(judge, tested)
    level = messages.SUCCESS if tested.error is None else messages.ERROR
    messages.add_message(request, level, _describe_test(tested))


def _judge_earlier(request: StaffRequest) -> None:
    """Queue the chosen sessions for judging, unless there are now more of them than the page showed."""
    form = EarlierSessionsForm(request.POST)
    if not form.is_valid():
        expected = f"expected one of {', '.join(earlier.CHOICES)}, and how many sessions you saw"
        messages.error(request, f"Nothing was queued: {expected}. Reload the page and choose again.")
        return
    choice = form.cleaned_data["choice"]
    ages = {"recent": f", of the last {earlier.RECENT_DAYS} days", "older": f", older than {earlier.RECENT_DAYS} days"}
    try:
        run = earlier.start_run(
            choice,
            by=request.user,
            at_most=form.cleaned_data["count"],
            why=f"came in before there was a judge{ages.get(choice, '')}",
            now=timezone.now(),
        )
    except earlier.ChoiceRefused as error:
        messages.error(request, str(error))
        return
    counted = "1 session is" if run.total == 1 else f"{run.total:,} sessions are"
    messages.success(
        request,
        f"{counted} queued as run {run.pk}, after new sessions. You can follow or cancel the run under Quota → Judge "
        "again.",
    )


def _remove(request: StaffRequest) -> None:
    stored = JudgeKey.objects.first()
    if stored is None:
        messages.info(request, "No key is stored.")
        return
    stored.delete()
    record(AuditKind.TOKEN, f"removed the judge’s key …{stored.hint}")
    refresh_alarms()
    messages.success(
        request, f"The stored key …{stored.hint} is deleted. Sessions that wait for a verdict stay in the queue."
    )


def _describe_test(tested: KeyTest) -> str:
    """The result of a test as a sentence, with its cost."""
    row = tested.row
    if tested.error is None:
        price = "at an unknown price" if row.cost_usd is None else f"for {fine_usd(row.cost_usd)}"
        return f"{row.model} answered in {row.seconds or 0:.1f} s {price}."
    return f"{TEST_WORDS.get(tested.error.reason, tested.error.reason.words)} It said: {row.detail}"
