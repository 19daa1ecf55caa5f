"""The session's own commits as git's output shows them, through amends, resets and reverts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from grading.signals import outputs
from grading.signals.confirm import CallResult
from grading.signals.intents import HeadMove, Intent
from grading.signals.model import Commit

MAX_COMMITS = 1_000
MAX_HIDDEN = 50
# Shorter subjects don't identify a commit.
MIN_SUBJECT = 8
# How many characters of a subject that a log truncated are compared.
SUBJECT_PREFIX = 20
SHORT_HASH = 7
HASH = re.compile(r"[0-9a-f]{7,40}")
BEFORE_HEAD = re.compile(r"(?:HEAD|@)((?:~\d{0,4}|\^)*)")
BRANCH = re.compile(r"@\{u(?:pstream)?\}|[A-Za-z][\w./-]{0,200}")
REVERT = re.compile(r'Revert "(?P<subject>.{1,200}?)"?$')


@dataclass(frozen=True, slots=True, kw_only=True)
class _HiddenCommit:
    """A commit command that git printed nothing about. `failed`: the call reported failure.

    `is_head`: the command worked and HEAD has not moved since.
    """

    intent: Intent
    subject: str
    is_head: bool
    at: int
    paths: tuple[str, ...]
    failed: bool

    def may_have_subject(self, subject: str, at: int) -> bool:
        """Whether the commit may be an entry with this subject in a log that event number `at` printed.

        Any subject will do if the commit's own is unknown or has a shell variable, or if the same call printed the log:
        then the order of its commands tells (`is_head`).
        """
        is_comparable = self.subject and "$" not in self.subject and self.at != at
        return not is_comparable or subject in ("", self.subject)


class History:
    """Commits in the order they were made; `undone` are the hashes of those that were reverted or reset.

    `undone_subjects` maps the hashes of the last undone commits to their subjects.
    `soft_reset` are commits that a soft or mixed reset removed: their changes may be committed again.
    `recommitted` are subjects that a hidden commit restored from there: the next commit with one replaces it.
    `hidden` are commit commands of which no output has shown a commit yet.
    `protected` counts the first commits that another branch or a remote has too; a hard reset does not undo them.
    """

    def __init__(self) -> None:
        self.commits: list[Commit] = []
        self.undone: list[str] = []
        self.undone_subjects: dict[str, str] = {}
        self.soft_reset: list[Commit] = []
        self.recommitted: set[str] = set()
        self.hidden: list[_HiddenCommit] = []
        self.protected = 0
        self.truncated = False

    def add(self, commit: Commit, intent: Intent) -> bool:
        """Count a commit, let it replace the one that it amends or rewrites, or let it undo the one that it reverts.

        Returns whether that changed anything.
        """
        # A hidden commit with the same intent or subject may be this one, so it is no longer hidden.
        self.hidden = [one for one in self.hidden if one.intent is not intent and one.subject != commit.subject]
        is_counted = any(one.is_same(commit.hash) for one in self.commits) or commit.hash in self.undone
        if is_counted:
            return False
        replaced = self.find_replaced(commit, intent)
        if replaced is not None:
            self.recommitted.discard(commit.subject)
            self.commits[replaced] = commit
            return True
        if self.undo_reverted(commit):
            return True
        if len(self.commits) >= MAX_COMMITS:
            self.truncated = True
            return False
        self.undo(self.soft_reset)  # the new commit takes the place of what a soft reset removed
        self.soft_reset = []
        self.commits.append(commit)
        return True

    def find_replaced(self, commit: Commit, intent: Intent) -> int | None:
        """The index of the commit that a new one replaces: by a rebase, again after a soft reset, or by an amend; None
        if it replaces none.
        """
        replaced = None
        if intent.rewrites or commit.subject in self.recommitted:
            replaced = self.find_subject(commit.subject)
        if replaced is None and intent.amends:
            replaced = self.find_last_on_branch(commit.branch)
        return replaced

    def find_subject(self, subject: str) -> int | None:
        """The index of the last commit with this subject; None if there is none, or for an empty subject."""
        if not subject:
            return None
        for index in reversed(range(len(self.commits))):
            if self.commits[index].subject == subject:
                return index
        return None

    def find_last_on_branch(self, branch: str) -> int | None:
        """The index of the last commit on the branch or on an unknown one; for an empty `branch`, the last commit."""
        for index in reversed(range(len(self.commits))):
            if not branch or self.commits[index].branch in (branch, ""):
                return index
        return None

    def undo_reverted(self, commit: Commit) -> bool:
        """If the commit reverts one of the session's own, undo both; returns whether it does."""
        match = REVERT.match(commit.subject)
        reverted = self.find_subject(match["subject"]) if match else None
        if reverted is None:
            return False
        self.undo([self.commits.pop(reverted), commit])
        self.protected = min(self.protected, len(self.commits))
        return True

    def undo(self, commits: Sequence[Commit]) -> None:
        """Add commits to the undone ones. The caller removes them from `commits`."""
        self.undone = [*self.undone, *(commit.hash for commit in commits)][-MAX_COMMITS:]
        subjects = [*self.undone_subjects.items(), *((commit.hash, commit.subject) for commit in commits)]
        self.undone_subjects = dict(subjects[-MAX_HIDDEN:])

    def hide(self, intent: Intent, result: CallResult, paths: tuple[str, ...]) -> None:
        """Note a commit command that may have worked and that git printed nothing about.

        After a soft reset, the command commits changes of a removed commit again: the one with its subject, or the
        first if its subject is unknown. That commit counts again.
        """
        subject = intent.subject
        if intent.reuses:
            earlier = (*self.commits, *self.soft_reset)
            subject = next((commit.subject for commit in earlier if commit.is_same(intent.reuses)), subject)
        if result.ok is not False:
            candidates = (commit for commit in self.soft_reset if not subject or commit.subject == subject)
            restored = next(candidates, None)
            if restored is not None:
                self.soft_reset.remove(restored)
                self.recommitted.add(restored.subject)
                self.commits.append(restored)
        self.clear_head()
        hidden = _HiddenCommit(
            intent=intent,
            subject=subject,
            is_head=result.ok is True and (intent.proven or intent.shows_hash),
            at=result.at,
            paths=paths,
            failed=result.ok is False,
        )
        self.hidden = [*self.hidden, hidden][-MAX_HIDDEN:]

    def clear_head(self) -> None:
        """HEAD has moved: no hidden commit is HEAD any more."""
        self.hidden = [replace(one, is_head=False) for one in self.hidden]

    def move_head(self, intent: Intent) -> None:
        """Apply a command that moved HEAD or made a branch or tag of the commits so far."""
        if intent.kind is HeadMove.NEW_REF:
            self.protected = len(self.commits)
        else:
            self.clear_head()
        if intent.kind is HeadMove.RESET:
            self.reset(intent.target.split(" "))

    def reset(self, arguments: Sequence[str]) -> None:
        """Apply `git reset` with these arguments: remove the commits after its target. A hard reset undoes them, unless
        they are protected; any other keeps them in `soft_reset`. Resets of single files do nothing.
        """
        flags = {word for word in arguments if word.startswith("-")}
        targets = [word for word in arguments if word and word not in flags]
        names_files = "--" in arguments or len(targets) != 1
        if names_files:
            return
        start = self.find_reset_start(targets[0], is_plain=not flags & {"--soft", "--hard", "--mixed", "--keep"})
        if start is None:
            return
        if "--hard" in flags:
            start = max(start, min(self.protected, len(self.commits)))
            self.undo(self.commits[start:])
        else:
            self.soft_reset = [*self.commits[start:], *self.soft_reset][-MAX_HIDDEN:]
        del self.commits[start:]

    def find_reset_start(self, target: str, *, is_plain: bool) -> int | None:
        """The index of the first commit that a reset to `target` removes; None if it removes none.

        `is_plain`: without a mode, where a bare word may be a file to unstage instead of a branch.
        """
        if match := BEFORE_HEAD.fullmatch(target):
            steps = match[1].count("^")  # `HEAD~2^` is three commits before HEAD
            for number in re.findall(r"~(\d*)", match[1]):
                steps += int(number or 1)
            return max(0, len(self.commits) - steps) if steps else None
        if HASH.fullmatch(target):
            for index, commit in enumerate(self.commits):
                if commit.is_same(target):
                    return index + 1
        else:
            may_be_file = is_plain and "/" not in target
            if may_be_file or not BRANCH.fullmatch(target):
                return None
        # Another branch or a foreign commit: all commits at the end that are on the current branch.
        branch = self.commits[-1].branch if self.commits else ""
        start = len(self.commits)
        while start > 0 and self.commits[start - 1].branch in (branch, ""):
            start -= 1
        return start

    def add_logged(self, result: CallResult, *, is_head: bool) -> int:
        """Count the hidden commits that a log lists; returns how many. `is_head`: the log's first commit is HEAD.

        A hidden commit is listed if the log has its subject, or if both it and the log's first entry are HEAD and their
        subjects don't differ.
        """
        if not self.hidden:
            return 0
        entries = list(outputs.parse_log(result.text))
        hash_by_subject = _hashes_by_subject(entries)
        count = 0
        for hidden in list(self.hidden):
            hash_, subject = "", hidden.subject
            if len(subject) >= MIN_SUBJECT:
                hash_ = hash_by_subject.get(subject) or hash_by_subject.get(_shortened(subject), "")
            may_be_first = is_head and hidden.is_head and bool(entries)
            if not hash_ and may_be_first and hidden.may_have_subject(entries[0][1], result.at):
                hash_, subject = entries[0]
            if hash_ and self.reveal(hidden, hash_, subject, result.at):
                count += 1
        return count

    def add_pushed(self, refs: Sequence[outputs.PushedRef], at: int) -> int:
        """Count the last hidden commit if a push shows a new hash and no other commit came after it. A forced push over
        an own commit gives that commit its new hash instead. All commits so far are protected from now on.

        Returns how many hidden commits were counted.
        """
        count = 0
        for ref in refs:
            is_counted = any(commit.is_same(ref.new) for commit in self.commits)
            if not ref.new or is_counted:
                continue
            replaced = self.find_replaced_tip(ref.old) if ref.is_forced else None
            last_hidden = next((hidden for hidden in reversed(self.hidden) if not hidden.failed), None)
            last_commit_at = max((commit.at for commit in self.commits), default=0)
            if replaced is not None:
                self.commits[replaced] = replace(self.commits[replaced], hash=ref.new)
            elif last_hidden is not None and last_hidden.at >= last_commit_at:
                count += self.reveal(last_hidden, ref.new, last_hidden.subject, at)
        self.protected = len(self.commits)
        return count

    def find_replaced_tip(self, old: str) -> int | None:
        """The index of the commit that a forced push over `old` replaces: the commit with that hash, or if that was
        undone, the last commit with its subject. None if there is none.
        """
        if not old:
            return None
        for index, commit in enumerate(self.commits):
            if commit.is_same(old):
                return index
        for undone_hash, subject in self.undone_subjects.items():
            if undone_hash.startswith(old[:SHORT_HASH]):
                return self.find_subject(subject)
        return None

    def reveal(self, hidden: _HiddenCommit, hash_: str, subject: str, at: int) -> bool:
        """Count a hidden commit whose hash an output shows; returns whether that changed anything."""
        commit = Commit(hash=hash_, branch="", subject=subject[:200], at=at, paths=hidden.paths)
        self.hidden = [one for one in self.hidden if one is not hidden]
        return self.add(commit, hidden.intent)

    def all_undone(self) -> tuple[str, ...]:
        """Hashes of own commits that no longer count, including those that a soft reset removed."""
        return (*self.undone, *(commit.hash for commit in self.soft_reset))


def _hashes_by_subject(entries: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The hash of each subject in a log's (hash, subject), the first if several have it.

    A subject that the log itself cut is also there in the form of `_shortened`.
    """
    hashes: dict[str, str] = {}
    for hash_, subject in entries:
        hashes.setdefault(subject, hash_)
        is_cut = subject.endswith(("...", "…"))
        if is_cut and len(subject) >= SUBJECT_PREFIX:
            hashes.setdefault(_shortened(subject.rstrip(".…")), hash_)
    return hashes


def _shortened(subject: str) -> str:
    return subject[:SUBJECT_PREFIX] + "…"
