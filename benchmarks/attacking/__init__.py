"""A site under attack by whoever is graded on it: honest work beside the attacks, and what came of both."""
