"""What becomes of a commit, decided from a mirror of a real repository."""

import datetime as dt

import pytest

from grading.models.outcomes import CommitState
from grading.outcomes import landing
from grading.outcomes.addresses import parse
from grading.outcomes.landing import DefaultBranch, decide
from grading.outcomes.mirror import Mirror
from tests.outcomes.https import git_server
from tests.outcomes.repos import EPOCH, Repo

LANDED, REVERTED, OPEN = CommitState.LANDED, CommitState.REVERTED, CommitState.OPEN
SINCE = dt.datetime.fromtimestamp(EPOCH - 86_400, dt.UTC)


@pytest.fixture
def repo(tmp_path):
    return Repo(tmp_path / "engine")


@pytest.fixture
def address(request, repo, tmp_path, monkeypatch):
    """Where the repository is read from: its folder, or a server where the test says `over_https`."""
    if getattr(request, "param", "folder") == "folder":
        yield str(repo.folder)
        return
    with git_server(tmp_path, tmp_path) as server:
        monkeypatch.setenv("GIT_SSL_CAINFO", str(tmp_path / "certificate.pem"))
        yield f"https://localhost:{server.server_port}/engine/.git"


over_https = pytest.mark.parametrize("address", ["folder", "https"], indirect=True)


@pytest.fixture
def fate(address, tmp_path):
    """What became of a commit, after a fetch."""
    mirror = Mirror(tmp_path / "mirror.git")

    def look_up(*commits, pulls=(), since=SINCE):
        mirror.fetch(parse(address), "main")
        resolved = mirror.resolve_commits(commits)
        branch = DefaultBranch.load(mirror, "main", since)
        outcomes = decide(mirror, branch, resolved.values(), dict.fromkeys(resolved.values(), pulls))
        states = [outcomes[resolved[name]].state if name in resolved else CommitState.UNKNOWN for name in commits]
        return states[0] if len(states) == 1 else states

    return look_up


def work(repo, count=1, branch="feature"):
    """A branch with so many commits; the hashes."""
    repo.branch(branch)
    return [repo.commit(f"Part {branch}-{number}") for number in range(count)]


def test_work_on_a_branch_is_open(repo, fate):
    assert fate(*work(repo, 1)) == OPEN


@over_https
def test_merge(repo, fate):
    commits = work(repo, 2)
    repo.merge("feature", "Merge pull request #142 from ada/feature")
    assert fate(*commits) == [LANDED, LANDED]


@over_https
def test_squash(repo, fate):
    commits = work(repo, 3)
    repo.git("checkout", "-q", "main")
    repo.commit("Meanwhile elsewhere")
    repo.squash("feature", "Add the parts (#142)")
    assert fate(*commits) == [LANDED] * 3


def test_squash_of_a_branch_that_others_continued(repo, fate):
    (mine,) = work(repo, 1)
    repo.commit("Theirs too")
    repo.squash("feature", "Add both (#142)")
    assert fate(mine) == LANDED


def test_squash_of_a_branch_into_which_main_was_merged(repo, fate):
    (mine,) = work(repo, 1)
    repo.git("checkout", "-q", "main")
    repo.commit("Meanwhile elsewhere")
    repo.git("checkout", "-q", "feature")
    repo.git("merge", "-q", "--no-ff", "-m", "Merge main", "main")
    repo.squash("feature", "Add the part (#142)")
    assert fate(mine) == LANDED


def test_rebase(repo, fate):
    commits = work(repo, 2)
    repo.git("checkout", "-q", "main")
    repo.commit("Meanwhile elsewhere")
    repo.pick(*commits)
    assert fate(*commits) == [LANDED, LANDED]


def test_cherry_pick_of_one_commit(repo, fate):
    commits = work(repo, 2)
    repo.pick(commits[1])
    assert fate(*commits) == [OPEN, LANDED]


def test_one_of_several_commits_reverted(repo, fate):
    commits = work(repo, 3)
    repo.merge("feature", "Merge the parts")
    repo.revert(commits[1])
    assert fate(*commits) == [LANDED, REVERTED, LANDED]


def test_revert_by_hash_of_a_squash(repo, fate):
    commits = work(repo, 2)
    repo.revert(repo.squash("feature", "Add the parts (#142)"))
    assert fate(*commits) == [REVERTED, REVERTED]


def test_revert_of_a_merge(repo, fate):
    commits = work(repo, 2)
    repo.revert(repo.merge("feature", "Merge the parts"), mainline=True)
    assert fate(*commits) == [REVERTED, REVERTED]


def test_revert_of_a_merge_that_names_nothing(repo, fate):
    commits = work(repo, 2)
    repo.revert(repo.merge("feature", "Merge the parts"), "Take it out again", mainline=True)
    assert fate(*commits) == [REVERTED, REVERTED]


@pytest.mark.parametrize("reference", ["#142", "ada/engine#142"])
def test_revert_by_number_of_the_pull_request(repo, fate, reference):
    commits = work(repo, 2)
    squash = repo.squash("feature", "Add the parts (#142)")
    # Something is left of it, so the difference is not the inverse.
    repo.revert(squash, f'Revert "Add the parts"\n\nReverts {reference}')
    (repo.folder / "left.txt").write_text("left\n")
    repo.git("add", "-A")
    repo.git("commit", "-q", "--amend", "--no-edit")
    assert fate(*commits) == [REVERTED, REVERTED]


def test_revert_of_a_pull_request_whose_number_only_the_session_knows(repo, fate):
    (mine,) = work(repo, 1)
    repo.squash("feature", "Add the part")
    repo.commit("Undo\n\nReverts #142", "part.txt", "nothing\n")
    assert fate(mine) == LANDED
    assert fate(mine, pulls=["142"]) == REVERTED


def test_revert_by_the_inverse_difference(repo, fate):
    (mine,) = work(repo, 1)
    repo.revert(repo.squash("feature", "Add the part"), "It was too slow")
    assert fate(mine) == REVERTED


@over_https
@pytest.mark.parametrize("message", ["", "Try it again"])
def test_revert_of_a_revert_restores(repo, fate, message):
    commits = work(repo, 2)
    revert = repo.revert(repo.squash("feature", "Add the parts (#142)"))
    assert fate(*commits) == [REVERTED, REVERTED]
    repo.revert(revert, message)
    assert fate(*commits) == [LANDED, LANDED]
    repo.revert(repo.head)
    assert fate(*commits) == [REVERTED, REVERTED]


def test_a_mention_is_no_revert(repo, fate):
    (mine,) = work(repo, 1)
    squash = repo.squash("feature", "Add the part (#142)")
    repo.commit(f"Explain\n\nUnlike before, we do not say: This reverts commit {squash}. See #142, which Reverts #141")
    assert fate(mine) == LANDED


def test_force_push_before_anybody_looked_is_unknown(repo, fate):
    (mine,) = work(repo, 1)
    repo.git("checkout", "-q", "main")
    repo.git("branch", "-D", "feature")
    repo.git("reflog", "expire", "--expire=now", "--all")
    assert fate(mine) == CommitState.UNKNOWN


@over_https
def test_force_push_later_leaves_it_open(repo, fate):
    (mine,) = work(repo, 1)
    assert fate(mine) == OPEN
    repo.git("commit", "-q", "--amend", "-m", "Better")
    assert fate(mine) == OPEN


def test_squash_of_a_branch_that_is_deleted_since(repo, fate):
    commits = work(repo, 2)
    assert fate(*commits) == [OPEN, OPEN]
    repo.squash("feature", "Add the parts")
    repo.git("branch", "-D", "feature")
    assert fate(*commits) == [LANDED, LANDED]


def test_recycled_branch_name(repo, fate):
    """A new branch with the name of an abandoned one lands; the old work does not."""
    (old,) = work(repo, 1)
    assert fate(old) == OPEN
    repo.git("checkout", "-q", "main")
    repo.git("checkout", "-q", "-B", "feature")
    new = repo.commit("Something different")
    repo.squash("feature", "Do something different")
    assert fate(old, new) == [OPEN, LANDED]


def test_fork(repo, fate):
    """The branch is in another repository; the forge keeps it as a pull request's ref."""
    (mine,) = work(repo, 1)
    repo.git("update-ref", "refs/pull/142/head", "feature")
    repo.git("checkout", "-q", "main")
    repo.git("branch", "-D", "feature")
    assert fate(mine) == OPEN
    repo.squash("refs/pull/142/head", "Add it (#142)")
    assert fate(mine) == LANDED


def test_more_commits_than_fit_into_a_command_line(repo, tmp_path):
    """A command may have 2 MB of arguments on Linux."""
    (mine,) = work(repo, 1)
    mirror = Mirror(tmp_path / "mirror.git")
    mirror.fetch(parse(str(repo.folder)), "main")
    assert decide(mirror, DefaultBranch.load(mirror, "main", SINCE), [mine] * 60_000, {})[mine].state == OPEN


def test_short_hashes_and_unknown_ones(repo, fate):
    (mine,) = work(repo, 1)
    repo.merge("feature", "Merge it")
    assert fate(mine[:7], "f" * 40, "not a hash") == [LANDED, CommitState.UNKNOWN, CommitState.UNKNOWN]


def test_a_message_that_lists_another_commit_does_not_land_it(repo, fate):
    """A message on the default branch that imitates the output of git."""
    repo.branch("feature")
    own = repo.commit("Open work")
    repo.git("checkout", "--quiet", "main")
    repo.commit(f"Innocent work\n\n\x1e{own}\x1f\x1f123\x1fOpen work\x1e\n", "innocent.txt")
    assert fate(own) is OPEN


def test_a_commit_with_an_old_date_hides_no_other(repo, fate):
    """A clock that was wrong, or a rebase that kept the dates. `git log --since` stops at such a commit."""
    commits = work(repo, 1)
    repo.merge("feature", "Merge pull request #142 from ada/feature")
    repo.minute -= 3 * 24 * 60
    repo.commit("Dated long ago")
    assert fate(*commits) == LANDED


def test_squash_of_a_branch_from_before_all_that_is_read(repo, fate):
    """Nobody had committed to the default branch for days when the session began."""
    repo.minute += 5 * 24 * 60
    commits = work(repo, 2)
    repo.squash("feature", "Add the parts (#142)")
    assert fate(*commits, since=SINCE + dt.timedelta(days=4)) == [LANDED, LANDED]


def test_a_branch_in_place_of_a_folder_of_branches(repo, fate):
    """git stores no `feature/next` beside `feature`, which was deleted since. Work on either is still found."""
    commits = work(repo, 2)
    assert fate(*commits) == [OPEN, OPEN]
    repo.squash("feature", "Add the parts")
    repo.git("branch", "-D", "feature")
    (later,) = work(repo, 1, branch="feature/next")
    assert fate(*commits, later) == [LANDED, LANDED, OPEN]
    repo.git("checkout", "-q", "main")
    repo.git("branch", "-D", "feature/next")
    repo.branch("feature")
    assert fate(later, repo.commit("Something else")) == [OPEN, OPEN]


def test_a_branch_that_lives_on_beside_the_default_branch_costs_little(repo, fate, monkeypatch):
    """A squash of five commits is recognised, and only the first five commits are compared as such."""
    monkeypatch.setattr(landing, "MAX_BRANCH", 5)
    commits = work(repo, 12, branch="develop")
    compared, compare = [], Mirror.patch_ids_between
    monkeypatch.setattr(Mirror, "patch_ids_between", lambda self, pairs: compared.append(pairs) or compare(self, pairs))
    assert fate(*commits) == [OPEN] * 12
    assert [set(pairs) for pairs in compared] == [set(commits[:5])]
    five = work(repo, 5)
    repo.squash("feature", "Add the parts")
    assert fate(*five) == [LANDED] * 5
