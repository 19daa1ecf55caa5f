"""What if a session were graded otherwise, a source left out, an outage had not happened? Nothing is saved."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from bandit import ledger
from bandit.core.moves import ArmMove, moves
from bandit.core.table import ABSTAINED, MICRO, RewardRows
from bandit.models import LedgerEntry
from bandit.reading import policy_of, rows_of
from bandit.selection import HypotheticalReward, Outlook, what_if_many, what_if_without
from grading.judging.outlook import outages
from grading.judging.outlook.standing import JudgeStanding
from grading.models import Session
from grading.models.sessions import OBSERVATION, observation_of
from grading.review.promises import changes as changes_of
from grading.reward.explain import number
from grading.reward.grade import checked_value
from grading.screens.bandit.asked import QueryRefused, shown
from grading.screens.bandit.travel import Belief
from grading.screens.charts import STACK
from grading.screens.moves import in_words, why
from grading.templatetags.gradingsite_tags import duration, stamp
from grading.vocabulary import Source

# What a session is graded by while no judge can be asked.
FALLBACK = frozenset({Source.TRAJECTORY, Source.JOURNAL, Source.FLOOR})
LEAST = dt.timedelta(minutes=10)
# Fewer characters at the end of a session's id are nobody's name for it.
TAIL = 4
LONGEST_KEY = 18
# An id that fits below a number.
SHORT = 8


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """`what` would be otherwise, and what that does; the arms that it is about are touched in `moves`.

    `short` is the same for a table's head; `note` says how it was worked out, where that is an estimate.
    """

    what: str
    short: str
    moves: list[ArmMove]
    words: str
    after: Outlook
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageChoice:
    """One outage that may be thought away."""

    pk: int
    since: dt.datetime
    until: dt.datetime | None
    words: str


def choices(belief: Belief) -> list[str]:
    """The sources that count for something in this bandit, in the order of the legend."""
    counted = {e.source for arm in belief.outlook.arms.values() for e in arm.evidence if e.pseudo}
    counted.discard(ABSTAINED)
    return sorted(counted, key=lambda source: (STACK.index(source) if source in STACK else len(STACK), source))


def known_outages(first: JudgeStanding | None, since: dt.datetime, now: dt.datetime) -> list[OutageChoice]:
    """The first judge's outages, the latest first: two queries."""
    periods = [] if first is None else outages.periods(first.quota, since)
    lasted = [each for each in periods if each.is_outage and (each.until or now) - each.since >= LEAST]
    found = []
    for each in reversed(lasted):
        took = duration(((each.until or now) - each.row.at).total_seconds())
        words = f"{stamp(each.row.at)}, {took}: {each.label[:1].lower()}{each.label[1:]}"
        found.append(OutageChoice(pk=each.row.pk, since=each.row.at, until=each.until, words=words))
    return found


def asks(asked: Mapping[str, str]) -> bool:
    return any(asked.get(name, "").strip() for name in ("session", "value", "without", "outage"))


def answer(
    belief: Belief, asked: Mapping[str, str], known: Sequence[OutageChoice], titles: Mapping[str, str], now: dt.datetime
) -> WhatIf | None:
    """What the address asks, worked out from what holds now; None where it asks nothing. Raises QueryRefused."""
    said = {name: asked.get(name, "").strip() for name in ("session", "value", "without", "outage")}
    if said["session"] or said["value"]:
        return _graded(belief, said["session"], said["value"], titles, now)
    if source := said["without"]:
        counted = choices(belief)
        if source not in counted:
            what = ", ".join(counted) or "nothing yet"
            raise QueryRefused(f"{shown(source)} counts for nothing here; what counts is {what}.")
        before, after = what_if_without(belief.bandit.name, source, now)
        found = moves(belief.bandit.name, before, after)
        what = f"if {source} grades counted for nothing"
        return WhatIf(
            what=what, short=f"without {source}", moves=found, words=in_words(found, titles=titles), after=after
        )
    return _undone(belief, said["outage"], known, titles, now) if said["outage"] else None


def _graded(belief: Belief, text: str, grade: str, titles: Mapping[str, str], now: dt.datetime) -> WhatIf:
    session = find(text)
    try:
        value = checked_value(float(grade))
    except ValueError:
        raise QueryRefused(f"A grade is a number from 0 to 1, such as .80; got {shown(grade)}.") from None
    every = changes_of([(session, value)])
    changes = every.get(belief.bandit.name)
    if not changes:
        raise QueryRefused(
            f"Session {session.short_id} ran no known arm of this bandit, so the bandit learns nothing from it."
        )
    before, after = what_if_many(belief.bandit.name, changes, now, other_changes=every)
    found = moves(belief.bandit.name, before, after, touched={change.arm for change in changes})
    return WhatIf(
        what=f"if a person graded {session.short_id} {number(value)}",
        short=f"if {session.short_id if len(session.short_id) <= SHORT else 'graded'} = {number(value)}",
        moves=found,
        words=in_words(found, titles=titles),
        after=after,
        note=" ".join(why(move) for move in found if move.touched and move.counts_less),
    )


def find(text: str) -> Session:
    """The session of that number or id, or of an id that ends so. Raises QueryRefused for none and for several."""
    text = text.removeprefix("#").removeprefix(OBSERVATION)
    if not text or not text.isprintable():
        raise QueryRefused("Which session? Expected its number, its id, or the end of its id.")
    ends = Q(external_id__iendswith=text) if len(text) >= TAIL else Q()
    by_id = Session.objects.filter(Q(external_id=text) | ends)
    is_key = text.isascii() and text.isdecimal() and len(text) <= LONGEST_KEY
    found = list(Session.objects.filter(pk=int(text)) if is_key else []) or list(by_id[:3])
    exact = [each for each in found if each.external_id == text] or found
    if not exact:
        raise QueryRefused(f"No session has the number or the id {shown(text)}, or an id that ends so.")
    if len(exact) > 1:
        ids = ", ".join(each.external_id for each in exact)
        raise QueryRefused(f"Several sessions have an id that ends in {shown(text)}: {ids[:120]}. Give more of it.")
    return exact[0]


def _undone(
    belief: Belief, text: str, known: Sequence[OutageChoice], titles: Mapping[str, str], now: dt.datetime
) -> WhatIf:
    outage = next((each for each in known if str(each.pk) == text), None)
    if outage is None:
        raise QueryRefused(f"No outage {shown(text)} is known in this time; choose one of the list.")
    sessions = Session.objects.yours().filter(ended_at__gte=outage.since, ended_at__lt=outage.until or now)
    keys = [observation_of(pk) for pk in sessions.values_list("pk", flat=True)]
    entries = list(ledger.live_entries_of(belief.bandit.name, keys).rewards())
    changes = as_judged(entries, belief.rows)
    # The same in the bandit whose means this one's rewards are freed of.
    beside = {}
    if (other := belief.bandit.baseline) is not None:
        rows = rows_of(other, policy_of(other), belief.outlook.posterior.day)
        beside[other.name] = as_judged(list(ledger.live_entries_of(other.name, keys).rewards()), rows)
    before, after = what_if_many(belief.bandit.name, changes, now, other_changes=beside)
    found = moves(belief.bandit.name, before, after)
    fallback = sum(entry.grader.source in FALLBACK for entry in entries)
    judged = sum(entry.grader.source == Source.JUDGE for entry in entries)
    ended, changed = len(keys), len(changes)
    left = [
        f"{judged} judged since, whose grade is used" * bool(judged),
        f"{fallback - changed} of arms that no judge ever graded, left as they are" * (fallback > changed),
        f"{ended - fallback - judged} with another grade or none, left as they are" * (ended > fallback + judged),
    ]
    rest = ", ".join(filter(None, left))
    return WhatIf(
        what=f"had the outage of {stamp(outage.since)} not happened",
        short="without the outage",
        moves=found,
        words=in_words(found, titles=titles),
        after=after,
        note=f"An estimate over {changed} of the {ended} session{'' if ended == 1 else 's'} that ended then: their "
        "fallback grades are read as the mean of what the judge gave the same arm at other times."
        f"{f' The others: {rest}.' if rest else ''}",
    )


def judge_means(rows: RewardRows) -> dict[str, float]:
    """The mean of what the judge gave each arm, as it gave it, for arms that it graded."""
    sums: dict[str, tuple[int, int]] = {}
    for kind, (own_n, own_s, *_) in rows.totals():
        if kind.source == Source.JUDGE:
            n, s = sums.get(kind.arm, (0, 0))
            sums[kind.arm] = (n + own_n, s + own_s)
    return {arm: s / n / MICRO for arm, (n, s) in sums.items() if n > 0}


def as_judged(entries: Sequence[LedgerEntry], rows: RewardRows) -> list[HypotheticalReward]:
    """The fallback grades among the entries as what the judge usually gives their arm, where it ever did."""
    usual = judge_means(rows)
    return [
        HypotheticalReward(
            observation=entry.observation,
            arm=entry.arm.name,
            value=usual[entry.arm.name],
            source=Source.JUDGE,
            day=entry.effective_day,
            context=entry.grader.context,
            salience=entry.grader.salience,
            witness=entry.grader.witness,
            agent=entry.grader.agent,
            cost_usd=None if entry.cost_micro is None else entry.cost_micro / MICRO,
        )
        for entry in entries
        if entry.grader.source in FALLBACK and entry.arm.name in usual
    ]
