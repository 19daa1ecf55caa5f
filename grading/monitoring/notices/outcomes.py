"""The two kinds of failed deliveries: those worth another try, and the others."""


class Unreachable(Exception):
    """A temporary failure; it is tried again."""


class DeliveryRefused(Exception):
    """A permanent failure; somebody has to change something."""
