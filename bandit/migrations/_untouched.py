"""Whether a site has learnt and decided nothing yet, so that it may begin with other numbers than it was made with.

Migrations name this, so it never changes.
"""

from django.apps.registry import Apps


def is_untouched(apps: Apps) -> bool:
    """No reward, no decision and no draw of a lesson is on record."""
    record = ("LedgerEntry", "Selection", "Assignment")
    return not any(apps.get_model("bandit", name).objects.exists() for name in record)
