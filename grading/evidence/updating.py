"""Update the owners of logs and claims after evidence of a session came or went."""

from collections.abc import Iterable, Sequence

from grading.evidence import claims, copies, links, logs, store
from grading.models import Artifact, Evidence, Session, SessionLog
from grading.models.evidence import LINKS, EvidenceKind


def update(sessions: Iterable[Session], new_claims: Sequence[Artifact] = ()) -> set[int]:
    """Decide again which logs of these sessions count, whose subagents they are, and who owns what they claim.

    `new_claims` are unsaved claims from facts. Returns the keys of all sessions whose grades may change, these and
    others, and refreshes the `log` of these. Runs in the caller's transaction, after `lock`.
    """
    sessions = list(sessions)
    touched: set[int] = set()
    new, dropped = list(new_claims), []
    to_update: dict[int, Session] = {}
    for session in sessions:
        to_update |= {each.pk: each for each in (session, *_sharers(session))}
    old_anchors = copies.anchors(to_update)
    for session in to_update.values():
        log, chosen, has_changed = logs.update_summary(session)
        if has_changed:
            touched.add(session.pk)
            added, removed = claims.diff_claims(session, claims.artifacts_from_logs(session, chosen))
            new += added
            dropped += removed
        touched |= links.relink(session, log)
    if touched or old_anchors:
        touched |= copies.update_record_owners(touched | to_update.keys(), old_anchors)
    touched |= claims.decide_owners(claims.lookups(touched | to_update.keys()), new, dropped)
    for log in SessionLog.objects.filter(session__in=sessions):
        log.session = to_update[log.pk]  # caches the log on the caller's session, too
    return touched


def _sharers(session: Session) -> list[Session]:
    """The agent's other sessions that sent one of this session's nameless logs, which none of them may use."""
    nameless = [row for row in store.readable_logs(session) if not store.names_its_session(row)]
    if not nameless:
        return []
    hashes = [row.sha256 for row in nameless]
    rows = Evidence.objects.filter(sha256__in=hashes, kind=EvidenceKind.TRANSCRIPT, session__agent=session.agent_id)
    return list(Session.objects.filter(pk__in=rows.values("session")).exclude(pk=session.pk).select_related("agent"))


def relatives(sessions: Iterable[Session]) -> list[Session]:
    """The sessions that may gain something when these are erased. Call this before the erasure, `update` them after."""
    erased = {each.pk: each for each in sessions}
    related = {each.pk: each for session in erased.values() for each in _sharers(session)}
    claiming = claims.claims_at(claims.lookups(erased)).values_list("session", flat=True)
    keys = copies.sessions_with(copies.anchors(erased)) | set(claiming)
    for session in erased.values():
        keys |= {row.session_id for row in links.parts(session)}
        parent = links.part_of(session)
        if parent is not None:
            keys.add(parent.pk)
    related |= {each.pk: each for each in Session.objects.filter(pk__in=keys).select_related("agent")}
    return [each for key, each in sorted(related.items()) if key not in erased]


def give_up(sessions: Iterable[Session]) -> int:
    """Delete all claims of sessions that are about to be erased. Returns their number. `update` their `relatives`
    afterwards.
    """
    dropped = list(Artifact.objects.filter(session__in=list(sessions), kind__in=LINKS))
    claims.decide_owners(set(), dropped=dropped)
    return len(dropped)
