"""Typed access to environment variables. An invalid value stops the start."""

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from email.utils import parseaddr
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from smtplib import SMTP_SSL_PORT
from typing import Any, NoReturn
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured
from django.core.exceptions import ValidationError as InvalidAddress
from django.core.validators import validate_email
from environs import EnvError, EnvValidationError, FileAwareEnv, ValidationError, validate

from watcher_site.configuration import policies

# Each variable can be read from a file, whose path is in the variable with the suffix _FILE.
env = FileAwareEnv(strip_whitespace=True)
# The first bytes of each SQLite database.
SQLITE_HEADER = b"SQLite format 3\0"
# The types of processes that serve metrics and their health.
PROCESSES = ("web", "applier", "decision-engine", "worker", "relay", "listener")


def refuse(name: str, rule: str) -> NoReturn:
    """Stop the start with a one-line `ImproperlyConfigured`, which manage.py and gunicorn print without traceback."""
    raise ImproperlyConfigured(" ".join(f"{name}: {rule}".split()))


def read(reader: Callable[..., Any], name: str, default: Any, *, rule: str = "", **options: Any) -> Any:
    """Return the value of a variable, or refuse to start with its name and the broken rule.

    Args:
        reader: a method of ``env``.
        rule: the message of the refusal, which replaces the message of the reader or validator.
        options: those of the reader, such as ``validate``, which checks a variable that is set.
    """
    try:
        return reader(name, default, **options)
    except EnvValidationError as problem:
        refuse(name, rule or " ".join(map(str, problem.error_messages)))
    except (EnvError, ValueError) as problem:
        is_missing_file = isinstance(problem.__cause__, OSError)
        refuse(name, str(problem) if is_missing_file else rule or str(problem))


def read_switch(name: str, default: bool) -> bool:
    switch: bool = read(env.bool, name, default, rule="must be true or false.")
    return switch


def read_number(name: str, default: float, *, least: float, most: float = 1e9) -> float:
    rule = f"must be a number from {least:.10g} to {most:.10g}."
    number: float = read(env.float, name, default, rule=rule, validate=validate.Range(least, most))
    return number


def read_integer(name: str, default: int, *, least: int, most: int = 10**9) -> int:
    rule = f"must be a whole number from {least} to {most}."
    number: int = read(env.int, name, default, rule=rule, validate=validate.Range(least, most))
    return number


def read_list(name: str, default: Sequence[str] = ()) -> list[str]:
    return [item.strip() for item in read(env.list, name, list(default)) if item.strip()]


def read_networks(name: str, default: Sequence[str]) -> list[IPv4Network | IPv6Network]:
    """Read a list of addresses and networks, such as 10.0.0.5,10.1.0.0/16."""
    networks = []
    for text in read_list(name, default):
        try:
            networks.append(ip_network(text))
        except ValueError:
            refuse(name, f"must be addresses or networks, like 10.0.0.5,10.1.0.0/16, and {text!r} is neither.")
    return networks


def read_path(name: str) -> str:
    """Read the path of an existing file, or an empty string."""
    path: str = read(env.str, name, "")
    if path and not Path(path).is_file():
        refuse(name, f"must be the path of a file, and there is none at {path}.")
    return path


def has_module(name: str) -> bool:
    """Return whether a module is installed. The packages that contain it are imported."""
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def read_address(name: str, default: str, schemes: Collection[str], rule: str) -> str:
    """Read a URL with a host and one of these schemes."""

    def require_address(text: str) -> None:
        # The URL validator of marshmallow refuses host names with an underscore, which containers often have.
        parts = urlsplit(text)
        if parts.scheme not in schemes or not parts.hostname or parts.port == 0:
            raise ValidationError(rule)

    address: str = read(env.str, name, default, rule=rule, validate=require_address)
    return address


def read_email(name: str) -> dict[str, Any]:
    """Read the URL of a mail server as Django's settings, or none."""
    rule = (
        "must be submission://user:password@host:587, smtp://host:25, or smtp://user:password@host:465/?ssl=true. "
        "The user and the password are in ASCII, with special characters escaped."
    )
    text = read(env.str, name, "")
    if not text:
        return {}
    try:
        parts = urlsplit(text)
    except ValueError:
        refuse(name, rule)
    # An unescaped #, / or ? of a password ends the host.
    has_unescaped = "@" in parts.path + parts.query + parts.fragment
    if parts.scheme not in ("smtp", "submission") or not parts.hostname or has_unescaped:
        refuse(name, rule)
    email: dict[str, Any] = read(env.dj_email_url, name, "", rule=rule)
    login = [email["EMAIL_HOST_USER"] or "", email["EMAIL_HOST_PASSWORD"] or ""]
    # Without one of both, Django would not log in.
    if any(login) != all(login) or not "".join(login).isascii():
        refuse(name, rule)
    if email["EMAIL_USE_SSL"] and not parts.port:
        email["EMAIL_PORT"] = SMTP_SSL_PORT
    return email


def read_sender(name: str, is_needed: bool) -> str:
    """Read an address of e-mail with or without a name, such as Watcher <watcher@example.org>."""
    sender = " ".join(read(env.str, name, "").split())
    if sender or is_needed:
        try:
            validate_email(parseaddr(sender)[1])
        except InvalidAddress:
            refuse(name, "must be an address of e-mail, like watcher@example.org, if EMAIL_URL is set.")
    return sender


def read_api_key(name: str, is_needed: bool) -> str:
    """Read an API key of MAAS: a consumer, a token and its secret, separated by colons."""
    rule = "must be an API key of MAAS, three parts with colons between them, if WATCHER_MAAS_URL is set."
    key: str = read(env.str, name, "")
    if (key or is_needed) and not re.fullmatch(r"[^:\s]+:[^:\s]+:[^:\s]+", key):
        refuse(name, rule)
    if is_needed and not find_spec("requests_oauthlib"):
        refuse("WATCHER_MAAS_URL", "needs the package requests-oauthlib, which the extra [openstack] brings.")
    return key


def is_transport_address(text: str, kinds: Collection[str] = ("rabbit", "kafka")) -> bool:
    """Return whether a text is an oslo.messaging address; several brokers of a cluster are separated by commas."""
    broker = r"([^\s/@,]*@)?(\[[\da-fA-F:.]+\]|[^\s/@,:\[\]]+)(:\d{1,5})?"
    return bool(re.fullmatch(rf"({'|'.join(kinds)})://{broker}(,{broker})*(/[^\s]*)?", text))


# RabbitMQ reserves names that begin with amq.
QUEUE = validate.Regexp(
    r"(?!amq\.)[A-Za-z0-9_.-]{1,200}\Z", error="a queue's name has letters, digits, and _.- only, and is '{input}'."
)


def read_queue(name: str, default: str) -> str:
    queue: str = read(env.str, name, default, validate=QUEUE)
    return queue


def read_queues(name: str) -> dict[str, str]:
    """Read a table of queues by action type or zone, such as migrate=migrations,zone:az1=az1."""
    rule = "must name a queue of letters, digits, and _.- for each action type or zone: migrate=migrations,zone:az1=b."

    def require_queues(queues: Mapping[str, str]) -> None:
        for subject, queue in queues.items():
            if not subject.removeprefix("zone:"):
                raise ValidationError(rule)
            QUEUE(queue)

    queues: dict[str, str] = read(env.dict, name, {}, rule=rule, validate=require_queues)
    return queues


def read_ports(name: str, services: Collection[str]) -> dict[str, range]:
    """Read the ports of services, such as applier=9101,worker=9110-9117."""
    rule = f"must name a port, or a range of ports, from 1 to 65535 for {', '.join(services)}: applier=9101."
    ports: dict[str, range] = {}
    for pair in read(env.list, name, [], rule=rule):
        service, _, text = (part.strip() for part in pair.partition("="))
        first, _, last = text.partition("-")
        numbers = [first, last or first]
        if service in ports:
            refuse(name, f"must name the ports of {service} once.")
        if service not in services or not all(re.fullmatch("[0-9]{1,5}", number) for number in numbers):
            refuse(name, rule)
        found = range(int(first), int(numbers[1]) + 1)
        if not found or not 1 <= found[0] <= found[-1] <= 65535:
            refuse(name, rule)
        ports[service] = found
    return ports


def read_policies(name: str, defaults: Mapping[str, str]) -> dict[str, str]:
    """Read a table of rules by policy, such as os-instance-actions:events:details=rule:project_reader."""
    known = f"{', '.join(defaults)}, with one of {', '.join(policies.SPELLINGS)}"
    chosen = dict(defaults)
    for policy, rule in read(env.dict, name, {}, rule=f"must name {known}.").items():
        policy, rule = policy.strip().removeprefix(policies.NOVA), rule.strip()
        if policy not in defaults or rule not in policies.SPELLINGS:
            refuse(name, f"must name {known}, and names {policy}={rule}.")
        chosen[policy] = policies.SPELLINGS[rule]
    return chosen


def read_choice(name: str, default: str, choices: Collection[str]) -> str:
    known = ", ".join(filter(None, choices)) + (", or nothing" if "" in choices else "")
    is_known = validate.OneOf(choices, error=f"must be one of {known}, and is {{input}}.")
    choice: str = read(env.str, name, default, validate=is_known)
    return choice


def read_numbers(name: str, default: dict[str, int]) -> dict[str, int]:
    """Read a table of positive integers, such as nop=70,migrate=30."""
    rule = "must contain whole numbers of at least 1, like nop=70,migrate=30."
    numbers = read(env.dict, name, default, rule=rule, subcast_values=int)
    if any(number < 1 for number in numbers.values()):
        refuse(name, rule)
    return numbers


def find_shared(numbers: Mapping[str, int]) -> str:
    """Return the first two names with the same number, such as "migrate and stop", or an empty string."""
    owners: dict[int, str] = {}
    for name, number in numbers.items():
        if number in owners:
            return f"{owners[number]} and {name}"
        owners[number] = name
    return ""


def read_database(name: str, default_file: Path) -> dict[str, Any]:
    """Read the URL of a PostgreSQL database, or of an SQLite database in a writable folder.

    The folder of ``default_file`` is created by the code that writes the file.
    """
    rule = "must be postgres://user:password@host:port/name or sqlite:////path/to/file."
    database: dict[str, Any] = read(env.dj_db_url, name, f"sqlite:///{default_file}", rule=rule)
    if database["ENGINE"] == "django.db.backends.sqlite3":
        require_writable(name, database, default_file)
    elif database["ENGINE"] != "django.db.backends.postgresql" or not database["NAME"]:
        refuse(name, rule)
    return database


def require_writable(name: str, database: Mapping[str, Any], default_file: Path) -> None:
    file = Path(database["NAME"])
    if database["NAME"] == ":memory:" or (file == default_file and not file.parent.exists()):
        return
    if not file.parent.is_dir():
        refuse(name, f"the folder {file.parent} does not exist.")
    # SQLite writes its journal next to the file.
    for path in (file.parent, file):
        if path.exists() and not os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids):
            refuse(name, f"{path} is not writable.")
    if file.is_dir():
        refuse(name, f"{file} is a folder.")
    require_sqlite_file(name, file)


def require_sqlite_file(name: str, file: Path) -> None:
    """Refuse a file that is neither an SQLite database nor empty, as a new database is."""
    if not file.is_file():
        return
    try:
        with file.open("rb") as opened:
            header = opened.read(len(SQLITE_HEADER))
    except OSError as problem:
        refuse(name, f"{file} cannot be read: {problem.strerror}.")
    if header not in (b"", SQLITE_HEADER):
        refuse(name, f"must name an SQLite database, or a file that does not exist yet, and {file} is another file.")
