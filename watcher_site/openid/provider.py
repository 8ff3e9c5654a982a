"""The client of the OpenID provider: discovery, the request of a login, and the user's claims.

It extends mozilla-django-oidc, which generates the state, the nonce and the proof key (PKCE), requests the tokens and
checks the signature and the nonce. django-allauth would add its own accounts, pages, middleware and tables, and checks
neither the nonce nor, if it requests the ID token itself, the signature. mozilla-django-oidc lacks discovery, and
checks of the issuer and audience of an ID token, for which PyJWT is used here.
"""

from typing import Any
from urllib.parse import urlencode, urlsplit

import jwt
import requests
import structlog
from django.conf import settings
from django.core.cache import cache
from django.core.exceptions import SuspiciousOperation
from django.urls import reverse
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.utils import import_from_settings
from mozilla_django_oidc.views import OIDCAuthenticationRequestView

from watcher_site.openid import messages
from watcher_site.refusals import Refused

CALLBACK = "login-openid-callback"
# The session key of the ID token of a login.
ID_TOKEN = "openid_id_token"  # noqa: S105 (a name)
# The timeout of requests, the lifetime of the cached configuration, and the tolerance for the provider's clock.
TIMEOUT = 10
DISCOVERY_SECONDS = 3600
LEEWAY_SECONDS = 60
NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
log = structlog.get_logger(__name__)


class ProviderUnavailable(Refused):
    """The provider does not respond, or its response violates the standard."""

    status = 503

    def __init__(self, problem: object) -> None:
        log.warning("OpenID provider does not answer.", issuer=settings.OIDC_ISSUER, reason=str(problem)[:500])
        super().__init__(messages.PROVIDER_DOES_NOT_ANSWER.fill(provider=settings.OIDC_NAME))


class LoginRejected(Refused):
    """The provider's response does not prove the user's identity, or the user has no rights on this site."""

    status = 403


def discover() -> dict[str, Any]:
    """Return the provider's configuration, by OpenID Connect Discovery.

    Raises:
        ProviderUnavailable: it does not respond, or returns an invalid configuration.
    """
    key = f"openid:{settings.OIDC_ISSUER}"
    found: dict[str, Any] | None = cache.get(key)
    if found is None:
        try:
            response = requests.get(
                f"{settings.OIDC_ISSUER.rstrip('/')}/.well-known/openid-configuration",
                timeout=TIMEOUT,
                verify=settings.OIDC_CAFILE or True,
            )
            response.raise_for_status()
            found = response.json()
            if found["issuer"] != settings.OIDC_ISSUER:
                raise ValueError(f"the configuration is that of {found['issuer']}")
            if missing := [name for name in NEEDED if not is_address(found.get(name))]:
                raise ValueError(f"the configuration has no {', '.join(missing)}")
        except (requests.RequestException, ValueError, KeyError, TypeError, AttributeError) as problem:
            raise ProviderUnavailable(problem) from problem
        cache.set(key, found, DISCOVERY_SECONDS)
    return found


def is_address(text: Any) -> bool:
    return isinstance(text, str) and urlsplit(text).scheme in ("https", "http") and bool(urlsplit(text).hostname)


def read_option(name: str, *default: Any) -> Any:
    """Return an option of mozilla-django-oidc from the settings of the site and the provider's configuration."""
    found = discover()
    methods = found.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    options = {
        "OIDC_OP_AUTHORIZATION_ENDPOINT": found["authorization_endpoint"],
        "OIDC_OP_TOKEN_ENDPOINT": found["token_endpoint"],
        "OIDC_OP_USER_ENDPOINT": found.get("userinfo_endpoint"),
        "OIDC_OP_JWKS_ENDPOINT": found["jwks_uri"],
        "OIDC_RP_CLIENT_ID": settings.OIDC_CLIENT_ID,
        "OIDC_RP_CLIENT_SECRET": settings.OIDC_CLIENT_SECRET,
        "OIDC_RP_SIGN_ALGO": settings.OIDC_ALGORITHM,
        "OIDC_RP_SCOPES": " ".join(settings.OIDC_SCOPES),
        "OIDC_TOKEN_USE_BASIC_AUTH": "client_secret_post" not in methods,
        "OIDC_AUTHENTICATION_CALLBACK_URL": CALLBACK,
        "OIDC_USE_PKCE": True,
        "OIDC_TIMEOUT": TIMEOUT,
        "OIDC_VERIFY_SSL": settings.OIDC_CAFILE or True,
    }
    return options[name] if name in options else import_from_settings(name, *default)


class LoginRequest(OIDCAuthenticationRequestView):
    """The redirect to the provider, whose state, nonce and proof key are stored in the session."""

    get_settings = staticmethod(read_option)


class OpenIDClient(OIDCAuthenticationBackend):
    """The exchange of a code for an ID token, and the verification of the token."""

    get_settings = staticmethod(read_option)
    id_token: str

    def get_payload_data(self, token: str, key: Any) -> dict[str, Any]:
        """Return the claims of an ID token after all checks that the standard requires except that of the nonce.

        Raises:
            jwt.PyJWTError: a check failed.
        """
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[settings.OIDC_ALGORITHM],
            issuer=settings.OIDC_ISSUER,
            audience=settings.OIDC_CLIENT_ID,
            leeway=LEEWAY_SECONDS,
            options={"require": ["iss", "sub", "aud", "exp", "iat"]},
        )
        is_shared = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if is_shared else settings.OIDC_CLIENT_ID) != settings.OIDC_CLIENT_ID:
            raise jwt.InvalidAudienceError("the token is for another client")
        return claims

    def store_tokens(self, access_token: str, id_token: str) -> None:
        """Store the ID token, which the logout requires; the access token is used once."""
        self.id_token = id_token

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the claims of the ID token, with those of UserInfo if it does not contain the groups."""
        if find_claim(payload, settings.OIDC_GROUPS_CLAIM) is not None or not is_address(self.OIDC_OP_USER_ENDPOINT):
            return payload
        userinfo = self.get_userinfo(access_token, id_token, payload)
        if userinfo["sub"] != payload["sub"]:
            raise SuspiciousOperation("UserInfo is about another person")
        return {**userinfo, **payload}


def find_claim(claims: Any, path: str) -> Any:
    """Return the claim with a name, or a path such as realm_access.roles in nested claims; None if there is none."""
    if path in claims:
        return claims[path]
    for name in path.split("."):
        claims = claims.get(name) if isinstance(claims, dict) else None
    return claims


def read_claims(request: Any, started: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return the claims of the user who logged in, and the ID token.

    Args:
        request: the redirect from the provider, which contains the code.
        started: the nonce and the proof key of the login.

    Raises:
        LoginRejected: a check failed.
        ProviderUnavailable: the provider does not respond.
    """
    client = OpenIDClient()
    try:
        claims = client.authenticate(request, nonce=started["nonce"], code_verifier=started["code_verifier"])
    except requests.HTTPError as problem:
        if problem.response is None or problem.response.status_code >= 500:
            raise ProviderUnavailable(problem) from problem
        raise rejection(problem) from problem
    except requests.RequestException as problem:
        raise ProviderUnavailable(problem) from problem
    except (jwt.PyJWTError, SuspiciousOperation, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise rejection(problem) from problem
    if not claims:
        raise rejection("no claims")
    return claims, client.id_token


def rejection(problem: object) -> LoginRejected:
    log.warning("Login by OpenID Connect refused.", issuer=settings.OIDC_ISSUER, reason=str(problem)[:500])
    return LoginRejected(messages.LOGIN_NOT_CONFIRMED.fill(provider=settings.OIDC_NAME))


def find_logout(request: Any) -> str:
    """Return the address that ends the session at the provider as well, or an empty string if it has none."""
    token = request.session.get(ID_TOKEN)
    if not token or not settings.OIDC_ISSUER:
        return ""
    try:
        where = discover().get("end_session_endpoint")
    except ProviderUnavailable:
        return ""
    if not is_address(where):
        return ""
    fields = {
        "id_token_hint": token,
        "client_id": settings.OIDC_CLIENT_ID,
        "post_logout_redirect_uri": request.build_absolute_uri(reverse("login")),
    }
    return f"{where}{'&' if '?' in str(where) else '?'}{urlencode(fields)}"
