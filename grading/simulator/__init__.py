"""A fake judge: a local HTTP server that answers the Messages API.

In: the SDK's requests over a real socket. Out: verdicts, errors, limits and batches as the provider would give them.
Start with `simulator`; `replies` has the modes.
"""

from grading.simulator.limits import Limits
from grading.simulator.replies import Mode
from grading.simulator.simulator import ReceivedCall, Simulator

__all__ = ["Limits", "Mode", "ReceivedCall", "Simulator"]
