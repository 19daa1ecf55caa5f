"""Sessions without a grade: what is chance, what is not, and how often a site where all is well is disturbed."""

import random

import pytest
from scipy.stats import hypergeom

from grading.monitoring.streaks import LEVEL, ObservedSession, SessionEnding, find_streaks

pytestmark = pytest.mark.pure

GRADED, UNSCORED, DIED = SessionEnding.GRADED, SessionEnding.UNSCORED, SessionEnding.INFRASTRUCTURE
ARMS, A_DAY, WINDOW, LOOKS_A_DAY = 8, 50, 28, 2


def line(*runs):
    """Sessions in order: (arm, ending, how many) each."""
    spread = [(arm, ending) for arm, ending, n in runs for _ in range(n)]
    return [ObservedSession(key=key, arm=arm, ending=ending) for key, (arm, ending) in enumerate(spread)]


def usual(arms="abcd", rounds=20):
    """A past in which every fifth session of each arm is without a grade, and no two in a row."""
    return [
        (arm, UNSCORED if (n + 2 * place) % 5 == 3 else GRADED, 1)
        for n in range(rounds)
        for place, arm in enumerate(arms)
    ]


def live(seed, days, missing):
    """What is found in a simulated site, each time that a rule looks: (day, arms). `missing`: of a day and an arm."""
    chance = random.Random(seed)
    rates = [chance.uniform(0.1, 0.3) for _ in range(ARMS)]
    sessions, known = [], set()
    for day in range(days):
        for place in range(A_DAY):
            arm = chance.randrange(ARMS)
            lost = chance.random() < missing(day, arm, rates[arm])
            kind = (DIED if chance.random() < 0.1 else UNSCORED) if lost else GRADED
            sessions.append(ObservedSession(key=len(sessions), arm=f"arm-{arm}", ending=kind))
            if place % (A_DAY // LOOKS_A_DAY) == A_DAY // LOOKS_A_DAY - 1:
                found = find_streaks(sessions[-WINDOW * A_DAY :], known)
                known = {each.arm for each in (*found.streaks, *found.excesses)}
                yield day, known


def raised(looks):
    """How often something was found of an arm of which nothing was before: (day, arm)."""
    before = set()
    opened = []
    for day, known in looks:
        opened += [(day, arm) for arm in sorted(known - before, key=str)]
        before = known
    return opened


@pytest.mark.parametrize("seed", range(4))
def test_a_site_where_all_is_well_is_disturbed_once_in_sixty_days_at_most(seed):
    assert len(raised(live(seed, 60, lambda _day, _arm, rate: rate))) <= 1


@pytest.mark.parametrize("seed", range(2))
def test_an_arm_whose_every_session_is_silent_is_found_within_a_week(seed):
    opened = raised(live(seed, 37, lambda day, arm, rate: 1 if arm == 3 and day >= 30 else rate))
    assert [arm for day, arm in opened if day >= 30] == ["arm-3"]


@pytest.mark.parametrize("seed", range(2))
def test_an_outage_that_hits_all_arms_is_one_thing(seed):
    opened = raised(live(seed, 26, lambda day, _arm, rate: 1 if day in {20, 21} else rate))
    assert [arm for day, arm in opened if day >= 20] == [None]


def test_a_run_is_measured_by_the_other_arms_and_its_own_past():
    (streak,) = find_streaks(line(*usual(), ("a", UNSCORED, 9))).streaks
    assert (streak.arm, len(streak.sessions)) == ("a", 9)
    assert streak.others == pytest.approx((12 + 1) / (60 + 2))
    assert streak.usual == pytest.approx((20 * 13 / 62 + 4) / (20 + 20))
    assert streak.chance == pytest.approx(streak.usual**9)


@pytest.mark.parametrize("n", [1, 4])
def test_a_short_run_is_chance(n):
    assert not find_streaks(line(*usual(), ("a", UNSCORED, n))).streaks


def test_a_graded_session_ends_a_run():
    assert not find_streaks(line(*usual(), ("a", UNSCORED, 4), ("a", GRADED, 1), ("a", UNSCORED, 4))).streaks


def test_an_arm_that_was_never_graded_is_found():
    (streak,) = find_streaks(line(*usual("bcd"), ("a", UNSCORED, 12))).streaks
    assert streak.arm == "a"


def test_what_is_usual_is_at_most_a_half():
    past = [("a", UNSCORED, 18), ("a", GRADED, 1)] * 3
    (streak,) = find_streaks(line(*usual("b"), *past, ("a", UNSCORED, 30))).streaks[-1:]
    assert streak.usual == 0.5


def test_a_run_of_one_arm_among_few_of_others_is_that_arms():
    runs = [("a", UNSCORED, 5), ("b", UNSCORED, 1), ("a", UNSCORED, 6), ("c", UNSCORED, 1)]
    assert [streak.arm for streak in find_streaks(line(*usual(), *runs)).streaks] == ["a"]


def test_infrastructure_that_ends_one_arm_more_often_is_found():
    past = [(arm, DIED if arm == "a" and n % 3 == 0 else GRADED, 1) for n in range(24) for arm in "abcd"]
    (excess,) = find_streaks(line(*past)).excesses
    assert (excess.arm, len(excess.died), excess.n, excess.others_died, excess.others) == ("a", 8, 24, 0, 72)
    assert excess.p < LEVEL


def test_an_excess_among_very_many_sessions_has_the_p_value_of_the_hypergeometric_distribution():
    """The numbers of ways have thousands of digits then, so the rule would take minutes with them."""
    past = [("a", DIED, 1_200), ("a", GRADED, 18_800), ("b", DIED, 4_000), ("b", GRADED, 76_000)]
    (excess,) = find_streaks(line(*past)).excesses
    assert excess.p == pytest.approx(hypergeom.sf(1_199, 100_000, 5_200, 20_000), rel=1e-6)


def test_infrastructure_that_ends_all_alike_is_not_an_arms():
    past = [(arm, DIED if n % 3 == 0 else GRADED, 1) for n in range(24) for arm in "abcd"]
    assert not find_streaks(line(*past)).excesses


def test_what_was_found_stays_while_chance_would_have_it_hardly_more_easily():
    sessions = next(
        held
        for n in range(5, 12)
        if find_streaks(held := line(*usual(), ("a", UNSCORED, n)), {"a"}).streaks and not find_streaks(held).streaks
    )
    assert find_streaks(sessions, {"a"}).streaks


def test_of_nothing_nothing_is_found():
    assert find_streaks([]).streaks == find_streaks([]).excesses == ()
