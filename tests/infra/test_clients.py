"""Whose address a request has, through proxies that are trusted and past those who claim to be one."""

import pytest
from django.conf import settings as site

from gradingsite.clients import client_address

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("socket", "forwarded", "address"),
    [
        ("192.0.2.7", "", "192.0.2.7"),
        ("192.0.2.7", "198.51.100.1", "192.0.2.7"),  # nobody trusts it
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "203.0.113.9, 198.51.100.1", "198.51.100.1"),  # the first one the client made up
        ("10.0.0.1", "203.0.113.9, 198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("10.0.0.1", "nonsense", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9, nonsense", "10.0.0.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("::ffff:10.0.0.1", "2001:DB8::1", "2001:db8::1"),
        ("", "198.51.100.1", ""),
    ],
)
def test_only_what_a_trusted_proxy_wrote_is_believed(monkeypatch, socket, forwarded, address):
    monkeypatch.setattr(site, "TRUSTED_PROXIES", ["10.0.0.0/8"])
    assert client_address({"REMOTE_ADDR": socket, "HTTP_X_FORWARDED_FOR": forwarded}) == address
