"""Static files with a hash of their content in their names, which browsers cache for a year.

The files are served from the folders of the apps: nothing is collected, so that a start requires no further command
and no writable folder. Therefore Django's storage with a manifest, which reads the output of `collectstatic`, is not
used.
"""

import re
from collections.abc import Iterator
from os import PathLike
from typing import Any

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import HashedFilesMixin, StaticFilesStorage
from django.http import HttpRequest, HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware

# "console.0f1e2d3c4b5a.css": the part that `HashedFilesMixin.hashed_name` inserts.
HASH = re.compile(r"\.[0-9a-f]{12}(?=\.[^./]+$)")


class HashedNames(HashedFilesMixin, StaticFilesStorage):  # type: ignore[misc]  # the stubs differ in url
    """Storage of static files with hashes in their names, except with DEBUG."""

    def path(self, name: str | PathLike[str]) -> str:
        found = finders.find(str(name))
        return str(found) if found else super().path(name)

    def exists(self, name: str) -> bool:
        return finders.find(name) is not None

    def stored_name(self, name: str) -> str:
        """Return the name with the hash, which is computed once per process."""
        if name not in self.hashed_files:
            self.hashed_files[name] = self.hashed_name(name)
        return str(self.hashed_files[name])


class StaticFiles(WhiteNoiseMiddleware):
    """Serves each file under both names, cached for a year with the hash, and for a minute without it.

    During an upgrade a page of the other release may request a file by a hash that is unknown here. It gets this
    release's file, cached for a minute.
    """

    FOREVER = 365 * 24 * 3600

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        url = request.path_info
        file = self.find_file(url) if self.autorefresh else self.files.get(url) or self.files.get(HASH.sub("", url))
        return self.serve(file, request) if file is not None else self.get_response(request)

    def add_file_to_dictionary(self, url: str, path: str, stat_cache: Any = None) -> None:
        super().add_file_to_dictionary(url, path, stat_cache)
        hashed = self.get_static_url(url.removeprefix(self.static_prefix))
        if hashed and hashed != url:
            super().add_file_to_dictionary(hashed, path, stat_cache)

    def candidate_paths_for_url(self, url: str) -> Iterator[str]:
        yield from super().candidate_paths_for_url(url)
        if HASH.search(url):
            yield from super().candidate_paths_for_url(HASH.sub("", url))
