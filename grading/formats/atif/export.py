"""Writes a session's events as an ATIF trajectory, which other tools for trajectories read."""

from collections.abc import Iterable
from typing import Any, Final

from grading.formats.events import Event, Message, Role, ToolCall, ToolResult, Usage

SCHEMA: Final = "ATIF-v1.7"
SOURCES: Final = {Role.ASSISTANT: "agent", Role.SCAFFOLD: "system", Role.USER: "user"}
BEGUN: Final = frozenset({"step_id", "source", "message", "timestamp", "reasoning_content"})
Step = dict[str, Any]


def to_trajectory(
    events: Iterable[Event], *, session_id: str, harness: str, version: str, model: str
) -> dict[str, Any]:
    """The trajectory of a session's own events. Events beside the main thread, and settings, are left out.

    A message begins a step; the calls after it, their results and the usage belong to it. A call without a message
    before it has a step of its own.
    """
    steps: list[Step] = []
    step_by_call: dict[str, Step] = {}
    for event in events:
        if event.sidechain:
            continue
        if isinstance(event, Message):
            _add_message(steps, event)
        elif isinstance(event, ToolCall):
            step = _agent_step(steps, event)
            step_by_call[event.call_id] = step
            call = {"tool_call_id": event.call_id, "function_name": event.name, "arguments": dict(event.arguments)}
            step.setdefault("tool_calls", []).append(call)
        elif isinstance(event, ToolResult) and event.call_id in step_by_call:
            results = step_by_call[event.call_id].setdefault("observation", {"results": []})["results"]
            results.append({"source_call_id": event.call_id, "content": event.text})
        elif isinstance(event, Usage):
            _add_usage(_agent_step(steps, event), event)
    agent = {"name": harness, "version": version or "unknown", "model_name": model}
    return {
        "schema_version": SCHEMA,
        "session_id": session_id,
        "agent": {name: value for name, value in agent.items() if value},
        "steps": steps,
        "final_metrics": _totals(steps),
    }


def _new_step(steps: list[Step], source: str, event: Event) -> Step:
    step: Step = {"step_id": len(steps) + 1, "source": source, "message": ""}
    if event.at is not None:
        step["timestamp"] = event.at.isoformat()
    steps.append(step)
    return step


def _agent_step(steps: list[Step], event: Event) -> Step:
    """The last step if it is the agent's, else a new one."""
    return steps[-1] if steps and steps[-1]["source"] == "agent" else _new_step(steps, "agent", event)


def _add_message(steps: list[Step], message: Message) -> None:
    """A step for a message; a thought belongs to the message after it."""
    source = SOURCES[message.role]
    last = steps[-1] if steps else {}
    # A thought began the agent's step, and nothing came since.
    awaits_message = last.get("source") == "agent" and not last["message"] and last.keys() <= BEGUN
    step = last if source == "agent" and awaits_message else _new_step(steps, source, message)
    if message.thinking:
        step["reasoning_content"] = "\n".join(filter(None, [step.get("reasoning_content"), message.text]))
    else:
        step["message"] = message.text


def _add_usage(step: Step, usage: Usage) -> None:
    """Add a response's tokens to a step's. ATIF counts cached tokens as part of the prompt's."""
    cached = usage.cache_read_tokens or 0
    counts = {
        "prompt_tokens": (usage.input_tokens or 0) + cached + (usage.cache_write_tokens or 0),
        "completion_tokens": usage.output_tokens or 0,
        "cached_tokens": cached,
        "cost_usd": usage.cost_usd or 0,
    }
    metrics = step.setdefault("metrics", {})
    for name, count in counts.items():
        if count or name in metrics:
            metrics[name] = metrics.get(name, 0) + count


def _totals(steps: list[Step]) -> dict[str, Any]:
    totals: dict[str, Any] = {"total_steps": len(steps)}
    for name in ("prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd"):
        values = [step["metrics"][name] for step in steps if name in step.get("metrics", {})]
        if values:
            totals[f"total_{name}"] = sum(values)
    return totals
