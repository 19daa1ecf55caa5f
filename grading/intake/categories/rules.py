"""Category rules, ready to be matched, and the traits that they match.

Traits are stored when a session's log comes; a worker reads them from older logs.
"""

import datetime as dt
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from django.db.models import Exists, OuterRef
from msgspec import convert, to_builtins

from grading.evidence import store
from grading.evidence.receiving import parse
from grading.formats import EmptyTranscript, UnknownFormat
from grading.models import CategoryRule, Evidence, Session, SessionTraits
from grading.models.evidence import EvidenceKind
from grading.models.sessions import SessionQuerySet
from grading.plain import plain_json
from grading.redaction import redact_json
from grading.signals.conditions import InvalidCondition, Matcher
from grading.signals.traits import Traits

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A rule that a session matches, its index among the enabled rules, and a text of what matched."""

    place: int
    rule: CategoryRule
    met: str

    @property
    def why(self) -> str:
        return f"rule {self.rule.position}: {self.met}"


class Rules:
    """The enabled rules of a list, in order. An invalid rule matches nothing."""

    def __init__(self, rows: Iterable[CategoryRule]) -> None:
        self.rows = [row for row in rows if row.is_on]
        self._matchers: list[tuple[CategoryRule, Matcher | None]] = []
        for row in self.rows:
            try:
                self._matchers.append((row, Matcher(row.conditions)))
            except InvalidCondition:
                self._matchers.append((row, None))

    @classmethod
    def enabled(cls, before: dt.datetime | None = None) -> "Rules":
        """The site's enabled rules; with `before`, only those that were not changed since that moment."""
        rows = CategoryRule.objects.enabled()
        return cls(rows if before is None else rows.filter(changed_at__lte=before))

    def __bool__(self) -> bool:
        return bool(self.rows)

    def all(self, traits: Traits) -> Iterator[Match]:
        """Every rule that a session matches, in order: the first one decides."""
        for place, (rule, matcher) in enumerate(self._matchers):
            met = "" if matcher is None else matcher.explain_match(traits)
            if met:
                yield Match(place=place, rule=rule, met=met)

    def first(self, traits: Traits) -> Match | None:
        """The rule that decides, or None if none matches."""
        return next(self.all(traits), None)


def store_traits(session: Session, traits: Traits) -> Traits:
    """Store a session's traits with secrets redacted. Returns the stored traits."""
    data = redact_json(plain_json(to_builtins(traits)))
    row = SessionTraits(session=session, data=data)
    SessionTraits.objects.bulk_create([row], update_conflicts=True, unique_fields=["session"], update_fields=["data"])
    return convert(data, Traits)


def without_traits() -> SessionQuerySet:
    """Sessions without a category whose log came before the site stored traits."""
    logs = Evidence.objects.filter(session=OuterRef("pk"), kind=EvidenceKind.TRANSCRIPT, problem="")
    return Session.objects.uncategorised().filter(Exists(logs), traits=None)


def read_older_logs(limit: int) -> int:
    """Read the logs of up to `limit` sessions `without_traits`, latest first. Returns their number. Categories don't
    change.
    """
    rows = list(without_traits().order_by("-ended_at", "-pk")[:limit])
    for session in rows:
        traits = Traits()
        log = store.usable(session, EvidenceKind.TRANSCRIPT)
        try:
            if log is not None:
                with store.open(log) as stream:
                    traits = parse(stream, log.filename).traits
        except (UnknownFormat, EmptyTranscript, store.Gone):
            pass
        except Exception:
            logger.exception("the log of %s could not be read for its traits", session.observation)
        store_traits(session, traits)
    return len(rows)
