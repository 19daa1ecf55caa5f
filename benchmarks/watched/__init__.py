"""A simulated site that the rules watch, and what may go wrong on it. To be imported after `scratch.code`."""
