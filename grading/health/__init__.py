"""Does the site work? Heartbeats of its programs, turns of its periodic jobs, and what programs may ask about both.

In: what the programs write of themselves. Out: who stands still, and whether the site is ready.
Start with `liveness` (pure): how one process tells from counters that another stands still.
"""
