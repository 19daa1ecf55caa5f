"""A simulated site that the alarm rules watch, and its faults. Import it after `scratch.code`."""
