"""The site is a Django admin site: its index is the dashboard, and its everyday screens are our own views."""

from collections.abc import Callable
from functools import wraps
from typing import Any, cast

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseNotAllowed, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse
from django.utils.decorators import method_decorator
from django.views.decorators.cache import never_cache

from grading.screens import connect, feed, glossary, registry, sample_data, settings_page
from grading.screens.about import view as about
from grading.screens.alarms import view as alarms
from grading.screens.arms import model_names
from grading.screens.arms import view as arms
from grading.screens.bandit import page as bandits
from grading.screens.bulk import view as bulk
from grading.screens.calibration import card as calibration_card
from grading.screens.calibration import view as calibration
from grading.screens.categories import by_hand
from grading.screens.categories import view as categories
from grading.screens.context import SiteNow, page_context, site_now, site_of
from grading.screens.costs import view as costs
from grading.screens.dashboard import view as dashboard
from grading.screens.desk import actions as desk
from grading.screens.history import undo
from grading.screens.history import view as audit
from grading.screens.imports import view as imports
from grading.screens.judge_key import view as judge_key
from grading.screens.lessons import view as lessons
from grading.screens.notices import channels
from grading.screens.notices import view as notices
from grading.screens.policy import view as policy
from grading.screens.progress import view as progress
from grading.screens.quota import policy as quota_policy
from grading.screens.quota import view as quota
from grading.screens.rubrics import editor, runs, trial
from grading.screens.rubrics import view as rubrics
from grading.screens.session import late_words, raw
from grading.screens.session import view as session
from grading.screens.sessions import saved_views
from grading.screens.sessions import view as sessions
from grading.screens.signin import inviting
from grading.screens.signin.view import SignInView
from grading.screens.story import view as story

View = Callable[..., HttpResponseBase]

VIEW, CORRECT, OPERATE = "grading.view_session", "grading.add_grade", "grading.change_quota"
RUBRIC, KEEP = "grading.view_rubric", "grading.add_savedview"
METHODS = ("GET", "HEAD", "POST")

# Address, name, view, and the permission without which it is a 403.
SCREENS: tuple[tuple[str, str, View, str], ...] = (
    ("feed/top/", "feed_top", feed.top, VIEW),
    ("sessions/", "sessions", sessions.show, VIEW),
    ("sessions.csv", "sessions_csv", sessions.export_csv, VIEW),
    ("sessions.jsonl", "sessions_jsonl", sessions.export_jsonl, VIEW),
    ("sessions/by-id/<path:external_id>", "session_by_id", sessions.by_id, VIEW),
    ("sessions/<int:pk>/", "session", session.show, VIEW),
    ("categories/", "categories", categories.show, VIEW),
    ("categories/set/", "categories_set", by_hand.show, CORRECT),
    ("categories/changes/<int:pk>/undo/", "category_undo", by_hand.undo, CORRECT),
    ("proposals/<int:pk>/", "proposal", late_words.answer, CORRECT),
    ("sessions/<int:pk>/reveal/", "reveal", raw.reveal, CORRECT),
    ("files/<int:pk>/raw/", "raw", raw.show, OPERATE),
    ("grades/<int:pk>/undo/", "undo", undo.show, CORRECT),
    ("bandits/", "bandits", bandits.first, "bandit.view_bandit"),
    # Before the others' page: of lessons many are taken at once.
    ("bandits/lesson/", "lessons", lessons.index, "bandit.view_bandit"),
    ("bandits/lesson/<int:pk>/", "lesson", lessons.show_one, "bandit.view_bandit"),
    ("bandits/<slug:name>/", "bandit", bandits.show, "bandit.view_bandit"),
    ("bandits/<slug:name>/arms/", "arms", arms.show, "bandit.view_arm"),
    ("bandits/<slug:name>/arms/<int:pk>/", "arm", arms.detail, "bandit.view_arm"),
    ("bandits/model/unnamed/", "models", model_names.show, "bandit.view_arm"),
    ("bandits/<slug:name>/policy/", "policy", policy.show, OPERATE),
    ("bandits/<slug:name>/calibration/", "bandit_calibration", calibration_card.change, "bandit.change_bandit"),
    ("quota/", "quota", quota.show, "grading.view_quota"),
    ("quota/costs/", "costs", costs.show, "grading.view_quota"),
    ("quota/costs.csv", "costs_csv", costs.export, "grading.view_quota"),
    ("quota/pause/", "quota_pause", quota_policy.pause, OPERATE),
    ("quota/resume/", "quota_resume", quota_policy.resume, OPERATE),
    ("quota/probe/", "quota_probe", quota_policy.probe, OPERATE),
    ("quota/try-now/", "quota_try_now", quota_policy.try_now, OPERATE),
    ("quota/policy/", "quota_policy", quota_policy.policy, OPERATE),
    ("rubrics/", "rubrics", rubrics.show, RUBRIC),
    ("rubrics/<int:pk>/", "rubric", rubrics.detail, RUBRIC),
    ("rubrics/<int:pk>/edit/", "rubric_edit", editor.show, "grading.add_rubric"),
    ("rubrics/<int:pk>/activate/", "rubric_activate", rubrics.activate, "grading.change_rubric"),
    ("rubrics/<int:pk>/try/", "rubric_try", trial.show, RUBRIC),
    ("runs/", "runs", runs.show, RUBRIC),
    ("runs/plan/", "run_plan", runs.plan, OPERATE),
    ("runs/<int:pk>/", "run", runs.run, RUBRIC),
    ("runs/<int:pk>/progress/", "run_progress", runs.run_progress, RUBRIC),
    ("runs/<int:pk>/cancel/", "run_cancel", runs.run_cancel, OPERATE),
    ("alarms/", "alarms", alarms.show, "grading.view_alarm"),
    ("alarms/<int:pk>/", "alarm", alarms.detail, "grading.view_alarm"),
    ("alarms/<int:pk>/acknowledge/", "alarm_acknowledge", alarms.acknowledge, "grading.change_alarm"),
    ("review/", "review", desk.start, VIEW),
    ("review/<int:pk>/", "review_session", desk.show, VIEW),
    ("review/<int:pk>/answer/", "review_answer", desk.answer, CORRECT),
    ("review/<int:pk>/effect/", "review_effect", desk.show_effect, CORRECT),
    ("review/<int:pk>/reveal/", "review_reveal", desk.reveal, CORRECT),
    ("review/<int:pk>/renew/", "review_renew", desk.renew, CORRECT),
    ("review/<int:pk>/release/", "review_release", desk.release, CORRECT),
    ("review/<int:pk>/comment/", "review_comment", desk.comment, "grading.add_comment"),
    ("review/<int:pk>/flag/", "review_flag", desk.flag, "grading.add_flag"),
    ("review/<int:pk>/assign/", "review_assign", desk.assign, "grading.change_reviewitem"),
    ("answers/<int:pk>/undo/", "review_undo", desk.undo, CORRECT),
    ("answers/<int:pk>/hold/", "review_hold", desk.adopt, "grading.change_reviewitem"),
    ("review/bulk/", "bulk", bulk.show, CORRECT),
    ("review/bulk/<uuid:name>/undo/", "bulk_undo", bulk.undo, CORRECT),
    ("review/progress/", "progress", progress.show, VIEW),
    ("history/", "history", audit.show, VIEW),
    ("history.csv", "history_csv", audit.export_csv, VIEW),
    ("history.jsonl", "history_jsonl", audit.export_jsonl, VIEW),
    ("calibration.csv", "calibration_csv", audit.calibration, VIEW),
    ("views/", "views", saved_views.save, KEEP),
    ("views/<int:pk>/", "view", saved_views.change, KEEP),
    ("connect/", "connect", connect.show, "grading.add_apitoken"),
    ("imports/", "imports", imports.show, "grading.view_logimport"),
    ("imports/<int:pk>/", "import", imports.detail, "grading.view_logimport"),
    ("samples/", "samples", sample_data.show, "grading.delete_session"),
    ("story/", "story", story.show, VIEW),
    ("story/again/", "story_again", story.again, "grading.delete_session"),
    ("story/<slug:name>/", "story_step", story.press, OPERATE),
    ("words/", "words", glossary.show, VIEW),
    ("settings/", "settings", settings_page.show, VIEW),
    ("calibration/", "calibration", calibration.show, VIEW),
    ("settings/invite/", "invite", inviting.invite, OPERATE),
    ("settings/judge/", "judge_key", judge_key.show, OPERATE),
    ("settings/about/", "about", about.show, VIEW),
    ("settings/about/<slug:name>/", "document", about.document, VIEW),
    ("settings/notices/", "notices", notices.show, VIEW),
    ("settings/notices/test/", "notices_test", notices.test, OPERATE),
    ("settings/notices/add/", "channel_add", channels.add, OPERATE),
    ("settings/notices/<int:pk>/", "channel", channels.show, OPERATE),
)

# They answer with a part of a page, a file or another address: nothing that holds for everybody stands in that.
NO_PAGES: frozenset[View] = frozenset(
    {
        audit.calibration,
        audit.export_csv,
        audit.export_jsonl,
        bandits.first,
        by_hand.undo,
        bulk.undo,
        costs.export,
        desk.show_effect,
        desk.start,
        feed.top,
        runs.run_progress,
        sessions.by_id,
        sessions.export_csv,
        sessions.export_jsonl,
    }
)


class GradingAdminSite(admin.AdminSite):
    site_title = site_header = "gradingsite"
    site_url = None
    enable_nav_sidebar = False
    # The admin is the whole site, so an unknown address is a plain 404.
    final_catch_all_view = False

    def get_urls(self) -> list[URLResolver | URLPattern]:
        screens = [path(route, self.screen(view, need), name=name) for route, name, view, need in SCREENS]
        # Whoever is staff could ask it whether a row exists, role or not; and no page of ours links to it.
        pages = [page for page in super().get_urls() if getattr(page, "name", "") != "view_on_site"]
        return [path("feed/", feed.show, name="feed"), *screens, *pages]

    @method_decorator([never_cache, login_not_required])
    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Signing in, by the one way that asks for a second factor."""
        if request.method == "GET" and self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index"))
        request.current_app = self.name
        context = {**self.each_context(request), "title": "Log in", **(extra_context or {})}
        return cast("HttpResponse", SignInView.as_view(extra_context=context)(request))

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:  # noqa: ARG002
        """The dashboard."""
        response: TemplateResponse = self.as_page(dashboard.show, VIEW)(request)
        return response

    def screen(self, view: View, permission: str) -> View:
        """`view` behind the login, its permission and the context of every page."""
        return self.admin_view(self.as_page(view, permission))

    def as_page(self, view: View, permission: str) -> Callable[..., Any]:
        """What holds for everybody is read before the view reads its own: what changes meanwhile is news to the page.

        After an act it is read afterwards, so that the answer shows what the act did.
        """

        @wraps(view)
        def inner(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
            if not request.user.has_perm(permission):
                raise PermissionDenied
            if request.method not in METHODS:
                return HttpResponseNotAllowed(METHODS)
            before = None if request.method == "POST" or view in NO_PAGES else site_of(request)
            response = view(request, **arguments)
            if isinstance(response, TemplateResponse):
                response.context_data = {**self.each_context(request, before), **(response.context_data or {})}
            return response

        return inner

    def each_context(self, request: HttpRequest, now: SiteNow | None = None) -> dict[str, Any]:
        """Django's, and what every page of ours shows: as of `now`, or of this moment."""
        inside = self.has_permission(request) and request.user.has_perm(VIEW)
        common = page_context(request, now or site_now()) if inside else None
        return {**super().each_context(request), "common": common}


site = GradingAdminSite()
registry.register(site)
