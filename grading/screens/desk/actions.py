"""The actions at the desk: forms sent by POST, with or without a script, that call `grading.review`."""

from collections.abc import Callable
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpResponse, HttpResponseBase, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone

from grading.models import Flag, ReviewAnswer, ReviewItem, Session, Settlement
from grading.models.review import GRADING, ItemState
from grading.plain import plain_text
from grading.review import answers, claims, notes, queue, seen
from grading.review.answers import ClaimLost
from grading.review.corrections import CorrectionError, StaleReview
from grading.review.filters import QueueFilters, waiting
from grading.reward import rewards
from grading.screens.desk import page, rail
from grading.screens.desk.page import claim_of, filters_of, new_claim
from grading.screens.desk.panel import AnswerForm, effect
from grading.screens.desk.story import FlashMessage
from grading.screens.http import StaffRequest, staff_view

REFUSED, STALE = 422, 409
LONGEST_REASON = 5000


@staff_view("grading.view_session", methods=["GET"])
def start(request: StaffRequest) -> HttpResponseBase:
    """Claim the next session and redirect to it; the empty desk if there is none. With `view`, the choice of the
    select above the queue, redirect to the queue filtered by it.
    """
    if "view" in request.GET:
        chosen = QueueFilters.parse(QueryDict(request.GET["view"])).query
        return redirect(reverse("admin:review") + (f"?{chosen}" if chosen else ""))
    item = _next(request, request.user)
    return page.empty(request) if item is None else redirect(_address(request, item.session))


@staff_view("grading.view_session", methods=["GET"])
def show(request: StaffRequest, pk: int) -> HttpResponse:
    return page.render(request, _session(pk))


@staff_view("grading.add_grade", methods=["GET"])
def show_effect(request: StaffRequest, pk: int) -> HttpResponse:
    """The parts of the panel that follow the grade being typed. Saves nothing."""
    session = _session(pk)
    settlement = rewards.live(session)
    hides = seen.hides_judge(session, request.user)
    grade_effect = effect(session, settlement, AnswerForm(request.GET), blind=hides)
    return render(request, "desk/_effect.html", {"effect": grade_effect, "session": session})


@staff_view("grading.add_grade", methods=["POST"])
def answer(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Record an answer and redirect to the next session. If it is refused, show why, with the form as submitted."""
    session, user, form = _session(pk), request.user, AnswerForm(request.POST)
    if "preview" in request.POST:
        return page.render(request, session, form=form)
    if not form.is_valid():
        message = FlashMessage(text=form.problem, is_error=True, field_id="id_value")
        return page.render(request, session, form=form, message=message, status=REFUSED)
    was_open = ReviewItem.objects.open().filter(session=session).exists()
    try:
        saved = answers.submit(
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
    except StaleReview as error:
        return _stale(request, session, form, error)
    except ClaimLost as error:
        message = FlashMessage(text=str(error), is_error=True)
        return page.render(request, session, form=form, message=message, status=STALE)
    except CorrectionError as error:
        # A refusal for lack of a reason reveals how far the hidden reward is, so the blind grade is stored first.
        problem = str(error)
        wants_reason = form.verdict in GRADING and not form.cleaned_data["reason"]
        if wants_reason and seen.hides_judge(session, user):
            notes.reveal(session, user, form.grade)
            problem = f"{problem} Your blind grade is kept. The judge’s grade is now shown."
        message = FlashMessage(text=problem, is_error=True, field_id="id_reason" if wants_reason else "")
        return page.render(request, session, form=form, message=message, status=REFUSED)
    # Stay at a session that was not in the queue; otherwise go to the next one.
    if not was_open:
        return redirect(_address(request, saved.session, saved=saved.pk))
    next_item = _next(request, user)
    if next_item is not None:
        return redirect(_address(request, next_item.session, saved=saved.pk))
    query = "&".join(part for part in (filters_of(request).query, urlencode({"saved": saved.pk})) if part)
    return redirect(f"{reverse('admin:review')}?{query}")


@staff_view("grading.add_grade", methods=["POST"])
def reveal(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Show the verdict, and store the grade typed so far as the blind grade, if it is the first. `back` is "session"
    on the session's own page.
    """
    session, form = _session(pk), AnswerForm(request.POST)
    form.is_valid()  # fills `cleaned_data`, which `form.grade` reads
    notes.reveal(session, request.user, form.grade)
    if request.POST.get("back") == "session":
        return redirect(session)
    return page.render(request, session, form=form)


@staff_view("grading.add_grade", methods=["POST"])
def renew(request: StaffRequest, pk: int) -> JsonResponse:
    """Extend the page's claim, or claim the session again if the claim has expired and nobody else has one."""
    item = get_object_or_404(ReviewItem.objects.with_people().select_related("assigned_to"), session=pk)
    claim, user = claim_of(request), request.user
    if item.state != ItemState.OPEN:
        return JsonResponse(
            {
                "message": "Somebody else has graded this session in the meantime. Press J for the next session, or "
                "submit to add your grade."
            },
            status=STALE,
        )
    if claim and claims.take(item, user, claim):
        item.refresh_from_db(fields=["claimed_until"])
        until = item.claimed_until
        return JsonResponse({"until": "" if until is None else f"{timezone.localtime(until):%H:%M}"})
    item.refresh_from_db()
    return JsonResponse({"message": f"{page.taken_by(item, user)} Your input is kept here."}, status=STALE)


@staff_view("grading.add_grade", methods=["POST"])
def release(request: StaffRequest, pk: int) -> HttpResponse:
    """Release the page's claim when the page is left; another page's claim stays."""
    item = ReviewItem.objects.filter(session=pk).first()
    if item is not None:
        claims.release(item, claim_of(request))
    return HttpResponse(status=204)


@staff_view("grading.add_comment", methods=["POST"])
def comment(request: StaffRequest, pk: int) -> HttpResponseBase:
    return _add_note(request, pk, notes.comment)


@staff_view("grading.add_flag", methods=["POST"])
def flag(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Flag the session with a reason, or remove a person's flag."""
    if "unflag" not in request.POST:
        return _add_note(request, pk, notes.flag)
    raised = get_object_or_404(Flag.objects.open(), session=pk, rule=Flag.BY_A_PERSON)
    notes.unflag(raised, request.user)
    return redirect(_address(request, _session(pk)))


@staff_view("grading.add_grade", methods=["POST"])
def undo(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Undo an answer, and show its session on the desk again."""
    undone_answer = get_object_or_404(ReviewAnswer.objects.select_related("session"), pk=pk)
    session = _session(undone_answer.session_id)
    try:
        undo_answer = answers.undo(undone_answer, request.user, reason=_reason(request))
    except CorrectionError as error:
        return page.render(request, session, message=FlashMessage(text=str(error), is_error=True), status=REFUSED)
    return redirect(_address(request, session, saved=undo_answer.pk))


@staff_view("grading.change_reviewitem", methods=["POST"])
def adopt(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Make another person's answer the current grade."""
    review_answer = get_object_or_404(ReviewAnswer.objects.select_related("session"), pk=pk)
    session = _session(review_answer.session_id)
    try:
        answers.adopt(review_answer, request.user, _reason(request))
    except CorrectionError as error:
        return page.render(request, session, message=FlashMessage(text=str(error), is_error=True), status=REFUSED)
    return redirect(_address(request, session))


@staff_view("grading.change_reviewitem", methods=["POST"])
def assign(request: StaffRequest, pk: int) -> HttpResponseBase:
    """Assign the session to a person (`to`, "" for anyone), and set how many people must answer (`wanted`)."""
    session, user = _session(pk), request.user
    item = get_object_or_404(ReviewItem, session=session)
    name, wanted = request.POST.get("to", ""), request.POST.get("wanted", "")
    queue.assign(item, get_object_or_404(User, username=name) if name else None, user)
    if wanted.isdecimal() and 1 <= int(wanted) <= page.MOST_WANTED:
        queue.require_answers(item, int(wanted))
    return redirect(_address(request, session))


def _session(pk: int) -> Session:
    return get_object_or_404(Session.objects.with_people(), pk=pk)


def _reason(request: StaffRequest) -> str:
    """The submitted reason, as text that any database accepts."""
    return plain_text(request.POST.get("reason", ""), LONGEST_REASON).strip()


def _add_note(request: StaffRequest, pk: int, note: Callable[[Session, User, str], object]) -> HttpResponseBase:
    """Add a comment or flag with `note`, and show the session again."""
    session = _session(pk)
    try:
        note(session, request.user, _reason(request))
    except CorrectionError as error:
        return page.render(request, session, message=FlashMessage(text=str(error), is_error=True), status=REFUSED)
    return redirect(_address(request, session))


def _address(request: StaffRequest, session: Session, **more: int) -> str:
    return rail.address(session, filters_of(request), **more)


def _next(request: StaffRequest, user: User) -> ReviewItem | None:
    """The next item for the user, claimed if they may grade; None if there is none."""
    filters = filters_of(request)
    if user.has_perm(page.MAY_GRADE):
        return claims.next_for(user, new_claim(), filters)
    queued = claims.in_order(user, waiting(user, filters), filters, size=1)
    return next((item for item, _place in queued.items), None)


def _stale(request: StaffRequest, session: Session, form: AnswerForm, error: StaleReview) -> HttpResponse:
    """Refuse an answer because reward or evidence have changed since the form was opened. Shows the difference, and the
    form as submitted; submitting it again confirms the answer for the new state.
    """
    hides = seen.hides_judge(session, request.user)
    message = FlashMessage(
        text="The reward changed while this page was open. Nothing was saved. Check the session, then submit again.",
        is_error=True,
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
