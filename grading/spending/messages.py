"""Which session pays for a message that is in the logs of several.

A resumed session, a copied log, or another tool's log of the same work repeats messages, sometimes under other record
ids than in the first log. `grading.evidence.ownership` finds copied records; this module finds copied messages, by the
provider's ids. Every session that has a message claims it, and the owner rule decides among the claims. So no order of
an agent's arrivals changes the result, and an erasure gives the messages to the next claimant.
"""

from collections import defaultdict
from collections.abc import Collection

from django.db.models import QuerySet

from grading.evidence import owner_rule, ownership
from grading.evidence.owner_rule import Holding
from grading.models import MessageClaim, Session


def update_claims(session: Session, messages: Collection[int]) -> tuple[frozenset[int], set[int]]:
    """Store which messages the session claims. Decide again who owns these, and those that it no longer claims.

    Returns the messages that others own, and the keys of other sessions that may now pay for other messages.
    """
    claims = MessageClaim.objects.filter(session=session)
    before = frozenset(claims.values_list("message", flat=True))
    wanted = frozenset(messages)
    added = sorted(wanted - before)
    MessageClaim.objects.bulk_create(MessageClaim(session=session, message=message) for message in added)
    holdings = _holdings(session)  # the old claims still count, as they are deleted below
    if before - wanted:
        claims.delete()
        MessageClaim.objects.bulk_create(MessageClaim(session=session, message=message) for message in sorted(wanted))
    rivals = [holding for key, holding in holdings.items() if key != session.pk]
    shared = frozenset[int]().union(*(rival.records for rival in rivals))
    owners_without = owner_rule.owners(shared, rivals)  # as if this session claimed nothing
    owners = owners_without | owner_rule.owners(shared & wanted, holdings.values())
    rivals_of_agent = [rival for rival in rivals if rival.by.agent == session.agent_id]
    sessions_of_agent = {rival.by.session for rival in rivals_of_agent}
    affected = set[int]()
    for message, owner in owners.items():
        owner_without = owners_without[message]
        # It isn't known whether the session owned a message that it claimed before: its log may have changed.
        if message in before or owner != owner_without:
            affected |= {owner, owner_without}
        # The earlier claim may have given another agent's message to any session of this session's agent.
        if message in before and owner_without not in sessions_of_agent:
            affected |= {rival.by.session for rival in rivals_of_agent if message in rival.records}
    return _owned_by_others(session, owners), affected - {session.pk}


def foreign_messages(session: Session) -> frozenset[int]:
    """The messages that the session claims and another session owns."""
    holdings = _holdings(session)
    shared = frozenset[int]().union(*(holding.records for holding in holdings.values()))
    return _owned_by_others(session, owner_rule.owners(shared, holdings.values()))


def sharers(sessions: Collection[int]) -> set[int]:
    """The keys of other sessions that claim a message which one of `sessions` claims. At most MAX_COMPARED, those that
    the site received first.
    """
    others = _claims_of_the_same(sessions).order_by("session")
    return set(others.values_list("session", flat=True).distinct()[: ownership.MAX_COMPARED])


def _holdings(session: Session) -> dict[int, Holding]:
    """The messages that the session shares with others, by the key of each session that claims them: its `sharers` and
    itself.

    Samples and real sessions take nothing from each other. Empty if no other session claims one of its messages.
    """
    rivals = sharers([session.pk])
    if not rivals:
        return {}
    claims = _claims_of_the_same([session.pk]).filter(session__in=rivals, session__is_sample=session.is_sample)
    claimed: dict[int, set[int]] = defaultdict(set)
    for rival, message in claims.values_list("session", "message"):
        claimed[rival].add(message)
    claimed[session.pk] = set[int]().union(*claimed.values())
    claimants = ownership.claimants(claimed)
    return {key: Holding(by=by, records=frozenset(claimed[key])) for key, by in sorted(claimants.items())}


def _owned_by_others(session: Session, owners: dict[int, int]) -> frozenset[int]:
    return frozenset(message for message, owner in owners.items() if owner != session.pk)


def _claims_of_the_same(sessions: Collection[int]) -> QuerySet[MessageClaim]:
    """Other sessions' claims of the messages that these sessions claim."""
    own_claims = MessageClaim.objects.filter(session__in=list(sessions))
    return MessageClaim.objects.filter(message__in=own_claims.values("message")).exclude(session__in=list(sessions))
