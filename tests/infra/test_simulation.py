"""The simulation behind the published figures of regret: it drives the site's own chain and cores, by its numbers."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from django.conf import settings

from bandit.models import PolicyVersion
from bandit.policies import NEW_SITE
from benchmarks import regret
from benchmarks.simulation import figures, people, reading, sessions, stories
from benchmarks.simulation.policies import EARLIER
from benchmarks.simulation.regimes import (
    FLOOR,
    JOURNAL,
    MISSING,
    NOBODY,
    ORACLE,
    REVIEWS,
    SITE,
    SITE_CAPS,
    WEIGHTED,
)
from benchmarks.simulation.run import Outcome, runs
from benchmarks.simulation.site import PLAIN, Site
from benchmarks.simulation.world import LOSS, SLICE, VICTIM, Facts, world
from grading.vocabulary import Reason, Source

LOST = Facts(
    day=0,
    arm=VICTIM,
    quality=0.7,
    judge=0.72,
    trajectory=0.6,
    is_stub=True,
    fault=Reason.LOG_OVERWRITTEN,
    contradicted=True,
    in_slice=True,
    human=0.0,
)


def site(regime, *facts):
    made = Site(regime, PLAIN)
    for each in facts:
        made.finish(each)
    return made


def learned_by(made):
    return [(each.credit.source, each.credit.value, each.credit.stratum) for each in made.sessions if each.credit]


def test_the_simulation_has_the_sites_numbers():
    assert SITE == settings.EVIDENCE_WEIGHTS
    chain = (sessions.FLOOR, sessions.THRESHOLD, sessions.VETO_CAP)
    assert chain == (settings.FLOOR, settings.FLOOR_THRESHOLD, settings.VETO_CAP)
    assert settings.REVIEW_SLICE == SLICE
    theirs, ours, sizes = PolicyVersion(**{**NEW_SITE, **EARLIER["0.1"]}), stories.POLICY, stories.SIZES
    assert (theirs.half_life_days, theirs.floor) == (PLAIN.half_life, PLAIN.floor) == (ours.half_life, ours.floor)
    assert theirs.prior_strength == ours.prior_strength
    assert theirs.caps == SITE_CAPS
    assert theirs.consumption_per_day == reading.PER_DAY
    assert (theirs.consumption_boost, theirs.consumption_penalty) == (sizes.boost, sizes.penalty)
    assert (theirs.consumption_window_days, theirs.consumption_min_samples) == (sizes.window, sizes.least)


def test_the_best_arm_loses_36_percent_of_its_grades():
    """By the arithmetic, and by the dice over twenty worlds, a day in ten of which has an outage."""
    assert pytest.approx(0.36, abs=0.001) == LOSS
    worlds = [world(seed) for seed in range(20)]
    lost = [(each.worktree & (each.race | each.outage)).mean() for each in worlds]
    assert np.mean(lost) == pytest.approx(LOSS, abs=0.01)


@pytest.mark.parametrize(
    ("regime", "learned"),
    [
        (FLOOR, [("floor", 0.1, "flagged")]),
        (JOURNAL, [("journal", pytest.approx(0.32, abs=0.005), "flagged")]),
        (NOBODY, [("journal", pytest.approx(0.32, abs=0.005), "flagged")]),
        (MISSING, []),
        (ORACLE, [("judge", 0.7, "")]),
    ],
)
def test_what_is_learned_of_a_lost_grade(regime, learned):
    assert learned_by(site(regime, LOST)) == learned


def test_a_trajectory_stands_in_where_the_transcript_is_whole():
    whole = replace(LOST, is_stub=False, fault=Reason.QUOTA_EXHAUSTED)
    assert learned_by(site(NOBODY, whole)) == [("trajectory", 0.6, "")]


def test_a_late_verdict_leaves_the_posterior_as_if_it_had_come_at_once():
    late, prompt = site(WEIGHTED, LOST), site(WEIGHTED, replace(LOST, fault=Reason.NONE))
    assert late.posterior(1).alpha.tolist() != prompt.posterior(1).alpha.tolist()
    late.rejudge(upto=0)
    assert learned_by(late) == [("judge", 0.72, "")]
    assert late.posterior(1).alpha.tobytes() == prompt.posterior(1).alpha.tobytes()
    assert late.posterior(1).beta.tobytes() == prompt.posterior(1).beta.tobytes()


def test_a_review_outranks_the_machine_and_is_compared_with_it():
    made = site(REVIEWS, LOST, replace(LOST, in_slice=False))
    (pair,) = people.review(made)
    assert (pair.source, pair.stratum, pair.human) == (Source.JOURNAL, "flagged", 0.7)
    assert learned_by(made)[0] == ("human", 0.7, "")
    assert people.review(made) == []
    assert people.offsets([pair, pair])["arm-0", "journal", "flagged"] > 0


def test_the_simulation_says_the_same_with_any_number_of_workers_and_ranks_the_plain_cases():
    """Two seeds, three weeks: a lost grade learned as a floor costs most, one re-judged next to nothing."""
    regimes = [ORACLE, FLOOR, NOBODY, MISSING]
    found = runs([7, 8], regimes, days=21, workers=2)
    assert runs([7, 8], regimes[:2], days=21, workers=1).items() <= found.items()
    assert figures.ratio(found, ORACLE) == 1
    assert figures.ratio(found, FLOOR) > figures.ratio(found, NOBODY) > figures.ratio(found, MISSING)
    assert figures.bias(found, FLOOR) < figures.bias(found, NOBODY) < figures.bias(found, MISSING)


def test_the_table_names_every_policy_and_its_target():
    regimes = regret.REGIMES
    found = {regime.name: [Outcome(regret=each, share=0.5, mean=0.64) for each in (10.0, 20.0)] for regime in regimes}
    assert len(found) == len(regimes)
    lines = figures.table(found, regimes).splitlines()
    assert len(lines) == 2 + len(regimes)
    assert "1.000  1.000 – 1.000  ≤ 1.80         0.50  -0.0100" in next(line for line in lines if REVIEWS.name in line)
    assert figures.mean_regret(found, ORACLE) == 15.0


def test_reading_is_worth_what_it_leaves_behind():
    """Seed 000's arithmetic: two ideas and a post are .4·.792 + .2·.5 + .1; commits say .08 of the same session."""
    two_ideas = reading.Counts(ideas=2, posts=1)
    artifacts, commits = (
        reading.graded(two_ideas, is_reading=True, measure=measure).value
        for measure in (reading.ARTIFACTS, reading.COMMITS)
    )
    assert artifacts == pytest.approx(0.4 * 0.7925 + 0.2 * 0.5 + 0.1, abs=1e-4)
    assert commits == reading.WITHOUT_COMMITS


def test_reading_that_left_nothing_has_no_reward_on_the_site():
    nothing = reading.Counts()
    assert reading.graded(nothing, is_reading=True, measure=reading.ARTIFACTS) is None
    assert reading.graded(nothing, is_reading=True, measure=reading.COMMITS).value == reading.WITHOUT_COMMITS


def test_reading_is_chosen_more_often_where_artifacts_count():
    told = {measure.name: [told] for measure, told in zip(reading.MEASURES, stories.in_world(3, days=28), strict=True)}
    found = stories.measured(told)
    before, after = found[reading.COMMITS_UNLIMITED.name], found[reading.ARTIFACTS_UNLIMITED.name]
    assert before["mean"] < after["mean"]
    assert before["share"] < after["share"]
    assert found[reading.ARTIFACTS.name]["share"] == pytest.approx(reading.PER_DAY / 50)
    assert len(stories.table(told).splitlines()) == 1 + len(reading.MEASURES)


@pytest.mark.slow
def test_the_regret_benchmark_runs():
    command = [sys.executable, "benchmarks/regret.py", "--runs", "1", "--days", "10"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    last = json.loads(done.stdout.splitlines()[-1])
    assert last.keys() >= {"floor", "journal", "weighted_replaced", "missing_rejudged", "reviews10", "victim_bias"}
    assert last["floor"] > last["missing_rejudged"]
    assert abs(last["victim_bias"]) < 0.1
