"""Decides from a mirror which commits landed on the default branch, and which of those were reverted later.

A commit landed if it is on the branch. It also landed if the branch has a commit with the same patch (rebase,
cherry-pick), or with the patch of a whole other branch that contains the commit (squash). It is reverted if a later
commit names it, its merge or its pull request as reverted, or has the inverse patch. A revert of that revert restores
it.
"""

import datetime as dt
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from grading.models.outcomes import CommitState
from grading.outcomes import git
from grading.outcomes.mirror import Mirror

MAX_COMMITS = 50_000
MAX_HEADS = 20
# A branch with more commits is not recognised in a squash: the differences of all commits of a branch that lives on
# beside the default branch would be compared.
MAX_BRANCH = 300
REVERTED_HASH = re.compile(r"^This reverts commit ([0-9a-f]{7,64})", re.MULTILINE)
REVERTED_PULL = re.compile(r"^Reverts (?:[\w.-]{1,100}/[\w.-]{1,100})?#([1-9]\d{0,9})\b", re.MULTILINE)
PULL_IN_SUBJECT = re.compile(r"\(#([1-9]\d{0,9})\)\s*\Z|\AMerge pull request #([1-9]\d{0,9}) ")


@dataclass(frozen=True, slots=True, kw_only=True)
class BranchCommit:
    """A commit of the default branch. `parents` are hashes."""

    sha: str
    parents: tuple[str, ...]
    message: str

    @property
    def pull(self) -> str:
        """The number of the pull request that its subject names, "" if it names none."""
        match = PULL_IN_SUBJECT.search(self.message.partition("\n")[0])
        return (match[1] or match[2]) if match else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitOutcome:
    """What became of a commit. `landed_as` is the commit of the default branch that brought its change, and
    `reverted_by` the one that undid it; "" if there is none.
    """

    state: CommitState
    landed_as: str = ""
    reverted_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """The commits (perhaps by short hashes) and pull requests that a commit's message says it reverts."""

    hashes: tuple[str, ...]
    pulls: tuple[str, ...]

    @classmethod
    def parse(cls, message: str) -> "Mention":
        return cls(hashes=tuple(REVERTED_HASH.findall(message)), pulls=tuple(REVERTED_PULL.findall(message)))

    def names(self, commits: Collection[str], pulls: Collection[str]) -> bool:
        """Whether one of these commits or pull requests is mentioned."""
        return any(commit.startswith(self.hashes) for commit in commits) or any(pull in pulls for pull in self.pulls)


class DefaultBranch:
    """The commits of a default branch since a time, parents before children, with indexes for look-ups in them."""

    def __init__(self, name: str, commits: Mapping[str, BranchCommit], patch_of: Mapping[str, str]) -> None:
        """`commits` are by hash. `patch_of` has the patch id by hash, without merges."""
        self.name = name
        self.commits = commits
        self.position = {sha: index for index, sha in enumerate(commits)}
        self.tip = next(reversed(list(commits)), "")
        self.merges = _find_merges(commits, self.tip)
        self.patch_of = patch_of
        self.by_patch: dict[str, list[str]] = {}
        for sha in sorted(patch_of, key=self.position.__getitem__):
            self.by_patch.setdefault(patch_of[sha], []).append(sha)
        mentions = ((sha, Mention.parse(commit.message)) for sha, commit in commits.items())
        self.mentions = {sha: mention for sha, mention in mentions if mention.hashes or mention.pulls}

    @classmethod
    def load(cls, mirror: Mirror, name: str, since: dt.datetime) -> "DefaultBranch":
        """Read the branch from a mirror. Raises GitFailed."""
        # With `--since`, git would stop at a commit with an older date, and miss those below it.
        is_recent = f"--since-as-filter={int(since.timestamp())}"
        revisions = (is_recent, f"--max-count={MAX_COMMITS}", f"refs/heads/{name}", "--")
        form = "--format=%H%x1f%P%x1f%B"
        output = git.run(mirror.folder, "log", "-z", "--topo-order", form, *revisions)
        newest_first = []
        # A record ends with NUL, which no message contains. So a message cannot pretend to be another commit.
        for record in output.decode("utf-8", "replace").split("\0")[:-1]:
            sha, parents, message = record.split("\x1f", 2)
            newest_first.append(BranchCommit(sha=sha, parents=tuple(parents.split()), message=message))
        commits = {commit.sha: commit for commit in reversed(newest_first)}
        patch_ids = mirror.patch_ids(*revisions)
        return cls(name, commits, {sha: patch_id for sha, patch_id in patch_ids.items() if sha in commits})

    def earliest_with(self, patch_id: str) -> str:
        """The first commit of the branch with a patch id, or ""."""
        return next(iter(self.by_patch.get(patch_id, ())), "")

    def brought_by(self, sha: str) -> set[str]:
        """A commit of the branch, and the merge that brought it, if one did."""
        return {sha, self.merges.get(sha, sha)}

    def pulls_of(self, commits: Iterable[str]) -> set[str]:
        """The numbers of pull requests that the subjects of these commits name."""
        return {self.commits[sha].pull for sha in commits if sha in self.commits} - {""}


def _find_merges(commits: Mapping[str, BranchCommit], tip: str) -> dict[str, str]:
    """The merge by which a commit came to the branch, by the commit's hash. Commits on the first-parent line, which
    starts at `tip`, have none.
    """
    first_parent_line = []
    while tip in commits:
        first_parent_line.append(commits[tip])
        tip = commits[tip].parents[0] if commits[tip].parents else ""
    merges: dict[str, str] = {}
    on_line = {commit.sha for commit in first_parent_line}
    # The oldest first: a later merge contains the same commits, but did not bring them.
    for merge in reversed(first_parent_line):
        to_visit = list(merge.parents[1:])
        while to_visit:
            sha = to_visit.pop()
            if sha in commits and sha not in on_line and sha not in merges:
                merges[sha] = merge.sha
                to_visit.extend(commits[sha].parents)
    return merges


def decide(
    mirror: Mirror, branch: DefaultBranch, commits: Iterable[str], pulls: Mapping[str, Collection[str]]
) -> dict[str, CommitOutcome]:
    """What became of commits, by hash. `commits` are full hashes that the mirror has. `pulls` has the numbers of the
    pull requests that belong to a commit, by hash, if known. Raises GitFailed.
    """
    commits = list(commits)
    # By commit: the commit of the branch that brought its change, "" if there is none.
    landed = {sha: sha for sha in commits if sha in branch.commits}
    elsewhere = [sha for sha in commits if sha not in branch.commits]
    patch_ids = _own_patch_ids(mirror, elsewhere)
    landed |= {sha: branch.earliest_with(patch_ids.get(sha, "")) for sha in elsewhere}
    landed |= _find_squashes(mirror, branch, [sha for sha, landed_as in landed.items() if not landed_as])
    # By commit: the commit of the branch that brought its change, and the merge of that commit.
    brought_by = {sha: branch.brought_by(landed_as) for sha, landed_as in landed.items() if landed_as}
    inverse_ids = mirror.inverse_patch_ids(sorted(set().union(*brought_by.values())))
    outcomes: dict[str, CommitOutcome] = {}
    for sha, landed_as in landed.items():
        if not landed_as:
            outcomes[sha] = CommitOutcome(state=CommitState.OPEN)
            continue
        undoing = {inverse_ids[bringer] for bringer in brought_by[sha] if bringer in inverse_ids}
        its_pulls = set(pulls.get(sha, ())) | branch.pulls_of(brought_by[sha])
        reverted_by = _find_revert(branch, landed_as, brought_by[sha] | {sha}, its_pulls, undoing)
        state = CommitState.REVERTED if reverted_by else CommitState.LANDED
        outcomes[sha] = CommitOutcome(state=state, landed_as=landed_as, reverted_by=reverted_by)
    return outcomes


def _own_patch_ids(mirror: Mirror, commits: list[str]) -> dict[str, str]:
    """The patch ids of these commits, by hash."""
    if not commits:
        return {}
    return mirror.patch_ids("--no-walk=unsorted", "--stdin", stdin="\n".join(commits).encode())


def _find_squashes(mirror: Mirror, branch: DefaultBranch, commits: Sequence[str]) -> dict[str, str]:
    """For each of these commits: the squash that brought it to the default branch, or "".

    A squash is a commit of the default branch with the patch of a whole branch that contains the commit.
    """
    if not commits:
        return {}
    parents = mirror.parents_beside(branch.name, commits)
    tips = mirror.tips()
    children = _invert(parents)
    heads = {sha: _heads_with(sha, children, tips) for sha in commits}
    bases = {head: _base(head, parents, branch) for heads_of_commit in heads.values() for head in heads_of_commit}
    patch_ids = mirror.patch_ids_between({head: base for head, base in bases.items() if base})
    squashes: dict[str, str] = {}
    for sha in commits:
        candidates = [branch.earliest_with(patch_ids.get(head, "")) for head in heads[sha]]
        squashes[sha] = next(filter(None, candidates), "")
    return squashes


def _invert(parents: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The children of each commit, given each commit's parents."""
    children: dict[str, list[str]] = {}
    for sha, its_parents in parents.items():
        for parent in its_parents:
            children.setdefault(parent, []).append(sha)
    return children


def _heads_with(sha: str, children: Mapping[str, Sequence[str]], tips: Collection[str]) -> list[str]:
    """The commit itself, and at most MAX_HEADS tips that contain it, of those at most MAX_BRANCH commits later."""
    heads = [sha]
    to_visit = [sha]
    visited = {sha}
    while to_visit and len(heads) <= MAX_HEADS and len(visited) <= MAX_BRANCH:
        for child in children.get(to_visit.pop(), ()):
            if child not in visited:
                visited.add(child)
                to_visit.append(child)
                if child in tips:
                    heads.append(child)
    return heads


def _base(head: str, parents: Mapping[str, Sequence[str]], branch: DefaultBranch) -> str:
    """The latest commit of the default branch that `head` contains; "" for a branch with a history of its own, or with
    more than MAX_BRANCH commits.

    `parents` has all commits outside the default branch. What was not loaded is older than what was.
    """
    to_visit = [head]
    visited = {head}
    bases = []
    while to_visit:
        for parent in parents.get(to_visit.pop(), ()):
            if parent not in parents:
                bases.append(parent)
            elif parent not in visited:
                visited.add(parent)
                to_visit.append(parent)
        if len(visited) > MAX_BRANCH:
            return ""
    return max(bases, key=lambda base: branch.position.get(base, -1), default="")


def _find_revert(
    branch: DefaultBranch, landed_as: str, names: set[str], pulls: set[str], undoing: Collection[str]
) -> str:
    """The commit that reverted what `landed_as` brought, if no later commit restored it; else "".

    A revert names one of the commits `names` or of the pull requests `pulls`, or its patch id is in `undoing`. A later
    commit restores the work if it reverts that revert, or has the patch of `landed_as` again.
    """
    restoring = branch.patch_of.get(landed_as, "")  # "" for a merge
    candidates = {*branch.mentions, *branch.by_patch.get(restoring, ())}
    for patch_id in undoing:
        candidates.update(branch.by_patch.get(patch_id, ()))
    start = branch.position[landed_as]
    revert = ""
    nothing = Mention(hashes=(), pulls=())
    for sha in sorted(candidates, key=branch.position.__getitem__):
        if branch.position[sha] <= start:
            continue
        mention = branch.mentions.get(sha, nothing)
        patch_id = branch.patch_of.get(sha, "")
        if not revert and (mention.names(names, pulls) or patch_id in undoing):
            revert = sha
        elif revert:
            brought_revert = branch.brought_by(revert)
            reverts_the_revert = mention.names(brought_revert, branch.pulls_of(brought_revert))
            if reverts_the_revert or (restoring and patch_id == restoring):
                revert = ""
                names = names | branch.brought_by(sha)
                pulls = pulls | branch.pulls_of([sha])
    return revert
