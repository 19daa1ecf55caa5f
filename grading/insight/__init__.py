"""Did it get worse, since when, and what came with it? Figures about sessions that change no reward.

In: sessions with their reward columns, facts and verdicts. Out: trends, the parts of a difference between two periods,
what changed since a mark on the time axis, harnesses and models compared on like work, and sentences about each.
Start with `changes.compare` and `since.read`, which load rows and call the pure functions of `core`.
loading: sessions summed by cell in SQL · marks: what happened when · trends: means by day or week · agents: which
harness and model on like work · advisories: what got worse beyond chance · sentences: every result as text
"""
