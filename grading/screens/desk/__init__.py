"""The review desk: one session to grade at a time, the queue beside it, and what the grade does before it is saved."""
