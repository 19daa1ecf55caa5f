"""What people do at the desk. Every act is a form sent by POST, goes through `grading.review`, and works without script."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from grading import review, rewards
from grading.admin.desk import page, rail
from grading.admin.desk.page import filters_of, new_claim, person
from grading.admin.desk.panel import AnswerForm, effect
from grading.admin.desk.story import Said
from grading.models import Flag, ReviewAnswer, ReviewItem, Session, Settlement
from grading.models.review import GRADING, ItemState
from grading.review import answers, queue

REFUSED, STALE = 422, 409


@require_GET
def start(request: HttpRequest) -> HttpResponseBase:
    """Claim what should be looked at next and go there; the empty state where nothing waits."""
    if "view" in request.GET:
        chosen = queue.Filters.parse(QueryDict(request.GET["view"])).query
        return redirect(reverse("admin:review") + (f"?{chosen}" if chosen else ""))
    found = _next(request, person(request))
    return page.empty(request) if found is None else redirect(_address(request, found.session))


@require_GET
def show(request: HttpRequest, pk: int) -> HttpResponse:
    return page.render(request, _session(pk))


@require_GET
def show_effect(request: HttpRequest, pk: int) -> HttpResponse:
    """The parts of the panel that follow the grade being typed. Saves nothing."""
    session = _session(pk)
    held = rewards.live(session)
    hides = answers.hides_judge(session, person(request), held)
    told = effect(session, held, AnswerForm({**request.GET.dict(), "answer": "grade"}), blind=hides)
    return render(request, "gradingsite/_desk_effect.html", {"effect": told, "session": session})


@require_POST
def answer(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Record an answer and go on to the next; or say in place why not, with what was typed kept."""
    session, user, form = _session(pk), person(request), AnswerForm(request.POST)
    if "preview" in request.POST:
        return page.render(request, session, form=form)
    if not form.is_valid():
        return page.render(request, session, form=form, said=Said(text=form.problem, grave=True), status=REFUSED)
    was_open = ReviewItem.objects.open().filter(session=session).exists()
    try:
        given = answers.submit(
            session,
            user,
            answer=form.answered,
            value=form.grade,
            reason=form.cleaned_data["reason"],
            claim=form.cleaned_data["claim"],
            seen_revision=form.cleaned_data["seen_revision"],
            seconds=form.seconds,
        )
    except review.StaleReview:
        return _stale(request, session, form)
    except answers.ClaimLost as error:
        return page.render(request, session, form=form, said=Said(text=str(error), grave=True), status=STALE)
    except review.CorrectionError as error:
        return _refused(request, session, form, str(error))
    return _go_on(request, given, was_open=was_open)


@require_POST
def reveal(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the judge's answer. What was typed until then is kept as the blind grade; the first time counts."""
    session, form = _session(pk), AnswerForm({**request.POST.dict(), "answer": "grade"})
    form.is_valid()
    answers.reveal(session, person(request), form.grade)
    return page.render(request, session, form=form)


@require_POST
def renew(request: HttpRequest, pk: int) -> JsonResponse:
    """Keep the session for an open page; take it again where the claim ran out and nobody else has it."""
    item = get_object_or_404(ReviewItem.objects.with_people().select_related("assigned_to"), session=pk)
    claim, user = request.POST.get("claim", "")[:64], person(request)
    if item.state != ItemState.OPEN:
        return JsonResponse({"said": "It was answered meanwhile; J goes on, or submit to answer too."}, status=STALE)
    if claim and (queue.renew(item, claim) or (page.is_free(item) and queue.take(item, user, claim))):
        item.refresh_from_db(fields=["claimed_until"])
        return JsonResponse({"until": f"{timezone.localtime(item.claimed_until):%H:%M}"})
    item.refresh_from_db()
    return JsonResponse({"said": f"{page.taken_by(item, user)} What you typed is kept here."}, status=STALE)


@require_POST
def release(request: HttpRequest, pk: int) -> HttpResponse:
    """Let go of the session as its page is left. A claim that is not this page's stays."""
    item = ReviewItem.objects.filter(session=pk).first()
    if item is not None and request.POST.get("claim"):
        queue.release(item, request.POST["claim"][:64])
    return HttpResponse(status=204)


@require_POST
def comment(request: HttpRequest, pk: int) -> HttpResponseBase:
    session, text = _session(pk), request.POST.get("reason", "").strip()
    if not text:
        said = Said(text="A comment needs some words; nothing was saved.", grave=True)
        return page.render(request, session, form=_typed(request), said=said, status=REFUSED)
    answers.comment(session, person(request), text[:4000])
    return redirect(_address(request, session))


@require_POST
def flag(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Put the session up for others, with a reason; or take one's own flag back."""
    session, user, why = _session(pk), person(request), request.POST.get("reason", "").strip()
    if "unflag" in request.POST:
        answers.unflag(get_object_or_404(Flag.objects.open(), session=session, rule=Flag.BY_A_PERSON), user)
        return redirect(_address(request, session))
    if not why:
        said = Said(text="Say in a few words what is wrong; nothing was flagged.", grave=True)
        return page.render(request, session, form=_typed(request), said=said, status=REFUSED)
    answers.flag(session, user, why[:2000])
    return redirect(_address(request, session))


@require_POST
def undo(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Take an answer back; its session is on the desk again."""
    given = get_object_or_404(ReviewAnswer.objects.select_related("session"), pk=pk)
    session = _session(given.session_id)
    try:
        back = answers.undo(given, person(request), reason=request.POST.get("reason", "").strip())
    except review.CorrectionError as error:
        return page.render(request, session, said=Said(text=str(error), grave=True), status=REFUSED)
    return redirect(_address(request, session, saved=back.pk))


@require_POST
def hold(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Make a grade that stands beside the one that holds."""
    given = get_object_or_404(ReviewAnswer.objects.select_related("session"), pk=pk)
    session = _session(given.session_id)
    try:
        answers.let_hold(given, person(request), request.POST.get("reason", "").strip())
    except review.CorrectionError as error:
        return page.render(request, session, said=Said(text=str(error), grave=True), status=REFUSED)
    return redirect(_address(request, session))


@require_POST
def assign(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Say who shall answer (nobody: anyone), and how many people."""
    session, user = _session(pk), person(request)
    item = get_object_or_404(ReviewItem, session=session)
    name, wanted = request.POST.get("to", ""), request.POST.get("wanted", "")
    queue.assign(item, get_object_or_404(User, username=name) if name else None, user)
    if wanted.isdecimal() and 1 <= int(wanted) <= page.MOST_WANTED:
        queue.want(item, int(wanted))
    return redirect(_address(request, session))


def _session(pk: int) -> Session:
    return get_object_or_404(Session.objects.with_people(), pk=pk)


def _typed(request: HttpRequest) -> AnswerForm:
    """What stands in the form of a page that comes back for another reason."""
    return AnswerForm({**request.POST.dict(), "answer": "grade", "reason": request.POST.get("typed", "")})


def _address(request: HttpRequest, session: Session, **more: int) -> str:
    return rail.address(session, filters_of(request), **more)


def _next(request: HttpRequest, user: User, after: ReviewItem | None = None) -> ReviewItem | None:
    filters = filters_of(request)
    if not user.has_perm(page.MAY_GRADE):
        return queue.waiting(user, filters).first()
    return queue.next_for(user, new_claim(), filters, after=after)


def _go_on(request: HttpRequest, given: ReviewAnswer, *, was_open: bool) -> HttpResponseBase:
    """To the next that waits, with a line on what was saved; where the session waited for nobody, it stays."""
    if not was_open:
        return redirect(_address(request, given.session, saved=given.pk))
    found = _next(request, person(request))
    if found is not None:
        return redirect(_address(request, found.session, saved=given.pk))
    query = "&".join(part for part in (filters_of(request).query, urlencode({"saved": given.pk})) if part)
    return redirect(f"{reverse('admin:review')}?{query}")


def _stale(request: HttpRequest, session: Session, form: AnswerForm) -> HttpResponse:
    """The reward moved on since the form was opened: refused, with the difference; submitting again is on purpose."""
    seen = session.settlements.filter(revision=form.cleaned_data["seen_revision"]).first()
    held = rewards.live(session)
    hides = answers.hides_judge(session, person(request), held)
    said = Said(
        text="The reward changed while you were looking. Nothing was saved; look again, then submit again.",
        grave=True,
        then=_told(seen, hides=hides),
        now=_told(held, hides=hides),
    )
    return page.render(request, session, form=form, said=said, status=STALE)


def _told(settlement: Settlement | None, *, hides: bool) -> str:
    if settlement is None:
        return "not settled"
    if hides:
        return f"settlement {settlement.revision}; what it says is hidden until you grade"
    return settlement.sentence


def _refused(request: HttpRequest, session: Session, form: AnswerForm, problem: str) -> HttpResponse:
    """Refused for want of a reason. That tells how far the hidden reward is, so the blind grade is kept first."""
    held, user = rewards.live(session), person(request)
    if form.answered in GRADING and not form.cleaned_data["reason"] and answers.hides_judge(session, user, held):
        answers.reveal(session, user, form.grade)
        problem = f"{problem} Your blind grade is kept; the judge's answer shows now."
    return page.render(request, session, form=form, said=Said(text=problem, grave=True), status=REFUSED)
