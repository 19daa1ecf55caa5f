"""Static files straight from the packages, under names that say what is in them: browsers keep those for good.

There is nothing to collect and nothing to forget. What compresses well is compressed once and kept in the state folder,
by what is in it: a new version of the site makes its own, and whatever is lost there is made again.
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
# Good enough for an eighth of the time that the best takes.
BROTLI_QUALITY = 9


class HashedNames(StaticFilesStorage):
    """The address of "site.css" ends in site.0123456789ab.css; but in site.css under DEBUG, where files change."""

    def url(self, name: str | None) -> str:
        return super().url(name if settings.DEBUG or not name else hashed_name(name))


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]  # it has no types
    """Serves each file under its own name, and under the one with the hash, compressed for whoever takes that."""

    def add_file_to_dictionary(self, url: str, path: str, stat_cache: dict[str, os.stat_result] | None = None) -> None:
        super().add_file_to_dictionary(url, path, stat_cache)
        hashed = self.static_prefix + hashed_name(url.removeprefix(self.static_prefix))
        if hashed != url:
            super().add_file_to_dictionary(hashed, kept(path) if Path(path).suffix in TEXT else path)


@cache
def hashed_name(name: str) -> str:
    """The name of a static file with the hash of what is in it; as it is, where there is no such file."""
    path = finders.find(name)
    if not isinstance(path, str):
        return name
    bare = PurePosixPath(name)
    return str(bare.with_name(f"{bare.stem}.{digest(path)}{bare.suffix}"))


@cache
def digest(path: str) -> str:
    return sha256(Path(path).read_bytes()).hexdigest()[:12]


@cache
def kept(path: str) -> str:
    """Where a file lies that is the same, with its compressed forms beside it."""
    source = Path(path)
    place = Path(settings.STATIC_CACHE) / f"{digest(path)}{source.suffix}"
    data = source.read_bytes()
    # The plain one last: where it is, the others are.
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        forms = {".br": brotli.compress(data, quality=BROTLI_QUALITY), ".gz": gzip.compress(data, mtime=0), "": data}
        for suffix, form in forms.items():
            with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
                file.write(form)
            Path(file.name).replace(f"{place}{suffix}")
    return str(place)
