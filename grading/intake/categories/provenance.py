"""Where a session's category came from, in order of precedence: a person, its runner, the decision, a rule, the agent.

A category word is one statement of a session's category, with its origin; the strongest that wasn't undone counts.
"""

from dataclasses import dataclass
from typing import Any

from bandit.models import Arm
from grading.intake.categories.rules import Rules
from grading.models import CategoryWord, Proposal, Session, Submission
from grading.models.sessions import CategoryOrigin
from grading.models.submissions import ProposedField
from grading.signals.traits import Traits
from grading.witness import Witness

UNTRACKED = "its origin was not recorded"


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryProvenance:
    """The origin of a session's category, why it was set, and the user name if a person set it."""

    origin: CategoryOrigin
    why: str
    by: str = ""

    @property
    def is_inferred(self) -> bool:
        return self.origin.is_inferred


def provenance_of(session: Session, category_words: list[CategoryWord] | None = None) -> CategoryProvenance | None:
    """Where the session's category came from, or None if it has none. About three queries without `category_words`."""
    if session.category is None:
        return None
    word = effective_word(load_words(session) if category_words is None else category_words)
    if word is None:
        return CategoryProvenance(origin=_infer_origin(session), why=UNTRACKED)
    by = "" if word.by is None else word.by.get_username()
    return CategoryProvenance(origin=CategoryOrigin(word.origin), why=word.why, by=by)


def load_words(session: Session) -> list[CategoryWord]:
    """All statements of the session's category in order, undone ones too."""
    return list(session.category_words.select_related("category", "by", "change"))


def effective_word(category_words: list[CategoryWord]) -> CategoryWord | None:
    """The strongest word that was not undone; of equally strong ones the latest.

    Words of rules that a person applied are stronger than those that rules gave when the session arrived.
    """

    def precedence(word: CategoryWord) -> tuple[int, bool, int]:
        is_automatic = word.origin == CategoryOrigin.RULE and word.change_id is None
        return CategoryOrigin(word.origin).rank, is_automatic, -word.pk

    return min((word for word in category_words if word.undone_at is None), key=precedence, default=None)


def add_word(
    session: Session,
    origin: CategoryOrigin,
    category: Arm,
    category_words: list[CategoryWord] | None = None,
    **columns: Any,
) -> bool:
    """Record that `origin` gave a session, which the caller has locked, this category. Returns whether the session's
    columns changed, which the caller saves. Repeating a category adds no word, unless a person does.

    `category_words` are all of the session's words, to which the new one is appended; by default they are loaded.
    `columns` are the word's `why`, `by`, `rule` and `change`.
    """
    category_words = load_words(session) if category_words is None else category_words
    if not category_words and session.category is not None and not session.category_from:
        before = {"origin": _infer_origin(session), "category": session.category, "said_at": session.received_at}
        category_words.append(CategoryWord.objects.create(session=session, why=UNTRACKED, **before))
    own = [word for word in category_words if word.undone_at is None and word.origin == origin]
    if origin is CategoryOrigin.PERSON or not own or own[-1].category_id != category.pk:
        word = CategoryWord.objects.create(session=session, origin=origin, category=category, **columns)
        category_words.append(word)
    return update_category(session, category_words)


def update_category(session: Session, category_words: list[CategoryWord]) -> bool:
    """Set the session's category columns from its effective word, without saving. Returns whether they changed."""
    word, before = effective_word(category_words), (session.category_id, session.category_from)
    session.category = None if word is None else word.category
    session.category_from = "" if word is None else word.origin
    return before != (session.category_id, session.category_from)


def apply_rules(session: Session, traits: Traits, category_words: list[CategoryWord]) -> bool:
    """Add the word of the first rule that matches a session whose log came. Returns whether its columns changed.

    If the session has a category, only rules from before its arrival apply. Once a rule gave it a category, undone or
    not, rules give it no other.
    """
    rules = Rules.enabled(before=None if session.category is None else session.received_at)
    if not rules or any(word.origin == CategoryOrigin.RULE for word in category_words):
        return False
    match = rules.first(traits)
    if match is None:
        return False
    category = match.rule.category.current
    return add_word(session, CategoryOrigin.RULE, category, category_words, why=match.why, rule=match.rule)


def _infer_origin(session: Session) -> CategoryOrigin:
    """The likely origin of a category set before origins were recorded, in the order of precedence."""
    adopted = Proposal.objects.filter(session=session, field=ProposedField.CATEGORY, adopted=True)
    answered = adopted.order_by("-pk").values_list("answered_by", flat=True).first()
    if answered is not None:
        return CategoryOrigin.PERSON
    submissions = Submission.objects.filter(session=session).order_by("-pk")
    last = next((row for row in submissions if "category" in row.after), None)
    if last is not None and Witness(last.witness).is_runner:
        return CategoryOrigin.RUNNER
    if session.selection_id is not None and not session.category_claimed:
        return CategoryOrigin.DECISION
    return CategoryOrigin.AGENT
