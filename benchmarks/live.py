"""How soon does every open page show that the judge is out, and that it is back? And what do all of them cost?

So many browsers, each with a session of its own and a page open, on the real server. The judge's budget is spent, and
raised again. `out_s` and `back_s` are the seconds until the last page shows it, `cores` the processor time of the web
processes divided by the time that the pages stood open, `pollers_of_tabs` how many ask for twelve tabs of one browser.

    python benchmarks/live.py [--quick | --smoke]
"""

import json
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.scratch import Size
from benchmarks.slow_clients import served
from gradingsite import broker

# Where somebody may have a page open.
PATHS = ("/", "/sessions/", "/quota/", "/alarms/", "/review/")
FLAGS = "--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync"
# Notes when the words of the state change, as the reader sees them.
NOTE = """() => {
  const words = document.querySelector('[data-live-judge] span');
  window.changed = [];
  new MutationObserver(() => window.changed.push([Date.now(), words.textContent.trim()]))
    .observe(words, { childList: true, characterData: true, subtree: true });
}"""
TABS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many browsers, and for how many seconds they stand open before, between and after."""

    browsers: int
    rest: float


LOADS = {
    Size.FULL: Load(browsers=50, rest=20),
    Size.QUICK: Load(browsers=8, rest=6),
    Size.SMOKE: Load(browsers=1, rest=1),
}


def main() -> None:
    parser = scratch.parser(__doc__, quick="8 browsers instead of 50", smoke="one browser, for a few seconds")
    load, port = LOADS[parser.parse_args().size], broker.free_port()
    from tests.run import chromium_path

    path = chromium_path()
    if path is None:
        sys.exit("No Chromium on PATH. As root: apt-get install chromium")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"  # Playwright keeps an event loop, which Django takes for async code
    with tempfile.TemporaryDirectory() as state:
        # Without heartbeats: nobody judges here, and the pages would say that instead.
        settings = {"ANTHROPIC_API_KEY": "sk-bench", "HEARTBEAT_SECONDS": "0", "FEED_SECONDS": "3"}
        scratch.site(state, PORT=str(port), **settings)
        from playwright.sync_api import sync_playwright

        with served(port) as web, sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=path, args=FLAGS.split())
            figures = run(chromium, f"http://127.0.0.1:{port}", load, web.pid)
            chromium.close()
    print(json.dumps(figures))


def run(chromium: Any, site: str, load: Load, web: int) -> dict[str, float]:
    from django.utils import timezone

    from grading.judging import judges
    from grading.judging.allowance import quota

    judge = judges.configured()[judges.JudgeRole.FIRST]
    quota.answered(judge, started_at=timezone.now(), now=timezone.now())
    pages = [opened(chromium, site, number) for number in range(load.browsers)]
    time.sleep(load.rest)
    cpu, began = processor_time(web), time.monotonic()
    time.sleep(load.rest)
    out_s = until_all_say(pages, "Budget spent", lambda: quota.spend_out(judge, timezone.now(), "spent"))
    time.sleep(load.rest)
    back_s = until_all_say(pages, "Judge open", lambda: quota.reopen_budget(timezone.now(), by=None))
    time.sleep(load.rest)
    cores = (processor_time(web) - cpu) / (time.monotonic() - began)
    for page in pages:
        page.context.close()
    pollers = pollers_of_tabs(chromium, site)
    print(
        f"{load.browsers} browsers: the last shows an outage after {out_s:.1f} s, its end after {back_s:.1f} s; "
        f"the web processes take {cores:.1%} of a core; {TABS} tabs of a browser have {pollers} poller(s)"
    )
    return {
        "browsers": load.browsers,
        "out_s": round(out_s, 2),
        "back_s": round(back_s, 2),
        "cores": round(cores, 4),
        "pollers_of_tabs": pollers,
    }


def signed_in(chromium: Any, site: str, name: str) -> Any:
    """A browser of an operator's."""
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get_or_create(username=name, defaults={"is_staff": True, "is_superuser": True})[0])
    context = chromium.new_context(base_url=site)
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": site}])
    return context


def opened(chromium: Any, site: str, number: int) -> Any:
    page = signed_in(chromium, site, f"person-{number}").new_page()
    page.goto(PATHS[number % len(PATHS)])
    page.evaluate(NOTE)
    return page


def until_all_say(pages: list[Any], words: str, act: Any, patience: float = 60) -> float:
    """Seconds from `act` until the last of the pages showed these words. Raises where one does not."""
    act()
    began, latest = time.time(), 0.0
    for page in pages:
        page.wait_for_function(
            "words => window.changed.some(each => each[1].startsWith(words))", arg=words, timeout=patience * 1000
        )
        latest = max(latest, *(at for at, said in page.evaluate("window.changed") if said.startswith(words)))
        page.evaluate("window.changed = []")
    return latest / 1000 - began


def pollers_of_tabs(chromium: Any, site: str) -> int:
    context = signed_in(chromium, site, "person-0")
    for _ in range(TABS):
        context.new_page().goto("/sessions/")
    targets = chromium.new_browser_cdp_session().send("Target.getTargets")["targetInfos"]
    context.close()
    return sum(target["type"] == "shared_worker" for target in targets)


def processor_time(pid: int) -> float:
    """Seconds that the process and its children have used, from /proc."""
    ticks, seconds = os.sysconf("SC_CLK_TCK"), 0.0
    for process in [pid, *children(pid)]:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        seconds += (int(fields[11]) + int(fields[12])) / ticks
    return seconds


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


if __name__ == "__main__":
    main()
