"""Claims of commits and pull requests, and whose each one is."""

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

SEEN_AT = 300
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
    """A claim of a commit or pull request, not saved. `receipt`: the evidence that shows it."""
    return Artifact(
        session=session,
        kind=kind,
        key=key,
        origin=origin,
        seen_at=plain_text(seen_at, SEEN_AT),
        subject=plain_text(subject, owner_rule.MAX_SUBJECT),
        lookup=place(kind, key),
        receipt=receipt.pk,
        witness=receipt.witness,
    )


def place(kind: ArtifactKind, key: str) -> str:
    """Where claims of a thing are found: those of other things may be there, too."""
    return key[:PREFIX] if kind is ArtifactKind.COMMIT else blake2b(key.encode(), digest_size=16).hexdigest()


def of_logs(session: Session, logs: Iterable[tuple[Evidence, Records]]) -> list[Artifact]:
    """What the session's logs show that its calls made."""
    found: dict[tuple[ArtifactKind, str], Artifact] = {}
    for row, records in logs:
        commits = [(ArtifactKind.COMMIT, hash_, subject) for hash_, subject in records.commits]
        for kind, key, subject in (*commits, *((ArtifactKind.PULL_REQUEST, url, "") for url in records.pull_requests)):
            made = claim(session, kind, key, origin=Origin.TRANSCRIPT, receipt=row, subject=subject)
            found.setdefault((kind, key), made)
    return list(found.values())


def replaced(session: Session, found: Sequence[Artifact]) -> tuple[list[Artifact], list[Artifact]]:
    """Of the claims that the session's logs make now, those that are new; and of those held, the ones to drop.

    One that is held keeps the receipt that it has.
    """
    rows = [row for row in session.artifacts.all() if row.origin == Origin.TRANSCRIPT and row.kind in LINKS]
    held = {(row.kind, row.key): row for row in rows}
    now = {(each.kind, each.key) for each in found}
    new = [each for each in found if (each.kind, each.key) not in held]
    return new, [row for key, row in held.items() if key not in now]


def lookups(sessions: Iterable[int]) -> set[str]:
    """Where the claims of these sessions are found."""
    rows = Artifact.objects.filter(session__in=list(sessions), kind__in=LINKS).exclude(lookup="")
    return set(rows.values_list("lookup", flat=True))


def at(found: Iterable[str]) -> QuerySet[Artifact]:
    """All claims that are found there."""
    return Artifact.objects.filter(lookup__in=list(found), kind__in=LINKS).exclude(lookup="")


def decide(where: set[str], new: Sequence[Artifact] = (), dropped: Sequence[Artifact] = ()) -> set[int]:
    """Decide again who owns what is claimed there, with the new claims, which are saved, and without those dropped.

    Returns the keys of the sessions of which a claim held before is another's now, or is theirs again.
    """
    where = where | {each.lookup for each in (*new, *dropped)}
    if not where:
        return set()
    if dropped:
        Artifact.objects.filter(pk__in=[row.pk for row in dropped]).delete()
    rows = [*at(where).order_by("pk"), *new]
    claiming = Session.objects.filter(pk__in={row.session_id for row in rows}).select_related("log__part_of__log")
    # With all columns of both sessions, this query alone takes a tenth of an upload's time.
    claiming = claiming.only(*CLAIMANT_COLUMNS, *(f"log__part_of__{name}" for name in CLAIMANT_COLUMNS))
    roots: dict[int, Session] = {}
    for each in claiming:
        log: SessionLog | None = getattr(each, "log", None)
        roots[each.pk] = each if log is None or log.part_of is None else log.part_of
    owners = _owners(rows, roots)
    moved: dict[int | None, list[int]] = defaultdict(list)
    touched = set()
    for row, owner in zip(rows, owners, strict=True):
        owned_by = None if owner == row.session_id else owner
        if row.pk is not None and row.owned_by_id != owned_by:
            moved[owned_by].append(row.pk)
            touched |= {roots[row.session_id].pk, row.session_id}
        row.owned_by_id = owned_by
    # Those who lose first: of two facts on one thing the database lets only one belong to its own session.
    for owned_by in sorted(moved, key=lambda key: (key is None, key)):
        Artifact.objects.filter(pk__in=moved[owned_by]).update(owned_by=owned_by)
    Artifact.objects.bulk_create(new)
    return touched


def _owners(rows: Sequence[Artifact], roots: Mapping[int, Session]) -> list[int]:
    """The key of the owner of what each row claims."""
    # A fact that a hook names is seen in no log: whoever can write the hook's files can name a commit that somebody
    # else is about to hand in.
    said = [Witness(row.witness).alone if row.origin == Origin.FACTS else Witness(row.witness) for row in rows]
    by = [
        replace(
            claimant(roots[row.session_id]),
            receipt=row.receipt,
            made=row.origin == Origin.TRANSCRIPT,
            witness=witness.strength,
        )
        for row, witness in zip(rows, said, strict=True)
    ]
    alike: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        alike[row.kind, row.lookup if row.kind == ArtifactKind.COMMIT else row.key].append(number)
    things: list[list[int]] = []
    for (kind, _where), numbers in alike.items():
        if kind == ArtifactKind.COMMIT:
            commits = [
                owner_rule.CommitClaim(row=number, by=by[number], hash=rows[number].key, subject=rows[number].subject)
                for number in numbers
            ]
            things += [[each.row for each in same] for same in owner_rule.same_commits(commits)]
        else:
            things.append(numbers)
    owners = [0] * len(rows)
    for same in things:
        # A sample never takes from a session of the site's own, whichever came first.
        own = [number for number in same if not roots[rows[number].session_id].is_sample]
        owner = owner_rule.owner([by[number] for number in own or same]).session
        for number in same:
            owners[number] = owner
    return owners


def claimant(session: Session) -> Claimant:
    """A session that has its own reward, as the rule sees it; its log is to be selected with it."""
    held: SessionLog | None = getattr(session, "log", None)
    return Claimant(
        session=session.pk,
        agent=session.agent_id,
        receipt=held.receipt if held else 0,
        resumed=held.resumed if held else False,
        size=held.size if held else 0,
        ended=session.ended_at.timestamp(),
        name=session.external_id,
    )


def foreign(session: Session) -> Foreign:
    """What the session claims, itself or by its subagents, and another one owns: it is to be left out of its grades."""
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
    """The session's claims of what another agent's session owns; people are to look at both."""
    if all(row.owned_by_id is None for row in session.artifacts.all()):
        return []
    rows = session.artifacts.filter(kind__in=LINKS, owned_by__isnull=False)
    return list(rows.exclude(owned_by__agent=session.agent_id).select_related("owned_by__agent").order_by("pk"))
