"""Every kind of answer given in a real Chromium by keyboard alone."""

from statistics import median, quantiles

import pytest

from grading.models import Grade, ReviewAnswer
from grading.models.review import Answer
from grading.reward import rewards
from grading.vocabulary import Source
from tests.browser.desk_hand import Hand
from tests.browser.watch import log_in
from tests.casts import desk as desk_cast
from tests.site import Site

pytestmark = pytest.mark.browser

COUNT = 10  # every kind of answer once; more would repeat them


def planned(index: int) -> tuple[Answer, list[str], float | None]:
    """What the hand does with the index-th: an answer, its keys, and the value that shall be on record.

    One digit, two digits, 1, an acceptance, and every tenth no grade at all. The reward of each is .32.
    """
    if index % 10 == 9:
        return Answer.SKIP, ["s", "Enter"], None
    if index % 10 == 8:
        return Answer.ACCEPT, ["a", "Enter"], 0.32
    if index % 10 == 7:
        return Answer.GRADE, ["=", "Enter"], 1.0
    if index % 2:
        first, second = index % 3 + 2, index * 7 % 10
        return Answer.GRADE, [str(first), str(second), "Enter"], first / 10 + second / 100
    return Answer.GRADE, [str(index % 4 + 2), "Enter"], (index % 4 + 2) / 10


def grade_next(hand: Hand, index: int) -> tuple[int, Answer, float | None]:
    """Answer what is on the desk as planned, with a reason where one is needed; gives what shall be on record."""
    session = int(hand.where().split("/")[2])
    answer, keys, value = planned(index)
    if value is not None and abs(value - 0.32) > 0.2:
        # A second digit comes within the time that makes two decimals, so that all of them are pressed first.
        hand.press(*keys[:-1])
        hand.page.wait_for_selector("[data-part=need] b")
        hand.press("Enter")
        hand.page.wait_for_selector("#id_reason:focus")
        hand.ready()
        hand.page.keyboard.type(f"number {index}, seen")
        hand.goes_on("Control+Enter")
    else:
        hand.goes_on(*keys)
    return session, answer, value


def test_sessions_are_graded_by_keyboard_alone(page, live_site, capsys):
    """All answers are on record with the values typed; nothing jumped, no mouse, no complaint."""
    Site().person("rita", "reviewer")
    desk_cast.queue_of(COUNT + 3)
    hand = Hand(page)
    page.set_viewport_size({"width": 1440, "height": 900})
    hand.fill_in_the_log_in("rita")
    hand.open()
    expected = [grade_next(hand, index) for index in range(COUNT)]
    given = ReviewAnswer.objects.order_by("pk").values_list("session", "answer", "value")
    assert [(session, answer, value and round(value, 2)) for session, answer, value in given] == [
        (session, str(answer), value and round(value, 2)) for session, answer, value in expected
    ]
    assert len({session for session, _, _ in expected}) == COUNT
    graded = [value for _, answer, value in expected if answer != Answer.SKIP]
    assert Grade.objects.filter(source=Source.HUMAN).count() == len(graded) == COUNT - 1
    assert hand.mouse() == 0
    assert hand.shifted() == 0
    # A refusal for want of a reason is a 422, which Chromium notes on its console.
    assert [each for each in hand.complaints if "422" not in each] == []
    with capsys.disabled():
        slowest = quantiles(hand.seconds, n=20)[-1]
        print(  # noqa: T201 - the measure, for whoever runs it
            f"\n{len(hand.seconds)} requests of the desk: median {1000 * median(hand.seconds):.0f} ms, "
            f"95th percentile {1000 * slowest:.0f} ms"
        )


def test_undo_by_keyboard_brings_back_what_held(page, live_site):
    Site().person("rita", "reviewer")
    first, *_ = desk_cast.queue_of(3)
    hand = Hand(page)
    log_in(page, "rita")
    hand.open()
    hand.goes_on("4", "1", "Enter")
    assert "Saved .41: cross-repo" in hand.says()
    assert rewards.live(first).value == 0.41
    hand.goes_on("u")
    assert hand.where() == f"/review/{first.pk}/"
    assert "Undid" in hand.says()
    assert rewards.live(first).value == 0.32
    assert hand.complaints == []
