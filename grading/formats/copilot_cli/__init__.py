"""Copilot CLI: `parser` reads its `events.jsonl`."""
