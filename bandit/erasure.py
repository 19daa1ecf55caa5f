"""The only way to delete append-only rows: inside `permit`, which leaves a record of who did it, why and how much."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from django.utils import timezone

from bandit.models import Erasure


@contextmanager
def permit(*, who: str, why: str, digests: list[str] | None = None) -> Iterator[Counter[str]]:
    """Allow deletes of append-only rows in this block, which is one transaction. Yields a counter for its caller.

    The caller may also fill `digests` with hashes of what is erased. The permitting row is open only inside the
    transaction, so that no other connection ever sees it. An exception rolls back everything including the record.
    Raises ValueError if `who` or `why` is blank.
    """
    if not who.strip() or not why.strip():
        raise ValueError(f"an erasure records who asks for it and why; got who={who!r}, why={why!r}")
    counts: Counter[str] = Counter()
    with transaction.atomic():
        erasure = Erasure.objects.create(who=who, why=why)
        yield counts
        erasure.closed_at = timezone.now()
        erasure.counts, erasure.digests = dict(counts), digests or []
        erasure.save(update_fields=["closed_at", "counts", "digests"])
