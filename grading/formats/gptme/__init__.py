"""gptme: `parser` reads its logs, `calls` finds the tool calls in an assistant's text."""
