"""The judge's work: jobs are rows (L7), claimed by one conditional UPDATE, fenced by a lease, each attempt on record.

enqueue ─► claim ─► run (the call, no transaction held) ─► results.apply ─► settle
▲                                                            │ again, later
└──────────────────────── sweep ◄────────────────────────────┘
"""

from grading.judging.jobs import catch_up, claim, due, enqueue, release_lost, ring, run, status_grade, sweep, unjudged

__all__ = [
    "catch_up",
    "claim",
    "due",
    "enqueue",
    "release_lost",
    "ring",
    "run",
    "status_grade",
    "sweep",
    "unjudged",
]
