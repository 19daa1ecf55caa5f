"""Which session pays for a message that is in the logs of several.

A resumed session, a copied log, or another tool's log of the same work repeats messages, sometimes under other record
ids than in the first log. `grading.evidence.ownership` finds copied records; this module finds copied messages, by the
provider's ids. Every session that has a message claims it, and the owner rule decides among the claims. So no order of
an agent's arrivals changes the result, and an erasure gives the messages to the next claimant.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace

from django.db.models import QuerySet

from grading.evidence import owner_rule, ownership
from grading.evidence.material import graded_logs
from grading.evidence.owner_rule import Holding
from grading.models import MessageClaim, Session
from grading.witness import Witness


def update_claims(session: Session, messages: Collection[int]) -> bool:
    """Store which messages the session claims. Returns whether it claims one no longer."""
    claims = MessageClaim.objects.filter(session=session)
    before = set(claims.values_list("message", flat=True))
    wanted = set(messages)
    has_dropped = bool(before - wanted)
    if has_dropped:
        claims.delete()
        before = set()
    MessageClaim.objects.bulk_create(MessageClaim(session=session, message=each) for each in sorted(wanted - before))
    return has_dropped


def sharers(sessions: Collection[int]) -> set[int]:
    """The keys of the other sessions that claim messages of these: the first that the site received."""
    others = _claims_of_the_same(sessions).order_by("session")
    return set(others.values_list("session", flat=True).distinct()[: ownership.MAX_COMPARED])


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMessages:
    """The messages in a session's logs that other sessions claim too: its `own`, and those that are `foreign`."""

    own: frozenset[int] = frozenset()
    foreign: frozenset[int] = frozenset()


def shared_messages(session: Session) -> SharedMessages:
    """The messages that the session and others claim, by whether it owns them."""
    shared: dict[int, set[int]] = defaultdict(set)
    for other, message in _claims_of_the_same([session.pk]).values_list("session", "message"):
        shared[other].add(message)
    if not shared:
        return SharedMessages()
    claimed = frozenset(set[int]().union(*shared.values()))
    rivals = Session.objects.filter(pk__in=sorted(shared)[: ownership.MAX_COMPARED], is_sample=session.is_sample)
    others = [_holding(rival, frozenset(shared[rival.pk])) for rival in rivals.select_related("log")]
    foreign = frozenset(owner_rule.foreign_records(_holding(session, claimed), others))
    return SharedMessages(own=claimed - foreign, foreign=foreign)


def _claims_of_the_same(sessions: Collection[int]) -> QuerySet[MessageClaim]:
    """Other sessions' claims of the messages that these claim."""
    own = MessageClaim.objects.filter(session__in=list(sessions))
    return MessageClaim.objects.filter(message__in=own.values("message")).exclude(session__in=list(sessions))


def _holding(session: Session, messages: frozenset[int]) -> Holding:
    """The session as a claimant of these messages."""
    witness = max((Witness(row.witness).strength for row in graded_logs(session)), default=0)
    return Holding(by=replace(ownership.claimant(session), witness=witness), records=messages)
