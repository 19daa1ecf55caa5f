"""The judge's work: jobs are rows (L7), claimed by one conditional UPDATE, fenced by a lease, each attempt on record.

enqueue ─► claim ─► attempt row ─► prompt ─► room in the limiter ─► the call ─► results.keep, apply ─► settle
▲                                                                                       │ again, later
└─────────────────────────────── sweep ◄────────────────────────────────────────────────┘

In: a session with evidence, a rubric, what the provider allows. Out: verdicts as grade rows, attempts with their cost.
Start with `enqueuing`, then `worker`, `results` and `sweeper` (the way of a job, as drawn); what is sent and how a
reply is read is pure, in `core`.

judges (whom to ask) · reader (makes the prompt, apart) · client (the call) · recomputing (an old verdict's score)
allowance (may we, when, can we afford it?) · order (who goes first) · lanes and batches (the backlog at half price)
rubrics (what is asked, and asking again) · outlook (the figures that people see)
earlier (sessions from before there was a judge: a person chooses which are judged)

A name is imported when it is asked for: the process that reads evidence needs `core` alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grading.judging.batches import attend as attend_batches
    from grading.judging.enqueuing import add, catch_up, enqueue, read_again, status_grade, take_up_abandoned
    from grading.judging.order import prioritise
    from grading.judging.recomputing import recompute
    from grading.judging.sweeper import next_jobs, release_lost, sweep
    from grading.judging.worker import claim, pump, run, stop_pumping

_PLACES = {
    **dict.fromkeys(("add", "catch_up", "enqueue", "read_again", "status_grade", "take_up_abandoned"), "enqueuing"),
    **dict.fromkeys(("next_jobs", "release_lost", "sweep"), "sweeper"),
    **dict.fromkeys(("claim", "pump", "run", "stop_pumping"), "worker"),
    "prioritise": "order",
    "recompute": "recomputing",
}


def __getattr__(name: str) -> Any:
    if name == "attend_batches":
        return import_module("grading.judging.batches").attend
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"grading.judging.{_PLACES[name]}"), name)


__all__ = [
    "add",
    "attend_batches",
    "catch_up",
    "claim",
    "enqueue",
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
    "take_up_abandoned",
]
