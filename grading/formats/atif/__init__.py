"""ATIF, the Agent Trajectory Interchange Format: `parser` reads a trajectory."""
