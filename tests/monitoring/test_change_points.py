"""A level that changes is found and dated; one that stays is left alone; a mean that moves is told from a mix."""

import numpy as np
import pytest

from grading.monitoring.change_points import (
    BLOCK,
    FALSE_A_YEAR,
    Cause,
    block_means,
    find_changes,
    scores,
    split_change,
    threshold,
)

pytestmark = pytest.mark.pure


def noise(seed, n, level=0.5, sd=0.2):
    return list(np.random.default_rng(seed).normal(level, sd, n))


def test_scores_are_standard_normal_where_nothing_changes():
    found = np.concatenate([scores(noise(seed, 200))[10:] for seed in range(50)])
    assert (found.mean(), found.std()) == pytest.approx((0, 1), abs=0.03)


@pytest.mark.parametrize("change", [0.3, -0.3])
def test_a_change_is_dated_and_told_once(change):
    series = noise(1, 100) + noise(2, 60, 0.5 + change)
    (found,) = find_changes(series, threshold(15_000))
    assert 94 <= found.since <= 106 < found.detected_at <= 125
    assert found.after - found.before == pytest.approx(change, abs=0.1)
    assert (found.n_before, found.n_after) == (found.since, 160 - found.since)


def test_what_never_varied_and_a_short_series_raise_nothing():
    assert find_changes([0.5] * 300, threshold(10_000)) == []
    assert find_changes([0.1] * 5 + [0.9] * 5, threshold(100)) == []
    assert find_changes([], threshold(0)) == []


def test_a_few_odd_values_are_no_change():
    assert find_changes([*noise(3, 100), 50.0, 50.0, *noise(4, 20)], threshold(15_000)) == []


def test_there_are_about_as_many_false_alarms_as_meant():
    """Four series of five years' values each: the formula means 10, and learning the level makes it fewer."""
    limit = threshold(2_000)
    found = sum(len(find_changes(noise(seed, 10_000), limit)) for seed in range(4))
    assert found <= 2 * FALSE_A_YEAR * 20


def test_more_values_need_more():
    assert threshold(40_000) > threshold(10_000) > threshold(10)


def rows(**parts):
    """(part, value): how many at which level."""
    return [(part, level) for part, (n, level) in parts.items() for _ in range(n)]


def test_a_mean_that_moved_by_its_mix_is_told_from_one_that_moved_by_its_levels():
    mixed = split_change(rows(easy=(40, 0.8), hard=(10, 0.4)), rows(easy=(10, 0.8), hard=(40, 0.4)))
    assert (mixed.cause, mixed.levels) == (Cause.MIX, 0)
    assert mixed.mix == pytest.approx(0.32 - 0.56)
    worse = split_change(rows(easy=(40, 0.8), hard=(10, 0.4)), rows(easy=(40, 0.6), hard=(10, 0.2)))
    assert (worse.cause, worse.mix) == (Cause.LEVELS, 0)
    assert worse.levels == pytest.approx(-0.2)


@pytest.mark.parametrize(
    "after", [rows(easy=(4, 0.6), hard=(4, 0.2)), rows(new=(40, 0.6), easy=(10, 0.8)), rows(easy=(40, 0.2)), []]
)
def test_nobody_can_tell_from_too_few_that_can_be_compared(after):
    assert split_change(rows(easy=(40, 0.8), hard=(10, 0.4)), after).cause is Cause.CANNOT_TELL


def test_blocks_are_means_and_an_unfinished_one_waits():
    assert block_means([0.0] * BLOCK + [1.0] * BLOCK + [0.5] * (BLOCK - 1)) == [0.0, 1.0]
    assert block_means([0.5]) == []
