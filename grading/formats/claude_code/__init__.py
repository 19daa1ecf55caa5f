"""Claude Code: `parser` reads its logs, `messages` its messages, and `tools` says what its tool calls mean."""
