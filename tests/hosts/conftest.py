import boto3
import pytest
from django.core.files.storage import storages
from moto.server import ThreadedMotoServer

from gradingsite.broker import free_port
from gradingsite.evidence import evidence_storage

BUCKET = "s3://evidence/site"


@pytest.fixture(scope="session")
def s3():
    """The address of a server of buckets, on the loopback interface."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=free_port(), verbose=False)
    server.start()
    address = "http://{}:{}".format(*server.get_host_and_port())
    yield address
    server.stop()


@pytest.fixture
def bucket(s3, settings, monkeypatch):
    """The site's settings name that server and its bucket, which is empty."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "site")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    settings.EVIDENCE_ENDPOINT, settings.EVIDENCE_REGION = s3, "us-east-1"
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1")
    client.create_bucket(Bucket="evidence")
    yield client
    for item in client.list_objects_v2(Bucket="evidence").get("Contents", ()):
        client.delete_object(Bucket="evidence", Key=item["Key"])
    client.delete_bucket(Bucket="evidence")


@pytest.fixture
def evidence_in(settings, tmp_path):
    """A function that has the site store evidence in the place with this name."""

    def switch(place):
        settings.MEDIA_ROOT = tmp_path / "evidence"
        settings.EVIDENCE = place
        settings.STORAGES = {**settings.STORAGES, "default": evidence_storage(place)}
        return storages["default"]

    return switch
