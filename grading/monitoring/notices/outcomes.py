"""What can go wrong with a message, as two kinds: worth another try, or not."""


class Unreachable(Exception):
    """The other side could not take it now; it is tried again."""


class DeliveryRefused(Exception):
    """The other side will not take it, however often it is sent; somebody has to change something."""
