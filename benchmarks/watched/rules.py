"""The site's own alarm rules, run on the rows of the simulated site."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from benchmarks.watched.site import SESSIONS_PER_DAY, WatchedSession, WatchedSite
from grading.monitoring import arms, operation, pairs, rewards
from grading.monitoring.operation import FIELDS, MissingFields
from grading.monitoring.rule import Finding
from grading.monitoring.sessions import impossible_pair, repeated, unreadable_log
from grading.monitoring.streaks import SessionEnding
from grading.vocabulary import Source


def a3(site: WatchedSite, _open_alarms: set[str]) -> Iterable[Finding]:
    return rewards.find_disagreements(site.judged(), site.now)


def a9(site: WatchedSite, _open_alarms: set[str]) -> Iterable[Finding]:
    window = site.sessions_of_last((rewards.RECENT_WINDOW + rewards.EARLIER_WINDOW).days)
    week = [each for each in window if each.ended_at > site.now - rewards.WINDOW]
    grades = {
        Source.JUDGE: [each.mean for each in week if each.mean is not None],
        Source.TRAJECTORY: [each.trajectory for each in week if each.trajectory is not None],
    }
    return rewards.find_collapse([each.reward for each in window if each.reward is not None], grades, site.now)


def a10(site: WatchedSite, _open_alarms: set[str]) -> Iterable[Finding]:
    return rewards.find_drift(site.judged(), site.now)


def a12(site: WatchedSite, _open_alarms: set[str]) -> Iterable[Finding]:
    week = [
        each
        for each in site.sessions_of_last(operation.FIELDS_WINDOW.days)
        if each.ending is not SessionEnding.INFRASTRUCTURE
    ]
    rows = Counter((each.agent, "" if each.lacks == "harness" else each.harness) for each in week)
    lacking = Counter((each.agent, "" if each.lacks == "harness" else each.harness, each.lacks) for each in week)
    return operation.find_missing_fields(
        MissingFields(
            agent=agent, harness=harness, n=n, missing={name: lacking[agent, harness, name] for name in FIELDS}
        )
        for (agent, harness), n in rows.items()
    )


def a14(site: WatchedSite, open_alarms: set[str]) -> Iterable[Finding]:
    """Runs at noon and at midnight."""
    window = site.sessions_of_last(arms.WINDOW_DAYS)
    ended_at = {each.key: each.ended_at for each in window}
    sessions, silent_arms = [each.observed for each in window], open_alarms
    for count in (len(sessions) - SESSIONS_PER_DAY // 2, len(sessions)):
        findings = arms.find_silence(sessions[:count], ended_at, silent_arms)
        silent_arms = {finding.about for finding in findings}
    return findings


RULES: Mapping[str, Callable[[WatchedSite, set[str]], Iterable[Finding]]] = {
    "A1": lambda site, _open_alarms: impossible_pair.summarize(site.flags("A1")),
    "A3": a3,
    "A4": lambda site, _open_alarms: unreadable_log.summarize(site.flags("A4")),
    "A5": lambda site, _open_alarms: repeated.summarize(site.flags("A5")),
    "A9": a9,
    "A10": a10,
    "A12": a12,
    "A14": a14,
}


def find(site: WatchedSite, rule: str, open_alarms: set[str]) -> dict[str, str]:
    """The texts of a rule's findings, by subject. `open_alarms` are the subjects of its open alarms."""
    return {finding.about: finding.detail for finding in RULES[rule](site, open_alarms)}


def count_wide_disagreements(sessions: Sequence[WatchedSession]) -> int:
    """How many of these sessions A3 would flag, each compared with all before it."""
    before: list[tuple[str, float]] = []
    count = 0
    for each in (session.judged for session in sessions):
        if each is None or each.trajectory is None:
            continue
        usual = pairs.typical_difference(before[-pairs.LATEST_VERDICTS :], each.category)
        expected = each.trajectory + usual.difference if usual else each.verdict
        count += rewards.are_far_apart(each.verdict, expected)
        before.append((each.category, each.verdict - each.trajectory))
    return count
