"""OpenCode: `parser` reads an exported session."""
