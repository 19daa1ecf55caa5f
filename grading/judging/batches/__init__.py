"""The backlog at half price: many calls sent as one, answered within a day (the setting `use_batches`).

backlog ─► lease ─► prompts to a file ─► batch and attempt rows, jobs SENT ─► create ─► poll ─► results.apply
                                                                                │
                                      no answer: looked for in the provider's list, else lost and queued again

gathering · sending · polling · reading (a result as an answer) · ending (what has none) · provider (the calls)
"""

from grading.judging.batches.polling import poll
from grading.judging.batches.sending import send

__all__ = ["attend", "poll", "send"]


def attend() -> None:
    """What the clock does: take in the results of what is out, then send what has gathered."""
    poll()
    send()
