"""One owner for each thing: which session owns each commit, pull request and log record that several may claim.

lock ─► update (logs ─► subagents ─► records ─► claims) ─► the sessions to grade again

The rule itself is `grading.evidence.owner_rule`. Its results are stored with the sessions and updated whenever evidence
comes or goes; they never depend on the order in which one agent's evidence came.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

from django.db import connection
from django.db.models import Q, QuerySet, Window
from django.db.models.functions import RowNumber

from grading.evidence import logs, owner_rule, store
from grading.evidence.logs import Records
from grading.evidence.owner_rule import PREFIX, Claimant, Holding
from grading.models import Artifact, Evidence, RecordAnchor, Session, SessionLog
from grading.models.evidence import LINKS, MAX_SEEN_AT, ArtifactKind, EvidenceKind, Origin
from grading.plain import plain_text
from grading.signals.facts import Foreign
from grading.witness import Witness

# Any number that no other advisory lock of this site has.
LOCK_KEY = 0x6F776E65
# Generations of subagents that are followed, and subagents of one session.
MAX_DEPTH, MAX_PARTS = 8, 500
# Other sessions that are compared with one. If an agent forked one log more often, the earliest are compared.
MAX_COMPARED = 50
MAX_ANCHOR_ROWS = 20_000
# The columns of a session that `claimant` reads. Loading all of them takes a tenth of an upload's time.
CLAIMANT_COLUMNS = ("agent", "external_id", "ended_at", "is_sample", "log__receipt", "log__resumed", "log__size")
# The columns of a log and its session that `_SessionGroup` reads.
LOG_COLUMNS = (
    *("files", "size", "total", "resumed", "receipt", "carried", "digest", "part_of"),
    *("session__agent", "session__external_id", "session__ended_at", "session__is_sample"),
)


def lock() -> None:
    """Take the lock on ownership until the caller's transaction ends. Take it before locking several sessions.

    Without it, two intakes at once would not see each other's claims, and could deadlock on each other's sessions.
    SQLite runs one writing transaction at a time and needs no lock.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [LOCK_KEY])


def lock_sessions(sessions: Iterable[int]) -> list[Session]:
    """Load the sessions of these keys for grading, locked in the order of their keys. Call it before settling any."""
    keys = set(sessions)
    return list(Session.objects.for_grading().filter(pk__in=keys).order_by("pk")) if keys else []


def update(sessions: Iterable[Session], new_claims: Sequence[Artifact] = ()) -> set[int]:
    """Decide again which logs of these sessions count, which root session each is part of, and who owns their records
    and claims.

    `new_claims` are unsaved claims from facts. Returns the keys of all sessions whose grades may change, these and
    others. Each of `sessions` gets its new summary as `log`. Runs in the caller's transaction, after `lock`.
    """
    sessions = list(sessions)
    to_update: dict[int, Session] = {}
    for session in sessions:
        to_update |= {each.pk: each for each in (session, *_sharers(session))}
    affected: set[int] = set()  # the keys to return

    # Which logs count, and which root each session is part of.
    summaries: dict[int, SessionLog] = {}
    old_anchors: set[int] = set()
    claims_to_add = list(new_claims)
    claims_to_drop: list[Artifact] = []
    rows: list[Evidence] = []
    for session in to_update.values():
        before = SessionLog.objects.filter(session=session).first()
        anchors = set() if before is None else _anchors([session.pk])
        log, chosen, has_changed = logs.update_summary(session, before, anchors)
        old_anchors |= anchors
        rows += [row for row, _records in chosen]
        if log is not None:
            summaries[session.pk] = log
        if has_changed:
            affected.add(session.pk)
            stored: dict[tuple[str, str], Artifact] = {}
            if before is not None:
                claims = Artifact.objects.filter(session=session, origin=Origin.TRANSCRIPT, kind__in=LINKS)
                stored = {(row.kind, row.key): row for row in claims}
            claimed = _claims_from_logs(session, chosen)
            # A stored claim that the logs still make stays, with its receipt.
            claims_to_add += [claim for key, claim in claimed.items() if key not in stored]
            claims_to_drop += [row for key, row in stored.items() if key not in claimed]
        affected |= _update_roots(session, log)

    changed = affected | to_update.keys()

    # Who owns the records, also those of the earlier logs, which other sessions may regain. Skipped without any logs.
    if affected or old_anchors:
        has_lost_anchors = bool(old_anchors) and not old_anchors <= _anchors(changed)
        earlier_sharers = _sessions_with(old_anchors) if has_lost_anchors else set()
        group = _SessionGroup(changed | earlier_sharers, rows, with_sharers=True)
        affected |= group.store_summaries(None if has_lost_anchors else changed)
        summaries |= group.logs  # loaded after the changes above, and changed since

    # Who owns the commits and pull requests. It does not depend on who owns the records.
    affected |= decide_owners(_lookups(changed), claims_to_add, claims_to_drop)
    for session in sessions:
        if session.pk in summaries:
            summaries[session.pk].session = session  # also sets `session.log`
    return affected


def relatives(sessions: Iterable[Session]) -> list[Session]:
    """The other sessions that may gain logs, records, claims or another root when these are erased.

    Call this before the erasure, and `update` them after it.
    """
    erased = {each.pk: each for each in sessions}
    related = {each.pk: each for session in erased.values() for each in _sharers(session)}
    claiming = claims_at(_lookups(erased)).values_list("session", flat=True)
    keys = _sessions_with(_anchors(erased)) | set(claiming)
    for session in erased.values():
        keys |= {row.session_id for row in parts(session)}
        root = part_of(session)
        if root is not None:
            keys.add(root.pk)
    related |= {each.pk: each for each in Session.objects.filter(pk__in=keys).select_related("agent")}
    return [each for key, each in sorted(related.items()) if key not in erased]


def delete_claims(sessions: Iterable[Session]) -> int:
    """Delete all claims of sessions that are about to be erased. Returns their number. `update` their `relatives`
    afterwards.
    """
    dropped = list(Artifact.objects.filter(session__in=list(sessions), kind__in=LINKS))
    decide_owners(set(), dropped=dropped)
    return len(dropped)


def _sharers(session: Session) -> list[Session]:
    """The agent's other sessions that sent one of this session's logs, if the log doesn't name its session: then none
    of them may use it.
    """
    hashes = [row.sha256 for row in store.readable_logs(session) if not store.names_its_session(row)]
    if not hashes:
        return []
    rows = Evidence.objects.filter(sha256__in=hashes, kind=EvidenceKind.TRANSCRIPT, session__agent=session.agent_id)
    return list(Session.objects.filter(pk__in=rows.values("session")).exclude(pk=session.pk).select_related("agent"))


# --- subagents' sessions, which are part of the session that started them: that has their work and their reward -------


def part_of(session: Session) -> Session | None:
    """The session that has this one's work and reward, or None if it has its own."""
    log = store.log_of(session)
    return None if log is None else log.part_of


def parts(session: Session) -> Iterable[SessionLog]:
    """The logs of the session's subagents, in an order that doesn't depend on when they arrived."""
    if not session.parts.all():
        return []
    rows = session.parts.select_related("session")
    return rows.order_by("session__ended_at", "session__external_id")


def _update_roots(session: Session, own_log: SessionLog | None) -> set[int]:
    """Store the root (`_root`) of the session and of all sessions that it started, directly or indirectly.

    `own_log` is the summary of the session's own logs. Returns the keys of the sessions whose root changed, and of
    their roots before and after.
    """
    started: dict[int, SessionLog] = {}
    parent_ids = [session.external_id]
    for _depth in range(MAX_DEPTH):
        # Filters by the ids alone, which have an index: few sessions have one id, and an agent has many sessions. The
        # index is partial (`session_log_parents`): the database uses it only with the `exclude`.
        children = SessionLog.objects.filter(parent__in=parent_ids).exclude(parent="").prefetch_related("session")
        rows = [row for row in children.order_by("pk") if row.session.agent_id == session.agent_id]
        new = [row for row in rows[:MAX_PARTS] if row.pk not in started and row.pk != session.pk]
        if not new:
            break
        started |= {row.pk: row for row in new}
        parent_ids = [row.session.external_id for row in new]
    own = [] if own_log is None else [own_log]
    affected: set[int] = set()
    for log in [*own, *list(started.values())[:MAX_PARTS]]:  # an agent may claim any number of parts
        root = _root(session.agent_id, log)
        if log.part_of_id == root:
            continue
        affected.add(log.session_id)
        affected.update(key for key in (log.part_of_id, root) if key is not None)
        if root is not None:
            SessionLog.objects.get_or_create(session_id=root)  # a root has a summary even without a log of its own
        log.part_of_id = root
        log.save(update_fields=["part_of"])
    return affected


def _root(agent: int, log: SessionLog) -> int | None:
    """The key of the topmost stored session that the log's session is part of, at most MAX_DEPTH above it.

    None if its parent isn't stored, or if sessions claim to have started each other.
    """
    visited = {log.session_id}
    root, parent = None, log.parent
    for _depth in range(MAX_DEPTH):
        if not parent:
            return root
        session = Session.objects.filter(agent=agent, external_id=parent).select_related("log").first()
        if session is None:
            return root
        if session.pk in visited:
            return None
        visited.add(session.pk)
        root = session.pk
        parent = session.log.parent if hasattr(session, "log") else ""
    return root


# --- records: which session owns each record that several sessions' logs contain --------------------------------------


def foreign_records(session: Session) -> frozenset[int]:
    """The records in the session's logs that other sessions own."""
    log = store.log_of(session)
    if log is None or not log.carried:
        return frozenset()
    return _SessionGroup({session.pk}).foreign_records(session.pk)


def _anchors(sessions: Collection[int]) -> set[int]:
    """The records by which copies of these sessions' logs are found."""
    return set(RecordAnchor.objects.filter(session__in=list(sessions)).values_list("record", flat=True))


def _sessions_with(anchors: Iterable[int]) -> set[int]:
    """The keys of the sessions whose logs have one of these anchors: the first MAX_COMPARED that the site received."""
    rows = RecordAnchor.objects.filter(record__in=list(anchors)).order_by("session")
    return set(rows.values_list("session", flat=True).distinct()[:MAX_COMPARED])


class _SessionGroup:
    """Some sessions and those that share records with them.

    A session and its subagents count as one, their root. A root's records are compared with those of every other root
    that has an anchor in common with it or its subagents. `logs` has the stored summaries of all of them, by session.
    """

    def __init__(self, sessions: set[int], rows: Iterable[Evidence] = (), *, with_sharers: bool = False) -> None:
        """`rows` are those of the sessions' logs that are loaded already. `with_sharers`: the first MAX_COMPARED
        sessions that have an anchor in common with one of these belong to the group, too.
        """
        self._near: dict[int, set[int]] = {}
        grouped = sessions | (self._find_sharers(sessions, MAX_COMPARED) if with_sharers else set())
        self.logs = _logs_with_parts(grouped)
        with_parts = grouped | self.logs.keys()
        everyone = with_parts | self._find_sharers(with_parts)
        if everyone != with_parts:
            self.logs = _logs_with_parts(everyone)
        self._summaries = _Summaries(self.logs, rows)
        self._roots = self._summaries.roots(grouped)

    def store_summaries(self, changed: Iterable[int] | None) -> set[int]:
        """Store how many records of each root which others own, and the digest of what counts.

        Only `changed` sessions have other records than before, or another root; None if others lost records, too.
        Returns the keys of the roots for which other records or logs count than before.
        """
        changed_roots = self._roots if changed is None else self._summaries.roots(changed)
        roots_by_rivals: dict[frozenset[int], list[int]] = defaultdict(list)  # copies of a log have the same rivals
        for root in sorted(self._roots):
            rivals = self._rivals(root)
            if changed_roots & {root, *rivals}:
                roots_by_rivals[rivals | {root}].append(root)
        holdings = {root: self._summaries.holding(root) for root in frozenset().union(*roots_by_rivals)}
        to_save, affected = list[SessionLog](), set[int]()
        for rivals, roots in roots_by_rivals.items():
            records = frozenset[int]().union(*(holdings[root].records for root in roots))
            owners = owner_rule.owners(records, [holdings[each] for each in sorted(rivals)])
            for root in roots:
                log = self.logs[root]
                before = (log.total, log.carried, log.digest)
                self._summarise(root, holdings[root].records, owners)
                if before != (log.total, log.carried, log.digest):
                    to_save.append(log)
                if log.digest != before[2]:
                    affected.add(root)
        if to_save:
            SessionLog.objects.bulk_update(to_save, ["total", "carried", "digest"])
        return affected

    def foreign_records(self, root: int) -> frozenset[int]:
        """The records of a root that other roots own."""
        rivals = self._rivals(root)
        if not rivals:
            return frozenset()
        mine = self._summaries.holding(root)
        owners = owner_rule.owners(mine.records, [mine, *map(self._summaries.holding, sorted(rivals))])
        return frozenset(record for record, owner in owners.items() if owner != root)

    def _find_sharers(self, sessions: set[int], limit: int | None = None) -> set[int]:
        """The sessions that have an anchor in common with one of these, the first `limit` that the site received."""
        if new := sessions - self._near.keys():
            self._near |= _sharers_of_anchors(new)
        return set(sorted(set[int]().union(*(self._near[key] for key in sessions)))[:limit])

    def _rivals(self, root: int) -> frozenset[int]:
        """The other roots with which this one's records are compared."""
        near = set[int]().union(*(self._near.get(log.pk, ()) for log in self._summaries.of_root(root)))
        # Samples and real sessions take nothing from each other.
        is_sample = self.logs[root].session.is_sample
        roots = self._summaries.roots(near) - {root}
        return frozenset(each for each in roots if self.logs[each].session.is_sample == is_sample)

    def _summarise(self, root: int, records: frozenset[int], owners: Mapping[int, int]) -> None:
        """Set a root's number of records, how many of them other roots own, and the digest of what counts."""
        log = self.logs[root]
        foreign = {record: owners[record] for record in records if owners[record] != root}
        carried = Counter(foreign.values())
        files = [sha256 for row in self._summaries.of_root(root) for sha256 in row.files]
        log.total = len(records)
        log.carried = {str(owner): carried[owner] for owner in sorted(carried)}
        log.digest = ""  # if there is at most one log and all of its records count
        if foreign or len(files) > 1:
            what_counts = "\n".join([*sorted(files), *map(str, sorted(foreign))])
            log.digest = blake2b(what_counts.encode(), digest_size=8).hexdigest()


class _Summaries:
    """Stored summaries of logs by session, among them those of each root's parts, and the rows of the logs."""

    def __init__(self, logs_by_session: Mapping[int, SessionLog], rows: Iterable[Evidence] = ()) -> None:
        self._logs = logs_by_session
        self._parts: dict[int, list[SessionLog]] = defaultdict(list)
        for log in logs_by_session.values():
            if log.part_of_id is not None:
                self._parts[log.part_of_id].append(log)
        self._rows = {(row.session_id, row.sha256): row for row in rows}
        names = {(log.pk, sha256) for log in logs_by_session.values() for sha256 in log.files}
        missing = {session for session, _sha256 in names - self._rows.keys()}
        if missing:
            files = Evidence.objects.filter(session__in=missing, kind=EvidenceKind.TRANSCRIPT, problem="")
            self._rows |= {(row.session_id, row.sha256): row for row in files.defer("report", "detail")}

    def roots(self, sessions: Iterable[int]) -> set[int]:
        """The roots of those of these sessions that have logs: the session that it is part of, or itself."""
        summaries = [self._logs[key] for key in sessions if key in self._logs]
        return {log.part_of_id or log.pk for log in summaries} & self._logs.keys()

    def of_root(self, root: int) -> list[SessionLog]:
        """The summaries of a root and its parts."""
        return [self._logs[root], *self._parts[root]]

    def claimant(self, root: int) -> Claimant:
        """A root as a claimant, with the first receipt and the strongest witness of its logs and its parts'."""
        receipt = min((log.receipt for log in self.of_root(root) if log.receipt), default=0)
        witness = max((Witness(row.witness).strength for row in self._files(root)), default=0)
        return replace(claimant(self._logs[root].session), receipt=receipt, witness=witness)

    def holding(self, root: int) -> Holding:
        """The records in the logs of a root and its parts, with the root as their claimant."""
        records = frozenset[int]().union(*(logs.load_records(row).ids for row in self._files(root)))
        return Holding(by=self.claimant(root), records=records)

    def _files(self, root: int) -> list[Evidence]:
        names = [(log.pk, sha256) for log in self.of_root(root) for sha256 in log.files]
        return [self._rows[name] for name in names if name in self._rows]


def claimants(sessions: Collection[int]) -> dict[int, Claimant]:
    """The roots among these sessions as claimants, with the witness of their logs."""
    summaries = _Summaries(_logs_with_parts(set(sessions)))
    return {root: summaries.claimant(root) for root in summaries.roots(sessions).intersection(sessions)}


def _logs_with_parts(sessions: set[int]) -> dict[int, SessionLog]:
    """The logs of these sessions, of those that they are part of, and of all parts of both, by session."""
    rows = SessionLog.objects.select_related("session").only(*LOG_COLUMNS)
    loaded = {row.pk: row for row in rows.filter(Q(pk__in=sessions) | Q(part_of__in=sessions))}
    roots = {log.part_of_id for log in loaded.values() if log.part_of_id is not None}
    if missing := roots - loaded.keys():
        loaded |= {row.pk: row for row in rows.filter(Q(pk__in=missing) | Q(part_of__in=missing))}
    return loaded


def _sharers_of_anchors(sessions: set[int]) -> dict[int, set[int]]:
    """For each of these sessions, those that have an anchor in common with it, maybe itself too: of each anchor the
    first MAX_COMPARED that the site received.
    """
    own = RecordAnchor.objects.filter(session__in=sessions)
    place = Window(RowNumber(), partition_by="record", order_by="session")
    rows = RecordAnchor.objects.filter(record__in=own.values("record")).annotate(place=place)
    rows = rows.filter(Q(place__lte=MAX_COMPARED) | Q(session__in=sessions)).order_by("session", "record")
    sessions_by_anchor: dict[int, list[int]] = defaultdict(list)
    for record, session in rows.values_list("record", "session")[:MAX_ANCHOR_ROWS]:
        sessions_by_anchor[record].append(session)
    near: dict[int, set[int]] = {key: set() for key in sessions}
    for sharing in sessions_by_anchor.values():
        for key in sessions.intersection(sharing):
            near[key].update(sharing[:MAX_COMPARED])
    return near


# --- claims of commits and pull requests ------------------------------------------------------------------------------


def claim(
    session: Session,
    kind: ArtifactKind,
    key: str,
    *,
    origin: Origin,
    receipt: Evidence,
    subject: str = "",
    seen_at: str = "",
) -> Artifact:
    """An unsaved claim of a commit or pull request. `receipt` is the evidence that shows it."""
    is_commit = kind is ArtifactKind.COMMIT
    return Artifact(
        session=session,
        kind=kind,
        key=key,
        origin=origin,
        seen_at=plain_text(seen_at, MAX_SEEN_AT),
        subject=plain_text(subject, owner_rule.MAX_SUBJECT),
        # The indexed key by which claims of one thing are found. Claims of other things may have the same.
        lookup=key[:PREFIX] if is_commit else blake2b(key.encode(), digest_size=16).hexdigest(),
        receipt=receipt.pk,
        witness=receipt.witness,
    )


def foreign(session: Session) -> Foreign:
    """What the session or its subagents claim but another session owns. Grading must leave it out."""
    rows = [row for row in session.artifacts.all() if row.kind in LINKS and row.owned_by_id not in (None, session.pk)]
    elsewhere = {(row.kind, row.key) for row in rows}
    if session.parts.all():
        others = Artifact.objects.filter(session__log__part_of=session, kind__in=LINKS, owned_by__isnull=False)
        elsewhere |= set(others.exclude(owned_by=session).values_list("kind", "key"))
    return Foreign(
        commits=frozenset(key for kind, key in elsewhere if kind == ArtifactKind.COMMIT),
        pull_requests=frozenset(key for kind, key in elsewhere if kind == ArtifactKind.PULL_REQUEST),
    )


def claims_at(lookups: Iterable[str]) -> QuerySet[Artifact]:
    """All claims that have one of these lookup keys."""
    return Artifact.objects.filter(lookup__in=list(lookups), kind__in=LINKS).exclude(lookup="")


def decide_owners(lookups: set[str], new: Sequence[Artifact] = (), dropped: Sequence[Artifact] = ()) -> set[int]:
    """Decide again who owns what is claimed under these lookup keys. Saves the `new` claims, deletes those `dropped`.

    Returns the keys of the sessions that lost or regained one of their stored claims, or whose claim passed to or from
    another agent; and of their roots.
    """
    lookups = lookups | {each.lookup for each in (*new, *dropped)}
    if not lookups:
        return set()
    if dropped:
        Artifact.objects.filter(pk__in=[row.pk for row in dropped]).delete()
    rows = [*claims_at(lookups).order_by("pk"), *new]
    claiming = Session.objects.filter(pk__in={row.session_id for row in rows}).select_related("log__part_of__log")
    claiming = claiming.only(*CLAIMANT_COLUMNS, *(f"log__part_of__{name}" for name in CLAIMANT_COLUMNS)).order_by()
    roots = {each.pk: part_of(each) or each for each in claiming}
    agents = {root.pk: root.agent_id for root in roots.values()}
    changed: dict[int | None, list[int]] = defaultdict(list)  # keys of claims by their new `owned_by`
    affected = set()
    for row, owner in zip(rows, _compute_owners(rows, roots), strict=True):
        owned_by = None if owner == row.session_id else owner
        if row.pk is not None and row.owned_by_id != owned_by:
            changed[owned_by].append(row.pk)
            root = roots[row.session_id]
            owners = {row.owned_by_id or row.session_id, owner}
            # Nothing changes for a session whose claim passes between two others of its agent.
            if root.pk in owners or {agents.get(each) for each in owners} != {root.agent_id}:
                affected |= {root.pk, row.session_id}
        row.owned_by_id = owned_by
    # None (the claiming session itself) comes last: a constraint lets only one claim from facts on a thing have it.
    for owned_by in sorted(changed, key=lambda key: (key is None, key)):
        Artifact.objects.filter(pk__in=changed[owned_by]).update(owned_by=owned_by)
    Artifact.objects.bulk_create(new)
    return affected


def _claims_from_logs(
    session: Session, chosen: Iterable[tuple[Evidence, Records]]
) -> dict[tuple[ArtifactKind, str], Artifact]:
    """Unsaved claims of the commits and pull requests that the session's own calls made, according to its logs."""
    claims: dict[tuple[ArtifactKind, str], Artifact] = {}
    for row, log_records in chosen:
        made = [(ArtifactKind.COMMIT, commit_hash, subject) for commit_hash, subject in log_records.commits]
        made += [(ArtifactKind.PULL_REQUEST, url, "") for url in log_records.pull_requests]
        for kind, key, subject in made:
            if (kind, key) not in claims:
                claims[kind, key] = claim(session, kind, key, origin=Origin.TRANSCRIPT, receipt=row, subject=subject)
    return claims


def _lookups(sessions: Collection[int]) -> set[str]:
    """The lookup keys of these sessions' claims."""
    if not sessions:
        return set()
    rows = Artifact.objects.filter(session__in=list(sessions), kind__in=LINKS).exclude(lookup="")
    return set(rows.values_list("lookup", flat=True))


def _compute_owners(rows: Sequence[Artifact], roots: Mapping[int, Session]) -> list[int]:
    """The key of the session that owns what each of the claims `rows` is about, in the same order.

    `roots`: the root session of each claiming session, which claims in its place.
    """
    claimants = []
    for row in rows:
        witness = Witness(row.witness)
        if row.origin == Origin.FACTS:
            # No log shows a fact that a hook names: whoever can write the hook's files can name a commit that somebody
            # else is about to submit.
            witness = witness.alone
        by = replace(
            claimant(roots[row.session_id]),
            receipt=row.receipt,
            made=row.origin == Origin.TRANSCRIPT,
            witness=witness.strength,
        )
        claimants.append(by)

    # Group the indexes of the rows by what they claim: a pull request by its address, a commit by the owner rule.
    same_prefix: dict[str, list[owner_rule.CommitClaim]] = defaultdict(list)
    same_address: dict[str, list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        if row.kind == ArtifactKind.COMMIT:
            commit = owner_rule.CommitClaim(row=index, by=claimants[index], hash=row.key, subject=row.subject)
            same_prefix[row.lookup].append(commit)
        else:
            same_address[row.key].append(index)
    same_things = list(same_address.values())
    for commits in same_prefix.values():
        same_things += [[commit.row for commit in group] for group in owner_rule.same_commits(commits)]

    owners = [0] * len(rows)
    for indexes in same_things:
        # A sample never takes from a real session, whichever came first.
        real = [index for index in indexes if not roots[rows[index].session_id].is_sample]
        owner = owner_rule.owner([claimants[index] for index in real or indexes]).session
        for index in indexes:
            owners[index] = owner
    return owners


def claimant(session: Session) -> Claimant:
    """A root session as a claimant for the owner rule. Load it with its `log`."""
    log = store.log_of(session)
    return Claimant(
        session=session.pk,
        agent=session.agent_id,
        receipt=log.receipt if log else 0,
        resumed=log.resumed if log else False,
        size=log.size if log else 0,
        ended=session.ended_at.timestamp(),
        name=session.external_id,
    )
