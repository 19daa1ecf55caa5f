"""From a session's evidence to its reward.

In: signals, facts, a patch, a journal; verdicts and people's grades as rows. Out: grade rows of the sources that answer
at once, one settlement with an explanation of every step, and credits for the bandits.
Start with `decide` (pure: how grades become a reward), then `rewards.settle` (the one path to it) and `sources`, which
calls `trajectory`, `journal` and `consumption`. production: what a session brought about, in one sum
explain: a decision as text · judged_pairs, human_pairs: what calibrating fits · lessons: what each lesson is worth
"""
