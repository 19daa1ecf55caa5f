"""Rubrics and judging again in a real Chromium: they fit, follow the judge while open, and work without script."""

import pytest

from grading.judging import worker
from grading.judging.rubrics import versions
from grading.models import JudgePolicy, JudgeRun, Rubric
from grading.simulator import Simulator
from grading.vocabulary import Source
from tests.browser.watch import listen, log_in
from tests.casts import judge as judge_cast
from tests.site import Site

pytestmark = pytest.mark.browser

ATTACK = "<script>window.pwned = 1</script>"


@pytest.fixture
def sim(settings, live_site):
    with Simulator() as running:
        judge_cast.use(settings, running)
        JudgePolicy.objects.create(repeat_share=0, second_share=0)
        yield running


@pytest.fixture
def olga(live_site):
    return Site().person("olga", "operator")


@pytest.fixture
def sessions(sim, olga):
    """Three judged sessions, one of them graded by a person too."""
    made = []
    for score in (0.3, 0.5, 0.7):
        sim.script({"score": score})
        job = judge_cast.job(title=f"{ATTACK} a session of {score}")
        worker.run(job.pk)
        made.append(job.session)
    Site().on(made[0]).graded(Source.HUMAN, 0.8, author=olga, detail=f"merged {ATTACK}")
    return made


def sterner(olga) -> Rubric:
    held = Rubric.objects.earliest("pk")
    draft = Rubric(
        title="Sterner", text=f"Be stern. {ATTACK}", dimensions=held.dimensions, bands=held.bands, parent=held
    )
    return versions.save(draft, author=olga)[0]


def test_from_an_edit_to_new_verdicts(page, sim, olga, sessions):
    complaints = listen(page)
    log_in(page)
    page.goto("/rubrics/")
    page.click("text=Edit a copy of")
    page.wait_for_url("**/edit/**")
    page.fill("[name=title]", "Sterner")
    page.fill("[name=dimension_weight] >> nth=0", ".4")
    assert page.inner_text("[data-sum]") == ".9"
    page.click("text=Save as a new version")
    assert "they add up to 0.9: add 0.1 to one of them" in page.inner_text(".problem")
    assert page.input_value("[name=title]") == "Sterner"
    page.fill("[name=dimension_weight] >> nth=1", ".45")
    page.check("[name=shows_examples]")
    page.check("[name=example] >> nth=0")
    page.click("text=Preview the prompt")
    assert "Examples that people graded" in page.inner_text("#system")
    assert "merged <script>" in page.inner_text("#system")
    page.click("text=Save as a new version")
    assert "is not in force yet" in page.inner_text(".messages")
    page.get_by_role("link", name="Put it in force").click()
    page.get_by_role("button", name="3 verdicts become stale").click()
    page.click("text=Judge 3 stale sessions again")
    page.fill("[name=why]", "the rubric is sterner")
    page.click("text=/Judge 3 sessions again,\\s+.*¢/")
    page.wait_for_selector("text=In the queue: waiting for the judge")
    # The judge works, and the open page follows without anybody's doing.
    for job in JudgeRun.objects.get().jobs.all():
        worker.run(job.pk)
    page.wait_for_selector("text=3 of 3 sessions finished")
    page.wait_for_selector("text=mean of 3 sessions judged before and after")
    assert complaints == []


@pytest.mark.slow
def test_ticked_sessions_are_judged_again(page, sim, olga, sessions):
    versions.activate(sterner(olga), by=olga)
    log_in(page)
    page.goto("/sessions/")
    page.check("[data-tick-all]")
    page.uncheck(f"[name=session][value='{sessions[0].pk}']")
    page.click("text=Judge ticked sessions again")
    page.click("text=/Judge 2 sessions again/")
    page.wait_for_selector("text=0 of 2 sessions finished")
    page.click("text=Cancel what is still queued")
    assert "2 queued jobs cancelled" in page.inner_text(".messages")
    assert "Cancelled" in page.inner_text(".state-line")


@pytest.mark.slow
def test_it_all_works_without_script(chromium, live_site, sim, olga, sessions):
    context = chromium.new_context(base_url=live_site, java_script_enabled=False)
    page = context.new_page()
    log_in(page)
    page.goto("/rubrics/")
    page.click("text=Edit a copy of")
    page.fill("[name=title]", "With harm")
    page.click("text=Add a dimension")
    page.fill("[name=dimension_name] >> nth=3", "care")
    page.fill("[name=dimension_weight] >> nth=3", "0")
    page.fill("[name=dimension_text] >> nth=3", "Was it careful?")
    page.click("[aria-label^='Remove band 5']")
    assert page.input_value("[name=title]") == "With harm"
    page.click("text=Save and try it on this session")
    page.click("text=/Ask the judge, .*¢/")
    assert "In the queue." in page.inner_text("[role=status]")
    made = Rubric.objects.get(title="With harm")
    assert [row["name"] for row in made.dimensions][-1] == "care"
    assert len(made.bands) == 4
    assert worker.pump() == 1
    page.reload()
    assert "ask the same question" in page.inner_text("main")
    assert "Care" in page.inner_text("main table")
    context.close()
