"""mini-SWE-agent: `parser` reads its trajectories."""
