from tests.flush import django_db_setup  # noqa: F401
