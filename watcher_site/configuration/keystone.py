"""The Keystone settings: sources of tokens, the file of keystonemiddleware, the table of roles, and logins."""

import logging
import re
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any
from urllib.parse import quote

from watcher_site.configuration.environment import env, read, read_address, read_list, read_path, refuse
from watcher_site.configuration.rights import CLOUD_ADMIN, MEMBER, PROJECT_READER, READER

LOCAL, KEYSTONE = "local", "keystone"
SECTION = "keystone_authtoken"
SYSTEM, PROJECT = "system", "project"
RIGHTS = (CLOUD_ADMIN, READER, MEMBER, PROJECT_READER)
# In Keystone each member of a project has the role reader too. Only with system scope does it apply to the whole site.
ROLES: Mapping[str, str] = {
    "admin": CLOUD_ADMIN,
    "system:reader": READER,
    "project:reader": PROJECT_READER,
    "project:member": MEMBER,
}
# Defaults for options that the file does not set (in seconds). With those of keystonemiddleware a request waits
# indefinitely for a Keystone that hangs, and 3.5 seconds for one that is down. The access rules of application
# credentials require the service type.
OPTIONS = {"http_connect_timeout": 10, "http_request_max_retries": 0, "service_type": "infra-optim"}
# The keystoneauth plug-ins that log in with a name and a password.
PASSWORD_TYPES = ("password", "v3password", "v2password")
# The key of the process's cache in the environment of a request.
CACHE = "watcher_site.keystone.cache"


def read_token_sources(name: str) -> list[str]:
    """Read the issuers of API tokens: the site itself, Keystone, or both."""
    sources = read_list(name, [LOCAL])
    if sorted(sources) not in ([LOCAL], [KEYSTONE], [KEYSTONE, LOCAL]):
        refuse(name, f"must be local, keystone or local,keystone, and is {','.join(sources) or 'empty'}.")
    if KEYSTONE in sources and not find_spec("keystonemiddleware"):
        refuse(name, "keystone needs the package keystonemiddleware, which the extra [openstack] brings.")
    return sources


def read_keystone_file(name: str, is_needed: bool) -> str:
    """Read the path of the file with keystonemiddleware's section, and validate the file if it is needed."""
    path = read_path(name)
    if not is_needed:
        return path
    if not path:
        refuse(name, f"must be set if WATCHER_AUTH has keystone: the path of a file with a section [{SECTION}].")
    logging.getLogger("keystonemiddleware").setLevel(logging.ERROR)  # LOGGING sets it permanently.
    try:
        make_middleware(path)
    except Exception as problem:  # These are errors of oslo.config, of keystoneauth, and of the plug-in in the file.
        refuse(name, f"{path}: {describe(problem)}")
    return path


def describe(problem: Exception) -> str:
    """Describe the error in a file. A line that cannot be parsed is not quoted, because it may contain a password."""
    if parsed := re.match(r"Failed to parse .*?: at .*?:(\d+), ", str(problem)):
        return f"line {parsed[1]} cannot be parsed."
    if refused := re.match(r"Value for option (\S+) from .* is not valid: (.*)", str(problem)):
        return f"Value for option {refused[1]} is not valid: {refused[2]}"
    return str(problem)


def make_middleware(path: str, application: Any = None, protocol: Any = None) -> Any:
    """Return a WSGI application wrapped in keystonemiddleware, with the options of a file.

    Args:
        protocol: the class of the middleware, by default that of keystonemiddleware.

    Raises:
        Exception: the file, or an option in it, is invalid.
    """
    # Their import takes half a second, which a site without Keystone avoids.
    from keystoneauth1.loading import register_auth_conf_options
    from keystonemiddleware import auth_token
    from oslo_config import cfg

    options = cfg.ConfigOpts()
    options([], project="watcher_site", default_config_files=[path], default_config_dirs=[])
    if SECTION not in options.list_all_sections():
        raise ValueError(f"has no section [{SECTION}].")
    for group, known in auth_token.list_opts():
        options.register_opts(known, group=group)
    chosen = options[SECTION]
    if chosen.auth_section:
        register_auth_conf_options(options, chosen.auth_section)
    # Without the option www_authenticate_uri the middleware queries Keystone for it at each refusal.
    address = find_auth_url(path, chosen.auth_section or SECTION)
    for option, value in (OPTIONS | {"www_authenticate_uri": address}).items():
        options.set_default(option, value, group=SECTION)
    if not (chosen.auth_type or chosen.auth_section):
        raise ValueError(f"[{SECTION}] has no auth_type.")
    if chosen.memcached_servers:
        package = "bmemcached" if chosen.memcache_sasl_enabled or chosen.memcache_tls_enabled else "memcache"
        if not find_spec(package):
            raise ValueError(f"memcached_servers needs the module {package}, which is not installed.")
    else:
        options.set_default("cache", CACHE, group=SECTION)
    # Requests without a token do not reach the middleware: no decision is delayed.
    make = protocol or auth_token.AuthProtocol
    made = make(application, {"oslo_config_config": options, "delay_auth_decision": False})
    require_login(options[chosen.auth_section or SECTION], chosen.auth_section or SECTION)
    return made


def require_login(options: Any, section: str) -> None:
    """Require the options of a login by password, which the plug-ins themselves check only at the first token.

    Raises:
        ValueError: an option is missing, or the address is invalid.
    """
    address = getattr(options, "auth_url", None)
    if address and not re.match(r"https?://[^/]", address):
        raise ValueError(f"[{section}] auth_url must begin with https:// or http:// and a host, and is {address}.")
    if options.auth_type in PASSWORD_TYPES:
        if not (options.username or options.user_id):
            raise ValueError(f"[{section}] has no username.")
        if not options.password:
            raise ValueError(f"[{section}] has no password.")


def find_auth_url(path: str, section: str) -> str | None:
    """Return the address in a section.

    It is an option of the section's plug-in, which the middleware registers itself.
    """
    from oslo_config import cfg

    options = cfg.ConfigOpts()
    options.register_opt(cfg.StrOpt("auth_url"), group=section)
    options([], project="watcher_site", default_config_files=[path], default_config_dirs=[])
    address: str | None = options[section].auth_url
    return address


def read_identity_address(path: str) -> str:
    """Return the address of Keystone's API, version 3, in a file with keystonemiddleware's section."""
    from keystonemiddleware import auth_token
    from oslo_config import cfg

    options = cfg.ConfigOpts()
    for group, known in auth_token.list_opts():
        options.register_opts(known, group=group)
    options([], project="watcher_site", default_config_files=[path], default_config_dirs=[])
    return address_of_version_3(find_auth_url(path, options[SECTION].auth_section or SECTION) or "")


def read_roles(name: str) -> dict[str, str]:
    """Read the table of rights by role, such as admin=cloud-admin,system:reader=reader."""
    rule = f"must name one of {', '.join(RIGHTS)} for each role, as in admin={CLOUD_ADMIN},system:reader={READER}."
    roles = {}
    for role, right in read(env.dict, name, dict(ROLES), rule=rule).items():
        role, right = role.strip().lower(), right.strip()
        scope, separator, named = role.rpartition(":")
        if not named or (separator and scope not in (SYSTEM, PROJECT)) or right not in RIGHTS:
            refuse(name, f"{rule} It has {role}={right}.")
        roles[role] = right
    return roles


def read_keystone_url(name: str, default: str = "") -> str:
    """Read the address of Keystone's API, version 3, or an empty string."""
    rule = "must begin with https:// or http:// and a host, as in https://keystone.example.org/v3."
    if not read(env.str, name, default):
        return ""
    if not find_spec("keystoneauth1"):
        refuse(name, "needs the package keystoneauth1, which the extra [openstack] brings.")
    return address_of_version_3(read_address(name, default, ["http", "https"], rule))


def address_of_version_3(address: str) -> str:
    """Return the address of version 3 of the API for an address with or without the version."""
    address = address.rstrip("/")
    return address if address.endswith("/v3") else f"{address}/v3"


def read_single_sign_on(name: str, address: str) -> str:
    """Read the identity provider and protocol of Keystone's single sign-on, and return the path where it starts.

    Args:
        address: the address of Keystone, or an empty string if logins do not use it.
    """
    chosen: str = read(env.str, name, "")
    if not chosen:
        return ""
    if not address:
        refuse(name, "needs WATCHER_KEYSTONE_URL.")
    if not re.fullmatch(r"([A-Za-z0-9_.-]+/)?[A-Za-z0-9_.-]+", chosen):
        refuse(name, "must be a protocol of Keystone, or an identity provider and its protocol, as in google/openid.")
    provider, _, protocol = chosen.rpartition("/")
    if not provider:
        return f"/auth/OS-FEDERATION/websso/{quote(protocol)}"
    return f"/auth/OS-FEDERATION/identity_providers/{quote(provider)}/protocols/{quote(protocol)}/websso"
