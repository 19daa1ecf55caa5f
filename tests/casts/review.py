"""What the tests of review share: a session with a judge's grade, its item, a fresh claim."""

import uuid

from bandit.models import Bucket
from grading.models import ReviewItem, Session
from grading.review import shares
from grading.vocabulary import Source
from tests.site import Site

site = Site()


def judged(value: float = 0.5, source: Source = Source.JUDGE, **fields) -> Session:
    """A session that was graded, settled and looked at; its name falls into no slice unless the settings say so."""
    return site.session(**fields).graded(source, value).recheck()


def flagged(value: float = 0.32, **fields) -> Session:
    """A session with a pull request that only its journal accounts for: rule A1 flags it."""
    return site.session(**fields).with_pull_request().graded(Source.JOURNAL, value).recheck()


def settled(session: Session) -> Session:
    return site.on(session).recheck()


def learned() -> list[tuple]:
    """All that the bandits know, to the last bit: every non-empty bucket."""
    names = ("bandit__name", "arm__name", "grader__source", "grader__model", "grader__rubric", "grader__stratum")
    return sorted(Bucket.objects.exclude(n=0, s=0, q=0).values_list(*names, "effective_day", "n", "s", "q"))


def item(session: Session) -> ReviewItem:
    return ReviewItem.objects.get(session=session)


def claim() -> str:
    return uuid.uuid4().hex


def name(*, inside: bool, number: int = 0) -> str:
    """A session's name that falls into a random check of a fifth, or not."""
    names = (f"s{number}-{i}" for i in range(1000))
    return next(each for each in names if (shares.keyed_number(shares.SLICE, "bob", each) < 0.2) == inside)
