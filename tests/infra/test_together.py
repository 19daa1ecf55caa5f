"""SQLite inserts rows of several tables by one statement, as it would by several."""

import pytest
from django.contrib.auth.models import Group
from django.contrib.contenttypes.models import ContentType
from django.db import IntegrityError, connection, models, transaction
from django.test.utils import CaptureQueriesContext

from gradingsite.sqlite import together
from gradingsite.sqlite.together import Rows


@pytest.fixture(autouse=True)
def on_sqlite(transactional_db):
    """A connection that has no views yet, on SQLite."""
    if connection.vendor != "sqlite":
        pytest.skip("PostgreSQL inserts into several tables by itself")
    connection.close()


def parts(*names: str) -> list[Rows]:
    """Groups of these names, and a kind of content for each."""
    kinds = [("tests", name) for name in names]
    return [
        Rows(table="auth_group", columns=("name",), values=[(name,) for name in names]),
        Rows(table="django_content_type", columns=("app_label", "model"), values=kinds),
    ]


def insert(*names: str) -> int:
    """Insert these in a transaction; how many statements that took."""
    with transaction.atomic(), CaptureQueriesContext(connection) as asked:
        together.insert(connection, parts(*names))
    return len(asked)


def there() -> tuple[list[str], list[str]]:
    groups = Group.objects.filter(name__startswith="of tests").order_by("pk")
    kinds = ContentType.objects.filter(app_label="tests").order_by("pk")
    return list(groups.values_list("name", flat=True)), list(kinds.values_list("model", flat=True))


def test_all_rows_are_where_they_belong_after_one_statement():
    insert("of tests 1", "of tests 2")
    assert insert("of tests 3") == 1
    names = ["of tests 1", "of tests 2", "of tests 3"]
    assert there() == (names, names)


def test_a_value_is_kept_as_it_would_be_by_a_statement_of_its_own():
    """A column makes of a value what its own type is, and some of those here are not of that."""
    said = [None, 7, 7.0, 0.1, "7", "x", b"\x00x", True]
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE kept (whole integer, real real, text text, any blob)")
        try:
            cursor.executemany("INSERT INTO kept VALUES (%s, %s, %s, %s)", [[value] * 4 for value in said])
            columns = ("whole", "real", "text", "any")
            rows = [Rows(table="kept", columns=columns, values=[[value] * 4 for value in said]), *parts("of tests")]
            together.insert(connection, rows)
            types = ", ".join(f"{column}, typeof({column})" for column in columns)
            cursor.execute(f"SELECT {types} FROM kept ORDER BY rowid")  # noqa: S608 - our own words
            found = cursor.fetchall()
        finally:
            together.drop(connection)
            cursor.execute("DROP TABLE kept")
    assert found[: len(said)] == found[len(said) :]


def test_where_one_row_is_refused_none_is_there():
    insert("of tests")
    with pytest.raises(IntegrityError):
        insert("of tests 2", "of tests")
    assert there() == (["of tests"], ["of tests"])


def test_what_was_made_in_a_transaction_that_was_undone_is_made_again():
    with transaction.atomic():
        together.insert(connection, parts("of tests"))
        transaction.set_rollback(True)
    assert there() == ([], [])
    insert("of tests")
    assert there() == (["of tests"], ["of tests"])


def test_a_table_can_be_made_anew_afterwards():
    """As migrations do, and by the connection that inserted into it."""
    insert("of tests 1")
    old, new = Group._meta.get_field("name"), models.CharField(max_length=151, unique=True)
    new.set_attributes_from_name("name")
    new.model = Group
    with connection.schema_editor() as editor:
        editor.alter_field(Group, old, new)
    with connection.schema_editor() as editor:
        editor.alter_field(Group, new, old)
    insert("of tests 2")
    assert there() == (["of tests 1", "of tests 2"],) * 2
