"""Which session pays for a message that is in the logs of several.

A resumed session, a copied log, or another tool's log of the same work repeats messages, sometimes under other record
ids than in the first log. `grading.evidence.ownership` finds copied records; this module finds copied messages, by the
provider's ids. Every session that has a message claims it, and the owner rule decides among the claims. So no order of
an agent's arrivals changes the result, and an erasure gives the messages to the next claimant.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace

from django.db.models import QuerySet

from grading.evidence import owner_rule, ownership
from grading.evidence.material import graded_logs
from grading.evidence.owner_rule import Holding
from grading.models import MessageClaim, Session
from grading.witness import Witness


def update_claims(session: Session, messages: Collection[int]) -> set[int]:
    """Store which messages the session claims. Returns the keys of the other sessions that claim some of them, or some
    of those that this session claimed before.
    """
    claims = MessageClaim.objects.filter(session=session)
    before = set(claims.values_list("message", flat=True))
    wanted = set(messages)
    others = sharers([session.pk]) if before else set[int]()
    if before - wanted:
        claims.delete()
        before = set()
    new = sorted(wanted - before)
    MessageClaim.objects.bulk_create(MessageClaim(session=session, message=message) for message in new)
    return others | (sharers([session.pk]) if new else set[int]())


def sharers(sessions: Collection[int]) -> set[int]:
    """The keys of the other sessions that claim messages of these: the first that the site received."""
    others = _claims_of_the_same(sessions).order_by("session")
    return set(others.values_list("session", flat=True).distinct()[: ownership.MAX_COMPARED])


def foreign_messages(session: Session) -> frozenset[int]:
    """The messages in the session's logs that other sessions own."""
    shared: dict[int, set[int]] = defaultdict(set)
    for other, message in _claims_of_the_same([session.pk]).values_list("session", "message"):
        shared[other].add(message)
    if not shared:
        return frozenset()
    claimed = frozenset(set[int]().union(*shared.values()))
    rivals = Session.objects.filter(pk__in=sorted(shared)[: ownership.MAX_COMPARED], is_sample=session.is_sample)
    others = [_holding(rival, frozenset(shared[rival.pk])) for rival in rivals.select_related("log")]
    return frozenset(owner_rule.foreign_records(_holding(session, claimed), others))


def _claims_of_the_same(sessions: Collection[int]) -> QuerySet[MessageClaim]:
    """Other sessions' claims of the messages that these claim."""
    own = MessageClaim.objects.filter(session__in=list(sessions))
    return MessageClaim.objects.filter(message__in=own.values("message")).exclude(session__in=list(sessions))


def _holding(session: Session, messages: frozenset[int]) -> Holding:
    """The session as a claimant of these messages."""
    witness = max((Witness(row.witness).strength for row in graded_logs(session)), default=0)
    return Holding(by=replace(ownership.claimant(session), witness=witness), records=messages)
