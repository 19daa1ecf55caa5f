"""The judge's work: jobs are rows (L7), claimed by one conditional UPDATE, fenced by a lease, each attempt on record.

enqueue ─► claim ─► prompt ─► room in the limiter ─► attempt row ─► the call ─► results.apply ─► settle
▲                                                                                 │ again, later
└─────────────────────────────── sweep ◄──────────────────────────────────────────┘

judges (whom to ask) · quota (may we?) · budget (can we afford it?) · limiter (when?) · client (the call)
"""

from grading.judging.asking import add, catch_up, enqueue, further_opinions, status_grade, unjudged
from grading.judging.sweeping import next_jobs, release_lost, sweep
from grading.judging.working import claim, pump, run

__all__ = [
    "add",
    "catch_up",
    "claim",
    "enqueue",
    "further_opinions",
    "next_jobs",
    "pump",
    "release_lost",
    "run",
    "status_grade",
    "sweep",
    "unjudged",
]
