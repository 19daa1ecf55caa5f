"""Seed 001's faults and a bandit that learns through them: the site's own chain and cores, sixty days in a second.

`world` is what would happen, whatever is chosen; `regimes` are ways to deal with lost grades; `sessions` grade by
`grading.reward.decide`; `buckets` add up as the ledger does; `people` review; `run` chooses by `bandit.core` and counts
the regret; `figures` are what is printed. `reading` and `stories` are seed 000's.
"""
