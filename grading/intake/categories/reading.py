"""The traits that category rules match: stored when a session's log comes; a worker reads them from older logs."""

import logging

from django.db.models import Exists, OuterRef

from grading.evidence import store
from grading.evidence.reading import parse
from grading.formats import EmptyTranscript, UnknownFormat
from grading.models import Evidence, Session, SessionTraits
from grading.models.evidence import EvidenceKind
from grading.models.sessions import SessionQuerySet
from grading.plain import plain_json
from grading.redaction import redact_json
from grading.signals.traits import Traits

logger = logging.getLogger(__name__)


def store_traits(session: Session, traits: Traits) -> Traits:
    """Store a session's traits with secrets redacted. Returns the stored traits."""
    data = redact_json(plain_json(traits.as_dict()))
    row = SessionTraits(session=session, data=data)
    SessionTraits.objects.bulk_create([row], update_conflicts=True, unique_fields=["session"], update_fields=["data"])
    return Traits.from_dict(data)


def unread() -> SessionQuerySet:
    """Sessions without a category whose log came before the site stored traits."""
    logs = Evidence.objects.filter(session=OuterRef("pk"), kind=EvidenceKind.TRANSCRIPT, problem="")
    return Session.objects.uncategorised().filter(Exists(logs), traits=None)


def catch_up(limit: int) -> int:
    """Read up to `limit` of the `unread` logs, latest first. Returns their number. Categories don't change."""
    rows = list(unread().order_by("-ended_at", "-pk")[:limit])
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
