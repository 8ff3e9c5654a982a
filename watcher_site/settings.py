"""All settings of Watcher Site, read from the environment here and in `plugin_settings`, and nowhere else.

`docs/configuration.md` lists every variable. The defaults are safe: without ``DEBUG`` the site requires a
``SECRET_KEY``, and accepts requests only for the host names of this machine.
"""

import logging
import re
import socket
import sys
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import structlog
from csp.constants import NONCE, NONE, SELF

from watcher_site.configuration import policies
from watcher_site.configuration.console_log import escape_controls, write_traceback
from watcher_site.configuration.environment import (
    PROCESSES,
    env,
    has_module,
    is_transport_address,
    read,
    read_address,
    read_api_key,
    read_choice,
    read_database,
    read_email,
    read_integer,
    read_list,
    read_networks,
    read_number,
    read_path,
    read_policies,
    read_ports,
    read_queue,
    read_queues,
    read_sender,
    read_switch,
    refuse,
)
from watcher_site.configuration.keystone import (
    KEYSTONE,
    read_keystone_file,
    read_keystone_url,
    read_roles,
    read_single_sign_on,
    read_token_sources,
)
from watcher_site.configuration.log_filters import REQUEST_IDS
from watcher_site.configuration.openid import ALGORITHMS, read_groups, read_issuer, read_needed
from watcher_site.configuration.policy_file import read_policy_file
from watcher_site.monitoring.tracing import add_trace_id
from watcher_site.plugin_settings import (  # noqa: F401 (Django reads them here)
    ACTION_TYPES,
    PLANNER_PARALLELIZATION,
    PLANNER_WEIGHTS,
    POLICY_TYPES,
    SCORING_ENGINES,
    STRATEGIES,
)

BASE_DIR = Path(__file__).resolve().parent.parent
# In a wheel, the templates are in this package, and the site has no folder that it may write to.
IS_CHECKOUT = (BASE_DIR / "manage.py").exists()
TEMPLATES_DIR = (BASE_DIR if IS_CHECKOUT else BASE_DIR / "watcher_site") / "templates"
DATA_DIR = (BASE_DIR if IS_CHECKOUT else Path.cwd()) / ".data"


def stored_secret_key() -> str:
    """Return the key that `make run` generated, or an empty text if this user cannot read one."""
    file = DATA_DIR / "secret-key"
    try:
        return file.read_text().strip()
    except UnicodeDecodeError:
        refuse("SECRET_KEY", f"{file} must contain text in UTF-8.")
    except OSError:
        return ""


# Security

DEBUG = read_switch("DEBUG", False)
ALLOWED_HOSTS = read_list("ALLOWED_HOSTS", ["127.0.0.1", "localhost"])
SECRET_KEY = read(env.str, "SECRET_KEY", "") or stored_secret_key()
SECRET_KEY_FALLBACKS = read_list("SECRET_KEY_FALLBACKS")
if DEBUG:
    SECRET_KEY = SECRET_KEY or "only-for-debugging-" + "0" * 50
else:
    if len(SECRET_KEY) < 50 or len(set(SECRET_KEY)) < 5 or SECRET_KEY.startswith("django-insecure-"):
        refuse("SECRET_KEY", "must be set to at least 50 random characters, unless DEBUG is on.")
    if not ALLOWED_HOSTS or any("*" in host for host in ALLOWED_HOSTS):
        refuse("ALLOWED_HOSTS", "must name the hosts that this site answers to, without '*', unless DEBUG is on.")

HTTPS = read_switch("WATCHER_HTTPS", not DEBUG)
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$"]
SECURE_HSTS_SECONDS = read_integer("WATCHER_HSTS_SECONDS", 365 * 24 * 3600, least=0) if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
# Browser vendors may then list the site as HTTPS only. Removal from the list takes months.
SECURE_HSTS_PRELOAD = read_switch("WATCHER_HSTS_PRELOAD", False) and HTTPS
SILENCED_SYSTEM_CHECKS = [] if SECURE_HSTS_PRELOAD else ["security.W021"]
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
CSRF_TRUSTED_ORIGINS = read_list("WATCHER_TRUSTED_ORIGINS")
if not all(origin.startswith(("https://", "http://")) for origin in CSRF_TRUSTED_ORIGINS):
    refuse("WATCHER_TRUSTED_ORIGINS", "must begin with https:// or http:// each.")
BEHIND_PROXY = read_switch("WATCHER_BEHIND_PROXY", False)
# The networks of the proxies whose X-Forwarded-For and X-Forwarded-Proto are accepted.
TRUSTED_PROXIES = read_networks("WATCHER_TRUSTED_PROXIES", ["127.0.0.1", "::1"] if BEHIND_PROXY else [])
if BEHIND_PROXY:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF, NONCE],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],
        "base-uri": [SELF],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
    }
}

# Traces

# Whether processes send OpenTelemetry traces, which needs the extra [tracing].
TRACING = read_switch("WATCHER_TRACING", False)
if TRACING:
    if not has_module("opentelemetry.exporter.otlp.proto.http"):
        refuse("WATCHER_TRACING", "needs the packages of OpenTelemetry, which the extra [tracing] brings.")
    # OpenTelemetry reads these variables itself, and would replace wrong values by its defaults.
    read_address(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "http://localhost:4318",
        ["http", "https"],
        "must begin with http:// or https:// and a host.",
    )
    read_choice("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", ["http/protobuf"])
    read_number("OTEL_EXPORTER_OTLP_TIMEOUT", 10, least=0.1, most=3600)
    kinds = ("always_on", "always_off", "traceidratio")
    samplers = [*kinds, *(f"parentbased_{kind}" for kind in kinds)]
    read_choice("OTEL_TRACES_SAMPLER", "parentbased_always_on", samplers)
    read_number("OTEL_TRACES_SAMPLER_ARG", 1, least=0, most=1)

# Applications

INSTALLED_APPS = [
    # Before Django's apps, so that its command changepassword replaces Django's.
    "watcher_site",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_filters",
    "django_tables2",
    "django_htmx",
    "bootstrap",
    "crispy_forms",
    "crispy_bootstrap5",
    "cluster",
    "actions",
    "plans",
    "audits",
]

MIDDLEWARE = [
    "watcher_site.monitoring.requests.RequestMetrics",
    *(["watcher_site.web.request_spans.RequestSpans"] if TRACING else []),
    "watcher_site.web.middleware.ClientAddress",
    "watcher_site.web.middleware.RequestId",
    "watcher_site.web.middleware.RetryAfter",
    "watcher_site.web.middleware.Compression",
    "watcher_site.console.pages.PagesForReaders",
    "watcher_site.api.errors.DatabaseOutages",
    "django.middleware.security.SecurityMiddleware",
    "watcher_site.web.static_files.StaticFiles",
    "watcher_site.web.middleware.CacheControl",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "watcher_site.web.keystone_session.SessionAuthentication",
    "watcher_site.web.middleware.SlidingSession",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "watcher_site.web.middleware.ContentSecurityPolicy",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "watcher_site.urls"
WSGI_APPLICATION = "watcher_site.wsgi.application"
APPEND_SLASH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [TEMPLATES_DIR],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "watcher_site.authorization.permissions.add_permissions",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]
CRISPY_ALLOWED_TEMPLATE_PACKS = CRISPY_TEMPLATE_PACK = "bootstrap5"
DJANGO_TABLES2_TEMPLATE = "table.html"

# Database: SQLite by default, PostgreSQL in production

DATABASES = {"default": read_database("DATABASE_URL", DATA_DIR / "watcher.sqlite3")}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"].setdefault("OPTIONS", {}).update(
        # SQLite has no row locks: a transaction takes the lock of the database when it begins.
        transaction_mode="IMMEDIATE",
        timeout=30,
        init_command="PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
    )
else:
    DATABASES["default"]["CONN_MAX_AGE"] = read_integer("WATCHER_CONNECTION_AGE", 600, least=0)
    options = DATABASES["default"].setdefault("OPTIONS", {})
    # Only `watcher_site.database.queries.PreparedCursor` prepares statements, and none is prepared for its repetition
    # alone: psycopg would prepare nothing at all without a threshold.
    options.update(server_side_binding=True, prepare_threshold=sys.maxsize)
    # A server whose machine or network is down does not refuse connections: without these limits, a request waits for
    # minutes, or for hours on an open connection. Parameters of DATABASE_URL take precedence.
    for name, limit in {
        "connect_timeout": 5,  # seconds
        "keepalives_idle": 10,  # seconds
        "keepalives_interval": 5,  # seconds
        "keepalives_count": 2,
        "tcp_user_timeout": 20_000,  # milliseconds
    }.items():
        options.setdefault(name, limit)
    # A check is a round trip, which increases the time of a single read by 13 % (medians of 4,000 alternating reads:
    # 4.65 ms without, 5.26 ms with it). Connections that PostgreSQL closed are detected without it
    # (`watcher_site.api.errors`).
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = read_switch("WATCHER_CONNECTION_CHECKS", False)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Users

AUTHENTICATION_BACKENDS = ["watcher_site.backends.OneQueryBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
CSRF_FAILURE_VIEW = "watcher_site.console.resumable_forms.handle_expired_form"
# The seconds after its last request when a session ends.
SESSION_COOKIE_AGE = read_integer("WATCHER_SESSION_IDLE_TIMEOUT", 8 * 3600, least=60, most=365 * 24 * 3600)
# The seconds for which a web process caches a verified HTTP Basic credential.
CREDENTIAL_MEMORY_SECONDS = 60
# The number of failed logins from an address for one account, and for all accounts, after which logins are refused,
# and the period.
MOST_FAILED_LOGINS = read_integer("WATCHER_MOST_FAILED_LOGINS", 10, least=1)
MOST_FAILED_LOGINS_OF_ADDRESS = read_integer("WATCHER_MOST_FAILED_LOGINS_OF_ADDRESS", 50, least=1)
FAILED_LOGIN_WINDOW = timedelta(seconds=read_number("WATCHER_FAILED_LOGIN_WINDOW", 600, least=1, most=86_400))
REST_KNOX = {"TOKEN_TTL": timedelta(hours=read_number("WATCHER_TOKEN_HOURS", 24, least=0.01, most=24 * 3652))}
# The issuers of tokens that the API accepts: local, keystone, or both.
TOKEN_SOURCES = read_token_sources("WATCHER_AUTH")
# The file with the section [keystone_authtoken], and the permissions of the roles of a token.
KEYSTONE_CONFIG = read_keystone_file("WATCHER_KEYSTONE_CONFIG", is_needed=KEYSTONE in TOKEN_SOURCES)
KEYSTONE_ROLES = read_roles("WATCHER_KEYSTONE_ROLES")
# The Keystone for logins to the console; without an address, only local accounts can log in.
KEYSTONE_URL = read_keystone_url("WATCHER_KEYSTONE_URL")
# The roles that a user delegates to the site, so that it creates servers in the user's project.
KEYSTONE_TRUST_ROLES = read_list("WATCHER_KEYSTONE_TRUST_ROLES", ["member"])
KEYSTONE_DOMAIN = read(env.str, "WATCHER_KEYSTONE_DOMAIN", "Default")
KEYSTONE_CAFILE = read_path("WATCHER_KEYSTONE_CAFILE")
# The path of its single sign-on, empty without one, and the address of Keystone for browsers.
KEYSTONE_SSO = read_single_sign_on("WATCHER_KEYSTONE_SSO", KEYSTONE_URL)
KEYSTONE_SSO_URL = read_keystone_url("WATCHER_KEYSTONE_SSO_URL", KEYSTONE_URL)
# The OpenID provider for logins to the console; without an issuer, there is none.
OIDC_ISSUER = read_issuer("WATCHER_OIDC_ISSUER")
OIDC_CLIENT_ID = read_needed("WATCHER_OIDC_CLIENT_ID", OIDC_ISSUER)
OIDC_CLIENT_SECRET = read_needed("WATCHER_OIDC_CLIENT_SECRET", OIDC_ISSUER)
OIDC_NAME = read(env.str, "WATCHER_OIDC_NAME", "single sign-on")
OIDC_SCOPES = read_list("WATCHER_OIDC_SCOPES", ["openid", "profile"])
if "openid" not in OIDC_SCOPES:
    refuse("WATCHER_OIDC_SCOPES", "must have openid.")
OIDC_ALGORITHM = read_choice("WATCHER_OIDC_ALGORITHM", "RS256", ALGORITHMS)
OIDC_CAFILE = read_path("WATCHER_OIDC_CAFILE")
# The claim with the groups of a user at the provider, and the groups of the site that they map to.
OIDC_GROUPS_CLAIM = read(env.str, "WATCHER_OIDC_GROUPS_CLAIM", "groups")
OIDC_GROUPS = read_groups("WATCHER_OIDC_GROUPS", OIDC_ISSUER)
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
    # Tokens of Keystone in one process, unless the file names memcached servers.
    "keystone": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "LOCATION": "keystone",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    },
    # The times of the latest requests of each user to one process.
    "request_rates": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "LOCATION": "request_rates",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    },
}

# API

# The number of requests per minute of a user to one web process; 0 means unlimited.
API_MOST_REQUESTS = read_integer("WATCHER_API_MOST_REQUESTS", 0, least=0)
REST_FRAMEWORK = {
    "DEFAULT_THROTTLE_CLASSES": ["watcher_site.api.rates.RequestRate"] if API_MOST_REQUESTS else [],
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "watcher_site.api.authentication.TokenAuthentication",
        "watcher_site.api.authentication.BasicAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["watcher_site.api.permissions.ModelPermission"],
    "DEFAULT_RENDERER_CLASSES": ["watcher_site.api.media.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["watcher_site.api.media.JSONParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "watcher_site.api.media.AlwaysJSON",
    "DEFAULT_SCHEMA_CLASS": "watcher_site.api.openapi.schema.ResourceSchema",
    "DEFAULT_VERSIONING_CLASS": "watcher_site.api.versions.HeaderVersioning",
    "EXCEPTION_HANDLER": "watcher_site.api.errors.answer_problem",
}
API_MAX_LIMIT = read_integer("WATCHER_MAX_LIMIT", 1000, least=1)
DATA_UPLOAD_MAX_MEMORY_SIZE = read_integer("WATCHER_MAX_BODY_BYTES", 1024 * 1024, least=1024)

# Quotas

# The default limits of a project; -1 means unlimited. `manage.py set_quota` sets those of a project. Memory is in MB.
QUOTAS = {
    "servers": read_integer("WATCHER_QUOTA_SERVERS", 100, least=-1),
    "vcpus": read_integer("WATCHER_QUOTA_VCPUS", 400, least=-1),
    "memory": read_integer("WATCHER_QUOTA_MEMORY", 1_024_000, least=-1),
    "stacks": read_integer("WATCHER_QUOTA_STACKS", 100, least=-1),
    # Of one stack, including those of groups and nested stacks.
    "stack_resources": read_integer("WATCHER_QUOTA_STACK_RESOURCES", 1000, least=1, most=1000),
    # Of a project, and of all clusters without a project.
    "clusters": read_integer("WATCHER_QUOTA_CLUSTERS", 1000, least=-1),
    # Of one server, as in Nova.
    "metadata_items": read_integer("WATCHER_QUOTA_METADATA_ITEMS", 128, least=-1),
}

# Processes

HOST = read(env.str, "WATCHER_HOST", socket.gethostname())
# The seconds without a heartbeat after which a service is FAILED, and others take over its work.
SERVICE_DOWN_TIME = read_number("WATCHER_SERVICE_DOWN_TIME", 30, least=0.5)
POLL_INTERVAL = read_number("WATCHER_POLL_INTERVAL", 1, least=0.01)
# The seconds after which a decision engine that reads the cloud or runs an audit counts as hung.
LONGEST_AUDIT = read_number("WATCHER_LONGEST_AUDIT", 21_600, least=1)
STOP_GRACE = read_number("WATCHER_STOP_GRACE", 60, least=1)
APPLIER_WORKERS = read_integer("WATCHER_APPLIER_WORKERS", 4, least=1)
APPLIER_PLANS = read_integer("WATCHER_APPLIER_PLANS", 4, least=1)
# The executor of actions: threads of the applier, or workers that receive them through the broker.
EXECUTOR = read_choice("WATCHER_EXECUTOR", "threads", ["threads", "celery"])
if EXECUTOR == "celery" and not find_spec("celery"):
    refuse("WATCHER_EXECUTOR", "celery needs the package celery, which the extra [celery] brings.")
CELERY_BROKER_URL = read_address(
    "CELERY_BROKER_URL",
    "amqp://guest:guest@127.0.0.1:5672//",
    ["amqp", "amqps", "pyamqp"],
    "must be amqp://user:password@host:port/virtual-host, or amqps://….",
)
# The default queue of actions, and the queues by action type (migrate) or by zone (zone:az1).
CELERY_QUEUE = read_queue("WATCHER_CELERY_QUEUE", "watcher")
CELERY_QUEUES = read_queues("WATCHER_CELERY_QUEUES")
# The number of actions that an applier sends to workers at once, and the seconds after which a message is sent again.
CELERY_JOBS = read_integer("WATCHER_CELERY_JOBS", 64, least=1, most=10_000)
CELERY_RESEND = read_number("WATCHER_CELERY_RESEND", 60, least=0.1, most=86_400)
# The number of processes of a worker, each of which executes one action at a time, and the queues that it consumes.
WORKER_PROCESSES = read_integer("WATCHER_WORKER_PROCESSES", 4, least=1, most=1000)
WORKER_QUEUES = read_list("WATCHER_WORKER_QUEUES")
# The message broker for notifications, its topics, and the lowest priority to send; without an address, none are sent.
NOTIFICATION_URL = read(env.str, "WATCHER_NOTIFICATION_URL", "")
if NOTIFICATION_URL and not is_transport_address(NOTIFICATION_URL):
    refuse("WATCHER_NOTIFICATION_URL", "must be rabbit://user:password@host:port/virtual-host.")
if NOTIFICATION_URL and not find_spec("oslo_messaging"):
    refuse(
        "WATCHER_NOTIFICATION_URL",
        "needs the package oslo.messaging: .venv/bin/pip install --require-hashes -r .ci/requirements/production.txt,"
        " or `make run`, which does so by itself.",
    )
NOTIFICATION_TOPICS = read_list("WATCHER_NOTIFICATION_TOPICS", ["notifications"])
if not NOTIFICATION_TOPICS or not all(re.fullmatch(r"[A-Za-z0-9_.-]{1,200}", name) for name in NOTIFICATION_TOPICS):
    refuse("WATCHER_NOTIFICATION_TOPICS", "must be names of letters, digits, and _.- only.")
NOTIFICATION_LEVEL = read_choice("WATCHER_NOTIFICATION_LEVEL", "info", ["info", "warning", "error", ""])
# Whether webhooks may have addresses of this machine and of private networks.
WEBHOOK_PRIVATE_ADDRESSES = read_switch("WATCHER_WEBHOOK_PRIVATE_ADDRESSES", False)
# The timeout of a receiver in seconds, the number of attempts for each notification, the first pause in seconds, which
# doubles with each attempt, and the longest pause.
WEBHOOK_TIMEOUT = read_number("WATCHER_WEBHOOK_TIMEOUT", 10, least=0.1, most=300)
WEBHOOK_ATTEMPTS = read_integer("WATCHER_WEBHOOK_ATTEMPTS", 12, least=1, most=1000)
WEBHOOK_PAUSE = 5
# The mail server and the sender of subscriptions by e-mail; without a server, there are none. The limits of webhooks
# apply.
email = read_email("EMAIL_URL")
EMAIL_HOST, EMAIL_PORT = email.get("EMAIL_HOST", ""), email.get("EMAIL_PORT", 25)
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = email.get("EMAIL_HOST_USER") or "", email.get("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_TLS, EMAIL_USE_SSL = email.get("EMAIL_USE_TLS", False), email.get("EMAIL_USE_SSL", False)
EMAIL_TIMEOUT = WEBHOOK_TIMEOUT
DEFAULT_FROM_EMAIL = read_sender("WATCHER_EMAIL_FROM", is_needed=bool(EMAIL_HOST))
# The address of the site for links in e-mail and chat messages; without it, they have no links.
SITE_URL = read_address(
    "WATCHER_SITE_URL", "", ["http", "https"], "must begin with https:// or http:// and a host."
).rstrip("/")
WEBHOOK_LONGEST_PAUSE = 3600
MOST_SUBSCRIPTIONS = read_integer("WATCHER_MOST_SUBSCRIPTIONS", 100, least=1, most=10_000)
# The number of concurrent requests or messages of a relay to one receiver.
RELAY_CONNECTIONS = 4
# The days for which undelivered notifications are kept, so that they can be sent again.
UNDELIVERED_DAYS = read_number("WATCHER_UNDELIVERED_DAYS", 30, least=0, most=36525)
# The broker of Nova and Cinder, whose notifications update the tables between readings; without an address, none are
# received. Each topic is given with its exchange. Listeners with the same pool share its queue.
CLOUD_NOTIFICATION_URL = read(env.str, "WATCHER_CLOUD_NOTIFICATION_URL", "")
if CLOUD_NOTIFICATION_URL and not is_transport_address(CLOUD_NOTIFICATION_URL, ["rabbit"]):
    refuse("WATCHER_CLOUD_NOTIFICATION_URL", "must be rabbit://user:password@host:port/virtual-host.")
if CLOUD_NOTIFICATION_URL and not find_spec("oslo_messaging"):
    refuse("WATCHER_CLOUD_NOTIFICATION_URL", "needs the package oslo.messaging, which the extra [openstack] brings.")
CLOUD_NOTIFICATION_TOPICS = read_list(
    "WATCHER_CLOUD_NOTIFICATION_TOPICS", ["nova.versioned_notifications", "openstack.notifications"]
)
if not CLOUD_NOTIFICATION_TOPICS or not all(
    re.fullmatch(r"[A-Za-z0-9_-]{1,100}\.[A-Za-z0-9_.-]{1,100}", name) for name in CLOUD_NOTIFICATION_TOPICS
):
    refuse(
        "WATCHER_CLOUD_NOTIFICATION_TOPICS", "must be names of an exchange and a topic: nova.versioned_notifications."
    )
CLOUD_NOTIFICATION_POOL = read_queue("WATCHER_CLOUD_NOTIFICATION_POOL", "watcher-site")
# The kinds of objects that notifications are about.
NOTIFICATION_KINDS = [
    "actions.notifications.ActionNotifications",
    "plans.notifications.ActionPlanNotifications",
    "audits.notifications.AuditNotifications",
    "watcher_site.notifications.services.ServiceNotifications",
    "cluster.notifications.InstanceNotifications",
    "cluster.notifications.SchedulerNotifications",
    "watcher_site.notifications.subscriptions.SubscriptionNotifications",
]
# Whether a server that found no host is PENDING instead of ERROR (docs/compatibility.md, "The PENDING status").
USE_PENDING_STATE = read_switch("WATCHER_USE_PENDING_STATE", False)
# The seconds after which a PENDING server without capacity is set to ERROR; 0 means never.
PENDING_TIMEOUT = timedelta(seconds=read_number("WATCHER_PENDING_TIMEOUT", 3600, least=0))
# Whether the site, and not an external service, provides capacity for PENDING servers.
MAKE_ROOM = read_switch("WATCHER_MAKE_ROOM", True)
# Deprecated: whether readers see event details. A rule in WATCHER_POLICIES takes precedence.
READERS_SEE_EVENT_DETAILS = read_switch("WATCHER_READERS_SEE_EVENT_DETAILS", True)
POLICIES = read_policies(
    "WATCHER_POLICIES",
    policies.DEFAULTS if READERS_SEE_EVENT_DETAILS else {**policies.DEFAULTS, policies.EVENT_DETAILS: policies.ADMIN},
)
# The rules of oslo.policy by name of the policy. Permissions decide policies without a rule.
POLICY_FILE = read_policy_file("WATCHER_POLICY_FILE", has_package=find_spec("oslo_policy") is not None)
# Whether the plans that provide capacity for PENDING servers start automatically.
MAKE_ROOM_AUTO_TRIGGER = read_switch("WATCHER_MAKE_ROOM_AUTO_TRIGGER", False)
# The number of retries of an action, and the first pause in seconds, which doubles with each retry.
ACTION_RETRIES = read_integer("WATCHER_ACTION_RETRIES", 3, least=0, most=20)
ACTION_RETRY_INTERVAL = read_number("WATCHER_ACTION_RETRY_INTERVAL", 10, least=0, most=3600)
# The default timeout of an action in seconds, and the seconds that it then has to stop.
DEFAULT_ACTION_TIMEOUT = read_integer("WATCHER_DEFAULT_ACTION_TIMEOUT", 3600, least=1)
ACTION_TIMEOUT_GRACE = read_number("WATCHER_ACTION_TIMEOUT_GRACE", 10, least=0)
ROLLBACK = read_switch("WATCHER_ROLLBACK", False)
# Whether users can start a recommended plan only after another user has approved it.
PLAN_APPROVAL = read_switch("WATCHER_PLAN_APPROVAL", False)
# The hours after which a recommended plan is superseded if it was not started; 0 means never.
ACTION_PLAN_EXPIRY = timedelta(hours=read_number("WATCHER_ACTION_PLAN_EXPIRY", 24, least=0, most=24 * 36525))
# The days for which history is kept; 0 means forever.
HISTORY_AGE = timedelta(days=read_number("WATCHER_HISTORY_DAYS", 365, least=0, most=36525))
# The age after which ended plans and audits are purged; 0: never.
ACTION_PLAN_AGE = timedelta(days=read_number("WATCHER_ACTION_PLAN_DAYS", 0, least=0, most=36525))
AUDIT_AGE = timedelta(days=read_number("WATCHER_AUDIT_DAYS", 0, least=0, most=36525))

# The same for deleted objects, operations on servers, and samples of metrics.
DELETED_AGE = timedelta(days=read_number("WATCHER_DELETED_DAYS", 0, least=0, most=36525))
SERVER_EVENT_AGE = timedelta(days=read_number("WATCHER_SERVER_EVENT_DAYS", 0, least=0, most=36525))
SAMPLE_AGE = timedelta(days=read_number("WATCHER_SAMPLE_DAYS", 0, least=0, most=36525))
# The interval at which a decision engine purges; 0: never.
PURGE_INTERVAL = timedelta(seconds=read_number("WATCHER_PURGE_INTERVAL", 86400, least=0, most=86400 * 365))

# Data source and cloud

DATASOURCE = read(env.str, "WATCHER_DATASOURCE", "cluster.datasources.stored.StoredSamples")
# The number of attempts to query a data source, and the pause and the timeout of each in seconds.
DATASOURCE_ATTEMPTS = read_integer("WATCHER_DATASOURCE_ATTEMPTS", 10, least=1, most=100)
DATASOURCE_WAIT = 1
DATASOURCE_TIMEOUT = read_number("WATCHER_DATASOURCE_TIMEOUT", 10, least=0.1, most=600)
PROMETHEUS_URL = read_address(
    "WATCHER_PROMETHEUS_URL",
    "http://127.0.0.1:9090",
    ["http", "https"],
    "must begin with https:// or http:// and a host, with a port if need be.",
)
PROMETHEUS_USERNAME = read(env.str, "WATCHER_PROMETHEUS_USERNAME", "")
PROMETHEUS_PASSWORD = read(env.str, "WATCHER_PROMETHEUS_PASSWORD", "")
# The certificate authority of Prometheus, and the client certificate of the site with its key.
PROMETHEUS_CAFILE = read_path("WATCHER_PROMETHEUS_CAFILE")
PROMETHEUS_CERTFILE = read_path("WATCHER_PROMETHEUS_CERTFILE")
PROMETHEUS_KEYFILE = read_path("WATCHER_PROMETHEUS_KEYFILE")
PROMETHEUS_SERVER_LABEL = read(env.str, "WATCHER_PROMETHEUS_SERVER_LABEL", "resource")
PROMETHEUS_NODE_LABEL = read(env.str, "WATCHER_PROMETHEUS_NODE_LABEL", "fqdn")
PROMETHEUS_METRICS = read(
    env.dict,
    "WATCHER_PROMETHEUS_METRICS",
    {},
    rule="must name a series for each metric, like host_power=ipmi_power_watts.",
)
GNOCCHI_METRICS = read(
    env.dict,
    "WATCHER_GNOCCHI_METRICS",
    {},
    rule="must name a metric of Gnocchi for each metric, like host_power=hardware.ipmi.power.",
)
# The interval of Ceilometer's samples in seconds.
GNOCCHI_POLLING_INTERVAL = read_number("WATCHER_GNOCCHI_POLLING_INTERVAL", 300, least=1, most=86400)
for name in (PROMETHEUS_SERVER_LABEL, PROMETHEUS_NODE_LABEL, *PROMETHEUS_METRICS.values()):
    if not re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", name):
        refuse("WATCHER_PROMETHEUS_…", f"{name} is not the name of a label or a series.")
for name in GNOCCHI_METRICS.values():
    # An asterisk or a question mark would match several metrics.
    if not re.fullmatch(r"[\w.:-]+", name):
        refuse("WATCHER_GNOCCHI_METRICS", f"{name} is not the name of a metric of Gnocchi.")
CLOUD = read(env.str, "WATCHER_CLOUD", "cluster.drivers.embedded.EmbeddedCloud")
# The duration of an operation of the embedded cloud in seconds.
EMBEDDED_CLOUD_SECONDS = read_number("WATCHER_EMBEDDED_CLOUD_SECONDS", 2, least=0)
# The proportion of the embedded cloud's operations that fail at random, from 0 to 1.
EMBEDDED_CLOUD_FAILURE_RATE = read_number("WATCHER_EMBEDDED_CLOUD_FAILURE_RATE", 0, least=0, most=1)
# The entry of clouds.yaml for the OpenStack driver; without one, OS_AUTH_URL and so on are used.
OPENSTACK_CLOUD = read(env.str, "OS_CLOUD", "")
# The timeout of each request in seconds, the number of attempts, and the first pause in seconds.
OPENSTACK_TIMEOUT = read_number("WATCHER_OPENSTACK_TIMEOUT", 60, least=0.1, most=3600)
OPENSTACK_ATTEMPTS = read_integer("WATCHER_OPENSTACK_ATTEMPTS", 3, least=1, most=100)
OPENSTACK_WAIT = 1
# The poll interval and the timeout of an operation in seconds.
OPENSTACK_POLL_INTERVAL = read_number("WATCHER_OPENSTACK_POLL_INTERVAL", 5, least=0.01, most=600)
OPENSTACK_OPERATION_TIMEOUT = read_number("WATCHER_OPENSTACK_OPERATION_TIMEOUT", 1800, least=1)
# MAAS, which switches compute nodes instead of Ironic if its address is set.
MAAS_URL = read_address(
    "WATCHER_MAAS_URL", "", ["http", "https"], "must begin with https:// or http:// and a host, and end with /MAAS."
)
MAAS_API_KEY = read_api_key("WATCHER_MAAS_API_KEY", is_needed=bool(MAAS_URL))
MAAS_CAFILE = read_path("WATCHER_MAAS_CAFILE")
# The interval of readings of a real cloud by the decision engine, 0 for never, and the maximum age of the copy for
# audits.
SYNC_INTERVAL = timedelta(seconds=read_number("WATCHER_SYNC_INTERVAL", 600, least=0))
SYNC_MAX_AGE = timedelta(seconds=read_number("WATCHER_SYNC_MAX_AGE", 60, least=0))

# Web server and first start

BIND = read(env.str, "WATCHER_BIND", "127.0.0.1")
PORT = read_integer("PORT", 8000, least=1, most=65535)
WEB_WORKERS = read_integer("WATCHER_WEB_WORKERS", 2, least=1, most=1000)
WEB_THREADS = read_integer("WATCHER_WEB_THREADS", 4, least=1, most=1000)
# The maximum number of connections of a web process, and the seconds within which a request must be received.
WEB_CONNECTIONS = read_integer("WATCHER_WEB_CONNECTIONS", 500, least=10, most=100_000)
REQUEST_TIMEOUT = read_number("WATCHER_REQUEST_TIMEOUT", 30, least=0.1, most=3600)
DEMO = read_switch("WATCHER_DEMO", True)
ADMIN_PASSWORD = read(env.str, "WATCHER_ADMIN_PASSWORD", "")
USER_PASSWORD = read(env.str, "WATCHER_USER_PASSWORD", "")

# Metrics

# The ports on which processes serve their metrics, by default none, and the address.
METRICS_PORTS = read_ports("WATCHER_METRICS_PORTS", PROCESSES)
METRICS_BIND = read(env.str, "WATCHER_METRICS_BIND", "127.0.0.1")
if PORT in METRICS_PORTS.get("web", ()):
    refuse("WATCHER_METRICS_PORTS", "must not name PORT for web.")
# The collectors of the gauges whose values /metrics reads from the tables.
TABLE_GAUGES = [
    "watcher_site.processes.gauges.ServiceGauges",
    "watcher_site.notifications.gauges.NotificationGauges",
    "cluster.gauges.CloudGauges",
    "plans.gauges.PlanGauges",
    "audits.gauges.AuditGauges",
]

# The functions that return further components of the response of /readyz.
HEALTH_COMPONENTS = ["cluster.health.find_cloud"]

# Texts, times, files

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
LANGUAGE_COOKIE_NAME = "language"
LOCALE_PATHS = [BASE_DIR / "watcher_site" / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True
# Templates and `number_format` group the digits of numbers: 12,833 in English, 12.833 in German.
USE_THOUSAND_SEPARATOR = True
STATIC_URL = "static/"
STATICFILES_DIRS = [TEMPLATES_DIR / "static"]
# Static files are served from the folders of the apps, without collectstatic.
WHITENOISE_USE_FINDERS = True
# The output of `make docs`.
DOCUMENTATION_FOLDER = BASE_DIR / "watcher_site" / "documentation" / "built"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "watcher_site.web.static_files.HashedNames"},
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Watcher Site",
    "DESCRIPTION": "Review, prune and run action plans for a cloud. Compatible with OpenStack infra-optim.",
    "VERSION": "",  # the document has the microversion only
    "DEFAULT_GENERATOR_CLASS": "watcher_site.api.openapi.documentation.DocumentGenerator",
    # The states of actions, action plans and audits have separate enumerations with the same name of the field.
    "POSTPROCESSING_HOOKS": [],
    "ENUM_GENERATE_CHOICE_DESCRIPTION": False,
    # The body of a PATCH is not a partial resource: the fields that its serializer requires are required.
    "COMPONENT_SPLIT_PATCH": False,
}

# Logs: one JSON object per line, or coloured text for terminals

LOG_LEVEL = read_choice("WATCHER_LOG_LEVEL", "INFO", ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"])
LOG_FORMAT = read_choice("WATCHER_LOG_FORMAT", "console" if DEBUG else "json", ["json", "console"])
log_processors: list[Any] = [
    structlog.contextvars.merge_contextvars,
    *([add_trace_id] if TRACING else []),
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.PositionalArgumentsFormatter(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.StackInfoRenderer(),
]
# Lines of other libraries, such as Django's about a request.
foreign_log_processors = [*log_processors, structlog.stdlib.ExtraAdder(allow=REQUEST_IDS)]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                structlog.processors.JSONRenderer(),
            ],
            "foreign_pre_chain": foreign_log_processors,
        },
        "console": {
            "()": structlog.stdlib.ProcessorFormatter,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                escape_controls,
                structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=write_traceback),
            ],
            "foreign_pre_chain": foreign_log_processors,
        },
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "filters": {
        "without_traceback": {"()": "watcher_site.configuration.log_filters.WithoutTraceback"},
        "traceback_of_faults": {"()": "watcher_site.configuration.log_filters.TracebackOfFaults"},
        "request_ids": {"()": "watcher_site.configuration.log_filters.RequestIds"},
    },
    "loggers": {
        # Any client can send such requests at a high rate.
        **{
            f"django.security.{name}": {"filters": ["without_traceback"]}
            for name in ("DisallowedHost", "DisallowedRedirect", "RequestDataTooBig", "TooManyFieldsSent")
        },
        "django.request": {"filters": ["traceback_of_faults", "request_ids"]},
        # The site itself logs that Keystone does not respond.
        "keystoneauth.identity": {"level": "ERROR"},
        # A forbidden address of a webhook is reported to the user who enters it, and on the page of its subscription.
        "requests_hardened": {"level": "ERROR"},
        "oslo_service.backend": {"level": "WARNING"},
        # Below this level, it logs Keystone's response for each refused token.
        "keystonemiddleware": {"level": "WARNING"},
        # The site itself logs errors in the policy file, with the line.
        "oslo_policy": {"level": "CRITICAL"},
        # The lines of actions already contain the information of its line for each task.
        "celery": {"level": "WARNING"},
        # These loggers have their own handlers.
        **{
            name: {"propagate": True, "handlers": []}
            for name in ("django", "django.server", "gunicorn.error", "gunicorn.access")
        },
    },
}
logging.captureWarnings(True)
structlog.configure(
    processors=[
        structlog.stdlib.filter_by_level,
        *log_processors,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ],
    logger_factory=structlog.stdlib.LoggerFactory(),
    cache_logger_on_first_use=True,
)
