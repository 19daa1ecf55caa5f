"""Whose word on a session's category holds: a person's, its runner's, the decision's, a rule's, the agent's own."""

from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from bandit.models import Arm
from grading.intake.categories import edits, reading
from grading.intake.categories.rules import Rules
from grading.models import CategoryWord, Proposal, Session, Submission
from grading.models.sessions import CategoryOrigin
from grading.models.submissions import ProposedField
from grading.signals.traits import Traits
from grading.witness import Witness

BEFORE = "from before the site kept who had said it"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenCategory:
    """The word that holds: whose it is, why, and who said it where it was a person."""

    origin: CategoryOrigin
    why: str
    by: str = ""

    @property
    def is_inferred(self) -> bool:
        return self.origin.is_inferred


def given(session: Session, words: list[CategoryWord] | None = None) -> GivenCategory | None:
    """Whose word the session's category is, of these `words` or of all; None where it has none. Some three queries."""
    if session.category is None:
        return None
    word = holding(words_of(session) if words is None else words)
    if word is None:
        return GivenCategory(origin=_origin_before(session), why=BEFORE)
    by = "" if word.by is None else word.by.get_username()
    return GivenCategory(origin=CategoryOrigin(word.origin), why=word.why, by=by)


def words_of(session: Session) -> list[CategoryWord]:
    """Everything that was said of the session's category, taken back or not, in order."""
    return list(session.category_words.select_related("category", "by", "change"))


def holding(words: list[CategoryWord]) -> CategoryWord | None:
    """The strongest word that was not taken back; of equals the latest.

    What rules said of a session when it came is before what a person had them say, also where they were asked again.
    """

    def strength(word: CategoryWord) -> tuple[int, bool, int]:
        by_itself = word.origin == CategoryOrigin.RULE and word.change_id is None
        return CategoryOrigin(word.origin).rank, by_itself, -word.pk

    return min((word for word in words if word.undone_at is None), key=strength, default=None)


def say(
    session: Session, origin: CategoryOrigin, category: Arm, words: list[CategoryWord] | None = None, **said: Any
) -> bool:
    """Keep that `origin` said so of a session that the caller has locked; whether its columns changed, which the caller
    saves. The same word again, but for a person's, adds none. `words` are all of the session's, to which the new one is
    added; they are loaded where the caller has not. `said`: `why`, `by`, `rule`, `change`.
    """
    words = words_of(session) if words is None else words
    if not words and session.category is not None and not session.category_from:
        before = {"origin": _origin_before(session), "category": session.category, "said_at": session.received_at}
        words.append(_append(session, why=BEFORE, **before))
    own = [word for word in words if word.undone_at is None and word.origin == origin]
    if origin is CategoryOrigin.PERSON or not own or own[-1].category_id != category.pk:
        words.append(_append(session, origin=origin, category=category, **said))
    return hold(session, words)


def hold(session: Session, words: list[CategoryWord]) -> bool:
    """Make the category that of the word that holds, in the session's columns; whether these changed."""
    word, before = holding(words), (session.category_id, session.category_from)
    session.category = None if word is None else word.category
    session.category_from = "" if word is None else word.origin
    return before != (session.category_id, session.category_from)


def by_rules(session: Session, traits: Traits, words: list[CategoryWord]) -> bool:
    """Let the rules say what they say of a session whose log came; whether its columns changed.

    A session that has a category is asked about only by rules that were there when it came. What a rule once said of it
    stands, and what was taken back isn't said again.
    """
    rules = Rules.in_force(before=None if session.category is None else session.received_at)
    if not rules or any(word.origin == CategoryOrigin.RULE for word in words):
        return False
    found = rules.first(traits)
    if found is None:
        return False
    return say(session, CategoryOrigin.RULE, found.rule.category.current, words, why=found.why, rule=found.rule)


def ask_again(session: Session, traits: Traits) -> bool:
    """Have the rules say what they would have said when the session came, had no edit been made that was undone since;
    whether its columns changed. The session is locked, and its log is taken as it is now.
    """
    words = words_of(session)
    own = [word for word in words if word.origin == CategoryOrigin.RULE and word.change_id is None]
    asked = own[0].said_at if own else session.received_at
    had_one = any(word.origin != CategoryOrigin.RULE and word.said_at <= asked for word in words)
    found = Rules.since(edits.rules_at(asked), session.received_at if had_one else None).first(traits)
    standing = [word for word in own if word.undone_at is None]
    if [(word.rule_id, word.category_id) for word in standing] == (
        [] if found is None else [(found.rule.pk, found.rule.category.current.pk)]
    ):
        return False
    for word in standing:
        word.undone_at = timezone.now()
        word.save(update_fields=["undone_at"])
    if found is not None:
        said = {"category": found.rule.category.current, "why": found.why, "rule_id": found.rule.pk, "said_at": asked}
        words.append(_append(session, origin=CategoryOrigin.RULE, **said))
    return hold(session, words)


def take_in(session: Session, traits: Traits | None, words: list[CategoryWord]) -> bool:
    """Keep what a session's log shows, where one came, and let the rules speak; whether its columns changed."""
    if traits is None:
        return False
    return by_rules(session, reading.keep(session, traits), words)


def _append(session: Session, **said: Any) -> CategoryWord:
    return CategoryWord.objects.create(session=session, **said)


def _origin_before(session: Session) -> CategoryOrigin:
    """Whose word a category is that was given before the site kept it, as far as its submissions tell."""
    adopted = Proposal.objects.filter(session=session, field=ProposedField.CATEGORY, adopted=True)
    answered = adopted.order_by("-pk").values_list("answered_by", flat=True).first()
    if answered is not None:
        return CategoryOrigin.PERSON
    told = Submission.objects.filter(session=session).order_by("-pk")
    last = next((row for row in told if "category" in row.after), None)
    if last is not None and Witness(last.witness).is_runner:
        return CategoryOrigin.RUNNER
    if session.selection_id is not None and not session.category_claimed:
        return CategoryOrigin.DECISION
    return CategoryOrigin.AGENT
