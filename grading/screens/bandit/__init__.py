"""The page of one bandit: its posterior and the evidence behind it, now, in the past, and under a what-if."""
