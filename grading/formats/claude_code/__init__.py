"""Claude Code: `parser` reads its logs, `messages` its messages, and `tools` classifies its tool calls."""
