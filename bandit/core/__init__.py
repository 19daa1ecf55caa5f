"""The arithmetic of bandits. Pure: no database, no clock, no chance of its own.

In: rows of integers by arm, grader and day, and a policy. Out: Beta posteriors, chances, estimates with their doubt.
Start with `table` and `posterior` (from sums to beliefs), then `propensity` (from beliefs to chances).
"""
