"""A site on which wrong rewards have misled the bandit, and people who review: the product's own queue and answers.

`world` is what would happen, whatever is chosen and asked; `site` keeps its rows and hands out and records through
`grading.review`; `orders` are the ways to say who is asked about first; `run` is six weeks of it;
`coverage` is whether "over all" holds.
"""
