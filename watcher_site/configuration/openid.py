"""The settings of logins by OpenID Connect."""

from urllib.parse import urlsplit

from watcher_site.configuration.environment import env, read, refuse

ALGORITHMS = ("RS256", "RS384", "RS512", "ES256", "ES384", "ES512")
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def read_issuer(name: str) -> str:
    """Read the issuer of the OpenID provider, or an empty string. Only an issuer on this machine may use http."""
    issuer: str = read(env.str, name, "")
    parts = urlsplit(issuer)
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    if issuer and not (is_safe and parts.hostname and not parts.query and not parts.fragment):
        refuse(name, "must be the issuer of an OpenID provider, as in https://login.example.org/realms/staff.")
    return issuer


def read_needed(name: str, issuer: str) -> str:
    """Read a text that is mandatory if an issuer is set."""
    text: str = read(env.str, name, "")
    if issuer and not text:
        refuse(name, "must be set if WATCHER_OIDC_ISSUER is.")
    return text


def read_groups(name: str, issuer: str) -> dict[str, str]:
    """Read the table of the site's groups by the provider's groups, such as cloud-team=cloud-admin,staff=reader."""
    rule = "must name a group here for each group of the provider, as in cloud-team=cloud-admin,staff=reader."
    groups = {theirs.strip(): ours.strip() for theirs, ours in read(env.dict, name, {}, rule=rule).items()}
    if issuer and not (groups and all(groups) and all(groups.values())):
        refuse(name, rule)
    return groups
