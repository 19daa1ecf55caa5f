"""A bare mirror of a repository, in which outcomes are looked up without running anything in the repository itself."""

import datetime as dt
import re
import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from grading.outcomes import git, local_repositories
from grading.outcomes.addresses import Address, resolve
from grading.outcomes.local_repositories import LocalRepository, RepositoryRefused

MAX_REFS = 20_000
MAX_BYTES = 10 * 1024**3
# A short or full hash, as people and programs write it.
HASH = r"[0-9a-f]{7,64}"
FULL_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# Without prefixes a patch and the inverse of its inverse are the same text.
PATCH = ("--no-ext-diff", "--no-textconv", "--full-index", "--no-prefix")
BRANCH_NAME = re.compile(r"[A-Za-z0-9_][\w./+-]{0,199}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInfo:
    """A commit as git stores it. `committer`: an e-mail address."""

    sha: str
    committed_at: dt.datetime
    committer: str
    subject: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """What a fetch brought. `tips`: the hashes of all refs. `has_branches` is False if only the default branch was
    fetched, because the repository has more than MAX_REFS refs.
    """

    tips: frozenset[str]
    has_branches: bool


class Mirror:
    """The mirror in one folder. The first fetch makes it, and it may be deleted at any time. If git cannot read it, the
    next fetch makes it anew.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fetch(self, address: Address, default_branch: str, *, token: str = "") -> Fetched:
        """Bring the mirror up to date. Raises GitFailed, BadAddress and RepositoryRefused.

        If a local folder was replaced while it was read, the mirror is deleted, because it may have objects of another
        repository.
        """
        self._create()
        if address.protocol != "file":
            access = git.Access(protocol=address.protocol, token=token, resolve=resolve(address))
            return self._fetch(address.url, default_branch, access)
        folder = Path(address.url)
        before = local_repositories.check(folder)
        access = git.Access(protocol="file", safe_directory=str(before.git_dir))
        fetched = self._fetch(str(before.git_dir), default_branch, access)
        if not _is_unchanged(folder, before):
            self.delete()
            raise RepositoryRefused(f"{folder} was replaced while it was read; nothing of it is used")
        return fetched

    def _fetch(self, url: str, default_branch: str, access: git.Access) -> Fetched:
        """Fetch branches and pull requests, or only the default branch if there are more than MAX_REFS refs.

        Nothing is fetched if the mirror has all of these refs already.
        """
        main = f"refs/heads/{default_branch}"
        lines = git.run(self.folder, "ls-remote", "--refs", "--", url, access=access).splitlines()
        has_branches = len(lines) <= MAX_REFS
        listed = lines if has_branches else [line for line in lines if line.endswith(f"\t{main}".encode())]
        fields = (line.decode("utf-8", "replace").partition("\t") for line in listed)
        refs = {name: sha for sha, _tab, name in fields}
        if main not in refs:
            raise git.GitFailed(f"the repository has no branch {default_branch}; name its default branch")
        specs = [f"+{main}:{main}"]
        wanted = {main: refs[main]}
        if has_branches:
            pulls = {name for name in refs if name.startswith("refs/pull/") and name.endswith("/head")}
            specs = ["+refs/heads/*:refs/heads/*"]
            if pulls:
                specs.append("+refs/pull/*/head:refs/pull/*/head")
            wanted = {name: sha for name, sha in refs.items() if name.startswith("refs/heads/") or name in pulls}
        current = self._refs()
        if not wanted.items() <= current.items():
            self._set_aside_conflicts(current, wanted)
            options = ("--no-tags", "--quiet", "--no-write-fetch-head")
            git.run(self.folder, "fetch", *options, "--", url, *specs, access=access)
            self._require_room()
        return Fetched(tips=frozenset(self.tips()), has_branches=has_branches)

    def _set_aside_conflicts(self, current: Mapping[str, str], wanted: Mapping[str, str]) -> None:
        """Rename refs of deleted branches that conflict with `wanted` refs: git stores no `a/b` beside `a`.

        They are not deleted, because their commits may still have to be found. Both mappings are hashes by name.
        """
        folders_of_wanted = {folder for name in wanted for folder in _folders_of(name)}
        conflicting = [
            name
            for name in current
            if name not in wanted and (name in folders_of_wanted or not wanted.keys().isdisjoint(_folders_of(name)))
        ]
        lines = [f"update refs/deleted/{sha} {sha}\n" for sha in {current[name] for name in conflicting}]
        lines += [f"delete {name}\n" for name in conflicting]
        if lines:
            git.run(self.folder, "update-ref", "--stdin", stdin="".join(lines).encode())

    def _refs(self) -> dict[str, str]:
        """The hash of each ref of the mirror by its name."""
        output = git.run(self.folder, "for-each-ref", "--format=%(objectname) %(refname)").decode("utf-8", "replace")
        # `splitlines` would also split at a line separator in the name of a branch.
        fields = (line.partition(" ") for line in output.split("\n")[:-1])
        return {name: sha for sha, _space, name in fields}

    def _create(self) -> None:
        """Make the mirror, unless there is one whose refs git can read."""
        if (self.folder / "HEAD").exists():
            with suppress(git.GitFailed):
                git.run(self.folder, "rev-list", "--all", "--no-walk", "--quiet")
                self._delete_leftovers()
                return
        self.delete()
        self.folder.mkdir(mode=0o700, parents=True)
        git.run(self.folder, "init", "--quiet", "--bare", "--template=")

    def _delete_leftovers(self) -> None:
        """Delete the lock files and partial packs of a git that was killed. The files of a running git are younger."""
        oldest_of_running = time.time() - 2 * git.SECONDS
        for pattern in ("**/*.lock", "objects/**/tmp_*"):
            for path in self.folder.glob(pattern):
                with suppress(OSError):
                    if path.lstat().st_mtime < oldest_of_running:
                        path.unlink()

    def is_damaged(self) -> bool:
        """Whether git finds something missing or broken in the mirror. Takes as long as reading all of it."""
        try:
            git.run(self.folder, "fsck", "--connectivity-only", "--no-dangling", "--no-progress")
        except git.LimitReached:
            return False
        except git.GitFailed:
            return True
        return False

    def _require_room(self) -> None:
        """Delete a mirror that is larger than MAX_BYTES. Raises GitFailed then."""
        size = sum(path.stat().st_size for path in (self.folder / "objects").rglob("*") if path.is_file())
        if size > MAX_BYTES:
            self.delete()
            raise git.GitFailed(f"the repository has more than {MAX_BYTES // 1024**3} GB; it is not followed")

    def delete(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_commits(self, known_tips: Collection[str], first_fetched_at: dt.datetime) -> list[str]:
        """The hashes of all commits that none of `known_tips`, the refs of an earlier fetch, contains.

        A mirror that was made anew lacks tips that were overwritten since, so nobody can tell what they contained. Then
        commits that are older than the first fetch count as contained.
        """
        resolved = self.resolve_commits(known_tips)
        is_complete = len(resolved) == len(known_tips)
        limits = () if is_complete else (f"--since-as-filter={int(first_fetched_at.timestamp())}",)
        stdin = "".join(f"^{commit}\n" for commit in resolved.values()).encode()
        return git.run(self.folder, "rev-list", "--all", *limits, "--stdin", stdin=stdin).decode("ascii").split()

    def resolve_commits(self, names: Iterable[str]) -> dict[str, str]:
        """The full hash of each name (a short or full hash) that means exactly one commit of the mirror. Other names
        are left out.
        """
        requested = [name for name in names if re.fullmatch(HASH, name)]
        if not requested:
            return {}
        lines = "".join(f"{name}^{{commit}}\n" for name in requested).encode()
        answers = git.run(self.folder, "cat-file", "--batch-check=%(objectname)", stdin=lines).decode().splitlines()
        return {name: answer for name, answer in zip(requested, answers, strict=True) if FULL_HASH.fullmatch(answer)}

    def describe(self, names: Iterable[str]) -> dict[str, CommitInfo]:
        """The commits that these names (short or full hashes) mean, by name. Names that the mirror does not have are
        left out; before the first fetch, that is all of them.
        """
        if not (self.folder / "HEAD").exists():
            return {}
        resolved = self.resolve_commits(names)
        if not resolved:
            return {}
        form = "--format=%H%x1f%ct%x1f%ce%x1f%s"
        stdin = "\n".join(resolved.values()).encode()
        output = git.run(self.folder, "log", "--no-walk=unsorted", "--stdin", form, stdin=stdin)
        infos = {}
        # `splitlines` would also split at a form feed in a subject.
        for line in output.decode("utf-8", "replace").split("\n")[:-1]:
            sha, at, committer, subject = line.split("\x1f", 3)
            with suppress(ValueError, OverflowError):  # a malformed commit has no time, or an impossible one
                committed_at = dt.datetime.fromtimestamp(int(at), dt.UTC)
                infos[sha] = CommitInfo(sha=sha, committed_at=committed_at, committer=committer, subject=subject)
        return {name: infos[sha] for name, sha in resolved.items() if sha in infos}

    def tips(self) -> set[str]:
        """The hashes of all refs."""
        return set(self._refs().values())

    def parents_beside(self, branch: str, commits: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The parents of each commit outside the branch that can be reached from a ref or from `commits`, by hash."""
        stdin = "".join(f"{name}\n" for name in (*commits, f"^refs/heads/{branch}")).encode()
        output = git.run(self.folder, "rev-list", "--all", "--parents", "--stdin", stdin=stdin).decode("ascii")
        lines = (line.split() for line in output.splitlines())
        return {sha: tuple(parents) for sha, *parents in lines}

    def patch_ids_between(self, pairs: Mapping[str, str]) -> dict[str, str]:
        """The stable patch ids of the differences between heads and their bases, by head. Without heads that equal
        their base.
        """
        commits = [*pairs, *pairs.values()]
        names = "".join(f"{commit}^{{tree}}\n" for commit in commits).encode()
        trees = git.run(self.folder, "cat-file", "--batch-check=%(objectname)", stdin=names).decode("ascii").split()
        tree_of = dict(zip(commits, trees, strict=True))
        # diff-tree prints the first tree of a pair as the commit of its patch, so the head's tree comes first. With -R
        # the patch leads from the base to the head nevertheless.
        lines = "".join(f"{tree_of[head]} {tree_of[base]}\n" for head, base in pairs.items()).encode()
        by_tree = dict(git.pipe_to_patch_id(self.folder, "diff-tree", "--stdin", "-p", "-r", "-R", *PATCH, stdin=lines))
        return {head: by_tree[tree_of[head]] for head in pairs if tree_of[head] in by_tree}

    def patch_ids(self, *revisions: str, stdin: bytes = b"") -> dict[str, str]:
        """The stable patch ids of the commits in a range, by hash. Without merges and commits that change nothing."""
        return dict(git.pipe_to_patch_id(self.folder, *_log("--no-merges"), *revisions, stdin=stdin))

    def inverse_patch_ids(self, commits: Sequence[str]) -> dict[str, str]:
        """The stable patch ids of the inverses of these commits, by hash. A merge is compared with its first parent."""
        if not commits:
            return {}
        arguments = (*_log("--no-walk=unsorted", "-R", "--diff-merges=first-parent"), "--stdin")
        return dict(git.pipe_to_patch_id(self.folder, *arguments, stdin="\n".join(commits).encode()))


def _is_unchanged(folder: Path, before: LocalRepository) -> bool:
    """Whether the folder still is the repository that was checked before."""
    try:
        return local_repositories.check(folder) == before
    except RepositoryRefused:
        return False


def _folders_of(ref: str) -> list[str]:
    """The folders that contain a ref: `refs/heads/a`, `refs/heads` and `refs` for `refs/heads/a/b`."""
    return [str(folder) for folder in PurePosixPath(ref).parents][:-1]


def _log(*options: str) -> tuple[str, ...]:
    """`git log` with patches in the form that `git patch-id` reads."""
    return ("log", "-p", "--format=commit %H", *PATCH, *options)
