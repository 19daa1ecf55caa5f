"""Simulated sessions for `benchmarks/regret.py`: the site's own chain and bandit cores, sixty days in a second.

`world` says what would happen, whatever is chosen. `regimes` are ways to deal with lost grades, `site` grades, rewards
and reviews by them. `policies` compares releases of the bandit's policy in worlds that change. `buckets` has the
integer sums that all of them, and `benchmarks/scale.py`, learn from.
"""
