"""Facts about a session from outside its log: what its runner observed, and what belongs to another session."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedFacts:
    """What the runner observed: full commit hashes, URLs of pull requests, and the names of failed checks."""

    commits: tuple[str, ...] = ()
    pull_requests: tuple[str, ...] = ()
    failed_checks: tuple[str, ...] = ()

    @property
    def show_work(self) -> bool:
        return bool(self.commits or self.pull_requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """Commit hashes and URLs of pull requests in this session's evidence that another session owns."""

    commits: frozenset[str] = frozenset()
    pull_requests: frozenset[str] = frozenset()


NOTHING_FOREIGN = Foreign()
