"""How far can a graded agent move a bandit, and what does the site notice of it? Every attack against a site at work.

Two honest agents have twelve days of judged sessions and go on working. The judge is credulous: it scores what it
reads. An attacker wants one arm, neither the best nor the worst, chosen more often. It has a token of scope `agent`, or
one of scope `hook`, as if it had read the configuration of the hook that runs as its own user. Nobody reviews anything,
and the policy is that of a new site.

Each attack meets the same site. "moved" is the arm's share of the next 100 decisions, less its share on the same site
without the attacker; if an attack hides what really happened, less its share on a site where that was not hidden. Then
the honest agents' sessions, rewards, ledger entries, flags and decisions are compared with those of the site without
the attacker, to the last bit.

An attack is unflagged if it moved its arm by more than 3 of 100 and nothing was noticed; with a hook's token also if
nothing was noticed within ten of its sessions.

Then the attacks by which one agent outweighs the others are repeated with 16 sessions for the second-best arm and for
one in the middle, on sites with 14 sessions of each agent and arm and on young ones with two, with five seeds. There
"beyond" is the arm's share less that on the same site with 16 sessions of an honest newcomer, and an attack is named
when an alarm names its agent. An attack is unanswered if it is not named within eight sessions; `hook_beyond` and
`agent_beyond` are the most that these moved an arm on average. `honest_named` counts honest agents that were named.

    python benchmarks/redteam.py [--quick | --smoke] [--only NAMES]
"""

import datetime as dt
import json
import logging
import math
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from itertools import product
from pathlib import Path
from typing import Any

import httpx2

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import scratch
from benchmarks.attacking import world
from benchmarks.attacking.attacker import (
    NAMES,
    AlarmKey,
    Attacker,
    agents_named,
    alarm_keys,
    check_alarms,
    signs_of_attack,
)
from benchmarks.attacking.attacks import ATTACKS, Act, Attack, honest_work
from benchmarks.attacking.site import AttackedSite, attacked_site
from benchmarks.attacking.world import FAR, NEAR, TrafficSize
from benchmarks.simulation.policies import live
from benchmarks.simulation.rivals import TODAY, policy_of, site_player
from benchmarks.simulation.world import MEANS
from benchmarks.simulation.worlds import WorldRules, make_changing_world

SIZES = {
    scratch.Size.FULL: TrafficSize(history=20, live=8, attack=24),
    scratch.Size.QUICK: TrafficSize(history=12, live=4, attack=12),
    scratch.Size.SMOKE: TrafficSize(history=3, live=2, attack=3),
}
SCOPES = ("agent", "hook")
# The attacks of a smaller run, by the scope of the token.
CHOSEN: Mapping[scratch.Size, Mapping[str, tuple[str, ...]]] = {
    scratch.Size.QUICK: {
        "agent": ("invented_patches", "forged_logs"),
        "hook": ("forged_logs",),
    },
    scratch.Size.SMOKE: {"agent": ("invented_patches",), "hook": ("others_logs",)},
}
# In shares of the next 100; and within how many sessions an attack with a hook's token should be noticed.
NOTICEABLE_SHARE, NOTICED_SOON = 3.0, 10
# The attacks of an agent that outweighs the others: sizes by name, seeds, and how soon an agent should be named.
OUTWEIGHING = ("forged_logs", "forged_week", "boasts", "easy_work", "invented_facts", "two_agents")
PEERS = {"grown": TrafficSize(history=14, live=0, attack=16), "young": TrafficSize(history=2, live=0, attack=16)}
SEEDS = {scratch.Size.FULL: 5, scratch.Size.QUICK: 1, scratch.Size.SMOKE: 0}
# A quick run plays only these, to finish within a minute.
QUICK_OUTWEIGHING, QUICK_CASES = ("forged_logs", "invented_facts"), (("young", "hook"),)
NAMED_SOON, PER_HOUR = 8, 4
NAMING_RULE = "A41"
PAGES = ("/", "/sessions/", "/bandits/category/", "/review/progress/", "/alarms/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A site in the end. `share`: the favourite's of the next 100. `signs`: rules that noticed the attack, with the
    number of attacking sessions by then. `named`: the agents that alarms name, each with the number of its sessions by
    then. `pages_ms`: the time of each page.
    """

    share: float
    honest: Mapping[str, Any]
    refused: list[str]
    pages_ms: list[float]
    alarms: frozenset[AlarmKey]
    replies: Mapping[str, int]
    signs: Mapping[str, int]
    named: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """`share_moved` is in shares of the next 100. `harmed` names what changed for the honest agents."""

    attack: Attack
    scope: str
    share_moved: float
    outcome: Outcome
    harmed: list[str]

    @property
    def is_unflagged(self) -> bool:
        first = min(self.outcome.signs.values(), default=None)
        is_noticed = first is not None and (self.scope == "agent" or first <= NOTICED_SOON)
        return self.share_moved > NOTICEABLE_SHARE and not is_noticed


@dataclass(frozen=True, slots=True, kw_only=True)
class Outweighing:
    """An attack on one seed's site with peers: `beyond` is the share that the attack moved its arm beyond an honest
    newcomer, `named_after` the number of its sessions when an alarm named an attacker. `honest_named` counts
    honest agents that an alarm named beside it.
    """

    name: str
    scope: str
    peers: str
    arm: str
    beyond: float
    named_after: int | None
    honest_named: int

    @property
    def case(self) -> tuple[str, str, str, str]:
        return self.scope, self.peers, self.arm, self.name


def main() -> None:
    parser = scratch.parser(__doc__, quick="a few attacks, one seed", smoke="two attacks of three sessions")
    parser.add_argument("--only", default="", help="attacks with a name like this; * stands for any letters")
    options = parser.parse_args()
    results, outcomes_without_trick = [], dict[tuple[str, Act], Outcome]()
    with tempfile.TemporaryDirectory(prefix="gradingsite-redteam-") as state:
        scratch.site(state)
        logging.disable(logging.ERROR)
        with attacked_site(Path(state)) as site:
            arena = Arena(site)
            arena.begin(SIZES[options.size])
            alone = arena.play(None, "agent")
            print(f"Without an attacker {FAR} has {alone.share:.1f} of the next 100.", flush=True)
            for scope in SCOPES:
                for attack in chosen_attacks(options.only, options.size, scope):
                    beside = alone
                    if attack.plain is not None:
                        key = (scope, attack.plain)
                        if key not in outcomes_without_trick:
                            outcomes_without_trick[key] = arena.play(attack.plain, scope, alone.alarms)
                        beside = outcomes_without_trick[key]
                    outcome = arena.play(attack.act, scope, alone.alarms, late=attack.late)
                    results.append(
                        Result(
                            attack=attack,
                            scope=scope,
                            share_moved=outcome.share - beside.share,
                            outcome=outcome,
                            harmed=[*differences(alone.honest, outcome.honest), *outcome.refused],
                        )
                    )
                    print_result(results[-1])
            outweighing = [] if options.only else outweigh(arena, options.size)
            ratio = specialists_ratio(SEEDS[options.size])
    for attack in dict.fromkeys(result.attack for result in results):
        print(f"{attack.name}: {attack.sentence}")
    print(json.dumps({**figures(alone, results), **figures_of_outweighing(outweighing), "specialists_ratio": ratio}))


def chosen_attacks(only: str, size: scratch.Size, scope: str) -> list[Attack]:
    if only:
        return [attack for attack in ATTACKS if fnmatch(attack.name, only)]
    if size in CHOSEN:
        return [attack for attack in ATTACKS if attack.name in CHOSEN[size][scope]]
    return ATTACKS


class Arena:
    """A site with its history, which is put back before each attack."""

    size: TrafficSize
    tokens: dict[str, str]

    def __init__(self, site: AttackedSite) -> None:
        from django.contrib.auth.models import User

        self.site = site
        User.objects.create_superuser("olga")
        site.save("empty")

    def begin(self, size: TrafficSize, seed: int = 7) -> None:
        """Give the site a history of this size."""
        self.site.restore("empty")
        self.size, self.tokens = size, world.write_history(size, dt.datetime.now(dt.UTC), seed)
        self.site.save("history")

    def play(
        self,
        act: Act | None,
        scope: str,
        alarms_before: frozenset[AlarmKey] = frozenset(),
        *,
        late: bool = False,
        arm: str = FAR,
        per_hour: int = 5,
    ) -> Outcome:
        """The site after this attack on an arm and honest work; None for honest work alone. `late`: honest work comes
        first.
        """
        self.site.restore("history")
        now = dt.datetime.now(dt.UTC).replace(microsecond=0)
        refused: list[str] = []
        replies: Mapping[str, int] = {}
        with self.site.client() as client:
            if late:
                refused += world.send_honest_work(client, self.tokens, now, self.size)
                self.site.judge_all()
            if act is not None:
                attacker = self.make_attacker(client, scope, now, arm, per_hour)
                act(attacker)
                replies = attacker.replies
            if not late:
                refused += world.send_honest_work(client, self.tokens, now, self.size)
            pages_ms = time_pages(client)
            self.site.judge_all()
            check_alarms()
            bearer = {"Authorization": f"Bearer {self.tokens['alice']}"}
            bandit = client.get("/api/v1/bandits/category", headers=bearer).raise_for_status().json()
        share = next(float(each["share_of_next_100"]) for each in bandit["arms"] if each["arm"] == arm)
        return Outcome(
            share=share,
            honest=world.honest_state(),
            refused=refused,
            pages_ms=pages_ms,
            alarms=alarm_keys(),
            replies=replies,
            signs=signs_of_attack(alarms_before),
            named=agents_named(NAMING_RULE),
        )

    def make_attacker(self, client: httpx2.Client, scope: str, now: dt.datetime, arm: str, per_hour: int) -> Attacker:
        """An attacker with a twin, an agent of the same operator."""
        from grading.models import Agent, ApiToken
        from grading.models.agents import TokenScope

        attackers = []
        for name in NAMES:
            _row, secret = ApiToken.objects.issue(Agent.objects.create(name=name), scope=TokenScope(scope))
            attackers.append(
                Attacker(
                    site=self.site,
                    client=client,
                    secret=secret,
                    now=now,
                    budget=self.size.attack,
                    name=name,
                    favourite=arm,
                    per_hour=per_hour,
                )
            )
        attackers[0].twin = attackers[1]
        return attackers[0]


def outweigh(arena: Arena, size: scratch.Size) -> list[Outweighing]:
    """The attacks of OUTWEIGHING on sites of all PEERS, for the second-best arm and one in the middle."""
    results = []
    is_quick = size is scratch.Size.QUICK
    names = QUICK_OUTWEIGHING if is_quick else OUTWEIGHING
    acts = [honest_work, *(attack.act for attack in ATTACKS if attack.name in names)]
    cases = QUICK_CASES if is_quick else tuple(product(PEERS, SCOPES))
    for seed, (peers, scope) in product(range(1, SEEDS[size] + 1), cases):
        arena.begin(PEERS[peers], seed)
        for arm in (FAR,) if is_quick else (NEAR, FAR):
            outcomes = [arena.play(act, scope, arm=arm, per_hour=PER_HOUR) for act in acts]
            for act, outcome in zip(acts, outcomes, strict=True):
                attackers = set() if act is honest_work else set(NAMES)
                results.append(
                    Outweighing(
                        name=act.__name__,
                        scope=scope,
                        peers=peers,
                        arm=arm,
                        beyond=outcome.share - outcomes[0].share,
                        named_after=min(
                            (outcome.named[each] for each in attackers & outcome.named.keys()), default=None
                        ),
                        honest_named=len(outcome.named.keys() - attackers),
                    )
                )
                print(f"seed {seed}: {results[-1]}", flush=True)
    return results


def specialists_ratio(seeds: int) -> float | None:
    """The mean regret of five arms, each the only one that its agent works on, relative to that without a cap on
    agents; None for no seeds.
    """
    today = policy_of(TODAY)
    rules = WorldRules(means=MEANS[:5], per_day=20)
    worlds = [make_changing_world(rules, seed) for seed in range(seeds)]
    capped, free = (
        sum(live(each, site_player(policy, specialists=True)).regret for each in worlds)
        for policy in (today, replace(today, agent_cap=None, agent_cap_alone=None))
    )
    return capped / free if worlds else None


def time_pages(client: httpx2.Client) -> list[float]:
    """Milliseconds of each page for somebody who is signed in."""
    from django.conf import settings
    from django.contrib.auth.models import User
    from django.test import Client

    browser = Client()
    browser.force_login(User.objects.get(username="olga"))
    name = settings.SESSION_COOKIE_NAME
    cookie = {"Cookie": f"{name}={browser.cookies[name].value}"}
    times = []
    for page in PAGES:
        started = time.perf_counter()
        client.get(page, headers=cookie).raise_for_status()
        times.append(1000 * (time.perf_counter() - started))
    return times


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    names = sorted({**before, **after})
    return [f"{name}: {before.get(name)} -> {after.get(name)}" for name in names if before.get(name) != after.get(name)]


def print_result(result: Result) -> None:
    outcome = result.outcome
    noticed = f"after {min(outcome.signs.values())}" if outcome.signs else "never"
    replies = ", ".join(f"{reply} x{count}" for reply, count in sorted(outcome.replies.items()))
    print(
        f"{result.scope:6} {result.attack.name:20} moved {result.share_moved:+6.1f}, noticed {noticed:9} "
        f"{len(result.harmed)} honest changed; {' '.join(sorted(outcome.signs)) or '-'}; {replies}",
        flush=True,
    )
    for change in result.harmed[:3]:
        print(f"    CHANGED {change}", flush=True)


def figures(alone: Outcome, results: list[Result]) -> dict[str, Any]:
    shares = {scope: [round(result.share_moved, 1) for result in results if result.scope == scope] for scope in SCOPES}
    pages_ms = [*alone.pages_ms, *(ms for result in results for ms in result.outcome.pages_ms)]
    return {
        "agent_share_moved": max(shares["agent"], default=None),
        "hook_share_moved": max(shares["hook"], default=None),
        "unflagged": sum(result.is_unflagged for result in results),
        "honest_changed": sum(len(result.harmed) for result in results),
        "page_p95_ms": round(statistics.quantiles(pages_ms, n=20, method="inclusive")[-1], 1),
    }


def figures_of_outweighing(results: Sequence[Outweighing]) -> dict[str, Any]:
    """The most that an attack of each scope moved its arm on average over the seeds, of those that were not named soon
    in every seed; the most sessions until an attack was named that moved its arm more than NOTICEABLE_SHARE, None if
    one never was; and how many honest agents were named.
    """
    cases: dict[tuple[str, ...], list[Outweighing]] = defaultdict(list)
    for each in results:
        cases[each.case].append(each)
    beyond = dict.fromkeys(SCOPES, 0.0)
    named_after: list[float] = []
    for (scope, *_), runs in cases.items():
        moved = statistics.mean(run.beyond for run in runs)
        latest = max(math.inf if run.named_after is None else run.named_after for run in runs)
        if latest > NAMED_SOON:
            beyond[scope] = max(beyond[scope], moved)
        if moved > NOTICEABLE_SHARE:
            named_after.append(latest)
    worst = max(named_after, default=0)
    return {
        **{f"{scope}_beyond": round(beyond[scope], 1) for scope in SCOPES},
        "named_after": None if math.isinf(worst) else worst,
        "honest_named": sum(each.honest_named for each in results),
    }


if __name__ == "__main__":
    main()
