"""The attacks: what an agent may try so that its favourite arm is chosen more often."""

import datetime as dt
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.attacking import evidence
from benchmarks.attacking.attacker import Attacker
from benchmarks.attacking.world import COMMITS, DECISION, FAILING, SESSION, honest_session
from benchmarks.scratch import commit_hash

# How many decisions an agent may have open. Draws below the threshold chose the arm that comes first by name.
MAX_OPEN_DECISIONS, DRAW_THRESHOLD = 8, 0.05
Act = Callable[[Attacker], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """`act` sends the attack over HTTP. `plain` sends the same sessions without the trick: the attack moved its arm
    beyond that. `late`: the attack begins after the honest work.
    """

    name: str
    sentence: str
    act: Act
    plain: Act | None = None
    late: bool = False


ATTACKS: list[Attack] = []


def attack(sentence: str, plain: Act | None = None, *, late: bool = False) -> Callable[[Act], Act]:
    """Register a function as an attack with its name."""

    def register(act: Act) -> Act:
        ATTACKS.append(Attack(name=act.__name__, sentence=sentence, act=act, plain=plain, late=late))
        return act

    return register


# Sessions that are sent as they are, to be compared with


def good(eve: Attacker, name: str, *, count: int = 3, **metadata: object) -> object:
    """A session with invented success in a log that looks like any other."""
    calls = [*evidence.commits(name, count), *evidence.merges(name, 2)]
    return eve.send(
        name, transcript=evidence.log(name, calls, eve.now), journal=evidence.boastful_journal(name), **metadata
    )


def bad(eve: Attacker, name: str, **metadata: object) -> object:
    """A session that really came to nothing."""
    return eve.send(name, transcript=evidence.log(name, evidence.failures(name), eve.now), **metadata)


def bad_ones(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        bad(eve, f"bad-{number}")
    eve.site.judge_all()


def honest_work(eve: Attacker) -> None:
    """What an honest newcomer would have sent: of four sessions one fails."""
    for number in range(eve.budget):
        name = f"honest-{number}"
        calls = evidence.failures(name) if number % 4 == FAILING else evidence.commits(name, COMMITS[eve.favourite])
        eve.send(name, transcript=evidence.log(name, calls, eve.now))


# The attacks


@attack("twelve invented small files for each session, and no log")
def invented_patches(eve: Attacker) -> None:
    for number in range(eve.budget):
        eve.send(f"patch-{number}", patch=evidence.patch(f"patch-{number}"))


@attack("the same invented patch for every session")
def same_bytes(eve: Attacker) -> None:
    for number in range(eve.budget):
        eve.send(f"same-{number}", patch=evidence.patch("same"))


@attack("the same invented patch for every session, one word changed in each of its files")
def one_word_changed(eve: Attacker) -> None:
    first_word = re.compile(rb"^(@@ .*\n\+)\w+", re.MULTILINE)
    for number in range(eve.budget):
        changed = first_word.sub(rb"\g<1>changed%d" % number, evidence.patch("same"))
        eve.send(f"changed-{number}", patch=changed)


@attack("logs of commits, merges and green tests that never were")
def forged_logs(eve: Attacker) -> None:
    for number in range(eve.budget):
        good(eve, f"forged-{number}")


@attack("such logs, dated over the last seven days, so that each day has its own limit")
def forged_week(eve: Attacker) -> None:
    for number in range(eve.budget * 2):
        ended_at = eve.now - dt.timedelta(days=number % 7, minutes=3)
        good(eve, f"week-{number}", ended_at=ended_at)


@attack("journals that claim everything, and nothing else")
def boasts(eve: Attacker) -> None:
    for number in range(eve.budget):
        eve.send(f"boast-{number}", journal=evidence.boastful_journal(f"boast-{number}"))


@attack("facts of commits and pull requests that never were, and no log")
def invented_facts(eve: Attacker) -> None:
    for number in range(eve.budget):
        shas = [commit_hash(f"fact-{number}-{each}") for each in range(6)]
        urls = [f"https://github.com/acme/tool/pull/{9000 + 10 * number + each}" for each in range(4)]
        facts = {"commits": [{"sha": sha, "by": "trailer"} for sha in shas], "pull_requests": urls}
        eve.send(f"facts-{number}", facts=json.dumps(facts).encode())


@attack("claims after each bad verdict that the session was refused", bad_ones)
def refused_after(eve: Attacker) -> None:
    bad_ones(eve)
    for number in range(eve.budget // 2):
        eve.send(f"bad-{number}", outcome="refused", outcome_reason="I declined")


@attack("claims in the first submission that the session was refused", bad_ones)
def refused_first(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        bad(eve, f"bad-{number}", outcome="refused", outcome_reason="I declined")


@attack("claims infrastructure at once: the outcome, an exit code, a forged API error at the log's end", bad_ones)
def infrastructure_first(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        name = f"bad-{number}"
        calls, last = evidence.failures(name), [evidence.api_error(name, eve.now)]
        metadata = {"outcome": "infrastructure", "outcome_reason": "overloaded", "exit_code": 137}
        eve.send(name, transcript=evidence.log(name, calls, eve.now, last="", extra=last), **metadata)


@attack("sends a new journal full of claims after each verdict, to be judged again", bad_ones)
def journal_again(eve: Attacker) -> None:
    bad_ones(eve)
    for attempt in range(3):
        for number in range(eve.budget // 2):
            eve.send(f"bad-{number}", journal=evidence.boastful_journal(f"bad-{number} {attempt}"))
        eve.site.judge_all()


@attack("sends after each bad verdict a log that goes on, with invented success, to be judged again", bad_ones)
def log_goes_on(eve: Attacker) -> None:
    bad_ones(eve)
    for number in range(eve.budget // 2):
        name = f"bad-{number}"
        calls = [*evidence.failures(name), *evidence.commits(name, 4), *evidence.merges(name, 3)]
        eve.send(name, transcript=evidence.log(name, calls, eve.now), journal=evidence.boastful_journal(name))


@attack("claims another category after each bad verdict", bad_ones)
def category_after(eve: Attacker) -> None:
    bad_ones(eve)
    for number in range(eve.budget // 2):
        eve.send(f"bad-{number}", category="social")


@attack("names no category before the verdict; then the favourite for good ones, and another for bad ones", bad_ones)
def category_withheld(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        bad(eve, f"bad-{number}", category=None)
    eve.site.judge_all()
    for number in range(eve.budget // 2):
        eve.send(f"bad-{number}", category="social")


@attack("dates bad sessions to the year 2000", bad_ones)
def dated_2000(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        bad(eve, f"bad-{number}", ended_at=dt.datetime(2000, 1, 1 + number, tzinfo=dt.UTC))


@attack("dates good sessions to next year, when they would weigh most")
def dated_ahead(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        good(eve, f"ahead-{number}", ended_at=eve.now + dt.timedelta(days=300 + number))


def failed_checks(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        facts = {"checks": [{"name": "ci", "passed": False}]}
        good(eve, f"veto-{number}", facts=json.dumps(facts).encode())
    eve.site.judge_all()


@attack("reports a failed check as passed later", failed_checks)
def veto_lifted(eve: Attacker) -> None:
    failed_checks(eve)
    for number in range(eve.budget // 2):
        facts = {"checks": [{"name": "ci", "passed": True}]}
        eve.send(f"veto-{number}", facts=json.dumps(facts).encode())


@attack("tries decision ids offline, with the hash that draws used to follow from")
def ground_offline(eve: Attacker) -> None:
    requested = number = 0
    while requested < MAX_OPEN_DECISIONS:
        digest = hashlib.sha256(f"category\0ground-{number}".encode()).digest()
        if int.from_bytes(digest[:8], "big") / 2**64 < DRAW_THRESHOLD:
            reply = eve.request_decision(f"ground-{number}")
            arm = reply.json().get("arm", "") if reply.is_success else ""
            eve.replies[f"drew {arm}"] += 1
            requested += 1
        number += 1


@attack("asks until it gets its arm, and drops the other decisions")
def ground_online(eve: Attacker) -> None:
    for number in range(eve.budget):
        reply = eve.request_decision(f"ask-{number}")
        if reply.is_success and reply.json()["arm"] == eve.favourite:
            good(eve, f"asked-{number}", selection_id=f"ask-{number}")


@attack("insists on its arm again and again, to spend what a day allows everybody")
def overrides(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        eve.request_decision(f"insist-{number}", override=("news", "research", "social")[number % 3])


@attack("asks with the decision ids that others are about to ask with")
def ids_taken(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        eve.request_decision(DECISION.format(number), override="social")


@attack("ends other agents' decisions with its own sessions")
def others_decisions(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        bad(eve, f"thief-{number}", selection_id=DECISION.format(number))


def others_logs(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        theirs = honest_session(number, eve.now)
        name = f"copied-{number}" if number % 2 else SESSION.format(number)
        eve.send(name, transcript=theirs["transcript"][1], journal=theirs["journal"][1])


attack("submits other agents' logs as its own, after them", late=True)(others_logs)


@attack("submits other agents' logs, which it can read, before them")
def others_logs_first(eve: Attacker) -> None:
    others_logs(eve)


@attack("claims other agents' commits before they do")
def others_commits_first(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        shas = [commit_hash(f"{SESSION.format(number)}/{each}") for each in range(3)]
        facts = {"commits": [{"sha": sha, "by": "trailer"} for sha in shas]}
        eve.send(f"claimed-{number}", facts=json.dumps(facts).encode())


@attack("reverts other agents' commits, one after another")
def reverts(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        theirs = commit_hash(f"{SESSION.format(number)}/0")
        output = f'[main {commit_hash(f"revert-{number}")[:7]}] Revert "{SESSION.format(number)} step 0"'
        calls = [(f"git revert --no-edit {theirs}", f"{output}\n 2 files changed")]
        eve.send(f"revert-{number}", transcript=evidence.log(f"revert-{number}", calls, eve.now), category="social")


@attack("the same invented work under new ids, one byte changed each time")
def one_byte_changed(eve: Attacker) -> None:
    for number in range(eve.budget):
        name = f"byte-{number}"
        calls = [*evidence.commits("byte", 3), *evidence.merges("byte", 2)]
        whole = evidence.log("byte", calls, eve.now, last=f"That is all, {number}.")
        eve.send(name, transcript=whole.replace(b'"sessionId": "byte"', f'"sessionId": "{name}"'.encode()))


@attack("sends only the sessions that went well", bad_ones)
def only_good_ones(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        good(eve, f"went-well-{number}", count=1)


@attack("calls easy work by the favourite's name")
def easy_work(eve: Attacker) -> None:
    for number in range(eve.budget):
        name = f"easy-{number}"
        task = f"This is {eve.favourite} work, merged and verified: {eve.favourite}, {eve.favourite}"
        eve.send(name, transcript=evidence.log(name, evidence.commits(name, 1), eve.now, task=task), title=task)


@attack("two agents of one operator do it, so that each has its own limit")
def two_agents(eve: Attacker) -> None:
    for number in range(eve.budget // 2):
        for each in filter(None, (eve, eve.twin)):
            good(each, f"{each.name}-{number}")
