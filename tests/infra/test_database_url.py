"""The database that DATABASE_URL names."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from gradingsite import settings as site_settings

pytestmark = pytest.mark.pure


@pytest.mark.parametrize("scheme", ["mysql", "nothing"])
def test_another_database_is_refused_without_its_password(monkeypatch, scheme):
    monkeypatch.setenv("DATABASE_URL", f"{scheme}://bob:s3cret@db/site")
    with pytest.raises(
        ImproperlyConfigured, match=f"DATABASE_URL={scheme}:…, use sqlite:/// or postgres://"
    ) as refused:
        site_settings.database()
    assert "s3cret" not in str(refused.value)


@pytest.mark.parametrize("own", ["", "-c statement_timeout=5"])
def test_idle_transactions_end_whatever_options_the_url_has(monkeypatch, own):
    monkeypatch.setenv(
        "DATABASE_URL", f"postgres://bob:s3cret@db/site?options={own.replace(' ', '%20').replace('=', '%3D')}"
    )
    options = site_settings.database()["OPTIONS"]["options"]
    assert options == f"-c idle_in_transaction_session_timeout=30000 {own}".strip()
