"""The page of the desk: one session to grade, the queue beside it, and the evidence for the grade."""

import datetime as dt
from dataclasses import dataclass
from math import floor
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.crypto import get_random_string

from grading.models import ReviewAnswer, ReviewItem, Session
from grading.models.review import ItemState
from grading.models.sessions import Whose
from grading.plain import primary_key
from grading.review import answers, claims, queue, seen
from grading.review.claims import CLAIM
from grading.review.filters import QueueFilters
from grading.reward import rewards
from grading.screens.categories import by_hand
from grading.screens.desk import centre, rail, story
from grading.screens.desk.panel import AnswerForm, effect
from grading.screens.http import StaffRequest

MAY_GRADE, MAY_ASSIGN = "grading.add_grade", "grading.change_reviewitem"
MOST_WANTED = 9
# The most common reasons for changing a grade, offered as buttons.
QUICK_REASONS = ("wrong log", "work verified", "not landed", "off task")
LONGEST_CLAIM = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PageClaim:
    """The page's claim on its session, until `until`; `why_not` says why it may not answer."""

    claim: str = ""
    until: dt.datetime | None = None
    why_not: str = ""


def filters_of(request: StaffRequest) -> QueueFilters:
    return QueueFilters.parse(request.GET)


def new_claim() -> str:
    return get_random_string(24)


def claim_of(request: StaffRequest) -> str:
    """The claim id that the page sent; "" without a valid one."""
    claim = request.POST.get("claim", "")
    return claim if claim.isascii() and claim.isalnum() and len(claim) <= LONGEST_CLAIM else ""


def render(
    request: StaffRequest,
    session: Session,
    *,
    form: AnswerForm | None = None,
    message: story.FlashMessage | None = None,
    status: int = 200,
) -> TemplateResponse:
    """The desk with this session, and with the submitted values if the form was invalid."""
    user, filters = request.user, filters_of(request)
    may_grade = user.has_perm(MAY_GRADE)
    item = ReviewItem.objects.with_people().select_related("assigned_to").filter(session=session).first()
    settlements = list(session.settlements.order_by("revision"))
    settlement = settlements[-1] if settlements else None
    hides = may_grade and seen.hides_judge(session, user)
    typed = form.data if form is not None else {}
    claim = _claim_item(item, user, claim_of(request), may_grade=may_grade)
    reviewers = User.objects.with_perm(MAY_GRADE, backend=settings.AUTHENTICATION_BACKENDS[-1]).order_by("username")
    context: dict[str, Any] = {
        "title": f"Review {session.category or 'a session'} {session.short_id}",
        "session": session,
        "item": item,
        "category": by_hand.of_session(session),
        "settlement": settlement,
        "blind": hides,
        "claim": claim,
        "flash": message or _saved(request, user),
        "rail": rail.load_rail(user, filters, current=session, may_grade=may_grade),
        "query": filters.query,
        "typed": typed,
        "effect_value": typed.get("value", ""),
        "quick_reasons": QUICK_REASONS,
        "bad_value": bool(form is not None and form.is_bound and form.errors.get("value")),
        "effect": effect(session, settlement, form, blind=hides),
        "accepts": None if hides else rewards.graded_value(settlement),
        # Rounded down, so that the time until the answer is never negative.
        "opened": typed.get("opened") or f"{floor(timezone.now().timestamp() * 10) / 10:.1f}",
        "locked": bool(claim.why_not) and form is None,
        "seen_evidence": seen.evidence_version(session),
        "may_assign": user.has_perm(MAY_ASSIGN),
        "people": list(reviewers.values_list("username", flat=True)) if user.has_perm(MAY_ASSIGN) else [],
        **_person(user, may_grade=may_grade),
        **centre.load_context(request, session, settlements, user, hides=hides, waits=may_grade and not claim.why_not),
    }
    return TemplateResponse(request, "desk/review.html", context, status=status)


def empty(request: StaffRequest) -> TemplateResponse:
    """The desk without a session, if none waits for this person or none matches the filters."""
    user, filters = request.user, filters_of(request)
    may_grade = user.has_perm(MAY_GRADE)
    # On a site with samples only, the page leads to them, unless it lists them already.
    offers_samples = request.frame.samples.alone and not filters.samples
    context = {
        "title": "Review",
        "flash": _saved(request, user),
        "rail": rail.load_rail(user, filters, current=None, may_grade=may_grade),
        "query": filters.query,
        **_person(user, may_grade=may_grade),
        "slice": settings.REVIEW_SLICE,
        "everyone": queue.count(whose=filters.whose),
        "samples": queue.count(whose=Whose.SAMPLES).open if offers_samples else 0,
    }
    return TemplateResponse(request, "desk/review_empty.html", context)


def _person(user: User, *, may_grade: bool) -> dict[str, Any]:
    """Whether this person may grade, their last answer, and how many they gave today; and the name of the cookie from
    which scripts read the CSRF token.
    """
    last = answers.last_of(user) if may_grade else None
    done_today = 0 if last is None else vars(last)["today"] or 0  # annotated by `last_of`
    return {"may_grade": may_grade, "csrf_cookie": settings.CSRF_COOKIE_NAME, "last": last, "done_today": done_today}


def _claim_item(item: ReviewItem | None, user: User, claim: str, *, may_grade: bool) -> PageClaim:
    """Claim the session for this page: the person's newest page has the claim, unless another person has one."""
    if not may_grade:
        return PageClaim(why_not="You can only read. Reviewers can grade.")
    if item is None or item.state != ItemState.OPEN:
        return PageClaim(claim=claim or new_claim())
    mine, now = claim or new_claim(), timezone.now()
    if claims.take(item, user, mine, from_own_page=True, now=now):
        item.claim, item.claimed_by, item.claimed_until = mine, user, now + CLAIM
        return PageClaim(claim=mine, until=item.claimed_until)
    item = ReviewItem.objects.with_people().select_related("assigned_to").get(pk=item.pk)
    return PageClaim(claim=mine, why_not=taken_by(item, user))


def taken_by(item: ReviewItem, user: User) -> str:
    """Why `user` can't claim the item, as a sentence."""
    other = rail.holder(item, user)
    if other and item.claimed_until is not None:
        return f"{other} is reviewing this session until {timezone.localtime(item.claimed_until):%H:%M}."
    if item.assigned_to is not None and item.assigned_to != user:
        return f"This session is assigned to {item.assigned_to.get_username()}."
    return "This session could not be claimed right now. Reload in a moment."


def _saved(request: StaffRequest, user: User) -> story.FlashMessage | None:
    """The message about the person's answer `?saved=`, which was just saved."""
    saved = ReviewAnswer.objects.filter(pk=primary_key(request.GET.get("saved", "")), reviewer=user).first()
    return None if saved is None else story.flash_message(saved)
