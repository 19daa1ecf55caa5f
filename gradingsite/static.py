"""Static files straight from the packages, under names with a content hash, which browsers cache for good.

There is no collectstatic step. Text files are compressed once, into a cache in the state folder that is keyed by
content. Missing files of the cache are made again.
"""

import gzip
import os
import tempfile
from functools import cache
from hashlib import sha256
from pathlib import Path, PurePosixPath

import brotli
from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage
from whitenoise.middleware import WhiteNoiseMiddleware

TEXT = frozenset({".css", ".js", ".svg"})
# Nearly as small as the best quality, in an eighth of the time.
BROTLI_QUALITY = 9


class HashedNames(StaticFilesStorage):
    """The URL of "site.css" ends in site.0123456789ab.css or, with DEBUG, in site.css."""

    def url(self, name: str | None) -> str:
        return super().url(name if settings.DEBUG or not name else hashed_name(name))


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """Serves each file under its own name and under its hashed name, compressed if the browser accepts that."""

    def add_file_to_dictionary(self, url: str, path: str, stat_cache: dict[str, os.stat_result] | None = None) -> None:
        super().add_file_to_dictionary(url, path, stat_cache)
        hashed_url = self.static_prefix + hashed_name(url.removeprefix(self.static_prefix))
        if hashed_url != url:
            is_text = Path(path).suffix in TEXT
            super().add_file_to_dictionary(hashed_url, compressed_copy(path) if is_text else path)


@cache
def hashed_name(name: str) -> str:
    """A static file's name with a hash of its content. Unchanged if there is no such file."""
    path = finders.find(name)
    if not isinstance(path, str):
        return name
    bare = PurePosixPath(name)
    return str(bare.with_name(f"{bare.stem}.{digest(path)}{bare.suffix}"))


@cache
def digest(path: str) -> str:
    return sha256(Path(path).read_bytes()).hexdigest()[:12]


def compressed_copy(path: str) -> str:
    """The path of a copy of the file in STATIC_CACHE that has its compressed forms (.br, .gz) beside it."""
    source = Path(path)
    copy = Path(settings.STATIC_CACHE) / f"{digest(path)}{source.suffix}"
    if not copy.exists():
        data = source.read_bytes()
        copy.parent.mkdir(parents=True, exist_ok=True)
        # The plain form comes last: if it exists, so do the others.
        forms = {".br": brotli.compress(data, quality=BROTLI_QUALITY), ".gz": gzip.compress(data, mtime=0), "": data}
        for suffix, form in forms.items():
            with tempfile.NamedTemporaryFile(dir=copy.parent, delete=False) as file:
                file.write(form)
            Path(file.name).replace(f"{copy}{suffix}")
    return str(copy)
