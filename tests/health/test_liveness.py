"""Counters that grow or don't, by the watcher's own clock: who stands still, and when nobody can say."""

import pytest

from grading.health.liveness import Component, Life, Liveness

pytestmark = pytest.mark.pure

EVERY = 5.0
WALL = 1_000_000.0


class Watch:
    """A watcher that looks twice a heartbeat, at programs of which some beat."""

    def __init__(self):
        self.seen = Liveness(every=EVERY)
        self.now, self.ahead = 100.0, 0.0
        self.counts = dict.fromkeys(Component, 0)

    def pass_by(self, seconds, *, beating=tuple(Component)):
        for _ in range(round(2 * seconds / EVERY)):
            self.now += EVERY / 2
            for part in beating:
                self.counts[part] += 1
            self.look()

    def look(self):
        self.seen.observe(self.counts, self.now, WALL + self.now + self.ahead)

    def silent(self):
        return [part for part in Component if self.seen.life(part) is Life.SILENT]


@pytest.fixture
def watch():
    return Watch()


OTHERS = tuple(part for part in Component if part is not Component.WORKER)


def test_a_part_that_does_not_beat_for_twenty_seconds_stands_still(watch):
    watch.pass_by(90)
    assert {watch.seen.life(part) for part in Component} == {Life.ALIVE}
    watch.pass_by(17.5, beating=OTHERS)
    assert watch.silent() == []
    assert watch.seen.life(Component.WORKER) is Life.UNKNOWN
    watch.pass_by(2.5, beating=OTHERS)
    assert watch.silent() == [Component.WORKER]
    watch.pass_by(2.5)
    assert watch.seen.life(Component.WORKER) is Life.ALIVE


def test_a_watcher_that_has_just_begun_judges_nobody_for_a_minute(watch):
    assert watch.seen.life(Component.WORKER) is Life.UNKNOWN
    watch.pass_by(60, beating=OTHERS)
    assert watch.silent() == []
    watch.pass_by(2.5, beating=OTHERS)
    assert watch.silent() == [Component.WORKER]


def test_a_gap_in_its_own_looking_is_no_outage_of_others(watch):
    watch.pass_by(90)
    watch.now += 3600
    watch.look()
    assert not watch.seen.is_settled
    watch.pass_by(57.5, beating=OTHERS)
    assert watch.silent() == []
    watch.pass_by(5, beating=OTHERS)
    assert watch.silent() == [Component.WORKER]


@pytest.mark.parametrize("ahead", [8 * 3600, -3600])
def test_a_clock_that_was_set_and_a_machine_that_slept_are_gaps_too(watch, ahead):
    watch.pass_by(90)
    watch.ahead += ahead
    watch.pass_by(30, beating=())
    assert watch.silent() == []
    assert not watch.seen.is_settled


def test_a_counter_that_was_put_back_has_moved_all_the_same(watch):
    watch.pass_by(90)
    watch.counts = dict.fromkeys(Component, 0)
    watch.look()
    assert {watch.seen.life(part) for part in Component} == {Life.ALIVE}


def test_a_part_that_never_began_stands_still_too(watch):
    for _ in range(40):
        watch.now += EVERY / 2
        watch.seen.observe({}, watch.now, WALL + watch.now)
    assert watch.silent() == list(Component)
