"""The arithmetic of bandits. Pure: no database, no clock, no random numbers.

Input: rows of integers by arm, grader and day, and a policy. Output: Beta posteriors, chances, estimates with errors.
Start with `table` and `posterior` (from sums to posteriors), then `propensity` (from posteriors to chances).
"""
