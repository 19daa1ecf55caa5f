"""A site under attack by an agent that is graded on it: honest work beside the attacks, and what came of both."""
