"""Whose is it? One pure rule for everything that several sessions may claim: commits, pull requests, records of logs.

Each thing has one owner. The rule looks at the claims alone, never at which came first among one agent's, so that any
order of an agent's arrivals gives the same owner.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from grading.witness import Witness

PREFIX: Final = 7
"""Digits of a commit's hash by which claims of it are found; git shows no fewer."""
FULL_HASHES: Final = frozenset({40, 64})
MAX_SUBJECT: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimant:
    """A session as it stands before the rule.

    `session` and `agent` are keys; `receipt` counts up with what the site received, and is that of the first evidence
    in which this session showed the thing. `made`: its own confirmed call made the thing, rather than that it says so.
    `witness`: the strength of who vouches for it (`grading.witness`). `resumed`: its log begins with what it says
    itself is another session's. `size`: the records of its log beyond that; `ended` the end of the session in seconds;
    `name` its own id.
    """

    session: int
    agent: int
    receipt: int
    made: bool = True
    witness: int = Witness.UNKNOWN.strength
    resumed: bool = False
    size: int = 0
    ended: float = 0.0
    name: str = ""


def owner(claimants: Collection[Claimant]) -> Claimant:
    """Who owns a thing that all of these claim; there must be one at least.

    Those with the strongest witness; of them the agent of whom the site heard first, since times of events can be
    backdated and a later claim must take nothing from another agent. Among that agent's sessions, one whose own call
    made the thing; then one whose log is its own from the first line on, since of a log that changes hands the context
    is missing; then the one with the smallest log, which is the one contained in the others where one is; then the one
    that ended first.
    """
    strongest = max(each.witness for each in claimants)
    among = [each for each in claimants if each.witness == strongest]
    agent = min(among, key=lambda each: each.receipt).agent
    return min((each for each in among if each.agent == agent), key=_within_agent)


def _within_agent(each: Claimant) -> tuple[bool, bool, int, float, str]:
    if not each.made:
        return (True, False, 0, each.ended, each.name)
    return (False, each.resumed, each.size, each.ended, each.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The records that a session's log holds, and the session as a claimant of each of them."""

    by: Claimant
    records: frozenset[int]


def left_out(mine: Holding, others: Iterable[Holding]) -> dict[int, int]:
    """The records of `mine` that belong to another session, each with the key of that session."""
    shared: dict[int, list[Claimant]] = {}
    for other in others:
        for record in mine.records & other.records:
            shared.setdefault(record, []).append(other.by)
    owners: dict[tuple[int, ...], int] = {}
    found = {}
    for record, claimants in shared.items():
        key = tuple(each.session for each in claimants)
        if key not in owners:
            owners[key] = owner([mine.by, *claimants]).session
        if owners[key] != mine.by.session:
            found[record] = owners[key]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitClaim:
    """A claim of one commit: its hash, short or full, and the first line of its message where that is known."""

    row: int
    by: Claimant
    hash: str
    subject: str = ""


def same_commits(claims: Iterable[CommitClaim]) -> list[list[CommitClaim]]:
    """Claims of hashes that begin alike, those of one commit together, whatever their order.

    A short hash is the commit whose full hash it begins; of several such, the one with its subject. Two short hashes
    with different known subjects are two commits.
    """
    ordered = sorted(claims, key=lambda claim: (-len(claim.hash), claim.hash, claim.subject, claim.by.name, claim.row))
    found: list[list[CommitClaim]] = []
    full: dict[str, list[CommitClaim]] = {}
    for claim in ordered:
        if claim.hash in full:
            full[claim.hash].append(claim)
            continue
        if len(claim.hash) in FULL_HASHES:
            full[claim.hash] = [claim]
            found.append(full[claim.hash])
            continue
        subject = _subject(claim)
        fitting: list[tuple[bool, list[CommitClaim]]] = []
        for group in found:
            if not group[0].hash.startswith(claim.hash):
                continue
            known = {_subject(each) for each in group} - {""}
            if not subject or not known or subject in known:
                fitting.append((subject in known, group))
        if fitting:
            max(fitting, key=lambda each: each[0])[1].append(claim)
        else:
            found.append([claim])
    return found


def _subject(claim: CommitClaim) -> str:
    return " ".join(claim.subject.split())[:MAX_SUBJECT].strip()


def contained(logs: Mapping[str, frozenset[int]]) -> list[str]:
    """The names of the logs that no other contains, that with most records first; of two alike the first by name."""
    ordered = sorted(logs, key=lambda name: (-len(logs[name]), name))
    kept: list[str] = []
    for name in ordered:
        if not any(logs[name] <= logs[other] for other in kept):
            kept.append(name)
    return kept
