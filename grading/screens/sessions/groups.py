"""Groups the rows of the list. A note that most rows of a group share is shown once, above them."""

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from django.utils import timezone

from grading.models import Session
from grading.templatetags.gradingsite_tags import lead, rest
from grading.vocabulary import Reason, Source

# The number of rows from which on a note is shown once for the group instead of on each row.
SHARED = 3
LONGEST_SHARED = 60
# The rows that a phone shows at first.
FIRST_ROWS = 20
WEEK_NAMES = {0: "This week", 1: "Last week"}
STALE = "stale verdict, from another rubric or digest"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """A session of the list with the note about its reward. `note` is "" if the group shows it; `why` is the full text.
    `says_stale`: the row shows that its verdict is stale, because the group does not. `is_late`: a phone shows it only
    when asked for the whole page.
    """

    session: Session
    note: str
    why: str
    says_stale: bool
    is_late: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionGroup:
    """Rows of one week, under its name and its days. `shared` are the notes that are shown once for the group, each
    with its number of rows.
    """

    title: str
    days: str
    shared: tuple[tuple[int, str], ...]
    rows: tuple[SessionRow, ...]


def group(sessions: Sequence[Session], *, by_week: bool) -> list[SessionGroup]:
    """Group sessions, as returned by `listed`, by week; in one group without a title if `by_week` is false."""
    today = timezone.localdate()
    if not by_week:
        return [_group("", "", sessions, 0)] if sessions else []
    groups: list[SessionGroup] = []
    for monday, same in groupby(sessions, lambda each: _monday(timezone.localdate(each.ended_at))):
        weeks_ago = (_monday(today) - monday).days // 7
        days = f"{monday:%-d %b} – {monday + dt.timedelta(days=6):%-d %b %Y}"
        name = WEEK_NAMES.get(weeks_ago)
        rows_before = sum(len(earlier.rows) for earlier in groups)
        groups.append(_group(name or days, days if name else "", list(same), rows_before))
    return groups


def _group(title: str, days: str, sessions: Sequence[Session], rows_before: int) -> SessionGroup:
    """The group of these sessions. A note that SHARED or more of them have moves from their rows to the group.

    `rows_before`: the number of rows in the groups above it.
    """
    notes = {each.pk: note(each) for each in sessions}
    counts = Counter(text for text in notes.values() if text and len(text) <= LONGEST_SHARED)
    shared = {text: count for text, count in counts.most_common() if count >= SHARED}
    stale_count = sum(_is_stale(each) for each in sessions)
    if stale_count >= SHARED:
        shared[STALE] = stale_count
    rows = tuple(
        SessionRow(
            session=each,
            note="" if notes[each.pk] in shared else notes[each.pk],
            why="" if each.settlement is None else each.settlement.sentence,
            says_stale=_is_stale(each) and STALE not in shared,
            is_late=place >= FIRST_ROWS,
        )
        for place, each in enumerate(sessions, start=rows_before)
    )
    return SessionGroup(title=title, days=days, shared=tuple((n, text) for text, n in shared.items()), rows=rows)


def _is_stale(session: Session) -> bool:
    """Whether the verdict is stale, as annotated by `listed`."""
    return bool(vars(session)["is_stale"])


def note(session: Session) -> str:
    """The note beside a reward: why there is none, or what it still waits for; "" for a final reward."""
    sentence = "" if session.settlement is None else session.settlement.sentence
    if not sentence:
        return "Not settled yet"
    if not session.reward_source:
        return sentence
    if not session.reward_reason:
        return "" if session.reward_final else rest(sentence)
    # A judge may have been configured since.
    is_unjudged = session.reward_reason == Reason.NOT_CONFIGURED
    reason = "Not judged" if is_unjudged else Reason(session.reward_reason).words
    return f"{lead(sentence)} {reason}" if session.reward_source == Source.FLOOR else reason


def _monday(day: dt.date) -> dt.date:
    return day - dt.timedelta(days=day.weekday())
