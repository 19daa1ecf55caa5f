"""What rules go by: each session's traits, kept when its log comes; of logs from before, read by a worker."""

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


def keep(session: Session, traits: Traits) -> Traits:
    """Keep a session's traits without their secrets, and give them back as they are kept."""
    data = redact_json(plain_json(traits.as_dict()))
    row = SessionTraits(session=session, data=data)
    SessionTraits.objects.bulk_create([row], update_conflicts=True, unique_fields=["session"], update_fields=["data"])
    return Traits.from_dict(data)


def unread() -> SessionQuerySet:
    """Sessions without a category whose log came before the site kept what rules go by."""
    logs = Evidence.objects.filter(session=OuterRef("pk"), kind=EvidenceKind.TRANSCRIPT, problem="")
    return Session.objects.uncategorised().filter(Exists(logs), traits=None)


def catch_up(limit: int) -> int:
    """Read the logs of so many of them, the latest first; how many were read. Their categories stay as they are."""
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
        keep(session, traits)
    return len(rows)
