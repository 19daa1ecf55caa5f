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
from benchmarks.regret import Run, bias, figures, regret_ratio, run_regimes, table
from benchmarks.simulation import site as simulated
from benchmarks.simulation.policies import Life, live
from benchmarks.simulation.policies import figures as figures_of_policies
from benchmarks.simulation.regimes import (
    BESIDE,
    FLOOR,
    JOURNAL,
    MISSING,
    NAMED,
    NOBODY,
    ORACLE,
    REVIEWS,
    SITE_CAPS,
    SITE_WEIGHTS,
    WEIGHTED,
)
from benchmarks.simulation.rivals import EARLIER, TODAY, History, kl_ucb, players, policy_of, site_player
from benchmarks.simulation.site import PLAIN, SimulatedSite, fit_offsets
from benchmarks.simulation.world import LOSS, SLICE, VICTIM, Facts, make_world
from benchmarks.simulation.worlds import OUTSIDE, WORLDS, make_changing_world
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
    made = SimulatedSite(regime)
    for each in facts:
        made.finish(each)
    return made


def learned_by(made):
    return [(each.credit.source, each.credit.value, each.credit.stratum) for each in made.sessions if each.credit]


def test_the_simulation_has_the_sites_numbers():
    assert SITE_WEIGHTS == settings.EVIDENCE_WEIGHTS
    chain = (simulated.CHAIN_FLOOR, simulated.CHAIN_THRESHOLD, simulated.VETO_CAP)
    assert chain == (settings.FLOOR, settings.FLOOR_THRESHOLD, settings.VETO_CAP)
    assert settings.REVIEW_SLICE == SLICE
    first = PolicyVersion(**{**NEW_SITE, **EARLIER["0.1"]})
    assert (first.half_life_days, first.floor, first.caps) == (PLAIN.half_life, PLAIN.floor, SITE_CAPS)


def test_the_best_arm_loses_36_percent_of_its_grades():
    """By the arithmetic, and by the dice over twenty worlds, a day in ten of which has an outage."""
    assert pytest.approx(0.36, abs=0.001) == LOSS
    worlds = [make_world(seed) for seed in range(20)]
    lost = [(each.worktree & (each.overwritten | each.outage)).mean() for each in worlds]
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
    late.judge_again(last_day=0)
    assert learned_by(late) == [("judge", 0.72, "")]
    assert late.posterior(1).alpha.tobytes() == prompt.posterior(1).alpha.tobytes()
    assert late.posterior(1).beta.tobytes() == prompt.posterior(1).beta.tobytes()


def test_a_review_outranks_the_machine_and_is_compared_with_it():
    made = site(REVIEWS, LOST, replace(LOST, in_slice=False))
    (pair,) = made.review()
    assert (pair.source, pair.stratum, pair.human) == (Source.JOURNAL, "flagged", 0.7)
    assert learned_by(made)[0] == ("human", 0.7, "")
    assert made.review() == []
    assert fit_offsets([pair, pair])["arm-0", "journal", "flagged"] > 0


def test_the_simulation_says_the_same_with_any_number_of_workers_and_ranks_the_plain_cases():
    """Two seeds, three weeks: a lost grade learned as a floor costs most, one re-judged next to nothing."""
    regimes = [ORACLE, FLOOR, NOBODY, MISSING]
    found = run_regimes([7, 8], regimes, days=21, workers=2)
    assert run_regimes([7, 8], regimes[:2], days=21, workers=1).items() <= found.items()
    assert regret_ratio(found, ORACLE) == 1
    assert regret_ratio(found, FLOOR) > regret_ratio(found, NOBODY) > regret_ratio(found, MISSING)
    assert bias(found, FLOOR) < bias(found, NOBODY) < bias(found, MISSING)


def test_the_table_has_every_regime():
    regimes = (ORACLE, *NAMED.values(), *BESIDE.values())
    found = {regime.name: [Run(regret=each, share=0.5, mean=0.64) for each in (10.0, 20.0)] for regime in regimes}
    lines = table(found).splitlines()
    assert len(lines) == 1 + len(regimes)
    line = next(line for line in lines if line.startswith(f"{REVIEWS.name}  "))
    assert line.split()[-6:] == ["1.000", "1.000", "–", "1.000", "0.50", "-0.0100"]
    assert figures(found)["oracle_regret"] == 15.0


def test_a_policy_that_follows_change_loses_less_where_the_best_arm_breaks():
    world = make_changing_world(WORLDS["breaks"], seed=3, days=40)
    assert live(world, site_player(policy_of(TODAY))).regret < live(world, site_player(policy_of("0.1"))).regret


def test_every_player_does_better_than_chance_in_a_steady_world():
    world = make_changing_world(WORLDS["steady"], seed=3, days=20)
    by_chance = float((world.means.max(1) - world.means.mean(1)).sum() * world.rules.per_day)
    for name, play in players().items():
        assert live(world, play).regret < 0.8 * by_chance, name


def test_delayed_and_lost_rewards_are_not_in_the_history():
    seen: list[History] = []

    def watch(history, draws, seed):
        seen.append(history)
        return kl_ucb(history, draws, seed)

    live(make_changing_world(replace(WORLDS["delayed"], per_day=10), seed=3, days=6), watch)
    assert [int(history.n.sum()) for history in seen] == [0, 0, 0, 0, 10, 20]
    world = make_changing_world(replace(WORLDS["missing"], per_day=10, lost=1.0), seed=3, days=2)
    live(world, watch)
    assert seen[-1].n[:, world.means[0].argmax()].sum() == 0


def test_the_ratio_of_a_world_is_to_its_best_rival():
    lives = {
        world: {
            name: [Life(regret=regret, coverage=0.9, broken=0.0)] * 2
            for name, regret in ((TODAY, 6.0), ("first", 12.0), ("second", 3.0 if world == "ties" else 6.0))
        }
        for world in (*WORLDS, *OUTSIDE)
    }
    found = figures_of_policies(lives)
    assert (found["ratios"]["ties"], found["ratios"]["steady"], found["worst_upper"]) == (2.0, 1.0, 2.0)
    assert found["geometric_mean"] == round(2 ** (1 / 16), 3)


@pytest.mark.slow
def test_the_regret_benchmark_runs():
    command = [sys.executable, "benchmarks/regret.py", "--runs", "1", "--days", "10"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    last = json.loads(done.stdout.splitlines()[-1])
    assert last.keys() >= {"floor", "journal", "weighted_replaced", "missing_rejudged", "reviews10", "victim_bias"}
    assert last["floor"] > last["missing_rejudged"]
    assert abs(last["victim_bias"]) < 0.1
