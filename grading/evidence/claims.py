"""Claims of commits and pull requests, and which session owns each of them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b

from django.db.models import QuerySet

from grading.evidence import owner_rule
from grading.evidence.owner_rule import PREFIX, Claimant
from grading.evidence.records import Records
from grading.models import Artifact, Evidence, Session, SessionLog
from grading.models.evidence import LINKS, ArtifactKind, Origin
from grading.plain import plain_text
from grading.signals.facts import Foreign
from grading.witness import Witness

MAX_SEEN_AT = 300
# The columns of a session that `claimant` reads.
CLAIMANT_COLUMNS = ("agent", "external_id", "ended_at", "is_sample", "log__receipt", "log__resumed", "log__size")


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
    return Artifact(
        session=session,
        kind=kind,
        key=key,
        origin=origin,
        seen_at=plain_text(seen_at, MAX_SEEN_AT),
        subject=plain_text(subject, owner_rule.MAX_SUBJECT),
        lookup=lookup_key(kind, key),
        receipt=receipt.pk,
        witness=receipt.witness,
    )


def lookup_key(kind: ArtifactKind, key: str) -> str:
    """The indexed key by which claims of one thing are found. Claims of other things may have the same."""
    return key[:PREFIX] if kind is ArtifactKind.COMMIT else blake2b(key.encode(), digest_size=16).hexdigest()


def artifacts_from_logs(session: Session, logs: Iterable[tuple[Evidence, Records]]) -> list[Artifact]:
    """Unsaved claims of the commits and pull requests that the session's own calls made, according to its logs."""
    artifacts: dict[tuple[ArtifactKind, str], Artifact] = {}
    for row, records in logs:
        for commit_hash, subject in records.commits:
            if (ArtifactKind.COMMIT, commit_hash) not in artifacts:
                artifacts[ArtifactKind.COMMIT, commit_hash] = claim(
                    session, ArtifactKind.COMMIT, commit_hash, origin=Origin.TRANSCRIPT, receipt=row, subject=subject
                )
        for url in records.pull_requests:
            if (ArtifactKind.PULL_REQUEST, url) not in artifacts:
                artifacts[ArtifactKind.PULL_REQUEST, url] = claim(
                    session, ArtifactKind.PULL_REQUEST, url, origin=Origin.TRANSCRIPT, receipt=row
                )
    return list(artifacts.values())


def diff_claims(session: Session, current: Sequence[Artifact]) -> tuple[list[Artifact], list[Artifact]]:
    """Compare the session's stored claims from logs with the `current` ones. Returns those to add and those to drop.

    A stored claim that is still current stays, with its receipt.
    """
    rows = [row for row in session.artifacts.all() if row.origin == Origin.TRANSCRIPT and row.kind in LINKS]
    stored = {(row.kind, row.key): row for row in rows}
    current_keys = {(each.kind, each.key) for each in current}
    new = [each for each in current if (each.kind, each.key) not in stored]
    return new, [row for key, row in stored.items() if key not in current_keys]


def lookups(sessions: Iterable[int]) -> set[str]:
    """The lookup keys of these sessions' claims."""
    rows = Artifact.objects.filter(session__in=list(sessions), kind__in=LINKS).exclude(lookup="")
    return set(rows.values_list("lookup", flat=True))


def claims_at(keys: Iterable[str]) -> QuerySet[Artifact]:
    """All claims that have one of these lookup keys."""
    return Artifact.objects.filter(lookup__in=list(keys), kind__in=LINKS).exclude(lookup="")


def decide_owners(keys: set[str], new: Sequence[Artifact] = (), dropped: Sequence[Artifact] = ()) -> set[int]:
    """Decide again who owns what is claimed under these lookup keys. Saves the `new` claims, deletes those `dropped`.

    Returns the keys of the sessions that lost or regained one of their stored claims.
    """
    keys = keys | {each.lookup for each in (*new, *dropped)}
    if not keys:
        return set()
    if dropped:
        Artifact.objects.filter(pk__in=[row.pk for row in dropped]).delete()
    rows = [*claims_at(keys).order_by("pk"), *new]
    claiming = Session.objects.filter(pk__in={row.session_id for row in rows}).select_related("log__part_of__log")
    # With all columns of both sessions, this query alone takes a tenth of an upload's time.
    claiming = claiming.only(*CLAIMANT_COLUMNS, *(f"log__part_of__{name}" for name in CLAIMANT_COLUMNS))
    roots: dict[int, Session] = {}
    for each in claiming:
        log: SessionLog | None = getattr(each, "log", None)
        roots[each.pk] = each if log is None or log.part_of is None else log.part_of
    owners = _owners(rows, roots)
    changed: dict[int | None, list[int]] = defaultdict(list)  # artifacts by their new `owned_by`
    touched = set()
    for row, owner in zip(rows, owners, strict=True):
        owned_by = None if owner == row.session_id else owner
        if row.pk is not None and row.owned_by_id != owned_by:
            changed[owned_by].append(row.pk)
            touched |= {roots[row.session_id].pk, row.session_id}
        row.owned_by_id = owned_by
    # Losers first: a constraint lets only one of two facts on the same thing belong to its own session.
    for owned_by in sorted(changed, key=lambda key: (key is None, key)):
        Artifact.objects.filter(pk__in=changed[owned_by]).update(owned_by=owned_by)
    Artifact.objects.bulk_create(new)
    return touched


def _owners(rows: Sequence[Artifact], roots: Mapping[int, Session]) -> list[int]:
    """The key of the session that owns what each row claims. `roots`: the root session of each claiming session."""
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
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)  # indexes of rows that may claim the same thing
    for index, row in enumerate(rows):
        alike[row.kind, row.lookup if row.kind == ArtifactKind.COMMIT else row.key].append(index)
    same_things: list[list[int]] = []
    for (kind, _key), indexes in alike.items():
        if kind == ArtifactKind.COMMIT:
            commits = [
                owner_rule.CommitClaim(row=i, by=claimants[i], hash=rows[i].key, subject=rows[i].subject)
                for i in indexes
            ]
            same_things += [[each.row for each in group] for group in owner_rule.same_commits(commits)]
        else:
            same_things.append(indexes)
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
    log: SessionLog | None = getattr(session, "log", None)
    return Claimant(
        session=session.pk,
        agent=session.agent_id,
        receipt=log.receipt if log else 0,
        resumed=log.resumed if log else False,
        size=log.size if log else 0,
        ended=session.ended_at.timestamp(),
        name=session.external_id,
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


def contended(session: Session) -> list[Artifact]:
    """The session's claims of what another agent's session owns. People should look at both sessions."""
    if all(row.owned_by_id is None for row in session.artifacts.all()):
        return []
    rows = session.artifacts.filter(kind__in=LINKS, owned_by__isnull=False)
    return list(rows.exclude(owned_by__agent=session.agent_id).select_related("owned_by__agent").order_by("pk"))
