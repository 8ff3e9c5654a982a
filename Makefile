# Everything that a fresh clone needs: python3 (3.11 or later) and make.

PYTHON ?= python3
PORT ?= 8000
TESTS ?= tests
export PORT
export PATH := $(CURDIR)/.venv/bin:$(PATH)

PIP = pip install --quiet --disable-pip-version-check --constraint .ci/constraints.txt
DEFINITIONS = pyproject.toml .ci/constraints.txt

.PHONY: run test lint bench clean

run: export WATCHER_HTTPS ?= false
run: export WATCHER_LOG_FORMAT ?= console
run: .venv/installed .data/secret-key
	@python manage.py prepare
	@exec python -m watcher_site.start

test: .venv/installed-dev
	@exec pytest $(TESTS)

# What must be clean in production is checked as in production.
lint: export SECRET_KEY = $(shell $(PYTHON) -c "import secrets; print(secrets.token_urlsafe(64))")
lint: export DATABASE_URL = sqlite://:memory:
lint: .venv/installed-dev
	ruff check .
	ruff format --check .
	mypy
	$(if $(wildcard templates),djlint --lint --quiet templates)
	python manage.py makemigrations --check --dry-run
	python manage.py check --deploy --fail-level WARNING

# On a PostgreSQL server: WATCHER_TEST_POSTGRESQL_URL, or that of DATABASE_URL.
bench: .venv/installed-dev
	@exec python -m tests.benchmarks

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .schemathesis *.egg-info
	find . -name __pycache__ -prune -exec rm -rf {} +

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python $(DEFINITIONS)
	$(PIP) --editable .
	@touch $@

.venv/installed-dev: .venv/bin/python $(DEFINITIONS)
	$(PIP) --editable ".[dev]"
	@touch .venv/installed $@

.data/secret-key:
	@mkdir -p -m 700 .data
	@umask 077 && $(PYTHON) -c "import secrets; print(secrets.token_urlsafe(64))" > $@.new && mv $@.new $@
