"""SWE-agent: `parser` reads its trajectories, `actions` says what its commands mean."""
