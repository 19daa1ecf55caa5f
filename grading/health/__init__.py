"""Does the site work? Heartbeats of its programs, runs of its periodic jobs, and endpoints that report on both.

In: what the programs record about themselves. Out: which have stopped, and whether the site is ready.
Start with `liveness` (pure): how a process detects by counters that another has stopped.
"""
