"""Decides whether a commit that a session claims counts as its own. Pure.

A log can name any commit that its writer could read. So a commit counts only if it was made while the session ran. The
session must also have claimed it before others could read it, or its committer must be known as the agent's.
"""

import datetime as dt
from dataclasses import dataclass

from grading.models.outcomes import Authorship

SLACK = dt.timedelta(hours=1)
# A session without a start is assumed to have run this long.
UNKNOWN_LENGTH = dt.timedelta(hours=12)
# A committer is known as the agent's after this many commits that the agent claimed before others could read them.
KNOWN_COMMITTER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedCommit:
    """A commit in the mirror, and the claim to it.

    `seen_at` is when a fetch first brought the commit, None if the first fetch brought it. `claimed_at` is when the
    site received the evidence that names it. `credits_history`: whether commits from before the repository's first
    fetch may count as a session's own. `is_shared`: another agent claims the commit too. `known_commits` counts the
    agent's own commits in this repository by the same committer.
    """

    started_at: dt.datetime | None
    ended_at: dt.datetime
    committed_at: dt.datetime
    seen_at: dt.datetime | None
    claimed_at: dt.datetime
    credits_history: bool
    is_shared: bool
    known_commits: int = 0


def decide_authorship(commit: ClaimedCommit) -> Authorship:
    """Whether the commit counts as the session's own, or the first reason why not."""
    began = commit.started_at or commit.ended_at - UNKNOWN_LENGTH
    if commit.is_shared:
        return Authorship.SHARED
    if not began - SLACK <= commit.committed_at <= commit.ended_at + SLACK:
        return Authorship.OUTSIDE
    if commit.seen_at is None:
        return Authorship.OWN if commit.credits_history else Authorship.HISTORY
    if commit.seen_at < began:
        return Authorship.SEEN_BEFORE
    if commit.seen_at < commit.claimed_at and commit.known_commits < KNOWN_COMMITTER:
        return Authorship.PUBLIC
    return Authorship.OWN
