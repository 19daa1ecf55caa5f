"""The site of a run: rows of the queue in the database, sums of rewards in memory, people's answers in both.

The queue's order, its places by chance, claims and answers are the product's; so are the pairs, the fit and putting the
recalibration in force. What a correction does to an arm's sums, a settlement would: here it is done by hand, which
takes a thousandth of the time.
"""

from collections.abc import Iterable
from dataclasses import replace

from django.conf import settings
from django.contrib.auth.models import User
from django.utils import timezone

from bandit import rectifying
from bandit.core.posterior import Posterior, fold
from bandit.core.recalibration import fit
from bandit.models import Arm, Bandit
from benchmarks.reviewing.world import Outcome, at
from benchmarks.simulation.buckets import Buckets, Credit, on
from benchmarks.simulation.regimes import AT_FACE_VALUE
from benchmarks.simulation.site import PLAIN
from grading.models import Agent, Flag, Grade, ReviewAnswer, ReviewItem, Session, Settlement
from grading.models.review import Answer, ItemState, QueueEntry
from grading.review import queue, random_slice, recalibration, records, shares
from grading.reward.rewards import FLAGGED
from grading.vocabulary import Source, Status

BANDIT = "category"


class Site:
    """Eight arms, one reviewer, no session yet. The database is to be empty but for what a new site has."""

    def __init__(self) -> None:
        self.arms = list(Arm.objects.of(BANDIT).order_by("pk")[:8])
        self.names = tuple(arm.name for arm in self.arms)
        self.reviewer = User.objects.create(username="rita")
        self.agent = Agent.objects.create(name="bench")
        self.policy = replace(PLAIN, weights=AT_FACE_VALUE)
        self._buckets, self._versions = Buckets(), 0
        self._asked: dict[str, tuple[Outcome, Settlement]] = {}

    def finish(self, outcome: Outcome) -> None:
        """A session ends and is learned from."""
        self._buckets.apply(self.names[outcome.arm], outcome.day, _credit(outcome))

    def put_up(self, outcomes: Iterable[Outcome]) -> None:
        """Put what a rule flags, and what the slice has drawn, into the queue."""
        made, now = [], timezone.now()
        for outcome in outcomes:
            arm = self.arms[outcome.arm]
            session = Session(agent=self.agent, external_id=outcome.name, category=arm, ended_at=at(outcome.day))
            drawn = shares.number(shares.SLICE, self.agent.name, outcome.name) < settings.REVIEW_SLICE
            chance = settings.REVIEW_SLICE if drawn else None
            if outcome.flagged or chance is not None:
                made.append((session, outcome, chance))
        Session.objects.bulk_create([session for session, _, _ in made])
        Grade.objects.bulk_create(
            Grade(
                session=session,
                source=outcome.source,
                status=Status.SCORED,
                value=outcome.value,
                model="judge" if outcome.source == Source.JUDGE else "",
            )
            for session, outcome, _ in made
        )
        settled = [
            Settlement(
                session=session,
                revision=1,
                value=outcome.value,
                source=outcome.source,
                final=outcome.source == Source.JUDGE,
                weight=1.0,
                steps=[],
            )
            for session, outcome, _ in made
        ]
        Settlement.objects.bulk_create(settled)
        Flag.objects.bulk_create(
            Flag(session=session, rule="A1", detail="a pull request, yet no real grade", raised_at=now)
            for session, outcome, _ in made
            if outcome.flagged
        )
        ReviewItem.objects.bulk_create(
            ReviewItem(
                session=session,
                entered_as=QueueEntry.RULE if outcome.flagged else QueueEntry.SLICE,
                slice_probability=chance,
                rank=random_slice.rank(session),
                entered_at=now,
            )
            for session, outcome, chance in made
        )
        self._asked |= {row[1].name: (row[1], settlement) for row, settlement in zip(made, settled, strict=True)}

    def review(self, count: int) -> None:
        """A person answers so many that the queue hands out, reading the evidence; then the recalibration is fitted to
        what is known by now and put in force.
        """
        for number in range(count):
            item = queue.next_for(self.reviewer, claim := f"page {number}")
            if item is None:
                break
            outcome, settlement = self._asked[item.session.external_id]
            seen = {
                "settlement": settlement,
                "slice_probability": item.slice_probability,
                "stratum": FLAGGED if outcome.flagged else "",
                "place": item.place,
            }
            given = {"value": outcome.human, "claim": claim, "seen": seen}
            said = records.append(item.session, self.reviewer, Answer.GRADE, **given)
            queue.close(item.session, ItemState.DONE, self.reviewer)
            arm = self.names[outcome.arm]
            self._buckets.reverse(arm, outcome.day, _credit(outcome))
            self._buckets.apply(arm, outcome.day, Credit(value=said.value or 0.0, source=Source.HUMAN))
        self._recalibrate()

    def posterior(self, day: int) -> Posterior:
        return fold(self._buckets.rows, arms=self.names, policy=self.policy, today=on(day))

    def _recalibrate(self) -> None:
        pairs = recalibration.pairs(BANDIT, at(0))
        kinds = {(row.source, row.stratum) for row in self._buckets.rows if row.source != Source.HUMAN}
        offsets = fit(pairs, {(arm, *kind) for arm in self.names for kind in kinds})
        if offsets:
            self._versions += 1
            rectifying.put_in_force(BANDIT, offsets, version=self._versions, by="bench")
            held = rectifying.in_force(Bandit.objects.named(BANDIT))
            self.policy = replace(self.policy, rectifier=rectifying.offsets_of(held) if held else {})


def drawn_pairs() -> int:
    """How many blind answers count over all by now."""
    random_slice.take_turns(timezone.now())
    return ReviewAnswer.objects.blind().drawn().count()


def _credit(outcome: Outcome) -> Credit:
    return Credit(value=outcome.value, source=outcome.source, stratum=FLAGGED if outcome.flagged else "")
