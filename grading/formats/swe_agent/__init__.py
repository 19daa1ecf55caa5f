"""SWE-agent: `parser` reads its trajectories, `actions` classifies its commands."""
