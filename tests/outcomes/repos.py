"""Builds real git repositories: a default branch, feature branches, and the ways in which work lands or is undone."""

import os
import subprocess
from pathlib import Path

EPOCH = 1_774_958_400  # 2026-03-31 12:00 UTC


class Repo:
    """A repository with the branch `main`. Each commit changes one file, a minute after the one before."""

    def __init__(self, folder: Path, epoch: int = EPOCH) -> None:
        self.folder = folder
        self.epoch = epoch
        self.minute = 0
        folder.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("Start", "start.txt")

    def git(self, *arguments: str) -> str:
        at = f"{self.epoch + 60 * self.minute} +0000"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": at,
            "GIT_COMMITTER_DATE": at,
            **{f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{who}_EMAIL": "ada@example.test" for who in ("AUTHOR", "COMMITTER")},
        }
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, message: str, file: str = "", text: str = "") -> str:
        """Commit a file with some lines; its name is by default made from the message. Returns the hash."""
        self.minute += 1
        path = self.folder / (file or message.rpartition(" ")[2].lower().replace("/", "-") + ".txt")
        path.write_text(text or "".join(f"{message} {line}\n" for line in range(9)))
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", message)
        return self.head

    @property
    def head(self) -> str:
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str) -> None:
        self.git("checkout", "--quiet", "-B", name, "main")

    def merge(self, name: str, message: str) -> str:
        """Merge a branch into main by a merge commit."""
        self.minute += 1
        self.git("checkout", "--quiet", "main")
        self.git("merge", "--quiet", "--no-ff", "-m", message, name)
        return self.head

    def squash(self, name: str, message: str) -> str:
        """Bring a branch to main as one commit."""
        self.minute += 1
        self.git("checkout", "--quiet", "main")
        self.git("merge", "--quiet", "--squash", name)
        self.git("commit", "--quiet", "-m", message)
        return self.head

    def pick(self, *commits: str) -> str:
        """Bring commits to main one by one with new hashes, as a rebase does."""
        self.git("checkout", "--quiet", "main")
        for commit in commits:
            self.minute += 1
            self.git("cherry-pick", commit)
        return self.head

    def revert(self, commit: str, message: str = "", *, mainline: bool = False) -> str:
        """Undo a commit on main. `message` replaces git's own, which names the commit."""
        self.minute += 1
        self.git("checkout", "--quiet", "main")
        self.git("revert", "--no-edit", *(["-m", "1"] if mainline else []), commit)
        if message:
            self.git("commit", "--quiet", "--amend", "-m", message)
        return self.head
