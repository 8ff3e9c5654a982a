# A fresh clone requires only python3 (3.11 or later) and make.

PYTHON ?= python3
PORT ?= 8000
TESTS ?= tests
DATABASE ?=
ONLY_DATABASE ?=
export PORT

# Commands use only the virtual environment. Without it, they fail instead of using another Python.
ENVIRONMENT = .venv/bin/python
TOOLS = PATH="$(CURDIR)/.venv/bin:$$PATH"
# pip verifies the hash of each package. The site itself has none: it is installed without any package.
QUIET = --quiet --quiet --disable-pip-version-check
PIP = $(ENVIRONMENT) -m pip install $(QUIET) --require-hashes
PIP_SITE = $(ENVIRONMENT) -m pip install $(QUIET) --no-deps --no-build-isolation --editable .
REQUIREMENTS = .ci/requirements
CATALOGUES = $(patsubst %.po,%.mo,$(wildcard watcher_site/locale/*/LC_MESSAGES/django.po))
DEFINITIONS = pyproject.toml $(wildcard $(REQUIREMENTS)/*.txt)
# The extra [openstack] is installed if the settings name a real cloud, Keystone, its metrics, a message broker for
# notifications, or a policy file.
CLOUD = $(findstring openstack,$(WATCHER_CLOUD))$(findstring keystone,$(WATCHER_AUTH))$(WATCHER_KEYSTONE_URL)$(filter %.Aetos %.Gnocchi,$(WATCHER_DATASOURCE))
EXTRA = $(if $(WATCHER_NOTIFICATION_URL)$(CLOUD)$(WATCHER_POLICY_FILE),-openstack)
INSTALL = @$(PYTHON) .ci/one-at-a-time .installing.lock $(MAKE) --silent --no-print-directory

DOCUMENTATION = watcher_site/documentation/built

.PHONY: run docs pictures wheel requirements update test end-to-end upgrade-test lint bench bench-scale bench-replay bench-decisions chaos conformance keystone openstack clean install install-dev

run: export WATCHER_HTTPS ?= false
run: export WATCHER_LOG_FORMAT ?= console
run: install
	@exec $(ENVIRONMENT) -m watcher_site.processes.start

# DATABASE is postgresql or sqlite; by default, PostgreSQL if a server responds, otherwise SQLite. ONLY_DATABASE=1 leaves
# out the tests that do not depend on the database. There are more test processes than processors, because many tests
# wait: those of end-to-end, with twice as many, for almost half of the time.
test end-to-end: export WATCHER_TEST_DATABASE = $(DATABASE)
test end-to-end: export WATCHER_TEST_ONLY_DATABASE = $(ONLY_DATABASE)
test: export PROCESSES ?= $(shell $(PYTHON) -c "import os; print(os.cpu_count() + 2)")
end-to-end: export PROCESSES ?= $(shell $(PYTHON) -c "import os; print(2 * os.cpu_count() + 1)")
PYTEST = $(TOOLS) exec $(ENVIRONMENT) -m pytest -p no:schemathesis --numprocesses $(PROCESSES) --dist worksteal

test: install-dev
	@$(PYTEST) --ignore tests/end_to_end $(TESTS)

# Tests with browsers, clients, commands, and processes that are killed.
end-to-end: install-dev
	@$(PYTEST) tests/end_to_end

# Upgrade a site under load from the previous release, the newest tag, or another commit: make upgrade-test FROM=v1.0.0
upgrade-test: export WATCHER_TEST_RELEASE = $(FROM)
upgrade-test: export WATCHER_TEST_DATABASE = postgresql
upgrade-test: export WATCHER_TEST_UPGRADE = 1
upgrade-test: install-dev
	@$(TOOLS) exec $(ENVIRONMENT) -m pytest -v tests/end_to_end/upgrades

# check --deploy requires production settings.
lint: export SECRET_KEY = $(shell $(PYTHON) -c "import secrets; print(secrets.token_urlsafe(64))")
lint: export DATABASE_URL = sqlite://:memory:
lint: install-dev
	$(ENVIRONMENT) -m ruff check .
	$(ENVIRONMENT) -m ruff format --check .
	$(ENVIRONMENT) -m mypy
	$(if $(wildcard templates),$(ENVIRONMENT) -m djlint --lint --quiet templates)
	$(ENVIRONMENT) -m tests.wording
	$(ENVIRONMENT) manage.py makemigrations --check --dry-run
	$(ENVIRONMENT) manage.py check --deploy --fail-level WARNING

# The documentation that the site serves under /docs/. Broken links are errors here, but not in `make install`.
docs: install-dev
	rm -rf $(DOCUMENTATION)
	$(ENVIRONMENT) -m sphinx --quiet --fail-on-warning --builder json docs $(DOCUMENTATION)

# The pictures of the console in docs/pictures/, with Chromium. The one of the documentation shows its built pages.
pictures: docs
	@$(TOOLS) exec $(ENVIRONMENT) -m tests.repository.pictures

# A wheel in dist/, with templates, static files and documentation.
wheel: docs
	$(ENVIRONMENT) -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .

# A software bill of materials (CycloneDX) in dist/: the site and the packages that production installs, with the extras.
sbom:
	$(INSTALL) .sbom/installed
	@mkdir -p dist
	@.tools/bin/python -m cyclonedx_py environment --pyproject pyproject.toml --output-reproducible \
		--output-file dist/watcher-site.cdx.json .sbom/site/bin/python
	@echo "Wrote dist/watcher-site.cdx.json."

# Compile .ci/requirements for pyproject.toml. `requirements` keeps the versions that it still allows, and `update` selects
# the newest. All files have the versions of development.txt, apart from conformance.txt.
COMPILE = @.tools/bin/uv pip compile --quiet --system-certs $(UPGRADE) --universal --python-version 3.11 --fork-strategy fewest \
	--generate-hashes --annotation-style line --custom-compile-command "make requirements" \
	--output-file $(REQUIREMENTS)
SAME_VERSIONS = --constraint $(REQUIREMENTS)/development.txt

update: UPGRADE = --upgrade
update: requirements

requirements:
	$(INSTALL) .tools/installed
	$(COMPILE)/development.txt --extra dev pyproject.toml
	$(COMPILE)/site.txt --extra documentation pyproject.toml $(SAME_VERSIONS)
	$(COMPILE)/openstack.txt --extra documentation --extra openstack pyproject.toml $(SAME_VERSIONS)
	$(COMPILE)/production.txt --extra celery --extra openstack --extra tracing pyproject.toml $(SAME_VERSIONS)
	$(COMPILE)/build.txt --group build $(SAME_VERSIONS)
	$(COMPILE)/conformance.txt --group conformance
	$(COMPILE)/tools.txt --group tools $(SAME_VERSIONS) --constraint $(REQUIREMENTS)/build.txt

# Benchmarks on the PostgreSQL server of WATCHER_TEST_POSTGRESQL_URL or DATABASE_URL.
bench: install-dev
	@$(TOOLS) exec $(ENVIRONMENT) -m tests.benchmarks

# The same pages and operations with 1,000,000 actions and with a hundredth of that, on the same server, which has to run
# on this machine: make bench-scale PARTS=load WATCHER_BENCHMARK_SCALE=0.1
bench-scale: export WATCHER_BENCHMARK_SCALE ?= 1
bench-scale: install-dev
	@$(TOOLS) exec $(ENVIRONMENT) -m tests.benchmarks.scale $(PARTS)

# Replay a day in steps of five minutes with each strategy, or measure the cost of one decision:
# make bench-replay DAY=traces.csv.gz
bench-replay bench-decisions: export WATCHER_BENCHMARK_DAY ?= $(DAY)
bench-replay: install-dev
	@$(TOOLS) exec $(ENVIRONMENT) -m tests.benchmarks.replay

bench-decisions: install-dev
	@$(TOOLS) exec $(ENVIRONMENT) -m tests.benchmarks.decisions

# Kill processes that execute plans, and run races, for longer than the test suite does.
chaos: install-dev
	@$(TOOLS) exec $(ENVIRONMENT) -m tests.chaos

# Tests with Keystone, Placement, Glance, Nova, Neutron, Cinder and Horizon, which are installed into .openstack (about ten
# minutes the first time).
openstack: export WATCHER_TEST_OPENSTACK = 1
openstack: export WATCHER_TEST_KEYSTONE = 1
openstack: install-dev
	@$(TOOLS) exec $(ENVIRONMENT) -m pytest --numprocesses 2 --dist loadscope tests/openstack

# Tests with a Keystone on SQLite, which is installed into .openstack/keystone, without MariaDB and RabbitMQ:
# make keystone TESTS=tests/openstack/test_tokens.py
keystone: export WATCHER_TEST_KEYSTONE = 1
keystone: install-dev
	$(INSTALL) .openstack/keystone/installed
	@$(TOOLS) exec $(ENVIRONMENT) -m pytest -m keystone --numprocesses 2 --dist loadscope \
		$(if $(filter tests,$(TESTS)),tests/openstack,$(TESTS))

# Send requests generated from the OpenAPI documents, and run the test suites of Watcher's clients, or only some of
# these, with SUITES="api client watcherclient".
conformance: export WATCHER_TEST_CONFORMANCE = 1
conformance: install-dev
	$(INSTALL) .conformance/installed
	$(if $(SUITES),,@$(TOOLS) $(ENVIRONMENT) -m pytest --numprocesses auto tests/conformance/test_schemathesis.py)
	@$(TOOLS) exec $(ENVIRONMENT) -m tests.conformance $(SUITES)

clean:
	rm -rf .venv dist $(DOCUMENTATION) .sbom .tools .upgrade .conformance .openstack .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +

# Dependencies are checked under the lock, because another make may have just updated them.
install:
	$(INSTALL) .venv/installed$(EXTRA) .data/secret-key $(CATALOGUES) $(DOCUMENTATION)/last_build

install-dev:
	$(INSTALL) .venv/installed-dev $(CATALOGUES)

# Compiled translations.
%/django.mo: %/django.po | .venv/made
	@$(ENVIRONMENT) -m babel.messages.frontend --quiet compile --domain django --directory watcher_site/locale

# An environment whose creation was interrupted is created again.
.venv/made:
	@echo "Creating a virtual environment in .venv."
	@$(PYTHON) -m venv --clear .venv
	@$(PIP) --requirement $(REQUIREMENTS)/build.txt
	@touch $@

.venv/installed: .venv/made $(DEFINITIONS)
	@echo "Installing the packages that the site needs: a minute or two, the first time."
	@$(PIP) --requirement $(REQUIREMENTS)/build.txt --requirement $(REQUIREMENTS)/site.txt
	@$(PIP_SITE)
	@touch $@

.venv/installed-openstack: .venv/made $(DEFINITIONS)
	@echo "Installing the packages that the site and the extra [openstack] need: some minutes, the first time."
	@$(PIP) --requirement $(REQUIREMENTS)/build.txt --requirement $(REQUIREMENTS)/openstack.txt
	@$(PIP_SITE)
	@touch .venv/installed $@

.venv/installed-dev: .venv/made $(DEFINITIONS)
	@echo "Installing the packages that the site and its tests need: some minutes, the first time."
	@$(PIP) --requirement $(REQUIREMENTS)/build.txt --requirement $(REQUIREMENTS)/development.txt
	@$(PIP_SITE)
	@touch .venv/installed $@

$(DOCUMENTATION)/last_build: $(wildcard docs/*.md docs/*.py docs/pictures/*) CHANGELOG.md | .venv/installed$(EXTRA)
	@echo "Building the documentation."
	@rm -rf $(DOCUMENTATION)
	@$(ENVIRONMENT) -m sphinx --quiet --builder json docs $(DOCUMENTATION)

# The tools that are no part of the site: those of `make sbom` and `make requirements`.
.tools/installed: $(REQUIREMENTS)/build.txt $(REQUIREMENTS)/tools.txt
	@echo "Installing cyclonedx-bom and uv in .tools: less than a minute, the first time."
	@$(PYTHON) -m venv --clear .tools
	@.tools/bin/python -m pip install $(QUIET) --require-hashes $(^:%=--requirement %)
	@touch $@

# The environment has no pip, as that of the image.
.sbom/installed: .tools/installed $(DEFINITIONS)
	@echo "Installing the site in .sbom: a minute or two, the first time."
	@rm -rf .sbom
	@$(PYTHON) -m venv --without-pip .sbom/site
	@.tools/bin/python -m pip --python .sbom/site/bin/python install $(QUIET) \
		--require-hashes --requirement $(REQUIREMENTS)/production.txt
	@.tools/bin/python -m pip wheel $(QUIET) --no-deps --no-build-isolation --wheel-dir .sbom .
	@.tools/bin/python -m pip --python .sbom/site/bin/python install $(QUIET) --no-deps .sbom/*.whl
	@touch $@

.conformance/installed: $(REQUIREMENTS)/conformance.txt
	@echo "Installing the test suites of Watcher's clients in .conformance: a minute or two, the first time."
	@$(PYTHON) -m venv --clear .conformance
	@.conformance/bin/python -m pip install $(QUIET) --require-hashes --requirement $<
	@touch $@

.openstack/keystone/installed: tests/openstack/requirements.txt
	@echo "Installing Keystone in .openstack/keystone: less than a minute, the first time."
	@$(PYTHON) -m venv --clear .openstack/keystone
	@.openstack/keystone/bin/python -m pip install $(QUIET) --constraint $< keystone gunicorn
	@touch $@

.data/secret-key:
	@mkdir -p -m 700 .data
	@umask 077 && $(PYTHON) -c "import secrets; print(secrets.token_urlsafe(64))" > $@.new && mv $@.new $@
