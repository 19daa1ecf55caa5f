"""What the database's planner goes by when it chooses an index: how many rows a table has, and how alike they are.

PostgreSQL counts by itself where much has changed, SQLite never: a site of 100,000 sessions that was not counted takes
ten times as long for some pages. So it is counted every night, and after an import, an upgrade or a restore.
"""

from django.db import connections


def gather_statistics(using: str = "default") -> None:
    """Count anew, one table after the other: who writes meanwhile waits for no more than one of them."""
    connection = connections[using]
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            cursor.execute(f"ANALYZE {connection.ops.quote_name(table)}")
