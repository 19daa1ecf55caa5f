"""One live reward for each session, whatever people do to sessions and to arms, and in whichever order."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from bandit import arms, audit, ledger, merging
from bandit.erasure import permit
from bandit.models import Arm, BanditKind, Bucket, LedgerEntry
from grading.intake import naming
from grading.models import SessionLesson
from grading.models.review import Answer
from grading.review import answers
from grading.review.corrections import CorrectionError
from grading.reward import rewards
from tests.casts import lesson
from tests.examples import examples
from tests.site import Site

ARMS = {"category": ("news", "social", "code"), "harness": ("claude-code", "codex", "gptme"), "lesson": ("a", "b", "c")}
arm = st.sampled_from([(bandit, name) for bandit, names in ARMS.items() for name in names])
pair = st.sampled_from([(bandit, one, two) for bandit, own in ARMS.items() for one in own for two in own])
value = st.integers(0, 100).map(lambda n: n / 100)
number = st.integers(0, 2)
step = st.one_of(
    st.tuples(st.just("merge"), pair),
    st.tuples(st.just("part"), arm),
    st.tuples(st.just("alias"), arm),
    st.tuples(st.just("retire"), arm),
    st.tuples(st.just("bring back"), arm),
    st.tuples(st.just("verdict"), st.tuples(number, value)),
    st.tuples(st.just("correct"), st.tuples(number, value)),
    st.tuples(st.just("exclude"), number),
    st.tuples(st.just("undo"), number),
)


def found(bandit, name):
    return Arm.objects.get(bandit__name=bandit, name=name)


class TwoLiveRewardsOfOneSession(TestCase):
    def begin(self):
        lessons = [lesson.lesson(name) for name in ARMS["lesson"]]
        self.reviewer = Site().person("rita", "reviewer")
        self.sessions = []
        for n, (category, harness) in enumerate(zip(ARMS["category"], ARMS["harness"], strict=True)):
            session = Site().session(category, harness=harness).session
            for each in lessons[: n + 1]:
                SessionLesson.objects.create(session=session, arm=each, taken=True)
            Site().on(session).judged(0.5)
            self.sessions.append(Site().on(session).recheck())

    @examples(12)
    @given(st.lists(step, max_size=14))
    def test_any_order_leaves_one_and_what_the_final_facts_alone_would(self, history):
        self.begin()
        for number, (verb, about) in enumerate(history):
            try:
                self.act(verb, about, number)
            except (ValueError, CorrectionError):
                continue
            self.check()
        lived = buckets()
        with permit(who="test", why="only the final facts") as counts:
            ledger.erase([session.observation for session in self.sessions], counts)
        for session in self.sessions:
            rewards.settle(session)
        assert buckets() == lived

    def test_merge_correct_undo_and_part_leave_one(self):
        self.begin()
        first = self.sessions[0]
        self.act("merge", ("category", "news", "social"), 0)
        self.act("correct", (0, 0.9), 1)
        self.act("undo", 0, 2)
        self.act("part", ("category", "news"), 3)
        self.check()
        assert ledger.live_entries("category", [first.observation]).get().arm.name == "news"

    def test_what_changes_in_the_other_bandits_during_a_merge_keeps_its_context(self):
        self.begin()
        first = self.sessions[0]
        self.act("merge", ("category", "news", "social"), 0)
        SessionLesson.objects.filter(session=first).update(salience=0.5)
        rewards.settle(first)
        self.act("part", ("category", "news"), 1)
        entry = ledger.live_entries("lesson", [first.observation]).get()
        assert (entry.grader.salience, entry.grader.context) == (50, "news")

    def act(self, verb, about, number):
        if verb in {"verdict", "correct"}:
            session, value = self.sessions[about[0]], about[1]
            if verb == "verdict":
                Site().on(session).judged(value).recheck()
            else:
                answers.submit(session, self.reviewer, answer=Answer.GRADE, value=value, reason="r")
        elif verb == "exclude":
            answers.submit(self.sessions[about], self.reviewer, answer=Answer.EXCLUDE, reason="r")
        elif verb == "undo":
            if (last := answers.last_of(self.reviewer)) is not None:
                answers.undo(last, self.reviewer)
        elif verb == "merge":
            bandit, one, two = about
            merging.merge(found(bandit, one), found(bandit, two), by="rita")
        elif verb == "part":
            naming.unmerge(found(*about), by="rita")
        elif verb == "alias":
            arms.add_alias(found(*about), f"{about[1]} {number}", by="rita")
        elif verb == "retire":
            arms.retire(found(*about), by="rita")
        else:
            arms.bring_back(found(*about), by="rita")

    def check(self):
        assert audit.doubled() == []
        assert audit.audit() == []
        live = LedgerEntry.objects.live().filter(bandit__kind=BanditKind.CHOICE)
        held = list(live.values_list("bandit", "observation"))
        assert len(held) == len(set(held))


def buckets():
    """Every bucket that holds anything."""
    columns = ("source", "model", "stratum", "salience", "version", "view", "witness", "standing", "agent", "context")
    grader = [f"grader__{name}" for name in columns]
    key = ("bandit__name", "arm__name", "effective_day", *grader)
    return sorted(Bucket.objects.exclude(n=0).values_list(*key, "n", "s", "q", "cost", "costed"))
