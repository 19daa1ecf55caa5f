"""Static files are kept by browsers for good and come compressed; pages do too, without telling of their secrets."""

import gzip
import re
from contextlib import closing

import brotli
import pytest

PLAIN = "/static/gradingsite/tokens.css"


@pytest.fixture(autouse=True)
def as_the_site(settings) -> None:
    settings.WHITENOISE_AUTOREFRESH = False


@pytest.fixture
def address(client, db) -> str:
    """What the log-in page calls a style sheet."""
    page = client.get("/login/").content.decode()
    return re.search(r'href="(/static/gradingsite/tokens\.[0-9a-f]{12}\.css)"', page)[1]


def body(response) -> bytes:
    with closing(response):
        return b"".join(response.streaming_content)


def test_a_name_with_a_hash_is_kept_for_good_and_any_other_for_a_minute(client, address):
    with closing(client.get(address)) as lasting, closing(client.get(PLAIN)) as other:
        assert "immutable" in lasting["Cache-Control"]
        assert other["Cache-Control"] == "max-age=60, public"
    assert client.get(address.replace(".css", "0.css")).status_code == 404


@pytest.mark.parametrize(
    ("accepts", "encoding", "opened"),
    [("gzip, br", "br", brotli.decompress), ("gzip", "gzip", gzip.decompress), ("", None, bytes)],
)
def test_a_file_comes_as_the_browser_takes_it(client, address, accepts, encoding, opened):
    plain, sent = body(client.get(PLAIN)), client.get(address, headers={"accept-encoding": accepts})
    data = body(sent)
    assert sent.headers.get("Content-Encoding") == encoding
    assert sent["Content-Type"] == 'text/css; charset="utf-8"'
    assert opened(data) == plain
    assert encoding is None or len(data) < len(plain) / 2


@pytest.mark.django_db
def test_a_page_is_compressed_and_its_length_tells_nothing(client):
    pages = [client.get("/login/", headers={"accept-encoding": "gzip"}) for _ in range(10)]
    assert {page["Content-Encoding"] for page in pages} == {"gzip"}
    assert b"</html>" in gzip.decompress(pages[0].content)
    assert len({len(page.content) for page in pages}) > 3
