"""What became of a session's work, as one line: Committed → PR #142 → CI passed → 2 of 2 commits on main."""

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from grading.evidence.owner_rule import PREFIX
from grading.models import OutcomeRecord, Session, SessionCommit, SessionLanding
from grading.models.evidence import ArtifactKind
from grading.models.outcomes import Authorship, CommitState, LandingState, OutcomeKind, OutcomeResult
from grading.outcomes.following import describe
from grading.screens import forge
from grading.witness import Witness

# Kinds with words of their own, in the order of events.
WORDS: dict[str, str] = {
    OutcomeKind.TESTS: "tests",
    OutcomeKind.CI: "CI",
    OutcomeKind.MERGED: "merge",
    OutcomeKind.CLOSED: "closing",
    OutcomeKind.DEPLOYED: "deployment",
    OutcomeKind.RESOLVED: "resolution",
}
VERBS: dict[tuple[str, str], str] = {
    (OutcomeKind.MERGED, OutcomeResult.PASS): "merged",
    (OutcomeKind.CLOSED, OutcomeResult.PASS): "closed without a merge",
    (OutcomeKind.DEPLOYED, OutcomeResult.PASS): "deployed",
    (OutcomeKind.RESOLVED, OutcomeResult.PASS): "resolved",
}
# By what became of the commits: the name of its symbol.
LANDING_MARKS: dict[str, str] = {
    LandingState.LANDED: "verified",
    LandingState.PARTLY: "verified",
    LandingState.REVERTED: "back",
    LandingState.OPEN: "open",
}
# Shown by `_landed` instead, which reads the commits themselves.
DERIVED = (OutcomeKind.LANDED, OutcomeKind.REVERTED)
LISTED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeStep:
    """One step of the line. `note`: when it happened, or was looked up. `mark`: the name of a symbol, "" for a dot.
    `title`: who reported it and when.
    """

    label: str
    note: str = ""
    url: str = ""
    title: str = ""
    mark: str = ""


def context(session: Session) -> dict[str, Any]:
    """The context of `_outcomes.html`. Without outcomes and look-ups there are no steps."""
    records = list(session.outcomes.all()[:LISTED])
    latest: dict[str, OutcomeRecord] = {}
    for record in records:
        latest.setdefault(record.kind, record)
    landing = SessionLanding.objects.filter(session=session).first()
    commits = list(session.commits.select_related("repository"))
    steps = [
        *_produced(session, commits),
        *(_reported(latest[kind]) for kind in _order(latest)),
        *_landed(landing, commits),
    ]
    return {
        "outcome_steps": steps if records or (landing and landing.checked_at) else [],
        "outcome_records": records,
        "outcome_commits": commits,
    }


def _order(latest: dict[str, OutcomeRecord]) -> list[str]:
    """The reported kinds in the order of events, then unknown kinds by name."""
    ordered = [kind for kind in WORDS if kind in latest]
    return [*ordered, *sorted(latest.keys() - {*WORDS, *DERIVED})]


def _produced(session: Session, commits: list[SessionCommit]) -> list[OutcomeStep]:
    """The commits and pull requests that the session owns. `commits` are those that a look-up was made for."""
    owned = session.artifacts.filter(owned_by=None).values_list("kind", "key")
    hashes = {key[:PREFIX] for kind, key in owned if kind == ArtifactKind.COMMIT}
    steps = []
    if hashes:
        label = "Committed" if len(hashes) == 1 else f"{len(hashes)} commits"
        mark = Witness.VERIFIED if hashes <= verified_hashes(commits) else ""
        steps.append(OutcomeStep(label=label, note=_day(session.ended_at), mark=mark))
    pulls = dict.fromkeys(key for kind, key in owned if kind == ArtifactKind.PULL_REQUEST)
    steps += [OutcomeStep(label=forge.pull_request_name(key), url=forge.pull_request(key)) for key in list(pulls)[:3]]
    return steps


def verified_hashes(commits: Iterable[SessionCommit]) -> set[str]:
    """The first PREFIX digits of those commits that the site has found in a repository as the session's own."""
    return {commit.claim[:PREFIX] for commit in commits if commit.authorship == Authorship.OWN}


def _reported(record: OutcomeRecord) -> OutcomeStep:
    """An outcome that CI, a runner or a forge reported."""
    label = VERBS.get((record.kind, record.result), f"{WORDS.get(record.kind, record.kind)} {record.shown_result}")
    who = f"{record.reporter}, {timezone.localtime(record.observed_at):%Y-%m-%d %H:%M}"
    title = ". ".join(filter(None, [f"Reported by {who}", record.detail]))
    url = record.url if record.url.startswith("https://") else ""
    mark = "" if record.witness == Witness.UNKNOWN else record.witness
    if record.result == OutcomeResult.FAIL:
        mark = "open"
    label = label[:1].upper() + label[1:]
    return OutcomeStep(label=label, note=_day(record.observed_at), url=url, title=title, mark=mark)


def _landed(landing: SessionLanding | None, commits: list[SessionCommit]) -> list[OutcomeStep]:
    """Whether the session's commits landed on the default branch, according to the last look-up."""
    if landing is None or landing.checked_at is None:
        return []
    decided = [commit for commit in commits if commit.state != CommitState.UNKNOWN]
    if not decided:
        reasons = dict.fromkeys(Authorship(commit.authorship).words for commit in commits)
        label = f"Not known whether it landed: {next(iter(reasons), 'it has no commits')}"
        return [OutcomeStep(label=label, mark="open")]
    branch = next((commit.repository.default_branch for commit in decided if commit.repository), "the default branch")
    looked_up = f"Looked up {timezone.localtime(landing.checked_at):%Y-%m-%d %H:%M}"
    note = f"checked {_day(landing.checked_at)}"
    label = describe(landing, branch)
    return [OutcomeStep(label=label, note=note, title=looked_up, mark=LANDING_MARKS.get(landing.state, "open"))]


def _day(at: dt.datetime) -> str:
    return f"{timezone.localtime(at):%-d %b}"
