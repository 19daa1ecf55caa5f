"""Sessions whose commits are looked up in a followed repository: what is recorded, and that no reward changes."""

import datetime as dt
import os
import shutil
import subprocess

import pytest

from bandit.models import Bucket, LedgerEntry
from grading.models import Artifact, CommitSighting, Evidence, Project, Repository, SessionCommit, Settlement
from grading.models.evidence import ArtifactKind, EvidenceKind, Origin
from grading.models.outcomes import Authorship, CommitState, LandingState
from grading.outcomes import following, git
from grading.outcomes.mirror import Mirror
from tests.outcomes.repos import EPOCH, Repo
from tests.site import NOON

DAY = dt.timedelta(days=1)
AFTER = NOON + dt.timedelta(hours=1)
pytestmark = pytest.mark.django_db


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path / "engine")


@pytest.fixture
def followed(repo, settings, tmp_path):
    """The repository, followed before any session."""
    settings.STATE_DIR = tmp_path / "state"
    project = Project.objects.for_key("engine")
    row = Repository.objects.create(name="engine", url=str(repo.folder), project=project)
    following.fetch(row, NOON - DAY)
    return row


@pytest.fixture
def session_with(site, followed):
    """A session that ended an hour after the epoch, and claims commits."""

    def build(*commits, agent="bob", received=NOON + dt.timedelta(minutes=61), project=None, **fields):
        fields = {"started_at": NOON, "ended_at": NOON + dt.timedelta(hours=1), **fields}
        project = project or followed.project
        session = site.session(agent=agent, project=project, **fields).with_work().settle()
        facts = {"kind": EvidenceKind.FACTS, "sha256": "ab" * 32, "size": 1, "received_at": received}
        evidence = Evidence.objects.create(session=session, **facts)
        for commit in commits:
            fields = {"lookup": commit[:7], "receipt": evidence.pk, "origin": Origin.FACTS}
            Artifact.objects.create(session=session, kind=ArtifactKind.COMMIT, key=commit, **fields)
        return session

    return build


def states(session):
    return list(SessionCommit.objects.filter(session=session).values_list("authorship", "state"))


def run(after):
    return following.run_due(NOON + dt.timedelta(hours=1) + after)


def test_the_story_of_a_session(repo, session_with):
    """Open, then landed, then reverted, then restored; each change is one more record."""
    repo.branch("feature")
    session = session_with(*(repo.commit(f"Part {number}") for number in range(2)))
    assert run(dt.timedelta(minutes=11)) == 1
    assert session.landing.state == LandingState.OPEN
    squash = repo.squash("feature", "Add the parts (#142)")
    assert run(dt.timedelta(hours=1)) == 0  # not yet
    assert run(DAY) == 1
    revert = repo.revert(squash)
    assert run(3 * DAY) == 1
    repo.revert(revert)
    assert run(7 * DAY) == 1
    session.refresh_from_db()
    assert session.landing.state == LandingState.LANDED
    records = session.outcomes.order_by("pk").values_list("kind", "number", "detail")
    assert list(records) == [
        ("landed", 0.0, "0 of 2 commits on main"),
        ("landed", 1.0, "2 of 2 commits on main"),
        ("landed", 0.0, "0 of 2 commits on main, 2 reverted"),
        ("reverted", 1.0, "0 of 2 commits on main, 2 reverted"),
        ("landed", 1.0, "2 of 2 commits on main"),
        ("reverted", 0.0, "2 of 2 commits on main"),
    ]
    assert session.outcomes.latest_per_kind()["landed"].number == 1
    run(14 * DAY)
    run(30 * DAY)
    session.landing.refresh_from_db()
    assert session.landing.next_check_at is None
    assert session.outcomes.count() == 6


def test_nothing_of_it_changes_a_reward(repo, session_with):
    repo.branch("feature")
    session = session_with(repo.commit("Part"))
    before = [list(model.objects.order_by("pk").values()) for model in (Settlement, LedgerEntry, Bucket)]
    repo.revert(repo.squash("feature", "Add it"))
    run(DAY)
    assert session.landing.state == LandingState.REVERTED
    assert before == [list(model.objects.order_by("pk").values()) for model in (Settlement, LedgerEntry, Bucket)]


def test_one_round_twice_records_once(repo, session_with, followed):
    repo.branch("feature")
    session = session_with(repo.commit("Part"))
    now = NOON + DAY
    following.run_due(now)
    following.look_up([session], now)
    following.look_up([session], now + DAY)
    assert session.outcomes.count() == 1
    assert SessionCommit.objects.count() == 1


def test_commits_from_before_the_session_are_not_its_own(repo, session_with, followed):
    """Somebody else's landed commit, cited in a forged log."""
    theirs = repo.commit("Theirs")
    following.fetch(followed, NOON + dt.timedelta(minutes=5))
    late = session_with(theirs, started_at=NOON + dt.timedelta(minutes=30))
    never = session_with("f" * 40)
    run(DAY)
    assert states(late) == [(Authorship.SEEN_BEFORE, CommitState.UNKNOWN)]
    assert states(never) == [(Authorship.NOT_FOUND, CommitState.UNKNOWN)]
    assert late.landing.state == LandingState.UNKNOWN
    assert not late.outcomes.exists()


def test_a_commit_that_was_public_before_the_claim_needs_a_known_committer(repo, session_with, followed):
    forged = repo.commit("Forged")
    following.fetch(followed, NOON + dt.timedelta(minutes=20))
    liar = session_with(forged)
    run(DAY)
    assert states(liar) == [(Authorship.PUBLIC, CommitState.UNKNOWN)]
    for number in range(3):
        session_with(repo.commit(f"Honest {number}"))
    run(2 * DAY)
    again = repo.commit("Pushed early")
    following.fetch(followed, NOON + dt.timedelta(minutes=30))
    honest = session_with(again)
    run(3 * DAY)
    assert states(honest) == [(Authorship.OWN, CommitState.LANDED)]


def test_a_commit_that_two_agents_claim_is_nobodys(repo, session_with):
    commit = repo.commit("Whose")
    one = session_with(commit)
    other = session_with(commit[:9], agent="alice")
    run(DAY)
    assert [states(each)[0][0] for each in (one, other)] == [Authorship.SHARED] * 2


def test_a_branch_without_a_commit_of_its_own(repo, session_with):
    """The session names the commit that its branch began with."""
    session = session_with(repo.head, started_at=NOON + dt.timedelta(hours=3), ended_at=NOON + dt.timedelta(hours=4))
    following.run_due(NOON + DAY)
    assert states(session) == [(Authorship.OUTSIDE, CommitState.UNKNOWN)]


@pytest.mark.parametrize(("credits_history", "expected"), [(True, Authorship.OWN), (False, Authorship.HISTORY)])
def test_commits_of_the_first_fetch(repo, session_with, followed, credits_history, expected):
    old = repo.commit("Old")
    Repository.objects.update(first_fetched_at=None, tips=[], credits_history=credits_history)
    session = session_with(old)
    run(DAY)
    assert states(session)[0][0] == expected


def test_one_session_over_two_repositories(repo, session_with, followed, tmp_path):
    second = Repo(tmp_path / "docs")
    docs = Repository.objects.create(name="docs", url=str(second.folder), project=Project.objects.for_key("docs"))
    following.fetch(docs, NOON - DAY)
    mine, also = repo.commit("Code"), second.commit("Docs")
    following.fetch(docs, NOON + dt.timedelta(hours=2))
    session = session_with(mine, also)
    run(DAY)
    commits = {commit.claim: (commit.repository_id, commit.state) for commit in session.commits.all()}
    assert commits == {mine: (followed.pk, "landed"), also: (docs.pk, "landed")}


def test_a_short_hash_means_nothing_in_another_repository(repo, session_with, followed, tmp_path):
    second = Repo(tmp_path / "docs")
    docs = Repository.objects.create(name="docs", url=str(second.folder), project=Project.objects.for_key("docs"))
    short = second.commit("Docs")[:7]
    following.fetch(docs, NOON - DAY)
    session = session_with(short)
    run(DAY)
    assert states(session) == [(Authorship.NOT_FOUND, CommitState.UNKNOWN)]


def test_a_deleted_branch_is_no_news(repo, session_with, followed):
    """What was found out stays when a mirror on another host lacks the commit."""
    repo.branch("feature")
    session = session_with(repo.commit("Part"))
    repo.squash("feature", "Add it")
    run(dt.timedelta(minutes=11))
    repo.git("branch", "-D", "feature")
    following.mirror_of(followed).delete()
    run(DAY)
    session.landing.refresh_from_db()
    assert session.landing.state == LandingState.LANDED
    assert CommitSighting.objects.filter(repository=followed).count() == 2


def test_history_stays_history_when_its_branch_is_rewritten_and_the_mirror_is_lost(repo, session_with, followed):
    theirs = repo.commit("Theirs")
    repo.commit("Tip")
    Repository.objects.filter(pk=followed.pk).update(first_fetched_at=None, tips=[])
    followed.refresh_from_db()
    following.fetch(followed, NOON + dt.timedelta(minutes=10))
    session = session_with(theirs)
    run(DAY)
    assert states(session) == [(Authorship.HISTORY, CommitState.UNKNOWN)]
    repo.git("commit", "-q", "--amend", "-m", "Another tip")
    repo.git("reflog", "expire", "--expire=now", "--all")
    following.mirror_of(followed).delete()
    repo.minute += 2 * 24 * 60
    new = repo.commit("New")
    run(3 * DAY)
    assert states(session) == [(Authorship.HISTORY, CommitState.UNKNOWN)]
    assert list(CommitSighting.objects.values_list("sha", flat=True)) == [new]


def test_a_repository_that_cannot_be_fetched(repo, session_with, followed, tmp_path):
    repo.branch("feature")
    session = session_with(repo.commit("Part"))
    repo.folder.rename(tmp_path / "away")
    run(DAY)
    followed.refresh_from_db()
    assert "no folder" in followed.error
    assert session.landing.checked_at is None
    (tmp_path / "away").rename(repo.folder)
    run(DAY + following.LEASE)
    followed.refresh_from_db()
    session.landing.refresh_from_db()
    assert (followed.error, session.landing.state) == ("", LandingState.OPEN)


def test_nothing_old_is_new_in_a_repository_with_many_branches(repo, followed):
    """Every tip is remembered, so that commits of all branches are known at the next fetch."""
    head, count = repo.head, 6000
    lines = []
    for number in range(count):
        who = f"Ada <ada@example.test> {EPOCH + number} +0000"
        lines += [f"commit refs/heads/b{number}", f"committer {who}", "data 0", f"from {head}", ""]
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repo.folder, input="\n".join(lines), text=True, check=True)
    following.fetch(followed, NOON)
    assert CommitSighting.objects.count() == count
    following.fetch(followed, NOON + DAY)
    assert not CommitSighting.objects.filter(seen_at__gt=NOON).exists()
    CommitSighting.objects.all().delete()
    following.fetch(followed, NOON + DAY)
    assert not CommitSighting.objects.exists()


def test_a_broken_mirror_stops_no_other_repository(repo, session_with, followed, tmp_path):
    second = Repo(tmp_path / "docs")
    docs = Repository.objects.create(name="docs", url=str(second.folder), project=Project.objects.for_key("docs"))
    following.fetch(docs, NOON - DAY)
    shutil.rmtree(following.mirror_of(docs).folder / "objects")
    session = session_with(repo.commit("Code"))
    run(DAY)
    assert states(session) == [(Authorship.OWN, CommitState.LANDED)]


def test_a_round_fetches_a_repository_once(repo, session_with, followed, monkeypatch):
    """A round looks up all sessions that are due, a batch at a time."""
    monkeypatch.setattr(following, "BATCH", 2)
    for number in range(5):
        session_with(repo.commit(f"Part {number}"))
    fetches = []
    fetch = Mirror.fetch
    monkeypatch.setattr(Mirror, "fetch", lambda *args, **options: fetches.append(args) or fetch(*args, **options))
    assert run(DAY) == 5
    assert len(fetches) == 1
    assert set(SessionCommit.objects.values_list("state", flat=True)) == {CommitState.LANDED}


def test_a_repository_without_news_is_asked_for_its_refs_alone(repo, followed, monkeypatch):
    """Also if the mirror has more refs, of branches that were deleted since."""
    repo.branch("feature")
    repo.commit("Part")
    following.fetch(followed, NOON)
    repo.git("checkout", "-q", "main")
    repo.git("branch", "-D", "feature")
    commands, run_git = [], git.run
    monkeypatch.setattr(
        git,
        "run",
        lambda *args, access=git.OFFLINE, **options: (
            commands.append(args[1]) if access.protocol else None,
            run_git(*args, access=access, **options),
        )[1],
    )
    following.fetch(followed, NOON)
    assert commands == ["ls-remote"]
    repo.commit("News")
    following.fetch(followed, NOON)
    assert commands == ["ls-remote", "ls-remote", "fetch"]


def test_a_line_separator_in_the_name_of_a_branch(repo, followed):
    repo.git("branch", "one\u2028two")
    following.fetch(followed, NOON)
    assert followed.tips == [repo.head]


def test_a_mirror_that_git_cannot_read_is_made_anew(repo, session_with, followed):
    session = session_with(repo.commit("Part"))
    shutil.rmtree(following.mirror_of(followed).folder / "objects")
    run(DAY)
    followed.refresh_from_db()
    assert (followed.error, states(session)) == ("", [(Authorship.OWN, CommitState.LANDED)])


def test_the_lock_of_a_git_that_was_killed_does_not_stop_the_next_fetch(repo, followed):
    folder = following.mirror_of(followed).folder
    locks = [folder / "packed-refs.lock", folder / "refs/heads/main.lock"]
    partial = folder / "objects/pack/tmp_pack_a1B2c3"
    repo.commit("later")
    for path in (*locks, partial):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert not following.fetch(followed, NOON)  # a git that still runs may own them
    for path in (*locks, partial):
        os.utime(path, (0, 0))
    assert following.fetch(followed, NOON)
    assert not any(path.exists() for path in (*locks, partial))


def test_a_mirror_that_lacks_a_file_of_a_commit_is_made_anew_by_the_next_round(repo, session_with, followed):
    """Its refs can be read, so that only the comparison of patches fails. Nothing is stored of what was not found."""
    repo.branch("feature")
    session = session_with(repo.commit("Part"))
    following.fetch(followed, NOON + dt.timedelta(hours=2))
    folder = following.mirror_of(followed).folder
    blob = repo.git("rev-parse", "HEAD:part.txt")
    for pack in (folder / "objects/pack").glob("*.pack"):
        pack.rename(folder / pack.name)
        with (folder / pack.name).open("rb") as file:
            subprocess.run(["git", f"--git-dir={folder}", "unpack-objects", "-q"], stdin=file, check=True)
    shutil.rmtree(folder / "objects/pack")
    (folder / "objects" / blob[:2] / blob[2:]).unlink()
    run(DAY)
    assert session.landing.checked_at is None
    assert not folder.exists()
    run(DAY + following.LEASE)
    assert states(session) == [(Authorship.OWN, CommitState.OPEN)]


def test_a_repository_does_not_use_the_mirror_of_another_that_had_its_key(repo, followed, tmp_path):
    """As after a backup is restored that is older than the other repository."""
    key, theirs = followed.pk, repo.commit("theirs")
    following.fetch(followed, NOON)
    followed.delete()
    docs = Repo(tmp_path / "docs")
    later = Repository.objects.create(pk=key, name="docs", url=str(docs.folder))
    following.fetch(later, NOON)
    assert following.mirror_of(later).resolve_commits([theirs]) == {}


def test_a_mirror_of_a_removed_repository_is_deleted_on_each_host(repo, followed, settings, tmp_path):
    for host in ("alpha", "beta"):
        settings.STATE_DIR = tmp_path / host
        following.fetch(followed, NOON)
    removed = following.mirror_of(followed)
    kept = Repository.objects.create(name="kept", url=f"{repo.folder}/")
    following.fetch(kept, NOON)
    assert following.delete_stale_mirrors() == 0
    followed.delete()
    assert following.delete_stale_mirrors() == 1
    assert [removed.folder.exists(), following.mirror_of(kept).folder.exists()] == [False, True]
    assert (tmp_path / "alpha/mirrors").exists()
    settings.STATE_DIR = tmp_path / "alpha"
    assert following.delete_stale_mirrors() == 1


def test_without_repositories_nothing_is_enrolled(repo, session_with, followed):
    session_with(repo.commit("Part"))
    Repository.objects.update(is_paused=True)
    assert run(DAY) == 0


def test_times_of_checks():
    ends = dt.datetime.fromtimestamp(EPOCH, dt.UTC)
    days = [(following.next_check(ends, ends + wait - dt.timedelta(seconds=1)) - ends) for wait in following.CHECKS]
    assert days == list(following.CHECKS)
    assert following.next_check(ends, ends + 30 * DAY) is None
