"""Judging: jobs are rows, claimed by one conditional UPDATE and fenced by a lease; each attempt is on record.

enqueue ─► claim ─► attempt row ─► prompt ─► room in the limiter ─► the call ─► store_answer, apply ─► settle
▲                                                                                       │ again, later
└─────────────────────────────── sweep ◄────────────────────────────────────────────────┘

In: settled sessions. Out: the judge's grades, which are settled again. Start with `enqueuing`, then read `worker`,
`results` and `sweeper`. `core` is pure: it builds prompts and parses replies. This file imports nothing, because the
process that reads evidence loads `core` without Django.

judges (which models judge) · reader (builds the prompt in its own process) · client (the API call)
allowance (quota, rate limit, budget) · ordering (which job is next) · batches (the backlog at half price)
rubrics (versions, re-judging) · recomputing (a stored verdict's score) · outlook (figures for the screens)
earlier (sessions that arrived before there was a judge)
"""
