"""A rubric for each kind of work: who is judged by which, and that people change one without touching the others."""

import pytest

from bandit.models import Arm
from grading.judging import inputs, worker
from grading.judging.core import prompt, rubric
from grading.judging.core.prompt import Case
from grading.judging.rubrics import plans, rejudge, verdicts, versions
from grading.migrations import _first_rubric as first_rubric
from grading.migrations._first_rubrics import FIRST, LOOKING, PRODUCTION, READING
from grading.models import JudgeJob, JudgePolicy, Rubric, RubricActivation, Session
from grading.reward.explain import weight
from grading.vocabulary import WorkKind
from tests.casts.page import flat

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]
CATEGORIES = {"code": WorkKind.PRODUCTION, "news": WorkKind.CONSUMPTION, "triage": WorkKind.LOOKING}


@pytest.fixture
def sim(sim, settings):
    JudgePolicy.objects.create(repeat_share=0, second_share=0)
    return sim


@pytest.fixture
def olga(site):
    return site.person("olga", "operator")


def titled(title: str) -> Rubric:
    return Rubric.objects.get(title=title)


def edited(olga, kind: WorkKind, text: str = "Grade it strictly.") -> Rubric:
    held = Rubric.objects.active(kind)
    draft = Rubric(title="Strict", text=text, dimensions=held.dimensions, bands=held.bands, parent=held)
    return versions.save(draft, author=olga)[0]


@pytest.mark.parametrize("content", FIRST.values(), ids=FIRST)
def test_what_a_site_starts_with_is_what_the_editor_would_save(content):
    said = rubric.problems(
        title=content.title,
        text=content.text,
        dimensions=[{**row, "weight": weight(row["weight"])} for row in content.dimensions],
        bands=[{**row, "low": weight(row["low"])} for row in content.bands],
        examples=0,
    )
    assert said == {}
    assert [row["name"] for row in content.dimensions][-1] == "harmlessness"
    assert all("You see:" in row["text"] for row in content.bands)
    assert (content.bands[0]["low"], len(content.bands)) == (0, 5)


def test_a_new_site_has_one_in_force_for_each_kind():
    in_force = Rubric.objects.in_force()
    assert {kind: row.title for kind, row in in_force.items()} == {kind: FIRST[kind].title for kind in WorkKind}


@pytest.mark.parametrize(("category", "kind"), [*CATEGORIES.items(), (None, WorkKind.PRODUCTION)])
def test_a_session_is_judged_by_the_rubric_for_its_kind_of_work(site, sim, category, kind):
    job = site.judge_job(category=category)
    assert (job.session.work, job.rubric.title) == (kind, FIRST[kind].title)
    worker.run(job.pk)
    verdict = job.session.grades.verdicts().get()
    assert (verdict.rubric, set(verdict.evidence["dimensions"])) == (
        Rubric.objects.active(kind).sha256,
        {row["name"] for row in FIRST[kind].dimensions},
    )


def test_a_merged_category_is_what_it_became(site):
    old = Arm.objects.get(bandit__name="category", name="code")
    Arm.objects.filter(pk=old.pk).update(merged_into=Arm.objects.get(bandit__name="category", name="news"))
    assert Session.objects.get(pk=site.session("code").session.pk).work is WorkKind.CONSUMPTION


def test_one_whose_category_was_named_while_it_waited_is_judged_by_what_it_is_now(site, sim):
    job = site.judge_job(category=None)
    assert job.rubric.title == PRODUCTION.title
    Session.objects.filter(pk=job.session_id).update(category=Arm.objects.resolve("category", "triage"))
    worker.run(job.pk)
    job.refresh_from_db()
    assert job.rubric.title == LOOKING.title
    assert job.session.grades.verdicts().get().rubric == job.rubric.sha256


def test_reached_asks_of_looking_whether_it_was_done_and_of_production_what_it_always_asked():
    def asked(kind: WorkKind) -> str:
        return prompt.build(Case(metadata={}), inputs.rubric_text(Rubric.objects.active(kind)), budget=8_000).system

    assert "say whether the looking was done, whatever it found" in asked(WorkKind.LOOKING)
    assert "how far the reading came" in asked(WorkKind.CONSUMPTION)
    assert (
        "In `reached`, say how far it came: nothing; attempted; partial (a part of what was asked for exists and can "
        "be used); delivered (all of it does); verified (and a confirmed result shows that it works). `score` is"
    ) in asked(WorkKind.PRODUCTION)


def test_an_edited_copy_is_for_the_same_work_and_in_force_changes_that_alone(site, sim, olga):
    jobs = {category: site.judge_job(category=category) for category in CATEGORIES}
    strict = edited(olga, WorkKind.CONSUMPTION)
    assert (strict.kind, strict.is_active) == (WorkKind.CONSUMPTION, False)
    assert versions.activate(strict, by=olga) == 1
    assert Rubric.objects.in_force()[WorkKind.CONSUMPTION] == strict
    assert Rubric.objects.in_force()[WorkKind.PRODUCTION].title == PRODUCTION.title
    asked = {name: JudgeJob.objects.get(pk=job.pk).rubric for name, job in jobs.items()}
    assert asked["news"] == strict
    assert (asked["code"].title, asked["triage"].title) == (PRODUCTION.title, LOOKING.title)
    assert [row.rubric.title for row in RubricActivation.objects.order_by("pk")] == [READING.title, "Strict"]


def test_a_verdict_is_stale_by_the_rubric_for_its_own_kind(site, sim, olga):
    judged = {}
    for category in CATEGORIES:
        job = site.judge_job(category=category)
        worker.run(job.pk)
        judged[category] = job.session
    versions.activate(edited(olga, WorkKind.LOOKING), by=olga)
    stale = verdicts.with_verdict(Session.objects.all()).filter(is_stale=True)
    assert [row.pk for row in stale] == [judged["triage"].pk]
    verdict = judged["triage"].grades.verdicts().get()
    assert "is in force for looking now." in verdicts.staleness(verdict, Rubric.objects.active(WorkKind.LOOKING))


def test_judging_again_asks_each_session_by_its_own(site, sim, olga):
    sessions = [site.session(category).with_work().session for category in ("code", "news", "news", "triage")]
    plan = plans.plan(Session.objects.all(), Rubric.objects.in_force())
    assert {row.title: n for row, n in plan.counts_by_rubric.items()} == {
        READING.title: 2,
        PRODUCTION.title: 1,
        LOOKING.title: 1,
    }
    assert plan.rubric.title == READING.title
    run = rejudge.start(plan.session_ids, plan.rubric, by=olga, why="", estimated_usd=None)
    by_session = {job.session_id: job.rubric.kind for job in run.jobs.select_related("rubric")}
    assert by_session == {each.pk: each.work for each in sessions}


def test_the_pages_say_for_which_work_a_rubric_is(site, client, olga):
    client.force_login(olga)
    page = flat(client.get("/rubrics/"))
    assert [f"For {word}" in page for word in ("production", "reading", "looking")] == [True] * 3
    looking = titled(LOOKING.title)
    assert "for <b>looking</b>: checking categories" in flat(client.get(f"/rubrics/{looking.pk}/"))
    old = titled(first_rubric.TITLE)
    page = flat(client.get(f"/rubrics/{old.pk}/activate/"))
    assert "New and queued sessions for production" in page
    assert PRODUCTION.title in page
    session = site.session("news").with_work().session
    page = flat(client.get(f"/rubrics/{looking.pk}/try/?session=bob/{session.external_id}"))
    assert "This rubric is for looking. The session is another kind of work (news)" in page


def test_people_grade_by_the_bands_of_the_sessions_own_kind(site, client):
    client.force_login(site.person("rita", "reviewer"))
    session = site.session("triage").with_work().session
    page = flat(client.get(f"/review/{session.pk}/"))
    assert "thorough" in page
    assert "useful" not in page
