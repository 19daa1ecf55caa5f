"""Copies of logs: whose each record is, where several sessions' logs hold it."""

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

MAX_KIN = 50
"""Other sessions that are compared with one. An agent that forks one log more often than that has its copies told from
the earliest of these."""
MAX_ROWS = 20_000
LOG_COLUMNS = (
    *("files", "size", "total", "resumed", "receipt", "carried", "digest", "part_of"),
    *("session__agent", "session__external_id", "session__ended_at", "session__is_sample"),
)
"""What is read of a log and its session: with all columns, an upload takes 2 % longer."""


def anchors(sessions: Iterable[int]) -> set[int]:
    """The records by which copies of these sessions' logs are found."""
    return set(RecordAnchor.objects.filter(session__in=list(sessions)).values_list("record", flat=True))


def kin(probes: Iterable[int]) -> set[int]:
    """The keys of the sessions whose logs hold one of these records, the earliest of very many."""
    if not probes:
        return set()
    rows = RecordAnchor.objects.filter(record__in=list(probes)).order_by("session").values_list("session", flat=True)
    return set(rows.distinct()[:MAX_KIN])


def settle(touched: set[int], probes: set[int]) -> set[int]:
    """Decide again which session owns each record of these sessions, and of those that share any of their anchors.

    `probes` are the anchors that the touched sessions had before. Returns the keys of the sessions of which other
    records count now.
    """
    if not touched:
        return set()
    asked = touched | kin(probes | anchors(touched))
    family = _Family(asked, has_kin=asked != touched)
    changed = set()
    for key in sorted(family.roots_of(asked)):
        if key in family.logs and family.keep(key):
            changed.add(key)
    return changed


def foreign_records(session: Session) -> dict[int, int]:
    """The records in the session's logs that another session owns, each with that session's key."""
    return _Family({session.pk}).left_out(session.pk)


class _Family:
    """Some sessions with those that share records with them: each with its subagents as one."""

    def __init__(self, asked: set[int], *, has_kin: bool = True) -> None:
        """`has_kin`: other sessions may hold records of those asked for. Their parts are loaded in any case."""
        self.logs = _logs_with_parts(asked)
        whole = asked | self.logs.keys()
        has_kin, asked = has_kin or whole != asked, whole
        # For each of these sessions, the others that have an anchor in common with it.
        holders: dict[int, list[int]] = defaultdict(list)
        if has_kin:
            mine = RecordAnchor.objects.filter(session__in=asked)
            alike = RecordAnchor.objects.filter(record__in=mine.values("record")).order_by("session", "record")
            for record, session in alike.values_list("record", "session")[:MAX_ROWS]:
                holders[record].append(session)
        self._near: dict[int, set[int]] = {key: set() for key in asked}
        for sessions in holders.values():
            for key in asked.intersection(sessions):
                self._near[key].update(sessions[:MAX_KIN])
        everybody = asked.union(*self._near.values())
        if everybody != asked:
            self.logs = _logs_with_parts(everybody)
            everybody |= self.logs.keys()
        self._roots = {key: log.part_of_id or key for key, log in self.logs.items()}
        self._parts: dict[int, list[SessionLog]] = defaultdict(list)
        for log in self.logs.values():
            if log.part_of_id is not None:
                self._parts[log.part_of_id].append(log)
        files = Evidence.objects.filter(session__in=everybody, kind=EvidenceKind.TRANSCRIPT, problem="")
        self._files = {(row.session_id, row.sha256): row for row in files}
        self._held: dict[int, Holding] = {}

    def roots_of(self, sessions: Iterable[int]) -> set[int]:
        return {self._roots.get(key, key) for key in sessions}

    def left_out(self, key: int) -> dict[int, int]:
        """The records of a root that others own, with the keys of these."""
        members = {key, *(row.pk for row in self._parts[key])}
        near = self.roots_of(set().union(*(self._near.get(member, set()) for member in members))) - {key}
        # A sample and a session of the site's own take nothing from each other.
        is_sample = self.logs[key].session.is_sample
        alike = (other for other in sorted(near) if other in self.logs)
        others = [self._holding(other) for other in alike if self.logs[other].session.is_sample == is_sample]
        return owner_rule.left_out(self._holding(key), others) if others else {}

    def keep(self, key: int) -> bool:
        """Keep what of a root's records is its own; whether others are than before."""
        log, parts, mine = self.logs[key], self._parts[key], self._holding(key)
        missing = self.left_out(key)
        carried = Counter(missing.values())
        files = [sha256 for row in (log, *parts) for sha256 in row.files]
        digest = ""  # where one log, or none, counts with all of its records
        if missing or len(files) > 1:
            counted = "\n".join([*sorted(files), *map(str, sorted(missing))])
            digest = blake2b(counted.encode(), digest_size=8).hexdigest()
        said = {
            "total": len(mine.records),
            "carried": {str(owner): carried[owner] for owner in sorted(carried)},
            "digest": digest,
        }
        if all(getattr(log, name) == value for name, value in said.items()):
            return False
        was = log.digest
        for name, value in said.items():
            setattr(log, name, value)
        log.save(update_fields=list(said))
        return log.digest != was

    def _holding(self, key: int) -> Holding:
        if key not in self._held:
            logs = [self.logs[key], *self._parts[key]]
            files = [self._files.get((log.pk, sha256)) for log in logs for sha256 in log.files]
            held = frozenset(record for row in files if row is not None for record in records.of(row).ids)
            first = min((log.receipt for log in logs if log.receipt), default=0)
            witness = max((Witness(row.witness).strength for row in files if row is not None), default=0)
            by = replace(claimant(self.logs[key].session), receipt=first, witness=witness)
            self._held[key] = Holding(by=by, records=held)
        return self._held[key]


def _logs_with_parts(asked: set[int]) -> dict[int, SessionLog]:
    """The logs of these sessions, of those that they are part of, and of all parts of both, by session."""
    rows = SessionLog.objects.select_related("session").only(*LOG_COLUMNS)
    logs = {row.pk: row for row in rows.filter(Q(pk__in=asked) | Q(part_of__in=asked))}
    roots = {log.part_of_id for log in logs.values() if log.part_of_id is not None}
    if missing := roots - logs.keys():
        logs |= {row.pk: row for row in rows.filter(Q(pk__in=missing) | Q(part_of__in=missing))}
    return logs
