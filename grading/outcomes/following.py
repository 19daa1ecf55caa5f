"""Looks up, in followed repositories, what became of the commits that sessions own.

enrol new sessions ─► fetch each repository with sessions that are due ─► find their commits ─► decide ─► record

A session is looked up 10 minutes and 1, 3, 7, 14 and 30 days after its end. Sessions are claimed before slow work. If
the process dies, they are looked up again: what is recorded depends on the mirror alone.
"""

import datetime as dt
import hashlib
import logging
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from grading.models import Artifact, CommitSighting, Evidence, Repository, Session, SessionCommit, SessionLanding
from grading.models.evidence import ArtifactKind
from grading.models.fields import short_hash
from grading.models.outcomes import Authorship, CommitState, LandingState, OutcomeKind
from grading.outcomes import addresses, contradictions, landing
from grading.outcomes.addresses import BadAddress
from grading.outcomes.authorship import ClaimedCommit, decide_authorship
from grading.outcomes.git import GitFailed
from grading.outcomes.landing import CommitOutcome, DefaultBranch
from grading.outcomes.local_repositories import RepositoryRefused
from grading.outcomes.mirror import HASH, CommitInfo, Mirror
from grading.outcomes.recording import ReportedOutcome, append
from grading.witness import Witness
from gradingsite.sealing import CannotBeRead, unseal

logger = logging.getLogger(__name__)

MINUTE, DAY = dt.timedelta(minutes=1), dt.timedelta(days=1)
CHECKS = (10 * MINUTE, DAY, 3 * DAY, 7 * DAY, 14 * DAY, 30 * DAY)
# A session that no other process finishes within this time is looked up again.
LEASE = 30 * MINUTE
BATCH = 2000
MAX_CLAIMS = 200  # commits of one session
# A shorter hash is too short to be recognised without its subject in a repository of another project.
RECOGNISABLE = 12
TOKEN_PURPOSE = "repository token"  # noqa: S105 - no secret


def mirror_of(repository: Repository) -> Mirror:
    """The mirror on this host. Its name contains the address, because in a restored backup a new repository may get the
    primary key of another one that was followed before.
    """
    address = hashlib.sha256(repository.url.encode()).hexdigest()[:12]
    return Mirror(Path(settings.STATE_DIR) / "mirrors" / f"{repository.pk}-{address}.git")


def delete_stale_mirrors() -> int:
    """Delete the mirrors of repositories that are not followed any more from this host. Returns how many."""
    folders = list((Path(settings.STATE_DIR) / "mirrors").glob("*.git"))
    # Queried after the folders are listed, so that the mirror of a new repository is not among the stale ones.
    followed = {mirror_of(repository).folder for repository in Repository.objects.all()}
    stale = [Mirror(folder) for folder in folders if folder not in followed]
    for mirror in stale:
        mirror.delete()
    return len(stale)


def next_check(ended_at: dt.datetime, now: dt.datetime) -> dt.datetime | None:
    """When a session that ended at `ended_at` is looked up next; None after its last look-up."""
    return min((ended_at + wait for wait in CHECKS if ended_at + wait > now), default=None)


def enrol(now: dt.datetime) -> int:
    """Schedule the look-up of sessions that claim commits, the newest first. Returns how many are new, at most BATCH.

    A session from before its repository was followed is looked up once, and again if it is recent.
    """
    if not Repository.objects.filter(is_paused=False).exists():
        return 0
    claims = Artifact.objects.filter(kind=ArtifactKind.COMMIT, owned_by=None).values("session")
    sessions = Session.objects.yours().filter(pk__in=claims, landing=None).order_by("-ended_at", "-pk")[:BATCH]
    first_wait = CHECKS[0]
    rows = [
        SessionLanding(session=session, next_check_at=max(now, session.ended_at + first_wait)) for session in sessions
    ]
    SessionLanding.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def look_up_soon(repository: Repository, now: dt.datetime) -> int:
    """Make sessions of the repository's project due now, if they have look-ups left. Returns how many."""
    due = SessionLanding.objects.filter(session__project__repository=repository, next_check_at__isnull=False)
    return due.update(next_check_at=now)


def run_due(now: dt.datetime) -> int:
    """Look up the sessions that are due, BATCH at a time, and fetch each repository at most once. Returns how many."""
    fetched: dict[int, bool] = {}
    for repository in Repository.objects.filter(is_paused=False, first_fetched_at=None):
        # The commits of the first fetch are history. The earlier it is, the fewer commits of sessions are among them.
        if repository.fetched_at is None or now - repository.fetched_at > LEASE:
            fetched[repository.pk] = fetch(repository, now)
    while enrol(now) == BATCH:
        pass
    due = SessionLanding.objects.filter(next_check_at__lte=now).order_by("next_check_at", "pk")
    count = 0
    while True:
        with transaction.atomic():
            keys = [row.pk for row in due.select_for_update(skip_locked=True)[:BATCH]]
            SessionLanding.objects.filter(pk__in=keys).update(next_check_at=now + LEASE)
        if not keys:
            return count
        look_up(list(Session.objects.filter(pk__in=keys).select_related("agent", "project")), now, fetched)
        count += len(keys)


def look_up(sessions: Sequence[Session], now: dt.datetime, fetched: dict[int, bool] | None = None) -> None:
    """Find out what became of the commits of these sessions, and record what changed.

    Fetches each repository of their projects, unless this round has fetched it before. `fetched` says by the primary
    key of a repository whether that worked, and is updated. The sessions of a repository that cannot be read are left
    as they are, and are looked up again after LEASE.
    """
    fetched = {} if fetched is None else fetched
    repositories = list(Repository.objects.filter(is_paused=False).select_related("project"))
    by_project = {repository.project_id: repository for repository in repositories}
    homes = {session.pk: by_project.get(session.project_id) if session.project_id else None for session in sessions}
    for repository in {*filter(None, homes.values())}:
        if repository.pk not in fetched:
            fetched[repository.pk] = fetch(repository, now)
    unreadable = {pk for pk, worked in fetched.items() if not worked}
    readable = [repository for repository in repositories if repository.pk not in unreadable]
    postponed = {pk for pk, home in homes.items() if home is not None and home.pk in unreadable}
    sessions = [session for session in sessions if session.pk not in postponed]
    claims = _load_claims(sessions)
    hashes = {claim.key for session_claims in claims.values() for claim in session_claims}
    infos: dict[int, dict[str, CommitInfo]] = {}  # by repository, then by the claimed hash
    for repository in readable:
        with _logging_failure(repository, fetched):
            infos[repository.pk] = mirror_of(repository).describe(hashes)
    commits_by_session = _find_commits(sessions, claims, infos, readable, homes)
    commits = [commit for session_commits in commits_by_session.values() for commit in session_commits]
    for repository in readable:
        with _logging_failure(repository, fetched):
            _set_outcomes(repository, [commit for commit in commits if commit.repository_id == repository.pk])
    for session in sessions:
        home = homes[session.pk]
        if home is None or fetched[home.pk]:
            with transaction.atomic():
                _store(session, commits_by_session[session.pk], now)
            contradictions.check(session, now)


@contextmanager
def _logging_failure(repository: Repository, fetched: dict[int, bool]) -> Iterator[None]:
    """Log a failure of git in one mirror and go on. The commits of this repository then count as not found.

    A damaged mirror is deleted and marked as not fetched in `fetched`. The next round makes it anew.
    """
    try:
        yield
    except GitFailed as error:
        mirror = mirror_of(repository)
        logger.warning("the mirror of %s could not be read: %s", repository, error)
        if mirror.is_damaged():
            mirror.delete()
            fetched[repository.pk] = False


def fetch(repository: Repository, now: dt.datetime) -> bool:
    """Update the mirror of a repository, and record which commits are new. Returns whether it worked."""
    try:
        token = unseal(repository.sealed_token, purpose=TOKEN_PURPOSE) if repository.sealed_token else ""
        mirror = mirror_of(repository)
        fetched = mirror.fetch(addresses.parse(repository.url), repository.default_branch, token=token)
        first_fetched_at = repository.first_fetched_at
        new = [] if first_fetched_at is None else mirror.new_commits(repository.tips, first_fetched_at)
    except (GitFailed, BadAddress, RepositoryRefused, CannotBeRead) as error:
        logger.warning("repository %s was not fetched: %s", repository, error)
        Repository.objects.filter(pk=repository.pk).update(error=str(error), fetched_at=now)
        return False
    with transaction.atomic():
        sightings = [CommitSighting(repository=repository, sha=sha, seen_at=now) for sha in new]
        CommitSighting.objects.bulk_create(sightings, ignore_conflicts=True, batch_size=500)
        repository.tips = sorted(fetched.tips)
        repository.has_branches = fetched.has_branches
        repository.fetched_at = now
        repository.error = ""
        repository.first_fetched_at = first_fetched_at or now
        repository.save(update_fields=["tips", "has_branches", "fetched_at", "error", "first_fetched_at"])
    return True


def _load_claims(sessions: Sequence[Session]) -> dict[int, list[Artifact]]:
    """The commits that each session owns, by the session's primary key: one claim for each hash, at most MAX_CLAIMS."""
    rows = Artifact.objects.filter(session__in=sessions, kind=ArtifactKind.COMMIT, owned_by=None).order_by("pk")
    rows = rows.filter(key__regex=f"^{HASH}$")  # a caller's facts may name anything
    claims: dict[int, dict[str, Artifact]] = defaultdict(dict)
    for row in rows:
        if len(claims[row.session_id]) < MAX_CLAIMS:
            claims[row.session_id].setdefault(row.key, row)
    return {session.pk: list(claims[session.pk].values()) for session in sessions}


def _find_commits(
    sessions: Sequence[Session],
    claims: Mapping[int, Sequence[Artifact]],
    infos: Mapping[int, Mapping[str, CommitInfo]],
    repositories: Sequence[Repository],
    homes: Mapping[int, Repository | None],
) -> dict[int, list[SessionCommit]]:
    """Unsaved rows for the commits of each session: in which repository a commit is, and whether it counts as the
    session's own.

    `claims` and `homes` (the repository of the session's project) are by the primary key of the session. `infos` are by
    the primary key of the repository, then by the claimed hash.
    """
    context = _ClaimContext(sessions, claims, infos)
    commits_by_session: dict[int, list[SessionCommit]] = {}
    for session in sessions:
        home = homes[session.pk]
        others = [repository for repository in repositories if repository != home]
        home_first = others if home is None else [home, *others]
        commits: dict[str, SessionCommit] = {}
        for claim in claims[session.pk]:
            commit = SessionCommit(session=session, claim=claim.key)
            for repository in home_first:
                info = infos.get(repository.pk, {}).get(claim.key)
                if info is not None and (repository == home or _is_recognised(claim, info)):
                    commit.repository = repository
                    commit.sha = info.sha
                    commit.committer = short_hash(info.committer)
                    commit.authorship = context.decide(claim, commit, info)
                    break
            # A short and the full hash of one commit are one commit.
            commits.setdefault(commit.sha or claim.key, commit)
        commits_by_session[session.pk] = list(commits.values())
    return commits_by_session


def _is_recognised(claim: Artifact, info: CommitInfo) -> bool:
    """Whether a claim surely means this commit, although it is in the repository of another project."""
    return len(claim.key) >= RECOGNISABLE or (bool(claim.subject) and info.subject.startswith(claim.subject))


class _ClaimContext:
    """What authorship depends on besides the commit and the session."""

    def __init__(
        self,
        sessions: Sequence[Session],
        claims: Mapping[int, Sequence[Artifact]],
        infos: Mapping[int, Mapping[str, CommitInfo]],
    ) -> None:
        """`claims` are by session, and `infos` by repository, then by the claimed hash."""
        all_claims = [claim for session_claims in claims.values() for claim in session_claims]
        shas = {info.sha for by_hash in infos.values() for info in by_hash.values()}
        self.sessions = {session.pk: session for session in sessions}
        self.received_at = _received_at(all_claims)
        self.claims_by_lookup = _claims_by_lookup(all_claims)
        self.known_commits = _count_known_commits({session.agent_id for session in sessions})
        self.seen_at = _seen_at(shas)

    def decide(self, claim: Artifact, commit: SessionCommit, info: CommitInfo) -> Authorship:
        """Whether the claimed commit, which was found in its repository as `info`, counts as the session's own."""
        session = self.sessions[commit.session_id]
        repository = commit.repository
        if repository is None:
            return Authorship.NOT_FOUND
        is_shared = any(
            agent != session.agent_id and (key.startswith(claim.key) or claim.key.startswith(key))
            for key, agent in self.claims_by_lookup[claim.lookup]
        )
        return decide_authorship(
            ClaimedCommit(
                started_at=session.started_at,
                ended_at=session.ended_at,
                committed_at=info.committed_at,
                seen_at=self.seen_at.get((repository.pk, info.sha)),
                claimed_at=self.received_at.get(claim.receipt) or timezone.now(),
                credits_history=repository.credits_history,
                is_shared=is_shared,
                known_commits=self.known_commits[session.agent_id, repository.pk, commit.committer],
            )
        )


def _received_at(claims: Collection[Artifact]) -> dict[int, dt.datetime]:
    """When the evidence of these claims was received, by its primary key (`Artifact.receipt`)."""
    evidence = Evidence.objects.filter(pk__in={claim.receipt for claim in claims})
    return dict(evidence.values_list("pk", "received_at"))


def _claims_by_lookup(claims: Collection[Artifact]) -> dict[str, set[tuple[str, int]]]:
    """Everybody's claims of similar hashes as (hash, agent), by the lookup of the hash."""
    similar = Artifact.objects.filter(lookup__in={claim.lookup for claim in claims}, kind=ArtifactKind.COMMIT)
    by_lookup: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for lookup, key, agent in similar.values_list("lookup", "key", "session__agent"):
        by_lookup[lookup].add((key, agent))
    return by_lookup


def _count_known_commits(agents: Collection[int]) -> Counter[Any]:
    """The numbers of the agents' own commits, by agent, repository and committer."""
    own_commits = SessionCommit.objects.filter(authorship=Authorship.OWN, session__agent__in=agents)
    return Counter(own_commits.values_list("session__agent", "repository", "committer"))


def _seen_at(shas: Collection[str]) -> dict[tuple[int, str], dt.datetime]:
    """When each of these commits was first seen, by repository and hash."""
    sightings = CommitSighting.objects.filter(sha__in=shas)
    return {(row.repository_id, row.sha): row.seen_at for row in sightings}


def _set_outcomes(repository: Repository, commits: Sequence[SessionCommit]) -> None:
    """Set what became of the commits that count as their session's own. All `commits` are of this repository."""
    own_commits = [commit for commit in commits if commit.authorship == Authorship.OWN]
    if not own_commits:
        return
    since = min(commit.session.started_at or commit.session.ended_at - DAY for commit in own_commits) - DAY
    mirror = mirror_of(repository)
    branch = DefaultBranch.load(mirror, repository.default_branch, since)
    pulls_by_session = _pull_numbers(repository, {commit.session_id for commit in own_commits})
    pulls_by_commit: dict[str, set[str]] = defaultdict(set)
    for commit in own_commits:
        pulls_by_commit[commit.sha] |= pulls_by_session.get(commit.session_id, set())
    outcomes = landing.decide(mirror, branch, {commit.sha for commit in own_commits}, pulls_by_commit)
    for commit in own_commits:
        outcome: CommitOutcome = outcomes[commit.sha]
        commit.state = outcome.state
        commit.landed_as = outcome.landed_as
        commit.reverted_by = outcome.reverted_by


def _pull_numbers(repository: Repository, sessions: Iterable[int]) -> dict[int, set[str]]:
    """The numbers of the pull requests of this repository that each session owns."""
    rows = Artifact.objects.filter(session__in=list(sessions), kind=ArtifactKind.PULL_REQUEST, owned_by=None)
    numbers: dict[int, set[str]] = defaultdict(set)
    for session, url in rows.values_list("session", "key"):
        if number := addresses.pull_number(url, repository.url):
            numbers[session].add(number)
    return numbers


def _store(session: Session, commits: Sequence[SessionCommit], now: dt.datetime) -> None:
    """Store what became of a session's commits, and append an outcome if that changed.

    A commit that cannot be found any more keeps its earlier row: a deleted branch says nothing about the work.
    """
    row = SessionLanding.objects.select_for_update().filter(session=session).first() or SessionLanding(session=session)
    earlier = {commit.claim: commit for commit in SessionCommit.objects.filter(session=session)}
    current = [
        earlier[commit.claim] if commit.state == CommitState.UNKNOWN and commit.claim in earlier else commit
        for commit in commits
    ]
    SessionCommit.objects.filter(session=session).delete()
    for commit in current:
        commit.pk = None  # so that a commit from an earlier look-up, whose row was just deleted, is inserted again
    SessionCommit.objects.bulk_create(current)
    counts = Counter(commit.state for commit in current)
    before = (row.state, row.landed, row.reverted, row.open)
    row.landed = counts[CommitState.LANDED]
    row.reverted = counts[CommitState.REVERTED]
    row.open = counts[CommitState.OPEN]
    row.claimed = len(current)
    row.state = summarise(row.landed, row.reverted, row.open)
    row.checked_at = now
    row.next_check_at = next_check(session.ended_at, now)
    row.save()
    has_changed = (row.state, row.landed, row.reverted, row.open) != before
    if has_changed and row.state != LandingState.UNKNOWN:
        _record_landing(session, row, current, now)


def summarise(landed: int, reverted: int, not_landed: int) -> LandingState:
    """What became of all own commits of a session whose state is known."""
    total = landed + reverted + not_landed
    if not total:
        return LandingState.UNKNOWN
    if landed == total:
        return LandingState.LANDED
    if landed:
        return LandingState.PARTLY
    return LandingState.REVERTED if reverted else LandingState.OPEN


def describe(row: SessionLanding, branch: str) -> str:
    """What became of a session's commits: "3 of 4 commits on main, 1 reverted"."""
    total = row.landed + row.reverted + row.open
    commits = "commit" if total == 1 else "commits"
    text = f"{row.landed} of {total} {commits} on {branch}"
    return f"{text}, {row.reverted} reverted" if row.reverted else text


def _record_landing(session: Session, row: SessionLanding, commits: Sequence[SessionCommit], now: dt.datetime) -> None:
    """Append the share of commits that landed as an outcome. If a commit is or was reverted, also append the share of
    reverted commits.
    """
    repository = next(commit.repository for commit in commits if commit.state != CommitState.UNKNOWN)
    if repository is None:
        return
    total = row.landed + row.reverted + row.open
    shares = {OutcomeKind.LANDED: row.landed / total}
    was_reverted = session.outcomes.filter(kind=OutcomeKind.REVERTED).exists()
    if row.reverted or was_reverted:
        shares[OutcomeKind.REVERTED] = row.reverted / total
    detail = describe(row, repository.default_branch)
    source = f"repository {repository.pk}"
    for kind, share in shares.items():
        outcome = ReportedOutcome(kind=kind, value=share, observed_at=now, detail=detail)
        append(session, outcome, source=source, witness=Witness.OBSERVED)
