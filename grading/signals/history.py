"""The session's own commits, as git shows them: made, hidden, amended, reset and reverted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from grading.signals import outputs
from grading.signals.confirm import CallResult
from grading.signals.intents import HeadMove, Intent
from grading.signals.model import Commit

MAX_COMMITS = 1_000
MAX_HIDDEN = 50
MIN_SUBJECT = 8
MIN_CUT = 20
HASH = re.compile(r"[0-9a-f]{7,40}")
BEFORE_HEAD = re.compile(r"(?:HEAD|@)((?:~\d{0,4}|\^)*)")
BRANCH = re.compile(r"@\{u(?:pstream)?\}|[A-Za-z][\w./-]{0,200}")
REVERT = re.compile(r'Revert "(?P<subject>.{1,200}?)"?$')


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hidden:
    """A commit that git said nothing of. `is_head`: it worked, and HEAD has not moved since; `failed`: its call did."""

    intent: Intent
    subject: str
    is_head: bool
    at: int
    paths: tuple[str, ...]
    failed: bool


class History:
    """Commits in the order they were made; `undone` are hashes of those that were reverted or reset.

    `loose` are commits that a soft or mixed reset took off: their work is still there and may be committed anew.
    """

    def __init__(self) -> None:
        self.commits: list[Commit] = []
        self.undone: list[str] = []
        self.gone: dict[str, str] = {}
        self.loose: list[Commit] = []
        self.again: set[str] = set()
        self.hidden: list[_Hidden] = []
        self.kept = 0
        self.truncated = False

    def add(self, commit: Commit, intent: Intent) -> bool:
        """Count a commit; returns whether it was new."""
        self.hidden = [one for one in self.hidden if one.intent is not intent and one.subject != commit.subject]
        if any(known.is_same(commit.hash) for known in self.commits) or commit.hash in self.undone:
            return False
        earlier = self.find(commit.subject) if intent.rewrites or commit.subject in self.again else None
        if earlier is None and intent.amends:
            earlier = self.last_of(commit.branch)
        if earlier is not None:
            self.again.discard(commit.subject)
            self.commits[earlier] = commit
            return True
        if self.take_back(commit):
            return True
        if len(self.commits) >= MAX_COMMITS:
            self.truncated = True
            return False
        self.undo(self.loose)
        self.loose = []
        self.commits.append(commit)
        return True

    def find(self, subject: str) -> int | None:
        """The index of the last commit with this subject."""
        found = (index for index in range(len(self.commits) - 1, -1, -1) if self.commits[index].subject == subject)
        return next(found, None) if subject else None

    def last_of(self, branch: str) -> int | None:
        """The index of the last commit on a branch, one of an unknown branch included."""
        found = (index for index in range(len(self.commits) - 1, -1, -1))
        return next((at for at in found if not branch or self.commits[at].branch in (branch, "")), None)

    def take_back(self, commit: Commit) -> bool:
        """Whether a commit only reverts one of the session's own; then neither counts."""
        match = REVERT.match(commit.subject)
        reverted = self.find(match["subject"]) if match else None
        if reverted is None:
            return False
        self.undo([self.commits.pop(reverted), commit])
        self.kept = min(self.kept, len(self.commits))
        return True

    def undo(self, commits: Sequence[Commit]) -> None:
        self.undone = [*self.undone, *(commit.hash for commit in commits)][-MAX_COMMITS:]
        self.gone = dict([*self.gone.items(), *((one.hash, one.subject) for one in commits)][-MAX_HIDDEN:])

    def hide(self, intent: Intent, shown: CallResult, paths: tuple[str, ...]) -> None:
        """A commit command that did not fail, as far as its result shows, and of which git said nothing."""
        reused = next(
            (one for one in (*self.commits, *self.loose) if intent.reuses and one.is_same(intent.reuses)), None
        )
        subject = reused.subject if reused else intent.subject
        is_head = shown.ok is True and (intent.proven or intent.shows_hash)
        if self.loose and shown.ok is not False:
            same = next((one for one in self.loose if one.subject == subject), None)
            again = same if subject else self.loose[0]
            if again is not None:
                self.loose.remove(again)
                self.again.add(again.subject)
                self.commits.append(again)
        self.left()
        failed = shown.ok is False
        hidden = _Hidden(intent=intent, subject=subject, is_head=is_head, at=shown.at, paths=paths, failed=failed)
        self.hidden = [*self.hidden, hidden][-MAX_HIDDEN:]

    def left(self) -> None:
        """HEAD has moved: no hidden commit is HEAD any more."""
        self.hidden = [replace(one, is_head=False) for one in self.hidden]

    def move(self, intent: Intent) -> None:
        """A command that worked, and that changed HEAD or keeps what is there."""
        if intent.kind is HeadMove.KEPT:
            self.kept = len(self.commits)
        else:
            self.left()
        if intent.kind is HeadMove.RESET:
            self.reset(intent.target.split(" "))

    def reset(self, words: Sequence[str]) -> None:
        """`git reset`: commits after the place it names are gone, unless another branch or the remote has them."""
        flags = {word for word in words if word.startswith("-")}
        named = [word for word in words if word and word not in flags]
        if "--" in words or len(named) != 1:
            return
        start = self.first_reset(named[0], is_plain=not flags & {"--soft", "--hard", "--mixed", "--keep"})
        if start is None:
            return
        if "--hard" in flags:
            start = max(start, min(self.kept, len(self.commits)))
            self.undo(self.commits[start:])
        else:
            self.loose = self.commits[start:][-MAX_HIDDEN:]
        del self.commits[start:]

    def first_reset(self, place: str, *, is_plain: bool) -> int | None:
        """The index of the first commit that a reset to a place takes off; None where it takes off none we know of."""
        if match := BEFORE_HEAD.fullmatch(place):
            steps = sum(int(step[1:] or 1) if step[0] == "~" else 1 for step in re.findall(r"~\d*|\^", match[1]))
            return max(0, len(self.commits) - steps) if steps else None
        if HASH.fullmatch(place):
            own = next((index for index, one in enumerate(self.commits) if one.is_same(place)), None)
            if own is not None:
                return own + 1
        elif (is_plain and "/" not in place) or not BRANCH.fullmatch(place):
            return None
        branch = self.commits[-1].branch if self.commits else ""
        start = len(self.commits)
        while start > 0 and self.commits[start - 1].branch in (branch, ""):
            start -= 1
        return start

    def read_log(self, shown: CallResult, *, is_head: bool) -> int:
        """Count hidden commits that a log lists under their own subject, or first where they are HEAD."""
        if not self.hidden:
            return 0
        entries = list(outputs.log_entries(shown.text))
        by_subject: dict[str, str] = {}
        for hash_, subject in entries:
            by_subject.setdefault(subject, hash_)
            if subject.endswith(("...", "…")) and len(subject) >= MIN_CUT:
                by_subject.setdefault(subject.rstrip(".…")[:MIN_CUT] + "…", hash_)
        found = 0
        for one in list(self.hidden):
            hash_ = by_subject.get(one.subject) or by_subject.get(one.subject[:MIN_CUT] + "…", "")
            subject = one.subject
            if len(one.subject) < MIN_SUBJECT or not hash_:
                first = entries[0] if entries and is_head and one.is_head else ("", "")
                is_known = one.subject and "$" not in one.subject and one.at != shown.at
                hash_, subject = first if not is_known or first[1] in ("", one.subject) else ("", "")
            found += bool(hash_) and self.found(one, hash_, subject, shown.at)
        return found

    def pushed(self, moved: Sequence[outputs.Pushed], at: int) -> int:
        """A push has moved branches: to the last hidden commit, or a forced one from an own commit to its successor."""
        found = 0
        for one in moved:
            last = next((hidden for hidden in reversed(self.hidden) if not hidden.failed), None)
            if not one.new or any(known.is_same(one.new) for known in self.commits):
                continue
            if one.is_forced and (index := self.forced_from(one.old)) is not None:
                self.commits[index] = replace(self.commits[index], hash=one.new)
            elif last is not None and last.at >= max((commit.at for commit in self.commits), default=0):
                found += self.found(last, one.new, last.subject, at)
        self.kept = len(self.commits)
        return found

    def forced_from(self, old: str) -> int | None:
        """The index of the commit that a forced push replaces: the old tip itself, or what was made again of it."""
        index = next((index for index, one in enumerate(self.commits) if old and one.is_same(old)), None)
        if index is not None:
            return index
        gone = next((subject for hash_, subject in self.gone.items() if hash_.startswith(old[:7])), "") if old else ""
        return self.find(gone)

    def found(self, hidden: _Hidden, hash_: str, subject: str, at: int) -> bool:
        commit = Commit(hash=hash_, branch="", subject=subject[:200], at=at, paths=hidden.paths)
        self.hidden = [one for one in self.hidden if one is not hidden]
        return self.add(commit, hidden.intent)

    def all_undone(self) -> tuple[str, ...]:
        """Hashes of own commits that do not count any more; a soft reset's too, unless they were committed anew."""
        return (*self.undone, *(commit.hash for commit in self.loose))
