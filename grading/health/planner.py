"""The statistics by which the database's planner chooses indexes.

PostgreSQL updates them by itself, SQLite never does: without them, some pages of a site with 100,000 sessions take ten
times as long. So they are updated every night, and after an import, an upgrade or a restore.
"""

from django.db import connections


def gather_statistics(using: str = "default") -> None:
    """Update the statistics, one table after the other, so that other writers wait for one of them at most."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"ANALYZE {connection.ops.quote_name(table)}")
