"""What-ifs: another grade of a session, a source without weight, an outage that did not happen. Stores nothing."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Q

from bandit import ledger
from bandit.core.moves import ArmMove, moves
from bandit.core.posterior import Outlook
from bandit.core.table import ABSTAINED, MICRO, RewardRows
from bandit.ledger import Credit, GraderKey
from bandit.models import LedgerEntry
from bandit.reading import policy_of, rows_of
from bandit.whatif import HypotheticalReward, what_if_changed, what_if_without
from grading.judging.outlook import outages
from grading.judging.outlook.standing import JudgeStanding
from grading.models import Session
from grading.models.sessions import OBSERVATION, observation_of
from grading.plain import counted
from grading.review.promises import changes as changes_of
from grading.reward.explain import number
from grading.reward.grade import checked_value
from grading.screens.bandit.query import QueryRefused, quoted
from grading.screens.bandit.travel import BanditSnapshot
from grading.screens.charts.bars import STACK
from grading.screens.moves import describe_moves, why
from grading.templatetags.gradingsite_tags import duration, stamp
from grading.vocabulary import Source

# The sources that grade a session during an outage of the judge.
FALLBACK = frozenset({Source.TRAJECTORY, Source.JOURNAL, Source.FLOOR})
# A shorter outage is not offered.
MIN_OUTAGE = dt.timedelta(minutes=10)
# A session can be named by at least this many characters at the end of its id, or by a number with at most so many
# digits.
MIN_ID_ENDING, MAX_KEY_DIGITS = 4, 18
# The longest session id that fits into the head of a column.
MAX_ID_IN_HEAD = 8
PARAMETERS = ("session", "value", "without", "outage")


@dataclass(frozen=True, kw_only=True)
class WhatIf:
    """A hypothetical change (`what`; `short` for the head of a column) and its effect.

    `after` is the outlook under it. `moves` are the differences by arm, in which the changed arms are marked as
    touched, and `effect` is the same as text. `note` says how an estimate was made.
    """

    what: str
    short: str
    moves: list[ArmMove]
    effect: str
    after: Outlook
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutageChoice:
    """An outage to choose, described by `text`."""

    pk: int
    since: dt.datetime
    until: dt.datetime | None
    text: str


def choices(snapshot: BanditSnapshot) -> list[str]:
    """The sources that have weight in this bandit, in the order of the legend."""
    sources = {each.source for arm in snapshot.outlook.arms.values() for each in arm.evidence if each.pseudo}
    sources.discard(ABSTAINED)
    return sorted(sources, key=lambda source: (STACK.index(source) if source in STACK else len(STACK), source))


def known_outages(first: JudgeStanding | None, since: dt.datetime, now: dt.datetime) -> list[OutageChoice]:
    """The first judge's outages since then, the latest first. Two queries."""
    periods = [] if first is None else outages.periods(first.quota, since)
    lasted = [each for each in periods if each.is_outage and (each.until or now) - each.since >= MIN_OUTAGE]
    outage_choices = []
    for each in reversed(lasted):
        took = duration(((each.until or now) - each.row.at).total_seconds())
        text = f"{stamp(each.row.at)}, {took}: {each.label[:1].lower()}{each.label[1:]}"
        outage_choices.append(OutageChoice(pk=each.row.pk, since=each.row.at, until=each.until, text=text))
    return outage_choices


def is_requested(params: Mapping[str, str]) -> bool:
    """Whether the query names any what-if."""
    return any(params.get(name, "").strip() for name in PARAMETERS)


def answer(
    snapshot: BanditSnapshot,
    params: Mapping[str, str],
    outage_choices: Sequence[OutageChoice],
    titles: Mapping[str, str],
    now: dt.datetime,
) -> WhatIf | None:
    """The what-if that the query names, compared with the present; None if it names none. Raises QueryRefused.

    `titles` has the arms' titles by name.
    """
    session, value, source, outage = (params.get(name, "").strip() for name in PARAMETERS)
    if session or value:
        return _with_grade(snapshot, session, value, titles, now)
    if source:
        return _without_source(snapshot, source, titles, now)
    return _without_outage(snapshot, outage, outage_choices, titles, now) if outage else None


def _without_source(snapshot: BanditSnapshot, source: str, titles: Mapping[str, str], now: dt.datetime) -> WhatIf:
    sources = choices(snapshot)
    if source not in sources:
        expected = ", ".join(sources) or "nothing yet"
        raise QueryRefused(
            f"{quoted(source)} has no weight in this bandit. Choose one of the sources that count: {expected}."
        )
    before, after = what_if_without(snapshot.bandit.name, source, now)
    arm_moves = moves(snapshot.bandit.name, before, after)
    return WhatIf(
        what=f"if {source} grades did not count",
        short=f"without {source}",
        moves=arm_moves,
        effect=describe_moves(arm_moves, titles=titles),
        after=after,
    )


def _with_grade(snapshot: BanditSnapshot, text: str, grade: str, titles: Mapping[str, str], now: dt.datetime) -> WhatIf:
    session = find_session(text)
    try:
        value = checked_value(float(grade))
    except ValueError:
        raise QueryRefused(f"A grade is a number from 0 to 1, such as .80; got {quoted(grade)}.") from None
    changes_by_bandit = changes_of([(session, value)])
    changes = changes_by_bandit.get(snapshot.bandit.name)
    if not changes:
        raise QueryRefused(
            f"Session {session.short_id} ran no known arm of this bandit, so the bandit learns nothing from it."
        )
    before, after = what_if_changed(snapshot.bandit.name, changes_by_bandit, now)
    arm_moves = moves(snapshot.bandit.name, before, after, touched={change.arm for change in changes})
    subject = session.short_id if len(session.short_id) <= MAX_ID_IN_HEAD else "graded"
    return WhatIf(
        what=f"if a person graded {session.short_id} {number(value)}",
        short=f"if {subject} = {number(value)}",
        moves=arm_moves,
        effect=describe_moves(arm_moves, titles=titles),
        after=after,
        note=" ".join(why(move) for move in arm_moves if move.touched and move.counts_less),
    )


def find_session(text: str) -> Session:
    """The session with this number or id, or the end of one. Raises QueryRefused for none and for several."""
    text = text.removeprefix("#").removeprefix(OBSERVATION)
    if not text or not text.isprintable():
        raise QueryRefused("Enter a session: its number, its id, or the last characters of its id.")
    is_key = text.isascii() and text.isdecimal() and len(text) <= MAX_KEY_DIGITS
    if is_key and (session := Session.objects.filter(pk=int(text)).first()):
        return session
    ends = Q(external_id__iendswith=text) if len(text) >= MIN_ID_ENDING else Q()  # an empty Q adds nothing to the other
    matches = list(Session.objects.filter(Q(external_id=text) | ends)[:3])
    matches = [each for each in matches if each.external_id == text] or matches
    if not matches:
        raise QueryRefused(f"No session has the number or id {quoted(text)}, and no id ends in it.")
    if len(matches) > 1:
        ids = ", ".join(each.external_id for each in matches)
        raise QueryRefused(
            f"Several sessions have an id that ends in {quoted(text)}: {ids[:120]}. Enter more characters of the id."
        )
    return matches[0]


def _without_outage(
    snapshot: BanditSnapshot,
    text: str,
    outage_choices: Sequence[OutageChoice],
    titles: Mapping[str, str],
    now: dt.datetime,
) -> WhatIf:
    outage = next((each for each in outage_choices if str(each.pk) == text), None)
    if outage is None:
        raise QueryRefused(f"There was no outage {quoted(text)} in this period. Choose one from the list.")
    sessions = Session.objects.yours().filter(ended_at__gte=outage.since, ended_at__lt=outage.until or now)
    keys = [observation_of(pk) for pk in sessions.values_list("pk", flat=True)]
    entries = list(ledger.live_entries(snapshot.bandit.name, keys).rewards())
    changes = as_judged(entries, snapshot.reading.rows)
    # The baseline's rewards change in the same way.
    changes_by_bandit = {snapshot.bandit.name: changes}
    if (other := snapshot.bandit.baseline) is not None:
        rows = rows_of(other, policy_of(other), snapshot.outlook.posterior.day)
        changes_by_bandit[other.name] = as_judged(list(ledger.live_entries(other.name, keys).rewards()), rows)
    before, after = what_if_changed(snapshot.bandit.name, changes_by_bandit, now)
    arm_moves = moves(snapshot.bandit.name, before, after)
    ended, changed = len(keys), len(changes)
    judged = sum(entry.grader.source == Source.JUDGE for entry in entries)
    of_unjudged_arms = sum(entry.grader.source in FALLBACK for entry in entries) - changed
    others = ended - changed - of_unjudged_arms - judged
    unchanged = []
    if judged:
        unchanged.append(f"{judged} judged later, whose grade is used")
    if of_unjudged_arms:
        unchanged.append(f"{of_unjudged_arms} of arms without any verdict, left unchanged")
    if others:
        unchanged.append(f"{others} with another grade or none, left unchanged")
    rest = ", ".join(unchanged)
    return WhatIf(
        what=f"had the outage of {stamp(outage.since)} not happened",
        short="without the outage",
        moves=arm_moves,
        effect=describe_moves(arm_moves, titles=titles),
        after=after,
        note=f"This is an estimate for {changed:,} of the {counted(ended, 'session')} that ended during "
        "the outage. Their fallback grades are replaced by the mean of the judge’s grades for the same arm at "
        f"other times.{f' The others: {rest}.' if rest else ''}",
    )


def judge_means(rows: RewardRows) -> dict[str, float]:
    """The raw mean of the judge's grades of each arm that it graded."""
    sums: dict[str, tuple[int, int]] = {}
    for kind, (own_n, own_s, *_) in rows.totals():
        if kind.source == Source.JUDGE:
            n, s = sums.get(kind.arm, (0, 0))
            sums[kind.arm] = (n + own_n, s + own_s)
    return {arm: s / n / MICRO for arm, (n, s) in sums.items() if n > 0}


def as_judged(entries: Sequence[LedgerEntry], rows: RewardRows) -> list[HypotheticalReward]:
    """For each entry with a fallback's grade, the mean of the judge's grades of its arm instead.

    Entries of arms that the judge never graded are left out.
    """
    means = judge_means(rows)
    return [
        HypotheticalReward(
            observation=entry.observation,
            arm=entry.arm.name,
            day=entry.effective_day,
            credit=Credit(
                value=means[entry.arm.name],
                grader=GraderKey(
                    source=Source.JUDGE,
                    context=entry.grader.context,
                    salience=entry.grader.salience,
                    witness=entry.grader.witness,
                    agent=entry.grader.agent,
                ),
                cost_usd=None if entry.cost_micro is None else entry.cost_micro / MICRO,
            ),
        )
        for entry in entries
        if entry.grader.source in FALLBACK and entry.arm.name in means
    ]
