"""The judge's work: jobs are rows (L7), claimed by one conditional UPDATE, fenced by a lease, each attempt on record.

enqueue ─► claim ─► prompt ─► room in the limiter ─► attempt row ─► the call ─► results.apply ─► settle
▲                                                                                 │ again, later
└─────────────────────────────── sweep ◄──────────────────────────────────────────┘

In: a session with evidence, a rubric, what the provider allows. Out: verdicts as grade rows, attempts with their cost.
Start with `enqueuing`, then `worker`, `results` and `sweeper` (the way of a job, as drawn); what is sent and how a
reply is read is pure, in `core`.

judges (whom to ask) · client (the call) · recomputing (an old verdict's score)
allowance (may we, when, can we afford it?) · order (who goes first) · lanes and batches (the backlog at half price)
rubrics (what is asked, and asking again) · outlook (the figures that people see)
"""

from grading.judging.batches import attend as attend_batches
from grading.judging.enqueuing import add, catch_up, enqueue, further_opinions, read_again, status_grade, unjudged
from grading.judging.order import prioritise
from grading.judging.recomputing import recompute
from grading.judging.sweeper import next_jobs, release_lost, sweep
from grading.judging.worker import claim, pump, run, stop_pumping

__all__ = [
    "add",
    "attend_batches",
    "catch_up",
    "claim",
    "enqueue",
    "further_opinions",
    "next_jobs",
    "prioritise",
    "pump",
    "read_again",
    "recompute",
    "release_lost",
    "run",
    "status_grade",
    "stop_pumping",
    "sweep",
    "unjudged",
]
