"""The founding incident, lived again on a demo site by its buttons, and by `docs/march31.py` for its page.

In: an empty site whose judge is the simulator. Out: two weeks of history, then real submissions, verdicts, a correction
and its undo, and beside what the bandit believes what it would have learned from floors.
Start with `march31` (its steps, and the figures of each); `history` is what was there before, `logs` writes the
sessions' logs.
"""
