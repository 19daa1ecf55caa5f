"""The owner rule: which session owns what several may claim. It covers commits, pull requests and records of logs.

Each thing has one owner. The rule is pure and looks at the claims alone, never at which of one agent's arrived first:
any order of an agent's arrivals gives the same owners.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from grading.witness import Witness

PREFIX: Final = 7
"""Digits of a commit's hash by which claims of it are found; git never shows fewer."""
FULL_HASHES: Final = frozenset({40, 64})
MAX_SUBJECT: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimant:
    """A session that claims a thing, with what the rule compares.

    `session` and `agent` are keys. `receipt` is the key of the first evidence in which this session showed the thing;
    it grows with each file that the site receives. `made`: a confirmed call of the session made the thing; otherwise it
    is only asserted. `witness`: the strength of the claim's witness (`grading.witness`). `resumed`: the log begins with
    records that it itself attributes to another session. `size`: the number of its other records. `ended`: the end of
    the session as a timestamp in seconds. `name`: its external id.
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
    """The owner of a thing that all of these claim. `claimants` must not be empty.

    Only claims with the strongest witness count. Of these the agent whose claim the site received first is the owner:
    times of events can be backdated, and a later claim must take nothing from another agent. Among that agent's
    sessions, one whose own call made the thing comes first; then one whose log is its own from the first line on, since
    a resumed log lacks context; then the one with the smallest log, which the others contain if they are copies; then
    the one that ended first.
    """
    strongest = max(each.witness for each in claimants)
    candidates = [each for each in claimants if each.witness == strongest]
    agent = min(candidates, key=lambda each: each.receipt).agent
    return min((each for each in candidates if each.agent == agent), key=_order_within_agent)


def _order_within_agent(claimant: Claimant) -> tuple[bool, bool, int, float, str]:
    """The sort key of `owner` among the claimants of one agent: the smallest is the owner."""
    if not claimant.made:
        return (True, False, 0, claimant.ended, claimant.name)
    return (False, claimant.resumed, claimant.size, claimant.ended, claimant.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The ids of the records in a session's log, and the session as the claimant of each of them."""

    by: Claimant
    records: frozenset[int]


def owners(records: frozenset[int], holdings: Iterable[Holding]) -> dict[int, int]:
    """The key of the session that owns each of these records, for those that one of the holdings has."""
    claimants: dict[int, list[Claimant]] = defaultdict(list)
    for holding in holdings:
        for record in records & holding.records:
            claimants[record].append(holding.by)
    decided: dict[tuple[int, ...], int] = {}  # by the claiming sessions: many records have the same ones
    record_owners = {}
    for record, claiming in claimants.items():
        sessions = tuple(each.session for each in claiming)
        if sessions not in decided:
            decided[sessions] = owner(claiming).session
        record_owners[record] = decided[sessions]
    return record_owners


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitClaim:
    """A claim of one commit: its short or full hash, and the first line of its message if that is known.

    `row` is the caller's index of the claim.
    """

    row: int
    by: Claimant
    hash: str
    subject: str = ""


def same_commits(claims: Iterable[CommitClaim]) -> list[list[CommitClaim]]:
    """Group claims by commit. The result does not depend on their order.

    Equal full hashes are one commit. A short hash joins a commit whose hash begins with it, if their subjects are equal
    or one is unknown; of several such commits, preferably one with an equal subject. So equal short hashes with
    different subjects are different commits.
    """
    longest_first = sorted(
        claims, key=lambda claim: (-len(claim.hash), claim.hash, claim.subject, claim.by.name, claim.row)
    )
    groups: list[list[CommitClaim]] = []
    group_of_full_hash: dict[str, list[CommitClaim]] = {}
    for claim in longest_first:
        if claim.hash in group_of_full_hash:
            group_of_full_hash[claim.hash].append(claim)
            continue
        if len(claim.hash) in FULL_HASHES:
            group_of_full_hash[claim.hash] = [claim]
            groups.append(group_of_full_hash[claim.hash])
            continue
        subject = _subject(claim)
        best: list[CommitClaim] | None = None
        for group in groups:
            if not group[0].hash.startswith(claim.hash):
                continue
            subjects = {_subject(each) for each in group} - {""}
            if subject in subjects:
                best = group
                break
            if best is None and (not subject or not subjects):
                best = group
        if best is None:
            groups.append([claim])
        else:
            best.append(claim)
    return groups


def _subject(claim: CommitClaim) -> str:
    """The claim's subject in the form in which subjects are compared: with single spaces, cut to MAX_SUBJECT."""
    return " ".join(claim.subject.split())[:MAX_SUBJECT].strip()


def maximal_logs(logs: Mapping[str, frozenset[int]]) -> list[str]:
    """The names of the logs that no other contains, most records first; of identical ones the first by name."""
    ordered = sorted(logs, key=lambda name: (-len(logs[name]), name))
    maximal: list[str] = []
    for name in ordered:
        if not any(logs[name] <= logs[other] for other in maximal):
            maximal.append(name)
    return maximal
