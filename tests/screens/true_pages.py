"""A site as its reader meets it: the text of each page that its links lead to, and what in it cannot be true."""

import datetime as dt
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.parse import urlsplit

from django.urls import Resolver404, resolve
from django.utils import timezone

from bandit.models import Arm, Selection
from grading.models import Agent, Alarm, JudgeAttempt, Session
from grading.models.judging import AttemptOutcome
from grading.monitoring.flag_rule import FlagRule
from grading.monitoring.rule import RULES
from grading.vocabulary import Reason, Source

# Links that end the visit, answer with a file or lead to tables and manuals.
LEFT_OUT = (
    "/logout",
    "/static/",
    "/api/",
    "/bandit/",
    "/grading/",
    "/settings/about",
    "/words",
    "/agent/",
    "/rubrics/",
)
DESK = re.compile(r"/review/\d+/")
FILES = (".csv", ".jsonl", ".py", ".json")
# Pages of one kind, as of several sessions, that are read.
OF_ONE_KIND = 3
VOID = {"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
UNREAD = {"script", "style", "svg", "template", "title"}
INLINE = {"a", "abbr", "b", "code", "em", "i", "span", "strong", "time", "small", "label"}


class Reader(HTMLParser):
    """The links of a page, and the text in its main part and around it, without what is hidden."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.main: list[str] = []
        self.frame: list[str] = []
        self._open: list[
            tuple[str, bool, bool]
        ] = []  # the elements around, whether each is unread and in the main part

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        if tag == "a" and (link := names.get("href") or "").startswith("/"):
            self.links.append(link.partition("#")[0])
        _tag, unread, main = self._open[-1] if self._open else ("", False, False)
        if tag not in VOID:
            self._open.append((tag, unread or tag in UNREAD or "hidden" in names, main or tag == "main"))
        self._write("" if tag in INLINE else " ")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass
        self._write("" if tag in INLINE else " ")

    def handle_data(self, data: str) -> None:
        if self._open and not self._open[-1][1]:
            self._write(data)

    def _write(self, text: str) -> None:
        (self.main if self._open and self._open[-1][2] else self.frame).append(text)


@dataclass(frozen=True, slots=True)
class Page:
    """A page's address, the text of its main part in one line, and that of the frame around it."""

    url: str
    text: str
    frame: str


def every_page(client) -> list[Page]:
    """The pages that the dashboard's links lead to, over any number of links; of each view the first few."""
    pages, waiting, met, views = [], ["/", "/alarms/", "/story/"], {"/"}, Counter[str]()
    while waiting:
        url = waiting.pop(0)
        views[_view(url)] += 1
        if views[_view(url)] > OF_ONE_KIND:
            continue
        reply = client.get(url, follow=True)
        if reply.status_code != 200 or not reply.headers["Content-Type"].startswith("text/html"):
            continue
        reader = Reader()
        reader.feed(reply.content.decode())
        pages.append(Page(url, " ".join("".join(reader.main).split()), " ".join("".join(reader.frame).split())))
        links = reader.links
        path = urlsplit(url).path
        if DESK.fullmatch(path):  # what a script loads while a grade is typed
            links = [*links, f"{path}effect/?answer=grade&value=.6"]
        for link in links:
            if link not in met and not link.startswith(LEFT_OUT) and not urlsplit(link).path.endswith(FILES):
                met.add(link)
                waiting.append(link)
    return pages


def _view(url: str) -> str:
    parts = urlsplit(url)
    try:
        name = resolve(parts.path).view_name
    except Resolver404:
        name = parts.path
    return f"{name} {'with a query' if parts.query else ''}"


# ---- what cannot be true

# What pages say only where a judge can answer, only where it will be asked, and only where there is none.
OPEN = r"[Jj]udge (?:is )?open|Verdicts come in as|judge was available"
QUEUED = r"Next: the judge|\d(?:st|nd|rd|th) of \d+ in"
NONE = r"judge is off|No judge\b(?! is called| has given)|no judge is configured|There is no judge"


def faults(pages: list[Page], *, judge: str) -> list[str]:
    """What these pages of the site say that its rows, or its other pages, contradict. `judge` is "open", "away" or
    "none".
    """
    by_url = {page.url: page for page in pages}
    wrong = {"open": NONE, "away": f"{NONE}|{OPEN}", "none": f"{OPEN}|{QUEUED}"}[judge]
    found = [
        *_said(pages, wrong, f"the judge is {judge}"),
        *_said(pages, r"<command-|Implement the following plan:|test prompt", "titles are a person's own words"),
        *_said(pages, r"NOT as before", "the story counts only its own sessions"),
        *_said(pages, r"identity changed|[Gg]rader changed|[Jj]udge changed", "one model judges"),
        *_said(pages, r"it has neither a category nor a harness", "no session here lacks both"),
        *_said(pages, r"(?<![\d.])\.10 →|→ \.10(?!\d)", "the floor is no grade"),
        *_no_rows(pages),
        *_counts(by_url),
        *_rewards(by_url),
        *_uncertainty(pages),
        *_light_evidence(by_url),
        *_shares(by_url),
        *_final_rewards_in_alarms(by_url),
        *_contradicting_verdicts(pages),
        *_quiet_judges(pages),
        *_outages(by_url),
        *_open_alarms(by_url),
        *_unseen_agents(pages),
    ]
    return [f"{fault}" for fault in found]


def _said(pages: list[Page], pattern: str, why: str) -> Iterator[str]:
    for page in pages:
        for text in (page.text, page.frame):
            if match := re.search(pattern, text):
                yield f"{page.url}: “{text[max(match.start() - 60, 0) : match.end() + 60]}”, but {why}"


def _no_rows(pages: list[Page]) -> Iterator[str]:
    """Pages that say that there is nothing, where there are rows."""
    real = Session.objects.filter(is_sample=False)
    nothing = {
        r"None of your own sessions has arrived|no sessions of your own yet": real,
        r"[Nn]o session was graded|no session of these 7 days has a grade": real.filter(
            ended_at__gt=timezone.now() - dt.timedelta(days=6)
        ).exclude(reward_source__in=["", Source.FLOOR]),
        r"No bandit has chosen an arm yet": Selection.objects.all(),
        r"No agent is connected yet": Agent.objects.filter(is_sample=False),
        r"No calls in the last|[Nn]o judge has given a verdict yet": JudgeAttempt.objects.filter(cost_usd__gt=0),
    }
    for pattern, rows in nothing.items():
        if rows.exists():
            yield from _said(pages, pattern, "there are such rows")
    if Selection.objects.filter(bandit__name="category").exists():
        of_category = [page for page in pages if urlsplit(page.url).path in {"/bandits/", "/bandits/category/"}]
        yield from _said(of_category, "No decisions yet", "the category bandit has chosen")
    if not Selection.objects.exists():
        yield from _said(pages, r"Every arm is chosen often enough", "nothing was ever chosen")


def _counts(by_url: dict[str, Page]) -> Iterator[str]:
    """The navigation's counts are those of the pages that it leads to."""
    frame = by_url["/"].frame
    for name, url, pattern in (("Review", "/review/", r"(\d+) to review"), ("Alarms", "/alarms/", r"(\d+) open")):
        badge, heading = re.search(rf"{name} (\d+)", frame), re.search(pattern, by_url[url].text)
        counts = [int(match[1]) if match else 0 for match in (badge, heading)]
        if counts[0] != counts[1]:
            yield f"{name}: {counts[0]} in the navigation, {counts[1]} on its page"


def _rewards(by_url: dict[str, Page]) -> Iterator[str]:
    """A session's page states the reward that is settled."""
    for session in Session.objects.exclude(reward_value=None).exclude(reward_source=Source.FLOOR):
        page = by_url.get(f"/sessions/{session.pk}/")
        stated = page and re.search(r"Reward (\d?\.\d\d|1|0)\b", page.text)
        if stated and float(stated[1]) != round(session.reward_value, 2):
            yield f"{page.url}: says {stated[1]}, and {session.reward_value} is settled"


def _uncertainty(pages: list[Page]) -> Iterator[str]:
    """An arm's mean has one interval, on whichever page."""
    arms = "|".join(map(re.escape, Arm.objects.filter(bandit__name="category").values_list("name", flat=True)))
    widths: dict[tuple[str, str], set[str]] = defaultdict(set)
    for page in pages:
        for arm, mean, width in re.findall(rf"\b({arms})\b[^.±]{{,60}}(\.\d{{3}})\s*± (\.\d{{3}})", page.text):
            widths[arm, mean].add(width)
    yield from (f"a mean of {key} has ± {sorted(width)}" for key, width in widths.items() if len(width) > 1)


def _light_evidence(by_url: dict[str, Page]) -> Iterator[str]:
    """An arm whose sessions count for much less than their number says why."""
    rows = re.findall(r"(\d+) sessions?.{0,200}?worth ([\d.]+) observations(.{0,200})", by_url["/bandits/"].text)
    for sessions, observations, rest in rows:
        is_explained = re.search(r"without a confirmed grade|as old rewards count", rest)
        if float(observations) < int(sessions) / 2 and not is_explained:
            yield f"/bandits/: {sessions} sessions are worth {observations} observations, and nothing says why"


def _shares(by_url: dict[str, Page]) -> Iterator[str]:
    """The arms' shares of the next 100 choices are 100 together; so are those in the preview from samples."""
    text = by_url["/bandits/"].text
    for part in text.split("Mean Next 100"):
        shares = re.findall(r"(<1|[\d.]+) (?:of the )?next 100", part)
        total = sum(0.5 if share == "<1" else float(share) for share in shares)
        if shares and abs(total - 100) > 0.5 + 0.5 * shares.count("<1"):
            yield f"/bandits/: {' + '.join(shares)} are {total:g} of the next 100"


def _final_rewards_in_alarms(by_url: dict[str, Page]) -> Iterator[str]:
    """No alarm about single sessions offers to take out of the bandits what a judge or a person has graded since."""
    for alarm in Alarm.objects.filter(resolved_at=None):
        page, rule = by_url.get(f"/alarms/{alarm.pk}/"), RULES[alarm.rule]
        if not isinstance(rule, FlagRule):
            continue
        offered = page and re.search(r"Take (\d+) sessions? out of the bandits", page.text)
        if offered:
            keys = rule.sessions(alarm.about, timezone.now())
            graded = Session.objects.filter(pk__in=keys, reward_source__in=[Source.JUDGE, Source.HUMAN]).count()
            if int(offered[1]) > len(keys) - graded:
                yield f"{page.url}: “{offered[0]}”, but {graded} of {len(keys)} have a verdict or a person's grade"


def _contradicting_verdicts(pages: list[Page]) -> Iterator[str]:
    """A verdict praises no commit where the same page says that none was seen."""
    for page in pages:
        if "A commit or a pull request shows" in page.text and re.search(r"Not seen Commits, pull requests", page.text):
            yield f"{page.url}: the verdict praises a commit, and none was seen"


def _quiet_judges(pages: list[Page]) -> Iterator[str]:
    """A judge that was called in the last three days is not said to have been silent for so long."""
    if JudgeAttempt.objects.filter(started_at__gt=timezone.now() - dt.timedelta(days=3)).exists():
        yield from _said(pages, r"hasn[’']t been called for three days", "it was called since")


def _outages(by_url: dict[str, Page]) -> Iterator[str]:
    """The quota page calls no judge free of outages that never answered, or whose calls failed."""
    page = by_url.get("/quota/")
    if page and "No outages recorded" in page.text:
        if not JudgeAttempt.objects.filter(outcome=AttemptOutcome.GRADED).exists():
            yield "/quota/: no outages recorded, but the judge never answered"
        if JudgeAttempt.objects.filter(reason=Reason.QUOTA_EXHAUSTED).exists():
            yield "/quota/: no outages recorded, but the quota was exhausted"


def _open_alarms(by_url: dict[str, Page]) -> Iterator[str]:
    """The dashboard lists alarms if the navigation counts any."""
    badge, dashboard = re.search(r"Alarms (\d+)", by_url["/"].frame), by_url["/"].text
    if badge and "No open alarms" in dashboard:
        yield f"/: {badge[0]} in the navigation, but “No open alarms” on the dashboard"


def _unseen_agents(pages: list[Page]) -> Iterator[str]:
    """An agent that sent sessions was seen."""
    names = Agent.objects.filter(sessions__isnull=False).values_list("name", flat=True).distinct()
    if names:
        agents = "|".join(map(re.escape, names))
        yield from _said(pages, rf"\b(?:{agents})\W+never seen", "it sent sessions")
