"""What can whoever is graded move, and what does the site notice of it? Every attack against a site at work.

Two honest agents have twelve days of judged sessions behind them and go on working; people look at pages. The judge is
credulous: it scores what it reads. An attacker wants one arm, neither the best nor the worst, chosen more often. It
holds a token of scope `agent`; or one of scope `hook`, as if it had read the file of the hook that runs as its own
user. Nobody reviews anything and no policy but the one that a new site begins with is in force.

Each attack meets the same site anew. How far it moved its arm is the arm's share of the next 100 decisions beside the
share on the same site without the attacker; where an attack hides what really happened, beside the site on which it was
not hidden. Then the honest agents' sessions, rewards, ledger entries, flags and decisions are compared with those of
the site without the attacker, to the last bit.

Unflagged is an attack that moved its arm by more than 3 of 100 with an agent's token, and by more than 3 with a hook's
while nothing was noticed within ten of its sessions. The full run is against the site's own processes; a quick one
calls the same code in this process.

    python benchmarks/redteam.py [--quick | --smoke] [--postgres] [--only NAMES]
"""

import argparse
import datetime as dt
import json
import logging
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np

from benchmarks import scratch
from benchmarks.attacking import attacker, sites, world
from benchmarks.attacking.attacks import ATTACKS, Act, Attack
from benchmarks.attacking.world import FAVOURITE, Size, Traffic
from benchmarks.drill import site as processes

SIZES = {
    scratch.Size.FULL: Size(history=20, live=8, sessions=24),
    scratch.Size.QUICK: Size(history=12, live=4, sessions=12),
    scratch.Size.SMOKE: Size(history=3, live=2, sessions=3),
}
# What is run: the attacks of a quick look, by the scope of the token.
QUICK: Mapping[str, tuple[str, ...]] = {
    "agent": ("invented_patches", "forged_logs", "refused_first", "journal_again", "others_logs"),
    "hook": ("forged_logs", "category_after"),
}
SMOKE = {"agent": ("invented_patches",), "hook": ("others_logs",)}
SCOPES = ("agent", "hook")
# In shares of the next 100; and within so many of an attacker's sessions a hook's attack is to be noticed.
TARGETS = {"agent": 3.0, "hook": 8.0}
NOTICEABLE, SOON, SLOW_MS = 3.0, 10, 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a site was like in the end. `share` is the favourite's of the next 100."""

    share: float
    honest: Mapping[str, Any]
    pages: tuple[float, ...]
    refused: tuple[str, ...]
    told: Mapping[str, int] = field(default_factory=dict)
    noticed_at: int | None = None
    rules: tuple[str, ...] = ()
    alarms: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What an attack came to. `moved` in shares of the next 100; `harmed` names what of the honest agents' changed."""

    attack: Attack
    scope: str
    moved: float
    after: Outcome
    harmed: tuple[str, ...]

    @property
    def is_unflagged(self) -> bool:
        """Whether it moved its arm by what somebody would want to know, and nobody was told in time."""
        soon = self.after.noticed_at is not None and (self.scope == "agent" or self.after.noticed_at <= SOON)
        return self.moved > NOTICEABLE and not soon


class Range:
    """Where it all happens: a site with its history, put back before each attack."""

    def __init__(self, site: sites.Attacked, tokens: dict[str, str], size: Size) -> None:
        self.site, self.tokens, self.size = site, tokens, size
        self.known: dict[tuple[str, Act], Outcome] = {}

    def after(
        self, act: Act | None, scope: str, before: frozenset[tuple[str, str]] = frozenset(), *, late: bool = False
    ) -> Outcome:
        """The site after this, or with honest work alone. `late`: the attack begins when honest work has come in."""
        from grading import monitoring
        from grading.models import ApiToken, RuleRun
        from grading.models.agents import Agent, TokenScope

        self.site.restore()
        now = dt.datetime.now(dt.UTC).replace(microsecond=0)
        traffic = Traffic(site=self.site, tokens=self.tokens, cookie=cookie(), now=now, size=self.size)
        told: dict[str, int] = {}
        with self.site.client() as client:
            traffic.start()
            try:
                if act is not None:
                    both = []
                    for name in (attacker.NAME, attacker.TWIN):
                        agent = Agent.objects.create(name=name)
                        _row, secret = ApiToken.objects.issue(agent, scope=TokenScope(scope))
                        both.append(
                            attacker.Attacker(
                                site=self.site,
                                client=client,
                                secret=secret,
                                now=now,
                                budget=self.size.sessions,
                                name=name,
                            )
                        )
                    eve, eve.twin = both[0], both[1]
                    if late:
                        traffic.finish()
                        self.site.judge()
                    act(eve)
                    told = eve.told
            finally:
                traffic.finish()
            self.site.judge()
            RuleRun.objects.all().delete()
            monitoring.watch()
            share = self._share(client)
        at, rules = attacker.noticed(before)
        return Outcome(
            share=share,
            honest=world.honest_state(),
            pages=tuple(traffic.pages),
            refused=tuple(traffic.refused),
            told=told,
            noticed_at=at,
            rules=rules,
            alarms=attacker.alarms(),
        )

    def _share(self, client: Any) -> float:
        bearer = {"Authorization": f"Bearer {self.tokens['alice']}"}
        read = client.get("/api/v1/bandits/category", headers=bearer).raise_for_status().json()
        return next(float(arm["share_of_next_100"]) for arm in read["arms"] if arm["arm"] == FAVOURITE)

    def result(self, attack: Attack, scope: str, alone: Outcome) -> Result:
        beside = alone
        if attack.plain is not None:
            key = (scope, attack.plain)
            if key not in self.known:
                self.known[key] = self.after(attack.plain, scope, alone.alarms)
            beside = self.known[key]
        after = self.after(attack.act, scope, alone.alarms, late=attack.late)
        harmed = [
            f"{name}: {alone.honest.get(name)} -> {after.honest.get(name)}"
            for name in {**alone.honest, **after.honest}
            if alone.honest.get(name) != after.honest.get(name)
        ]
        return Result(
            attack=attack,
            scope=scope,
            moved=after.share - beside.share,
            after=after,
            harmed=(*sorted(harmed), *after.refused),
        )


def main() -> None:
    arguments = parsed()
    with ExitStack() as stack:
        state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gradingsite-redteam-")))
        url = stack.enter_context(postgres()) if arguments.postgres else ""
        held = stack.enter_context(
            attacked(state, url, SIZES[arguments.size], is_full=arguments.size is scratch.Size.FULL)
        )
        alone = held.after(None, "agent")
        print(f"Without an attacker {FAVOURITE} has {alone.share:.1f} of the next 100.\n{HEADING}", flush=True)
        results = []
        for scope in SCOPES:
            for attack in chosen(arguments, scope):
                results.append(held.result(attack, scope, alone))
                print(row(results[-1]), flush=True)
    for attack in dict.fromkeys(each.attack for each in results):
        print(f"{attack.name}: {attack.sentence}")
    print(json.dumps(figures(alone, results)))


def parsed() -> argparse.Namespace:
    parser = scratch.parser(__doc__, quick="a few attacks, in this process", smoke="two attacks of three sessions")
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL server of its own instead of SQLite")
    parser.add_argument("--only", default="", help="the attacks whose name is like this, * for any letters")
    return parser.parse_args()


def chosen(arguments: argparse.Namespace, scope: str) -> list[Attack]:
    some = {scratch.Size.QUICK: QUICK, scratch.Size.SMOKE: SMOKE}.get(arguments.size)
    if arguments.only:
        return [each for each in ATTACKS if fnmatch(each.name, arguments.only)]
    return [each for each in ATTACKS if some is None or each.name in some[scope]]


@contextmanager
def postgres() -> Iterator[str]:
    """An empty database on a server of its own."""
    import psycopg

    from tests.postgres import server

    with server() as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE redteam")
        before, _, options = url.partition("?")
        yield f"{before.rpartition('/')[0]}/redteam?{options}"


@contextmanager
def attacked(state: Path, url: str, size: Size, *, is_full: bool) -> Iterator[Range]:
    """A site with its history: its own processes in a full run, else the code in this process."""
    database = sites.Database(state, url)
    if not is_full:
        scratch.site(state, database=url)
        with sites.in_process(database) as site:
            yield prepared(site, database, size)
        return
    ours = processes.settle_in(state, url)
    scratch.site(state, database=url, REDIS_URL=ours.url)
    with sites.as_processes(state, ours, database) as site:
        yield prepared(site, database, size)


def prepared(site: sites.Attacked, database: sites.Database, size: Size) -> Range:
    from django.contrib.auth.models import User

    logging.disable(logging.ERROR)
    User.objects.create_superuser("olga")
    tokens = world.write_history(size, dt.datetime.now(dt.UTC))
    database.keep()
    return Range(site, tokens, size)


def cookie() -> str:
    """The cookie of somebody who is signed in and looks at the site."""
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    client = Client()
    client.force_login(User.objects.get(username="olga"))
    name = settings.SESSION_COOKIE_NAME
    return f"{name}={client.cookies[name].value}"


HEADING = f"{'token':6} {'attack':20} {'moved':>6} {'noticed':>8} {'honest changed':>15}  rules; replies"


def row(result: Result) -> str:
    after = result.after
    noticed = "never" if after.noticed_at is None else f"at {after.noticed_at}"
    told = ", ".join(f"{what} x{count}" for what, count in sorted(after.told.items()))
    head = f"{result.scope:6} {result.attack.name:20} {result.moved:+6.1f} {noticed:>8} {len(result.harmed):15}"
    harmed = f"; CHANGED {' | '.join(result.harmed[:3])}" if result.harmed else ""
    return f"{head}  {' '.join(after.rules) or '-'}; {told}{harmed}"


def figures(alone: Outcome, results: list[Result]) -> dict[str, Any]:
    """The last line. A page's time in ms, over all runs."""
    pages = [took for outcome in (alone, *(each.after for each in results)) for took in outcome.pages]

    def most(scope: str) -> float | None:
        return max((round(each.moved, 1) for each in results if each.scope == scope), default=None)

    return {
        "agent_share_moved": most("agent"),
        "hook_share_moved": most("hook"),
        "unflagged": sum(each.is_unflagged for each in results),
        "honest_changed": sum(len(each.harmed) for each in results),
        "page_p95_ms": round(1000 * float(np.percentile(pages, 95)), 1),
    }


if __name__ == "__main__":
    main()
