"""L5 for what people do: after any history the bandits know what they would if only the final grades had ever been."""

import datetime as dt
import itertools

import time_machine
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from bandit import audit
from grading.models import Evidence, Flag, ReviewAnswer, ReviewItem
from grading.models.review import Answer, ItemState
from grading.review import answers, claims, corrections, queue
from grading.review.corrections import CorrectionError
from grading.review.seen import is_outdated, persons_grade
from grading.reward import rewards
from grading.reward.decide import current
from grading.vocabulary import Reason, Source
from tests.casts.review import flagged, item, learned
from tests.examples import examples
from tests.site import NOON, Site

_numbers = itertools.count(1)
TWINS = {"category": "code", "harness": "gptme"}
value = st.integers(0, 100).map(lambda n: n / 100)
who = st.integers(0, 1)
step = st.one_of(
    st.tuples(st.just("grade"), who, value),
    st.tuples(st.just("accept"), who, st.none()),
    st.tuples(st.just("exclude"), who, st.none()),
    st.tuples(st.just("cannot judge"), who, st.none()),
    st.tuples(st.just("skip"), who, st.none()),
    st.tuples(st.just("undo"), who, st.none()),
    st.tuples(st.just("hold"), who, st.none()),
    st.tuples(st.just("double"), who, st.none()),
    st.tuples(st.just("want"), who, st.integers(1, 3)),
    st.tuples(st.just("claim"), who, st.none()),
    st.tuples(st.just("expire"), who, st.none()),
    st.tuples(st.just("verdict"), who, st.none() | value),
    st.tuples(st.just("evidence"), who, st.none() | value),
)


class AnyHistoryOfReviewLeavesTheFinalGrades(TestCase):
    @examples(12)
    @given(st.lists(st.tuples(st.integers(0, 1), step), max_size=16))
    def test_any_interleaving_of_review_equals_the_replay_of_the_final_grades(self, history):
        with time_machine.travel(NOON, tick=False) as clock:
            people = [Site().person(name, "reviewer") for name in ("rita", "omar")]
            sessions = [flagged(external_id=f"s{n}") for n in range(2)]
            for number, (verb, person, given_value) in history:
                clock.shift(1)
                self._apply(clock, sessions[number], people, verb, person, given_value)
                self._check(sessions[number])
            lived = learned()
            for session in sessions:
                self._replay(session, people[0])
        twins = [row for row in learned() if row[1] in TWINS.values()]
        assert [(row[0], row[2:]) for row in twins] == [(row[0], row[2:]) for row in lived]
        assert audit.audit() == []

    def test_an_item_that_is_done_once_fewer_people_are_wanted_gives_its_claim_back(self):
        """One of two wanted people answered and another has the page open when one is found to be enough."""
        session, rita, omar = flagged(), Site().person("rita", "reviewer"), Site().person("omar", "reviewer")
        queue.require_answers(item(session), 2)
        answers.submit(session, rita, answer=Answer.ACCEPT)
        assert claims.next_for(omar, "omar's page") == item(session)
        queue.require_answers(item(session), 1)
        done = item(session)
        assert (done.state, done.claim, done.claimed_by, done.claimed_until) == (ItemState.DONE, "", None, None)

    def _apply(self, clock, session, people, verb, person, given_value):
        reviewer, other = people[person], people[1 - person]
        before = learned()
        try:
            self._person_acts(session, reviewer, other, verb, given_value)
        except CorrectionError:
            assert learned() == before
        if verb == "expire":
            clock.shift(claims.CLAIM + dt.timedelta(seconds=1))
        elif verb == "verdict":
            Site().on(session).judged(given_value, Reason.NONE if given_value is not None else Reason.TIMEOUT).recheck()
        elif verb == "evidence":
            self._arrives(session, given_value)

    def _person_acts(self, session, reviewer, other, verb, given_value):
        waiting = ReviewItem.objects.filter(session=session).first()
        if verb in set(Answer) - {Answer.UNDO}:
            answers.submit(session, reviewer, answer=Answer(verb), value=given_value, reason="r", claim="page")
        elif verb == "undo" and (last := answers.last_of(reviewer)):
            answers.undo(last, other)
        elif verb == "hold" and (row := ReviewAnswer.objects.filter(session=session, reviewer=other).last()):
            answers.adopt(row, reviewer)
        elif verb == "double":
            self._again(session, reviewer)
        elif verb == "want" and waiting:
            queue.require_answers(waiting, given_value)
        elif verb == "claim":
            claims.next_for(reviewer, f"page {next(_numbers)}")

    def _again(self, session, reviewer):
        """The same request a second time: nothing new."""
        row = ReviewAnswer.objects.effective().filter(session=session, reviewer=reviewer, claim="page").last()
        if row is None:
            return
        count = ReviewAnswer.objects.count()
        same = answers.submit(
            session, reviewer, answer=Answer(row.answer), value=row.value, reason=row.reason, claim="page"
        )
        assert (same, ReviewAnswer.objects.count()) == (row, count)

    def _arrives(self, session, given_value):
        Evidence.objects.create(session=session, kind="journal", sha256=f"{next(_numbers):064d}", size=1)
        reason = Reason.NONE if given_value is not None else Reason.NO_SIGNAL
        Site().on(session).graded(Source.JOURNAL, given_value, reason).recheck()

    def _check(self, session):
        """Nothing is lost: a grade that new evidence outdated waits again, unless somebody took it off the queue."""
        found = ReviewItem.objects.filter(session=session).first()
        graded = persons_grade(session)
        assert found is None or (found.state == ItemState.OPEN) == (found.closed_at is None)
        assert found is None or found.state == ItemState.OPEN or not found.claim
        outdated = graded is not None and is_outdated(graded)
        assert not outdated or found.state != ItemState.DONE
        held = rewards.live(session)
        assert graded is None or (held.value, held.source) == (graded.value, "human")

    def _replay(self, session, reviewer):
        """A session of other arms in which only what finally holds ever happened."""
        twin = Site().session(**TWINS, external_id=f"twin of {session.external_id}").session
        for flag in Flag.objects.open().filter(session=session):
            Flag.objects.create(session=twin, rule=flag.rule, detail=flag.detail)
        for source, held in current(rewards.views(session.grades.all())).items():
            if source is Source.HUMAN:
                corrections.record_correction(twin, reviewer, value=held.value, exclude=held.value is None, reason="r")
            else:
                Site().on(twin).graded(source, held.value, held.reason)
        rewards.settle(twin)
