"""Rubrics: versions by content, the editor that loses nothing, the exact prompt, trials beside the chain, staleness."""

import datetime as dt
import html
from random import Random

import pytest
from django.utils import timezone

from grading.judging import worker
from grading.judging.rubrics import examples, trials, verdicts, versions
from grading.migrations._first_rubrics import PRODUCTION
from grading.models import Grade, JudgeAttempt, JudgeJob, Rubric, RubricActivation
from grading.models.judging import Purpose
from grading.reward import rewards
from grading.screens.rubrics.trial import dimension_rows
from grading.vocabulary import Reason, Source, Status
from tests.casts.page import flat

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("redis_url")]


@pytest.fixture
def olga(site):
    return site.person("olga", "operator")


@pytest.fixture
def operator(client, olga):
    client.force_login(olga)
    return client


def first() -> Rubric:
    return Rubric.objects.filter(title=PRODUCTION.title).earliest("pk")


def version(olga, text="Grade it strictly.", **fields) -> Rubric:
    held = first()
    draft = Rubric(
        title=fields.pop("title", "Strict"), text=text, dimensions=held.dimensions, bands=held.bands, parent=held,
        **fields,
    )  # fmt: skip
    return versions.save(draft, author=olga)[0]


def typed(rubric=None, **changes) -> dict:
    """The editor's form as a browser would post it."""
    held = rubric or first()
    form = {
        "title": held.title,
        "text": held.text,
        "note": "",
        "dimension_name": [row["name"] for row in held.dimensions],
        "dimension_weight": [str(row["weight"]) for row in held.dimensions],
        "dimension_text": [row["text"] for row in held.dimensions],
        "band_name": [row["name"] for row in held.bands],
        "band_low": [str(row["low"]) for row in held.bands],
        "band_text": [row["text"] for row in held.bands],
        "do": "save",
    }
    return {**form, **changes}


def post(client, rubric=None, **changes):
    held = rubric or first()
    return client.post(f"/rubrics/{held.pk}/edit/", typed(held, **changes))


def graded_by(site, person, value=0.8, why="merged without a comment", **fields) -> Grade:
    builder = site.session(**fields).with_work().graded(Source.HUMAN, value, author=person, detail=why)
    builder.settle()
    return builder.grade


# --- saving ----------------------------------------------------------------------------------------------------------


def test_an_edit_is_a_new_row_and_changes_none(operator, olga):
    before = Rubric.objects.values().get(pk=first().pk)
    response = post(operator, text="Grade it strictly.", note="stricter")
    made = Rubric.objects.get(text="Grade it strictly.")
    assert response.url == f"/rubrics/{made.pk}/"
    assert (made.parent, made.author, made.is_active, made.note) == (first(), olga, False, "stricter")
    assert made.sha256 == versions.sha256(made)
    assert Rubric.objects.values().get(pk=first().pk) == before


def test_the_same_content_is_the_same_rubric_and_says_so(operator):
    response = operator.post(f"/rubrics/{first().pk}/edit/", typed(title="Another title"), follow=True)
    assert Rubric.objects.count() == 4
    assert response.redirect_chain == [(f"/rubrics/{first().pk}/", 302)]
    assert "this rubric already exists" in flat(response)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"title": ""}, "Expected a title"),
        ({"text": " "}, "Expected the instructions for the judge"),
        ({"dimension_weight": [".5", ".35", ".1"]}, "they add up to 0.95: add 0.05 to one of them"),
        ({"dimension_weight": [".5", ".35", ".2"]}, "they add up to 1.05: take 0.05 off one of them"),
        ({"dimension_weight": [".5", "a lot", ".15"]}, "Expected a weight from 0 to 1, for example .25; got “a lot”"),
        ({"dimension_weight": [".5", "nan", ".15"]}, "got “nan”"),
        ({"dimension_weight": ["1.5", "-.65", ".15"]}, "got “-.65”"),
        ({"dimension_name": ["execution", "Goal fit", "harm"]}, "Expected a name like goal_fit"),
        ({"dimension_name": ["execution", "execution", "harm"]}, "execution occurs twice"),
        ({"dimension_name": [], "dimension_weight": [], "dimension_text": []}, "Expected 1 to 12 dimensions, got 0"),
        ({"dimension_text": ["", "x", "y"]}, "Expected words for the judge"),
        ({"band_low": ["0.1", "0.2", "0.4", "0.6", "0.8"]}, "The first band must begin at 0"),
        (
            {"band_low": ["0", "0.2", "0.2", "0.6", "0.8"]},
            "Bands must be in ascending order: expected more than 0.2, got 0.2",
        ),
        ({"band_name": [], "band_low": [], "band_text": []}, "Expected 1 to 12 bands, got 0"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_typed_is_lost(operator, changes, said):
    response = post(operator, **{"note": "what I thought of", **changes})
    page = html.unescape(flat(response))
    assert response.status_code == 200
    assert said in page
    assert "what I thought of" in page
    for value in changes.values():
        for each in value if isinstance(value, list) else [value]:
            assert each in page
    assert Rubric.objects.count() == 4


def test_rows_are_added_and_removed_without_script(operator):
    page = flat(post(operator, do="add-dimensions"))
    assert page.count('name="dimension_name"') == 4
    page = flat(post(operator, do="", remove="dimensions-1"))
    assert page.count('name="dimension_name"') == 2
    assert 'value="goal_fit"' not in page
    assert Rubric.objects.count() == 4


def test_a_blank_row_is_left_out(operator):
    post(
        operator,
        dimension_name=["quality", ""],
        dimension_weight=["1", ""],
        dimension_text=["Is it good?", ""],
    )
    assert [row["name"] for row in Rubric.objects.get(parent=first()).dimensions] == ["quality"]


def test_a_rubric_page_says_in_words_how_it_differs_from_its_parent(operator, olga):
    post(operator, dimension_weight=[".4", ".45", ".15"], band_name=["nothing", "tried", "partial", "useful", "strong"])
    made = Rubric.objects.get(parent=first())
    page = flat(operator.get(f"/rubrics/{made.pk}/"))
    for sentence in (
        "Dimension execution: weight .5 is now .4.",
        "Dimension goal_fit: weight .35 is now .45.",
        "Band none was removed.",
        "Band nothing is new, low 0.",
    ):
        assert sentence in page


# --- examples --------------------------------------------------------------------------------------------------------


def test_sessions_that_people_graded_become_examples(site, operator, olga):
    grade = graded_by(site, olga, 0.8, title="Add a retry guard")
    assert "merged without a comment" in flat(operator.get(f"/rubrics/{first().pk}/edit/"))
    post(operator, example=[str(grade.pk)], shows_examples="on")
    (example,) = Rubric.objects.get(parent=first()).examples
    assert (example["score"], example["why"], example["grade"]) == (0.8, "merged without a comment", grade.pk)
    assert "Fix the retry guard and commit" in example["summary"]


def test_the_judge_is_shown_the_examples_but_never_a_sessions_own_grade(site, sim, olga):
    graded, other = (
        graded_by(site, olga, why="merged without a comment"),
        site.session().with_work().session,
    )
    made = version(olga, examples=[examples.make_example(graded)])
    for session in (graded.session, other):
        worker.run(trials.try_on(session, made).pk)
    own, others = (call.request.system for call in sim.calls)
    assert "merged without a comment" not in own
    assert "merged without a comment" in others


def test_without_the_switch_no_example_is_stored_and_the_content_is_the_old_one(site, operator, olga):
    grade = graded_by(site, olga)
    post(operator, example=[str(grade.pk)])
    assert Rubric.objects.count() == 4


def test_an_example_stays_word_for_word_when_its_rubric_is_edited(site, operator, olga):
    grade = graded_by(site, olga)
    post(operator, example=[str(grade.pk)], shows_examples="on")
    made = Rubric.objects.get(parent=first())
    grade.session.title = "Renamed"
    grade.session.save()
    post(operator, made, text="Another text", example=[str(grade.pk)], shows_examples="on")
    assert Rubric.objects.get(parent=made).examples == made.examples


def test_nothing_but_a_persons_grade_becomes_an_example(site, operator, olga):
    judge = site.session().with_work().judged(0.9).grade
    post(operator, text="Grade it strictly.", example=[str(judge.pk)], shows_examples="on")
    assert Rubric.objects.get(parent=first()).examples == []


def test_an_example_whose_evidence_is_gone_is_said(site, operator, olga, settings, tmp_path):
    grade = graded_by(site, olga)
    settings.MEDIA_ROOT = tmp_path
    page = flat(post(operator, text="Grade it strictly.", example=[str(grade.pk)], shows_examples="on"))
    assert "The evidence of an example could not be read" in page
    assert "Grade it strictly." in page


def test_what_no_database_takes_is_left_out_of_a_text(operator):
    post(operator, text="Grade it\0 strictly.\r\nVery.", remove="dimensions-" + "9" * 5000)
    assert Rubric.objects.get(parent=first()).text == "Grade it strictly.\nVery."


def test_more_examples_than_fit_are_refused(site, operator, olga):
    chosen = [str(graded_by(site, olga).pk) for _ in range(7)]
    page = flat(post(operator, example=chosen, shows_examples="on"))
    assert "Expected at most 6 examples, got 7. Remove some." in page


def test_only_what_people_still_say_is_offered_as_an_example(site, olga):
    held = graded_by(site, olga, why="this one holds")
    undone = graded_by(site, olga, why="taken back")
    Grade.objects.create(
        session=undone.session, source=Source.HUMAN, status=Status.SKIPPED, reason=Reason.WITHDRAWN, withdraws=undone,
        author=olga,
    )  # fmt: skip
    site.on(held.session).judged(0.3)
    assert list(examples.labelled()) == [held]
    assert list(examples.labelled("holds")) == [held]
    assert not examples.labelled("nobody wrote this")


# --- the exact prompt ------------------------------------------------------------------------------------------------


def test_the_preview_is_byte_for_byte_what_is_sent(site, sim, operator, olga):
    session = site.session(title="<script>a & b</script>").with_work().session
    response = post(operator, text="Grade it strictly.", do="preview", session=session.external_id)
    shown = response.context["preview"].prompt
    assert Rubric.objects.count() == 4
    post(operator, text="Grade it strictly.")
    job = trials.try_on(session, Rubric.objects.get(parent=first()))
    worker.run(job.pk)
    (call,) = sim.calls
    assert (call.request.system, call.request.user) == (shown.system, shown.user)
    page = response.content.decode()
    assert f'aria-label="User prompt">{html.escape(shown.user)}</pre>' in page
    assert "a million" in page


def test_a_session_is_found_by_the_end_of_its_id_and_a_doubtful_one_is_said(site, operator):
    site.session(external_id="first-abcd").with_work()
    site.session(external_id="second-abcd").with_work()
    assert "Several sessions have an id that ends in" in flat(post(operator, do="preview", session="abcd"))
    assert "No session has the id" in html.unescape(flat(post(operator, do="preview", session="zz")))
    assert post(operator, do="preview", session="d-abcd").context["preview"].session.external_id == "second-abcd"


# --- trials ----------------------------------------------------------------------------------------------------------


def test_a_trial_is_on_record_and_never_enters_the_chain(site, sim, operator, olga):
    session = site.judged_by(sim, 0.5)
    held = rewards.live(session)
    draft = version(olga)
    sim.script({"score": 0.9})
    operator.post(f"/rubrics/{draft.pk}/try/", {"session": session.external_id})
    job = JudgeJob.objects.get(purpose=Purpose.TRIAL)
    worker.run(job.pk)
    assert rewards.settle(session) == held
    answer = Grade.objects.get(rubric=draft.sha256)
    assert (answer.parallel, answer.value) == (True, 0.9)
    assert JudgeAttempt.objects.filter(job=job, cost_usd__gt=0).exists()
    page = flat(operator.get(f"/rubrics/{draft.pk}/try/", {"session": session.external_id}))
    for text in (".50", ".90", "+.40", "Goal fit"):
        assert text in page


def test_a_trial_offers_sessions_of_the_rubrics_kind_first(site, operator):
    address = f"/rubrics/{first().pk}/try/"
    assert "there is nothing to try this rubric on" in flat(operator.get(address))
    production = site.session("code", ago=dt.timedelta(days=2)).judged(0.6).settle()
    reading = site.session("news").judged(0.6).settle()
    page = operator.get(address)
    assert [each["session"] for each in page.context["candidates"]] == [production, reading]
    assert f"?{page.context['candidates'][0]['query']}" in flat(page)
    assert "reading, usually another rubric" in flat(page)
    assert "candidates" not in operator.get(address, {"session": production.external_id}).context


def test_a_dimension_named_score_does_not_hide_the_score():
    """A trial's table has a row for each, even if their names look the same."""
    before = Grade(value=0.5, evidence={"dimensions": {"score": 0.1}})
    after = Grade(value=0.9, evidence={"dimensions": {"score": 0.2}})
    rows = [(row["name"], row["before"], row["after"]) for row in dimension_rows(before, after)]
    assert rows == [("Score", 0.5, 0.9), ("Score", 0.1, 0.2)]


def test_a_trial_of_a_session_without_a_verdict_leaves_it_without_one(site, sim, olga):
    session = site.session().with_work().session
    job = trials.try_on(session, version(olga))
    held = rewards.settle(session)
    assert "No verdict is coming" in held.sentence
    sim.mode = "refusal"
    worker.run(job.pk)
    assert not session.grades.chain().filter(source=Source.JUDGE, status=Status.SCORED).exists()


def test_the_same_trial_is_not_paid_for_twice(site, sim, olga):
    session, draft = site.session().with_work().session, version(olga)
    worker.run(trials.try_on(session, draft).pk)
    assert trials.try_on(session, draft) is None
    assert len(sim.calls) == 1


def test_a_changed_question_may_be_asked_again(site, sim, operator, olga):
    session, draft = site.session().with_work().session, version(olga)
    worker.run(trials.try_on(session, draft).pk)
    address = f"/rubrics/{draft.pk}/try/"
    assert "ask the same question" in flat(operator.get(address, {"session": session.external_id}))
    site.on(session).with_file("patch", b"+++ b/x\n+one more line\n")
    page = flat(operator.get(address, {"session": session.external_id}))
    assert "is out of date" in page
    assert "Ask the judge, " in page


def test_a_second_trial_waits_for_the_first(site, sim, olga):
    session, draft = site.session().with_work().session, version(olga)
    job = trials.try_on(session, draft)
    assert trials.try_on(session, draft) == job
    with pytest.raises(trials.TrialError, match="is in progress"):
        trials.try_on(session, version(olga, "Grade it kindly."))


def test_without_a_judge_a_trial_says_what_to_do(site, operator, olga):
    session = site.session().with_work().session
    response = operator.post(f"/rubrics/{first().pk}/try/", {"session": session.external_id})
    assert "Add a key in Settings" in flat(response)
    assert not JudgeJob.objects.exists()


def test_a_viewer_sees_trials_and_asks_nobody(site, client, sim, olga):
    client.force_login(site.person("vera", "viewer"))
    session, draft = site.session().with_work().session, version(olga)
    assert client.get(f"/rubrics/{draft.pk}/try/", {"session": session.external_id}).status_code == 200
    assert client.post(f"/rubrics/{draft.pk}/try/", {"session": session.external_id}).status_code == 403
    assert not JudgeJob.objects.exists()


# --- in force, and stale ---------------------------------------------------------------------------------------------


def test_putting_a_rubric_in_force_moves_the_queue_and_is_on_record(site, operator, olga, sim):
    queued, leased = site.judge_job(), site.judge_job()
    worker.claim(leased.pk)
    draft = version(olga)
    trial = trials.try_on(site.session().with_work().session, first())
    page = flat(operator.get(f"/rubrics/{draft.pk}/activate/"))
    assert "0 of 0 judged sessions will have a stale verdict" in page
    operator.post(f"/rubrics/{draft.pk}/activate/")
    assert Rubric.objects.active() == draft
    assert list(RubricActivation.objects.values_list("rubric", "by")) == [(draft.pk, olga.pk), (first().pk, None)]
    for job, rubric in ((queued, draft), (leased, first()), (trial, first())):
        job.refresh_from_db()
        assert job.rubric == rubric


def test_putting_the_one_in_force_in_force_changes_nothing(olga):
    assert versions.activate(first(), by=olga) == 0
    assert not RubricActivation.objects.exists()


def test_undoing_is_putting_the_earlier_one_back(site, sim, operator, olga):
    session, draft = site.judged_by(sim), version(olga)
    versions.activate(draft, by=olga)
    assert verdicts.with_verdict(type(session).objects.all()).get().is_stale
    assert "Put back…" in flat(operator.get("/rubrics/"))
    operator.post(f"/rubrics/{first().pk}/activate/")
    assert not verdicts.with_verdict(type(session).objects.all()).get().is_stale
    assert [row.rubric for row in RubricActivation.objects.all()] == [first(), draft, first()]


def test_a_stale_verdict_is_marked_and_holds(site, sim, operator, olga):
    session = site.judged_by(sim, 0.5)
    held = rewards.live(session)
    assert "stale-mark" not in flat(operator.get(f"/sessions/{session.pk}/"))
    versions.activate(version(olga), by=olga)
    page = flat(operator.get(f"/sessions/{session.pk}/"))
    assert (
        f"Given under rubric {first().sha256[:4]}; {Rubric.objects.active().sha256[:4]} is in force for production now."
        in page
    )
    assert 'class="tile c-judge decides' in page
    assert ">stale</span>" in page
    assert rewards.settle(session) == held
    assert session.short_id in flat(operator.get("/sessions/", {"stale": "yes"}))
    assert session.short_id not in flat(operator.get("/sessions/", {"stale": "no"}))


def test_a_verdict_on_an_older_digest_is_stale(site, sim, monkeypatch):
    session = site.judged_by(sim)
    verdict = verdicts.verdicts().get(session=session)
    assert verdicts.staleness(verdict, first()) == ""
    monkeypatch.setattr(verdicts, "VERSION", "digest/99")
    assert "digest/99 is used now" in verdicts.staleness(verdict, first())
    assert verdicts.with_verdict(type(session).objects.all()).get().is_stale


def test_a_session_without_a_verdict_is_not_stale(site, olga):
    session = site.session().judged(None, Reason.QUOTA_EXHAUSTED).session
    versions.activate(version(olga), by=olga)
    assert verdicts.with_verdict(type(session).objects.all()).get().is_stale is None


def test_what_came_of_each_rubric_is_counted_for_it(site, sim, operator, olga):
    session = site.judged_by(sim, 0.5)
    site.judged_by(sim, 0.7)
    site.on(session).graded(Source.HUMAN, 0.6, author=olga)
    figures = versions.figures()[first().sha256]
    assert (figures.verdicts, round(figures.mean, 6), figures.pairs) == (2, 0.6, 1)
    assert (round(figures.error, 6), round(figures.bias, 6)) == (0.1, -0.1)
    page = flat(operator.get("/rubrics/"))
    assert "in force" in page
    assert ".60" in page


@pytest.mark.parametrize("seed", range(4))
def test_figures_pair_each_session_that_people_graded_with_its_verdict_under_each_rubric(site, olga, seed):
    dice = Random(seed)
    rubrics = [first().sha256, version(olga).sha256]
    sessions = [site.session().session for _ in range(6)]
    for _step in range(12):
        for _act in range(dice.randint(1, 4)):
            session, value = dice.choice(sessions), round(dice.random(), 3)
            held = Grade.objects.filter(session=session, source=Source.HUMAN, status=Status.SCORED, withdrawn_by=None)
            if (act := dice.random()) < 0.5:
                site.on(session).judged(value, rubric=dice.choice(rubrics))
            elif act < 0.8 or not held.exists():
                site.on(session).graded(Source.HUMAN, value, author=olga)
            else:
                site.on(session).graded(Source.HUMAN, None, Reason.WITHDRAWN, author=olga, withdraws=held.latest("pk"))
        labelled = {grade.session_id for grade in examples.labelled()}
        paired = {*Grade.objects.verdicts().filter(session__in=labelled).values_list("rubric", "session")}
        assert sum(each.pairs for each in versions.figures().values()) == len(paired)


def test_an_example_says_nothing_about_how_well_its_rubric_agrees(site, sim, olga):
    session = site.judged_by(sim, 0.5)
    grade = site.on(session).graded(Source.HUMAN, 0.5, author=olga).grade
    made = version(olga, examples=[examples.make_example(grade)])
    site.on(session).judged(0.5, rubric=made.sha256)
    assert versions.figures()[made.sha256].pairs == 0


def test_stored_figures_are_those_of_the_moment_they_were_stored(site, operator):
    site.on(site.session().session).judged(0.4, rubric=first().sha256)
    figures, now = versions.figures(), timezone.now()
    assert versions.latest_figures() == (figures, None)
    versions.store_figures(now)
    site.on(site.session().session).judged(0.8, rubric=first().sha256)
    assert versions.latest_figures() == (figures, now)
    assert "As of" in flat(operator.get("/rubrics/"))
    versions.store_figures(now + dt.timedelta(hours=1))
    assert versions.latest_figures() == (versions.figures(), now + dt.timedelta(hours=1))
