"""What is known of a session besides its log: what its caller saw, and what belongs to another session."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedFacts:
    """What the caller saw itself: full commit hashes, addresses of pull requests, and checks that failed, by name."""

    commits: tuple[str, ...] = ()
    pull_requests: tuple[str, ...] = ()
    failed_checks: tuple[str, ...] = ()

    @property
    def show_work(self) -> bool:
        return bool(self.commits or self.pull_requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """What this session's evidence shows and another session owns: commit hashes and pull requests' addresses."""

    commits: frozenset[str] = frozenset()
    pull_requests: frozenset[str] = frozenset()


NOTHING_FOREIGN = Foreign()
