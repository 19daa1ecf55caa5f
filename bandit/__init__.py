"""Bandits that are exact under correction: arms, a ledger of rewards, integer sums, decisions.

In: credits, each an arm, an observation, a value and a grader; all of them are opaque text, and nothing here knows of
grading. Out: posteriors, folded when they are read, and decisions with their chances and reasons.
Start with `ledger` (rewards in), `reading` (posteriors out) and `selection` (choosing); the arithmetic is in `core`.
"""
