"""Settings of the benchmark: those of the site, as in production, with the URLs of the references."""

import os

from watcher_site.settings import *  # noqa: F403

ROOT_URLCONF = "tests.benchmarks.web.urls"
if os.environ.get("WATCHER_BENCHMARK_METRICS") == "false":
    MIDDLEWARE = [name for name in MIDDLEWARE if not name.endswith(".RequestMetrics")]  # noqa: F405
