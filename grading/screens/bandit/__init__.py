"""The page of one bandit: what it believes and why, now, then, and if something were otherwise."""
