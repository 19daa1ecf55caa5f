"""Uploads that come at once never charge the same message twice."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection

from grading.models import MessageClaim, Session
from tests.spending.logs import claude, message

UPLOADS = 4


@pytest.mark.postgresql
@pytest.mark.django_db(transaction=True)
def test_uploads_at_once_share_no_message(site):
    """Four sessions of one agent that all repeat two messages, and each have one of their own."""
    start = threading.Barrier(UPLOADS)
    agent = site.agent("bob")

    def upload(number: int) -> None:
        name = f"s{number}"
        lines = [message(name, each, uuid=f"{name}-{each}") for each in ("a", "b", name)]
        start.wait()
        try:
            site.upload(name, claude(name, *lines), agent=agent)
        finally:
            connection.close()

    with ThreadPoolExecutor(UPLOADS) as pool:
        list(pool.map(upload, range(UPLOADS)))
    assert sorted(Session.objects.values_list("cost_micro", flat=True)) == [7_500, 7_500, 7_500, 22_500]
    assert MessageClaim.objects.count() == 3 * UPLOADS
