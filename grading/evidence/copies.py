"""Copies of logs: which session owns each record that several sessions' logs contain."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b

from django.db.models import Q

from grading.evidence import owner_rule, records
from grading.evidence.claims import claimant
from grading.evidence.owner_rule import Holding
from grading.models import Evidence, RecordAnchor, Session, SessionLog
from grading.models.evidence import EvidenceKind
from grading.witness import Witness

MAX_COMPARED = 50
"""Other sessions that are compared with one. If an agent forked one log more often, the earliest are compared."""
MAX_ANCHOR_ROWS = 20_000
LOG_COLUMNS = (
    *("files", "size", "total", "resumed", "receipt", "carried", "digest", "part_of"),
    *("session__agent", "session__external_id", "session__ended_at", "session__is_sample"),
)
"""The loaded columns of a log and its session: with all columns, an upload takes 2 % longer."""


def anchors(sessions: Iterable[int]) -> set[int]:
    """The records by which copies of these sessions' logs are found."""
    return set(RecordAnchor.objects.filter(session__in=list(sessions)).values_list("record", flat=True))


def sessions_with(anchor_records: Iterable[int]) -> set[int]:
    """The keys of the sessions whose logs have one of these anchors: of very many, the earliest."""
    if not anchor_records:
        return set()
    rows = (
        RecordAnchor.objects.filter(record__in=list(anchor_records))
        .order_by("session")
        .values_list("session", flat=True)
    )
    return set(rows.distinct()[:MAX_COMPARED])


def update_record_owners(touched: set[int], old_anchors: set[int]) -> set[int]:
    """Decide again which session owns each record of the touched sessions and of those that share an anchor with them.

    `old_anchors` are the anchors that the touched sessions had before. Returns the keys of the sessions of which other
    records count now.
    """
    if not touched:
        return set()
    sessions = touched | sessions_with(old_anchors | anchors(touched))
    group = _SessionGroup(sessions, may_share=sessions != touched)
    changed = set()
    for key in sorted(group.roots_of(sessions)):
        if key in group.logs and group.store_summary(key):
            changed.add(key)
    return changed


def foreign_records(session: Session) -> dict[int, int]:
    """The records in the session's logs that another session owns, each with that session's key."""
    return _SessionGroup({session.pk}).foreign_records(session.pk)


class _SessionGroup:
    """Some sessions and those that share records with them. A session and its subagents count as one, their root."""

    def __init__(self, sessions: set[int], *, may_share: bool = True) -> None:
        """`may_share`: other sessions may have records of these. Subagents are loaded in any case."""
        self.logs = _logs_with_parts(sessions)
        with_parts = sessions | self.logs.keys()
        may_share = may_share or with_parts != sessions
        sessions = with_parts
        sessions_by_anchor: dict[int, list[int]] = defaultdict(list)
        if may_share:
            own = RecordAnchor.objects.filter(session__in=sessions)
            same = RecordAnchor.objects.filter(record__in=own.values("record")).order_by("session", "record")
            for record, session in same.values_list("record", "session")[:MAX_ANCHOR_ROWS]:
                sessions_by_anchor[record].append(session)
        # For each of these sessions, the others that have an anchor in common with it.
        self._near: dict[int, set[int]] = {key: set() for key in sessions}
        for sharing in sessions_by_anchor.values():
            for key in sessions.intersection(sharing):
                self._near[key].update(sharing[:MAX_COMPARED])
        everybody = sessions.union(*self._near.values())
        if everybody != sessions:
            self.logs = _logs_with_parts(everybody)
            everybody |= self.logs.keys()
        self._roots = {key: log.part_of_id or key for key, log in self.logs.items()}
        self._parts: dict[int, list[SessionLog]] = defaultdict(list)
        for log in self.logs.values():
            if log.part_of_id is not None:
                self._parts[log.part_of_id].append(log)
        files = Evidence.objects.filter(session__in=everybody, kind=EvidenceKind.TRANSCRIPT, problem="")
        self._files = {(row.session_id, row.sha256): row for row in files}
        self._holdings: dict[int, Holding] = {}

    def roots_of(self, sessions: Iterable[int]) -> set[int]:
        """The keys of the sessions that these are, or are part of."""
        return {self._roots.get(key, key) for key in sessions}

    def foreign_records(self, key: int) -> dict[int, int]:
        """The records of a root that other roots own, each with its owner's key."""
        members = {key, *(row.pk for row in self._parts[key])}
        near = self.roots_of(set().union(*(self._near.get(member, set()) for member in members))) - {key}
        # Samples and real sessions take nothing from each other.
        is_sample = self.logs[key].session.is_sample
        comparable = [k for k in sorted(near) if k in self.logs and self.logs[k].session.is_sample == is_sample]
        others = [self._holding(other) for other in comparable]
        return owner_rule.foreign_records(self._holding(key), others) if others else {}

    def store_summary(self, key: int) -> bool:
        """Store how many of a root's records are its own. Returns whether other records count than before."""
        log, parts, own = self.logs[key], self._parts[key], self._holding(key)
        foreign = self.foreign_records(key)
        carried = Counter(foreign.values())
        files = [sha256 for row in (log, *parts) for sha256 in row.files]
        digest = ""  # for at most one log, all of whose records count
        if foreign or len(files) > 1:
            counted = "\n".join([*sorted(files), *map(str, sorted(foreign))])
            digest = blake2b(counted.encode(), digest_size=8).hexdigest()
        columns = {
            "total": len(own.records),
            "carried": {str(owner): carried[owner] for owner in sorted(carried)},
            "digest": digest,
        }
        if all(getattr(log, name) == value for name, value in columns.items()):
            return False
        digest_before = log.digest
        for name, value in columns.items():
            setattr(log, name, value)
        log.save(update_fields=list(columns))
        return log.digest != digest_before

    def _holding(self, key: int) -> Holding:
        """The records in the logs of a root and its parts, with the root as their claimant."""
        if key not in self._holdings:
            logs = [self.logs[key], *self._parts[key]]
            files = [self._files.get((log.pk, sha256)) for log in logs for sha256 in log.files]
            ids: set[int] = set()
            for row in filter(None, files):
                ids.update(records.load(row).ids)
            receipt = min((log.receipt for log in logs if log.receipt), default=0)
            witness = max((Witness(row.witness).strength for row in files if row is not None), default=0)
            by = replace(claimant(self.logs[key].session), receipt=receipt, witness=witness)
            self._holdings[key] = Holding(by=by, records=frozenset(ids))
        return self._holdings[key]


def _logs_with_parts(sessions: set[int]) -> dict[int, SessionLog]:
    """The logs of these sessions, of those that they are part of, and of all parts of both, by session."""
    rows = SessionLog.objects.select_related("session").only(*LOG_COLUMNS)
    logs = {row.pk: row for row in rows.filter(Q(pk__in=sessions) | Q(part_of__in=sessions))}
    roots = {log.part_of_id for log in logs.values() if log.part_of_id is not None}
    if missing := roots - logs.keys():
        logs |= {row.pk: row for row in rows.filter(Q(pk__in=missing) | Q(part_of__in=missing))}
    return logs
