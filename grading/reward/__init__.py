"""From what was seen of a session to its reward.

In: signals, facts, a patch, a journal; verdicts and people's grades as rows. Out: grade rows of the sources that answer
at once, one settlement with every step in words, and credits for the bandits.
Start with `decide` (pure: how grades become a reward), then `rewards.settle` (the one path to it) and `sources`, which
asks `trajectory`, `journal` and `consumption`. production: what a session brought about, in one sum
explain: a decision in words · one_scale: fallbacks on the judge's scale
"""
