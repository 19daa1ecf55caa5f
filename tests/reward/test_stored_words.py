"""Secrets are replaced in what is stored. Grading and settling come to the same from stored rows as from new ones."""

import pytest

from grading.intake import regrading
from grading.models import Comment, Grade, Session, SessionSignals, Settlement
from grading.reward import rewards, sources
from grading.reward.freshness import EvidenceState
from grading.vocabulary import Outcome, Reason, Source
from tests.casts import logs
from tests.corpus.secrets import ALL

pytestmark = pytest.mark.django_db

SECRET, MARK = "ghp_" + "a1B2" * 9, "[redacted GitHub Token]"


def test_every_way_to_write_a_row_replaces_secrets(site):
    session = site.session(title=SECRET).session
    assert session.title == MARK
    session.outcome_reason = SECRET
    session.save()
    session.category_claimed = SECRET
    Session.objects.bulk_update([session], ["category_claimed"])
    Session.objects.filter(pk=session.pk).update(claim_reason=SECRET)
    Comment.objects.bulk_create([Comment(session=session, author=site.person("olga", "operator"), text=SECRET)])
    texts = Session.objects.values_list("title", "outcome_reason", "category_claimed", "claim_reason").get()
    assert [*texts, Comment.objects.get().text] == [MARK] * 5


def test_a_secret_in_what_explains_a_reward_settles_once(site, subtests):
    sessions = {
        "check": site.session().judged(0.8).with_failed_check(f"{SECRET} of ci").settle(),
        "detail": site.session().graded(Source.TRAJECTORY, None, Reason.NOTHING_OBSERVABLE, detail=SECRET).settle(),
        "outcome": site.session(outcome=Outcome.INFRASTRUCTURE, outcome_reason=f"No login with {SECRET}").settle(),
    }
    for place, session in sessions.items():
        with subtests.test(place):
            rewards.settle(Session.objects.get(pk=session.pk))
            (settlement,) = Settlement.objects.filter(session=session)
            assert SECRET not in f"{settlement.sentence} {settlement.steps}"


def test_signals_that_lost_a_secret_are_extracted_again_to_grade_by(site):
    """What the row has of them is for people only."""
    commit = (f"git commit -am 'Use {SECRET}'", f"[main 1a2b3c4] Use {SECRET}\n 1 file changed, 2 insertions(+)")
    session = site.upload("s-1", logs.claude("s-1", commit)).session
    row = SessionSignals.objects.get(session=session)
    assert SECRET not in str(row.data)
    assert row.data[sources.HIDDEN] is True
    assert SECRET in str(sources.load_input(fresh(session)).signals.as_dict())
    before = list(Grade.objects.order_by("pk").values())
    regrading.regrade(fresh(session))
    assert list(Grade.objects.order_by("pk").values()) == before


def test_signals_without_a_secret_are_those_of_the_row(site):
    session = site.upload("s-1", logs.claude("s-1", logs.COMMIT)).session
    extracted = sources.load_input(fresh(session)).signals
    row = SessionSignals.objects.get(session=session)
    assert sources.HIDDEN not in row.data
    SessionSignals.objects.filter(session=session).update(data={**row.data, "results": 77})
    assert sources.load_input(fresh(session)).signals.results == 77 != extracted.results


def test_what_a_grade_has_seen_is_stored_letter_by_letter(site, subtests):
    """Its hashes may look like keys, and whether a verdict is stale is told by them."""
    for name, secret in ALL.items():
        with subtests.test(name):
            state = EvidenceState(transcript=secret.text, effects=frozenset([secret.text]), source=secret.text)
            evidence = {"shown": state.as_dict(), "detail": SECRET}
            session = site.session().graded(Source.TRAJECTORY, 0.4, evidence=evidence).session
            grade = Grade.objects.get(session=session)
            assert rewards.latest_evidence([grade]) == state
            assert grade.evidence["detail"] == MARK


def fresh(session: Session) -> Session:
    return Session.objects.get(pk=session.pk)
