"""What sessions used of models, and what that cost. It never enters a grade or a reward.

In: the responses that the logs of a session record, the prices that providers publish, the prices that people typed.
Out: rows of `SessionUsage`, and the cost columns of `Session`, in whole millionths of a dollar.
Start with `recording.record`. `messages` says which session pays for a message that is in several logs, `prices` what a
response costs, and `repricing` what happens when a person types a price.
"""

from grading.spending.recording import record

__all__ = ["record"]
