"""Takes the README's pictures of a running site: `python -m docs.screenshots http://127.0.0.1:8000 admin PASSWORD`.

Run `make demo` in one terminal, press the first three buttons of /story/, and run this in another terminal with the
environment of `make test`. The pictures go beside this file.
"""

import argparse
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.run import chromium_path

DOCS = Path(__file__).parent
PAGES = {"bandit": "/bandits/category/"}


def log_in(page: Page, user: str, password: str) -> None:
    page.goto("/login/")
    page.fill("[name=username]", user)
    page.fill("[name=password]", password)
    page.click("[type=submit]")
    page.wait_for_selector("nav.nav")


def session_to_show(page: Page) -> str:
    """The address of a flagged session, else of the latest one."""
    for query in ("?flagged=yes", ""):
        page.goto(f"/sessions/{query}")
        links = page.locator("main table .ttl a")
        if links.count():
            return links.first.get_attribute("href") or "/sessions/"
    sys.exit("The site has no session yet: load the samples with `manage.py load_samples`, then try again.")


def shoot(page: Page) -> None:
    session = session_to_show(page)
    for name, path in {**PAGES, "session": session, "review": session.replace("sessions", "review")}.items():
        page.goto(path)
        if name == "review":
            page.keyboard.press("8")
            page.wait_for_selector("[data-part=effects] svg")
        page.screenshot(path=DOCS / f"{name}.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site")
    parser.add_argument("user")
    parser.add_argument("password")
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        page = browser.new_page(base_url=options.site, viewport={"width": 1440, "height": 900}, color_scheme="light")
        log_in(page, options.user, options.password)
        shoot(page)


if __name__ == "__main__":
    main()
