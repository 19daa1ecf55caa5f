"""A judge to practise with: a local HTTP server that speaks the Messages API, in good and in bad moods."""

from grading.simulator.limits import Limits
from grading.simulator.replies import Mode
from grading.simulator.simulator import ReceivedCall, Simulator

__all__ = ["Limits", "Mode", "ReceivedCall", "Simulator"]
