"""The arithmetic of bandits. Pure: no database, no clock, no random numbers.

In: rows of integers by arm, grader and day, and a policy. Out: Beta posteriors, chances, estimates with errors.
Start with `table` and `posterior` (from sums to posteriors), then `propensity` (from posteriors to chances).
"""
