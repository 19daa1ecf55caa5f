"""Deriving again whose is what, once the evidence of a session came or went."""

from collections.abc import Iterable, Sequence

from grading.evidence import claims, copies, links, logs, store
from grading.models import Artifact, Evidence, Session, SessionLog
from grading.models.evidence import LINKS, EvidenceKind


def update(sessions: Iterable[Session], new_claims: Sequence[Artifact] = ()) -> set[int]:
    """Derive again which logs of these sessions count, whose part they are, and who owns what they and others claim.

    `new_claims` are claims from facts, not saved yet. Returns the keys of the sessions whose grades may change by it,
    of these and of others, and leaves each of these with its `log` as it is now. Runs in the caller's transaction,
    after `alone`.
    """
    sessions = list(sessions)
    touched: set[int] = set()
    new, dropped = list(new_claims), []
    asked: dict[int, Session] = {}
    for session in sessions:
        asked |= {each.pk: each for each in (session, *_sharers(session))}
    probes = copies.anchors(asked)
    for session in asked.values():
        log, chosen, has_changed = logs.read(session)
        if has_changed:
            touched.add(session.pk)
            made, gone = claims.replaced(session, claims.of_logs(session, chosen))
            new += made
            dropped += gone
        touched |= links.relink(session, log)
    if touched or probes:
        touched |= copies.settle(touched | asked.keys(), probes)
    touched |= claims.decide(claims.lookups(touched | asked.keys()), new, dropped)
    for log in SessionLog.objects.filter(session__in=sessions):
        log.session = asked[log.pk]
    return touched


def _sharers(session: Session) -> list[Session]:
    """The agent's other sessions that sent one of its logs that names no session: none of them may use it."""
    nameless = [row for row in store.readable_logs(session) if not store.names_its_session(row)]
    if not nameless:
        return []
    hashes = [row.sha256 for row in nameless]
    rows = Evidence.objects.filter(sha256__in=hashes, kind=EvidenceKind.TRANSCRIPT, session__agent=session.agent_id)
    return list(Session.objects.filter(pk__in=rows.values("session")).exclude(pk=session.pk).select_related("agent"))


def relatives(sessions: Iterable[Session]) -> list[Session]:
    """The sessions that may win something where these are gone: to be asked for before, and updated afterwards."""
    gone = {each.pk: each for each in sessions}
    found = {each.pk: each for session in gone.values() for each in _sharers(session)}
    keys = copies.kin(copies.anchors(gone)) | set(claims.at(claims.lookups(gone)).values_list("session", flat=True))
    for session in gone.values():
        keys |= {row.session_id for row in links.parts(session)}
        parent = links.part_of(session)
        keys |= set() if parent is None else {parent.pk}
    found |= {each.pk: each for each in Session.objects.filter(pk__in=keys).select_related("agent")}
    return [each for key, each in sorted(found.items()) if key not in gone]


def give_up(sessions: Iterable[Session]) -> int:
    """Take back all claims of sessions that are about to be erased, and say how many; their `relatives` are to be
    updated afterwards.
    """
    held = list(Artifact.objects.filter(session__in=list(sessions), kind__in=LINKS))
    claims.decide(set(), dropped=held)
    return len(held)
