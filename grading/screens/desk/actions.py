"""What people do at the desk. Every act is a form sent by POST that goes through `grading.review`, script or not."""

from collections.abc import Callable
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpResponse, HttpResponseBase, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from grading import review
from grading.models import Flag, ReviewAnswer, ReviewItem, Session, Settlement
from grading.models.review import GRADING, ItemState
from grading.plain import plain_text
from grading.review import answers
from grading.reward import rewards
from grading.screens.desk import page, rail
from grading.screens.desk.page import claim_of, filters_of, new_claim
from grading.screens.desk.panel import AnswerForm, effect
from grading.screens.desk.story import FlashMessage
from grading.screens.http import StaffRequest, staff_view

REFUSED, STALE = 422, 409
LONGEST_REASON = 5000


@staff_view("grading.view_session")
@require_GET
def start(request: StaffRequest) -> HttpResponseBase:
    """Claim what should be looked at next and go there; the empty state where nothing waits."""
    if "view" in request.GET:
        chosen = review.QueueFilters.parse(QueryDict(request.GET["view"])).query
        return redirect(reverse("admin:review") + (f"?{chosen}" if chosen else ""))
    item = _next(request, request.user)
    return page.empty(request) if item is None else redirect(_address(request, item.session))


@staff_view("grading.view_session")
@require_GET
def show(request: StaffRequest, pk: int) -> HttpResponse:
    return page.render(request, _session(pk))


@staff_view("grading.add_grade")
@require_GET
def show_effect(request: StaffRequest, pk: int) -> HttpResponse:
    """The parts of the panel that follow the grade being typed. Saves nothing."""
    session = _session(pk)
    settlement = rewards.live(session)
    hides = review.hides_judge(session, request.user)
    grade_effect = effect(session, settlement, AnswerForm(request.GET), blind=hides)
    return render(request, "desk/_effect.html", {"effect": grade_effect, "session": session})


@staff_view("grading.add_grade")
@require_POST
def answer(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Record an answer and go on to the next; or say in place why not, with what was typed kept."""
    session, user, form = _session(pk), request.user, AnswerForm(request.POST)
    if "preview" in request.POST:
        return page.render(request, session, form=form)
    if not form.is_valid():
        message = FlashMessage(text=form.problem, grave=True, at="id_value")
        return page.render(request, session, form=form, message=message, status=REFUSED)
    was_open = ReviewItem.objects.open().filter(session=session).exists()
    try:
        saved = review.submit(
            session,
            user,
            answer=form.verdict,
            value=form.grade,
            reason=form.cleaned_data["reason"],
            claim=claim_of(request),
            seen_revision=form.cleaned_data["seen_revision"],
            seen_evidence=form.cleaned_data["seen_evidence"],
            seconds=form.seconds,
        )
    except review.StaleReview as error:
        return _stale(request, session, form, error)
    except review.ClaimLost as error:
        return page.render(request, session, form=form, message=FlashMessage(text=str(error), grave=True), status=STALE)
    except review.CorrectionError as error:
        # Refused for want of a reason. That tells how far the hidden reward is, so the blind grade is kept first.
        problem, wants_reason = str(error), form.verdict in GRADING and not form.cleaned_data["reason"]
        if wants_reason and review.hides_judge(session, user):
            review.reveal(session, user, form.grade)
            problem = f"{problem} Your blind grade is kept. The judge’s grade is now shown."
        message = FlashMessage(text=problem, grave=True, at="id_reason" if wants_reason else "")
        return page.render(request, session, form=form, message=message, status=REFUSED)
    # To the next that waits, with a line on what was saved; where the session waited for nobody, it stays.
    if not was_open:
        return redirect(_address(request, saved.session, saved=saved.pk))
    next_item = _next(request, user)
    if next_item is not None:
        return redirect(_address(request, next_item.session, saved=saved.pk))
    query = "&".join(part for part in (filters_of(request).query, urlencode({"saved": saved.pk})) if part)
    return redirect(f"{reverse('admin:review')}?{query}")


@staff_view("grading.add_grade")
@require_POST
def reveal(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Show the judge's answer. What was typed until then is kept as the blind grade; the first time counts. `back`:
    the page that asked is the session's own.
    """
    session, form = _session(pk), AnswerForm(request.POST)
    form.is_valid()
    review.reveal(session, request.user, form.grade)
    if request.POST.get("back") == "session":
        return redirect(session)
    return page.render(request, session, form=form)


@staff_view("grading.add_grade")
@require_POST
def renew(request: StaffRequest, pk: int) -> JsonResponse:
    """Keep the session for an open page; take it again where the claim ran out and nobody else has it."""
    item = get_object_or_404(ReviewItem.objects.with_people().select_related("assigned_to"), session=pk)
    claim, user = claim_of(request), request.user
    if item.state != ItemState.OPEN:
        return JsonResponse(
            {
                "said": (
                    "Somebody else has graded this session in the meantime. Press J for the next session, or submit to "
                    "add your grade."
                )
            },
            status=STALE,
        )
    if claim and review.take(item, user, claim):
        item.refresh_from_db(fields=["claimed_until"])
        until = item.claimed_until
        return JsonResponse({"until": "" if until is None else f"{timezone.localtime(until):%H:%M}"})
    item.refresh_from_db()
    return JsonResponse({"said": f"{page.taken_by(item, user)} Your input is kept here."}, status=STALE)


@staff_view("grading.add_grade")
@require_POST
def release(request: StaffRequest, pk: int) -> HttpResponse:
    """Let go of the session as its page is left. A claim that is not this page's stays."""
    item = ReviewItem.objects.filter(session=pk).first()
    if item is not None:
        review.release(item, claim_of(request))
    return HttpResponse(status=204)


@staff_view("grading.add_comment")
@require_POST
def comment(request: StaffRequest, pk: int) -> HttpResponseBase:
    return _noted(request, pk, review.comment)


@staff_view("grading.add_flag")
@require_POST
def flag(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Put the session up for others, with a reason; or take a person's flag back."""
    if "unflag" not in request.POST:
        return _noted(request, pk, review.flag)
    raised = get_object_or_404(Flag.objects.open(), session=pk, rule=Flag.BY_A_PERSON)
    review.unflag(raised, request.user)
    return redirect(_address(request, _session(pk)))


@staff_view("grading.add_grade")
@require_POST
def undo(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Take an answer back; its session is on the desk again."""
    undone = get_object_or_404(ReviewAnswer.objects.select_related("session"), pk=pk)
    session = _session(undone.session_id)
    try:
        back = answers.undo(undone, request.user, reason=_reason(request))
    except review.CorrectionError as error:
        return page.render(request, session, message=FlashMessage(text=str(error), grave=True), status=REFUSED)
    return redirect(_address(request, session, saved=back.pk))


@staff_view("grading.change_reviewitem")
@require_POST
def adopt(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Make a grade that stands beside the one that holds."""
    adopted = get_object_or_404(ReviewAnswer.objects.select_related("session"), pk=pk)
    session = _session(adopted.session_id)
    try:
        review.adopt(adopted, request.user, _reason(request))
    except review.CorrectionError as error:
        return page.render(request, session, message=FlashMessage(text=str(error), grave=True), status=REFUSED)
    return redirect(_address(request, session))


@staff_view("grading.change_reviewitem")
@require_POST
def assign(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Say who shall answer (nobody: anyone), and how many people."""
    session, user = _session(pk), request.user
    item = get_object_or_404(ReviewItem, session=session)
    name, wanted = request.POST.get("to", ""), request.POST.get("wanted", "")
    review.assign(item, get_object_or_404(User, username=name) if name else None, user)
    if wanted.isdecimal() and 1 <= int(wanted) <= page.MOST_WANTED:
        review.require_answers(item, int(wanted))
    return redirect(_address(request, session))


def _session(pk: int) -> Session:
    return get_object_or_404(Session.objects.with_people(), pk=pk)


def _reason(request: StaffRequest) -> str:
    """Why, in words that any database keeps."""
    return plain_text(request.POST.get("reason", ""), LONGEST_REASON).strip()


def _noted(request: StaffRequest, pk: int, note: Callable[[Session, User, str], object]) -> HttpResponseBase:
    """Leave words on the session, and show it again."""
    session = _session(pk)
    try:
        note(session, request.user, _reason(request))
    except review.CorrectionError as error:
        return page.render(request, session, message=FlashMessage(text=str(error), grave=True), status=REFUSED)
    return redirect(_address(request, session))


def _address(request: StaffRequest, session: Session, **more: int) -> str:
    return rail.address(session, filters_of(request), **more)


def _next(request: StaffRequest, user: User) -> ReviewItem | None:
    filters = filters_of(request)
    if user.has_perm(page.MAY_GRADE):
        return review.next_for(user, new_claim(), filters)
    first = review.in_order(user, review.waiting(user, filters), filters, size=1).items
    return first[0][0] if first else None


def _stale(request: StaffRequest, session: Session, form: AnswerForm, error: review.StaleReview) -> HttpResponse:
    """Reward or evidence moved on since the form was opened: refused, with the difference, and what was typed is kept.

    The page that comes back has seen the new state, so that submitting again is on purpose.
    """
    hides = review.hides_judge(session, request.user)
    message = FlashMessage(
        text=(
            "The reward changed while this page was open. Nothing was saved. Check the session again, then submit "
            "again."
        ),
        grave=True,
        then=_sentence(error.before, hides=hides),
        now=_sentence(error.current, hides=hides),
        added=", ".join(f"{row.kind} {row.filename}".strip() for row in error.added),
    )
    return page.render(request, session, form=form, message=message, status=STALE)


def _sentence(settlement: Settlement | None, *, hides: bool) -> str:
    if settlement is None:
        return "not settled"
    if hides:
        return f"settlement {settlement.revision}; its reward is hidden until you grade"
    return settlement.sentence
