"""pi and OpenClaw: `parser` reads their session logs."""
