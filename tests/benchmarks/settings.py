"""Settings of the benchmark: the site's own, as in production, with the references served beside it."""

from watcher_site.settings import *  # noqa: F403

ROOT_URLCONF = "tests.benchmarks.web.urls"
