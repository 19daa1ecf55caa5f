"""Browsers of the people who look at the pages."""

import pytest


@pytest.fixture
def viewer(site, client):
    client.force_login(site.person("vera", "viewer"))
    return client


@pytest.fixture
def reviewer(client, rita):
    client.force_login(rita)
    return client


@pytest.fixture
def operator(site, client):
    client.force_login(site.person("otto", "operator"))
    return client
