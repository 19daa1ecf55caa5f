"""Rules for categories in a real Chromium: written, counted as they are typed, applied, seen on a session, undone."""

import os

import pytest

from bandit.models import Bucket
from grading.models import CategoryRule, Session
from tests.browser.watch import listen, log_in
from tests.casts.intake import calls, claude
from tests.site import Site

pytestmark = pytest.mark.browser

ATTACK = "<script>window.pwned = 1</script>"
WRITE = (
    "Write",
    {"file_path": "/repo/infra/main.tf", "content": "x"},
    "File created successfully at: /repo/infra/main.tf",
)


@pytest.fixture
def sessions(live_site):
    Site().person("olga", "operator")
    tasks = ["Go through the inbox. ", "Triage the inbox. ", f"Read the news {ATTACK}. ", "Fix the retry loop. "]
    made = []
    for number, task in enumerate(tasks):
        name = f"s-{number}"
        log = claude(name, *calls(WRITE, task=task), gitBranch=f"fix/{number}")
        made.append(Site().upload(name, log, category=None, title=task).session)
    return made


def shot(page, name):
    """A picture, for whoever asks for them."""
    if folder := os.environ.get("SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_a_rule_is_counted_as_it_is_typed_applied_seen_and_undone(page, sessions):
    complaints = listen(page)
    page.set_viewport_size({"width": 1440, "height": 900})
    log_in(page)
    page.goto("/")
    page.click("text=Set up categories")
    page.wait_for_selector("text=4 of 4 sessions have no category")
    shot(page, "categories-empty")
    page.click("text=Add a rule")
    page.fill("[name=values-0]", "inbox")
    page.select_option("[name=category]", "triage")
    page.wait_for_selector("text=This rule matches 2")
    page.wait_for_selector("text=Save and set 2 categories")
    assert not CategoryRule.objects.exists()
    assert page.locator(".arms .curve .was").count() == page.locator(".arms tbody tr").count() > 0
    page.click("text=Add a condition")
    page.select_option("[name=field-1]", "branch")
    page.select_option("[name=test-1]", "matches")
    page.fill("[name=values-1]", "fix/0")
    page.wait_for_selector("text=Save and set 1 category")
    page.fill("[name=values-1]", "fix/*")
    page.wait_for_selector("text=Save and set 2 categories")
    shot(page, "categories-draft")
    page.click("text=Save and set 2 categories")
    page.wait_for_selector("text=Categories of 2 sessions set")
    assert Session.objects.filter(category__name="triage", category_from="rule").count() == 2
    shot(page, "categories-set")
    page.goto(sessions[0].get_absolute_url())
    page.wait_for_selector("text=Category triage was set by rule 1: the task says “Go through the inbox")
    page.click("summary:has-text('Change')")
    shot(page, "session-category")
    page.select_option(".category-set [name=category]", "code")
    page.click("button:text-is('Set it')")
    page.wait_for_selector("text=Category code: set by a person, olga")
    page.goto("/categories/")
    while page.locator("button:has-text('Undo')").count():
        page.locator("button:has-text('Undo')").first.click()
        page.wait_for_selector("text=Undone. The previous categories")
    assert not Session.objects.exclude(category=None).exists()
    page.click("button:text-is('Delete')")
    page.wait_for_selector("text=No rules yet")
    assert not CategoryRule.objects.exists()
    page.goto("/history/?kind=category")
    page.wait_for_selector("text=Added rule 1: ")
    page.wait_for_selector("text=Deleted rule 1: ")
    assert not Bucket.objects.filter(bandit__name="category", n__gt=0).exists()
    assert complaints == []
    assert page.evaluate("window.pwned") is None


def test_what_was_typed_before_the_script_ran_is_counted(page, sessions):
    scripts = []
    log_in(page)
    page.route("**/categories*.js", lambda route: scripts.append(route))  # noqa: PLW0108 - marks what it is given
    page.goto("/categories/?edit=new", wait_until="commit")
    page.fill("[name=values-0]", "inbox")
    page.select_option("[name=category]", "triage")
    scripts[0].continue_()
    page.wait_for_selector("text=Save and set 2 categories")


@pytest.mark.slow
def test_a_rule_is_previewed_and_applied_without_script(chromium, live_site, sessions):
    context = chromium.new_context(base_url=live_site, java_script_enabled=False)
    page = context.new_page()
    log_in(page)
    page.goto("/categories/?edit=new")
    page.fill("[name=values-0]", "news")
    page.select_option("[name=category]", "news")
    page.click("button:has-text('Preview')")
    page.wait_for_selector("text=This rule matches 1")
    page.click("text=Save and set 1 category")
    page.wait_for_selector("text=Categories of 1 session set")
    context.close()


def test_sessions_that_are_ticked_are_previewed_before_they_are_set(page, sessions):
    log_in(page)
    page.goto("/sessions/?categorised=no")
    page.check(f"[name=session][value='{sessions[0].pk}']")
    page.check(f"[name=session][value='{sessions[3].pk}']")
    page.click("text=Set the category of ticked sessions")
    page.select_option("[name=category]", "code")
    page.click("button:has-text('Preview')")
    page.wait_for_selector("text=2 of 2")
    shot(page, "categories-by-hand")
    page.click("text=Set 2 categories")
    page.wait_for_selector("text=2 sessions set to")
    assert Session.objects.filter(category__name="code", category_from="person").count() == 2
