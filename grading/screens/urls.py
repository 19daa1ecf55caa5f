"""The addresses of the pages for people, at the root. The models' admin pages share their namespace."""

from django.urls import include, path

from grading.screens import connect, feed, glossary, sample_data, settings_page
from grading.screens.about import view as about
from grading.screens.admin import site
from grading.screens.alarms import view as alarms
from grading.screens.arms import model_names
from grading.screens.arms import view as arms
from grading.screens.bandit import page as bandits
from grading.screens.bulk import view as bulk
from grading.screens.calibration import card as calibration_card
from grading.screens.calibration import view as calibration
from grading.screens.categories import by_hand
from grading.screens.categories import view as categories
from grading.screens.costs import view as costs
from grading.screens.dashboard import view as dashboard
from grading.screens.desk import actions as desk
from grading.screens.history import undo
from grading.screens.history import view as audit
from grading.screens.imports import view as imports
from grading.screens.insight import letter
from grading.screens.insight import view as insight
from grading.screens.judge_key import view as judge_key
from grading.screens.lessons import view as lessons
from grading.screens.notices import channels
from grading.screens.notices import view as notices
from grading.screens.outcomes import view as outcomes
from grading.screens.policy import view as policy
from grading.screens.progress import view as progress
from grading.screens.projects import view as projects
from grading.screens.quota import policy as quota_policy
from grading.screens.quota import view as quota
from grading.screens.repositories import view as repositories
from grading.screens.rubrics import editor, runs, trial
from grading.screens.rubrics import view as rubrics
from grading.screens.session import late_words, raw
from grading.screens.session import view as session
from grading.screens.sessions import saved_views
from grading.screens.sessions import view as sessions
from grading.screens.signin import inviting
from grading.screens.spending import prices
from grading.screens.spending import view as spending
from grading.screens.story import view as story
from grading.screens.trial import view as first_page

app_name = "admin"
urlpatterns = [
    path("", dashboard.show, name="index"),
    path("feed/", feed.show, name="feed"),
    path("feed/top/", feed.top, name="feed_top"),
    path("sessions/", sessions.show, name="sessions"),
    path("sessions.csv", sessions.export_csv, name="sessions_csv"),
    path("sessions.jsonl", sessions.export_jsonl, name="sessions_jsonl"),
    path("sessions/by-id/<path:external_id>", sessions.by_id, name="session_by_id"),
    path("sessions/<int:pk>/", session.show, name="session"),
    path("categories/", categories.show, name="categories"),
    path("categories/set/", by_hand.show, name="categories_set"),
    path("categories/changes/<int:pk>/undo/", by_hand.undo, name="category_undo"),
    path("proposals/<int:pk>/", late_words.answer, name="proposal"),
    path("sessions/<int:pk>/reveal/", raw.reveal, name="reveal"),
    path("files/<int:pk>/raw/", raw.show, name="raw"),
    path("grades/<int:pk>/undo/", undo.show, name="undo"),
    path("bandits/", bandits.first, name="bandits"),
    # Before bandits/<slug:name>/, which matches it too.
    path("bandits/lesson/", lessons.index, name="lessons"),
    path("bandits/lesson/<int:pk>/", lessons.show_one, name="lesson"),
    path("bandits/<slug:name>/", bandits.show, name="bandit"),
    path("bandits/<slug:name>/arms/", arms.show, name="arms"),
    path("bandits/<slug:name>/arms/<int:pk>/", arms.detail, name="arm"),
    path("bandits/model/unnamed/", model_names.show, name="models"),
    path("bandits/<slug:name>/policy/", policy.show, name="policy"),
    path("bandits/<slug:name>/calibration/", calibration_card.change, name="bandit_calibration"),
    path("insight/", insight.show, name="insight"),
    path("insight.csv", insight.export, name="insight_csv"),
    path("insight/bridge/", insight.bridge, name="insight_bridge"),
    path("insight/letter/", letter.show, name="letter"),
    path("costs/", spending.show, name="spending"),
    path("costs/prices/", prices.show, name="prices"),
    path("quota/", quota.show, name="quota"),
    path("quota/costs/", costs.show, name="costs"),
    path("quota/costs.csv", costs.export, name="costs_csv"),
    path("quota/pause/", quota_policy.pause, name="quota_pause"),
    path("quota/resume/", quota_policy.resume, name="quota_resume"),
    path("quota/probe/", quota_policy.probe, name="quota_probe"),
    path("quota/try-now/", quota_policy.try_now, name="quota_try_now"),
    path("quota/policy/", quota_policy.policy, name="quota_policy"),
    path("rubrics/", rubrics.show, name="rubrics"),
    path("rubrics/<int:pk>/", rubrics.detail, name="rubric"),
    path("rubrics/<int:pk>/edit/", editor.show, name="rubric_edit"),
    path("rubrics/<int:pk>/activate/", rubrics.activate, name="rubric_activate"),
    path("rubrics/<int:pk>/try/", trial.show, name="rubric_try"),
    path("runs/", runs.show, name="runs"),
    path("runs/plan/", runs.plan, name="run_plan"),
    path("runs/<int:pk>/", runs.run, name="run"),
    path("runs/<int:pk>/progress/", runs.run_progress, name="run_progress"),
    path("runs/<int:pk>/cancel/", runs.run_cancel, name="run_cancel"),
    path("alarms/", alarms.show, name="alarms"),
    path("alarms/<int:pk>/", alarms.detail, name="alarm"),
    path("alarms/<int:pk>/acknowledge/", alarms.acknowledge, name="alarm_acknowledge"),
    path("review/", desk.start, name="review"),
    path("review/<int:pk>/", desk.show, name="review_session"),
    path("review/<int:pk>/answer/", desk.answer, name="review_answer"),
    path("review/<int:pk>/effect/", desk.show_effect, name="review_effect"),
    path("review/<int:pk>/reveal/", desk.reveal, name="review_reveal"),
    path("review/<int:pk>/renew/", desk.renew, name="review_renew"),
    path("review/<int:pk>/release/", desk.release, name="review_release"),
    path("review/<int:pk>/comment/", desk.comment, name="review_comment"),
    path("review/<int:pk>/flag/", desk.flag, name="review_flag"),
    path("review/<int:pk>/assign/", desk.assign, name="review_assign"),
    path("answers/<int:pk>/undo/", desk.undo, name="review_undo"),
    path("answers/<int:pk>/hold/", desk.adopt, name="review_hold"),
    path("review/bulk/", bulk.show, name="bulk"),
    path("review/bulk/<uuid:name>/undo/", bulk.undo, name="bulk_undo"),
    path("review/progress/", progress.show, name="progress"),
    path("history/", audit.show, name="history"),
    path("history.csv", audit.export_csv, name="history_csv"),
    path("history.jsonl", audit.export_jsonl, name="history_jsonl"),
    path("calibration.csv", audit.calibration, name="calibration_csv"),
    path("views/", saved_views.save, name="views"),
    path("views/<int:pk>/", saved_views.change, name="view"),
    path("connect/", connect.show, name="connect"),
    path("connect/<int:pk>/arrival/", connect.arrival, name="arrival"),
    path("try/", first_page.show, name="trial"),
    path("try/keep/", first_page.keep, name="trial_keep"),
    path("imports/", imports.show, name="imports"),
    path("imports/<int:pk>/", imports.detail, name="import"),
    path("samples/", sample_data.remove_samples, name="samples"),
    path("story/", story.show, name="story"),
    path("story/again/", story.again, name="story_again"),
    path("story/<slug:name>/", story.press, name="story_step"),
    path("words/", glossary.show, name="words"),
    path("settings/", settings_page.show, name="settings"),
    path("calibration/", calibration.show, name="calibration"),
    path("settings/projects/", projects.show, name="projects"),
    path("settings/repositories/", repositories.show, name="repositories"),
    path("settings/outcomes/", outcomes.show, name="outcomes"),
    path("settings/invite/", inviting.invite, name="invite"),
    path("settings/judge/", judge_key.show, name="judge_key"),
    path("settings/about/", about.show, name="about"),
    path("settings/about/<slug:name>/", about.document, name="document"),
    path("settings/notices/", notices.show, name="notices"),
    path("settings/notices/test/", notices.test, name="notices_test"),
    path("settings/notices/add/", channels.add, name="channel_add"),
    path("settings/notices/<int:pk>/", channels.show, name="channel"),
    path("", include(site.get_urls())),
]
