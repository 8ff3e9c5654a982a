"""Messages that are stored in English, and shown in the language of the reader."""

from importlib import import_module
from pathlib import Path
from uuid import uuid4

import pytest
from django.utils.translation import gettext, override

from actions.messages import SKIPPED_BECAUSE
from watcher_site.accounts.tokens import ALL_RIGHTS
from watcher_site.messages import (
    PLACEHOLDER,
    StoredMessage,
    find_stored_message,
    stored_messages,
    translate_message,
)
from watcher_site.notifications.messages import MAIL_CLOSED

ROOT = Path(__file__).resolve().parents[2]
# All messages are parameters of a test.
for path in ROOT.glob("*/**/*messages.py"):
    if path.relative_to(ROOT).parts[0] in {"actions", "audits", "cluster", "plans", "watcher_site"}:
        import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
SERVER = "156274ba-0b8c-4c3c-8a2c-6a1f6c3d2f11"
# Messages that contain no words.
SAME_IN_GERMAN = {
    "%(action_type)s: %(reason)s",
    "%(step)s %(name)s: %(reason)s",
    "%(outcome)s: %(reason)s",
    "%(sentence)s %(advice)s",
    "%(message)s %(further)s",
    "%(problem)s %(inactive)s",
    "OpenID Connect: %(reason)s",
}
# Values for the placeholders whose patterns are restricted.
VALUES = {
    "uuid": SERVER,
    "number": "3",
    "total": "5 actions",
    "list": SERVER,
    "rights": ALL_RIGHTS.text,
    "answer": "500 Internal Server Error",
    "answers": "550 to the address rosa@example.org",
    "run": "The run",
    "operation": "UPDATE",
    "description": "Resizing a cluster",
    "action_type": "NODE_DELETE",
    "node": "compute-1",
    "rule": "at most 5 VCPUs for one server, not 6",
    "unit": "VCPUs",
    "free": "1.5",
    "option": "port",
    "part": "stack",
    "object": "stack",
    "parameter": "destination_type",
    "migration": "swap",
    "recovery": "REBOOT",
    "interruption": "It was interrupted 3 times",
    "objects": f"instance {SERVER}",
    "ended": "Creating instance web-1",
    "seconds": "600",
    "type": "security group",
    "status": "ACTIVE",
    "outcome": "Instance web-1 is in status ERROR",
    "path": "networks.0",
    "expected": "JSON",
    "detail": ": disk full",
    "sentence": "It was interrupted 3 times. Its outcome is not known.",
    "advice": f"Check instance {SERVER} in the cloud, and reset its state if it is still busy.",
    "further": "next: 3 of its nodes",
    "message": "Action waits for 3 actions that it derived.",
    "result": "UPDATE completed successfully",
    "step": "create_resource",
    "field": "State",
    "rest": " and 3 more",
    "summary": "6 failed logins from 10.0.0.1 in 5 minutes.",
    "kind": "server",
    "service": "watcher-relay",
    "inactive": "No watcher-relay is active: notifications wait.",
    "subject": "Compute nodes compute-1, compute-2 are",
    "finding": f"Action was skipped automatically: Instance {SERVER} not found",
}


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (
            "Action skipped by user. Reason: the nightly backup",
            "Aktion von einer Person übersprungen. Grund: the nightly backup",
        ),
        (
            f"Action was skipped automatically: Instance {SERVER} not found",
            f"Aktion automatisch übersprungen: Server {SERVER} nicht gefunden",
        ),
        (
            "Action was skipped automatically: It is excluded by 'night'. Reason: backup Note: seen",
            "Aktion automatisch übersprungen: Sie ist durch 'night' ausgeschlossen. Grund: backup Anmerkung: seen",
        ),
        ("Action failed in pre_condition: disk full", "Aktion fehlgeschlagen (Vorbedingung): disk full"),
        ("Action failed in completion: disk full", "Aktion fehlgeschlagen (Abschluss): disk full"),
        (
            "Action failed in execute: It took longer than 5 seconds, and did not stop",
            "Aktion fehlgeschlagen (Ausführung): Sie dauerte länger als 5 Sekunden und hielt nicht an",
        ),
        ("all rights of the account, read only", "alle Rechte des Kontos, nur lesend"),
        ("rights of group cloud-admin", "Rechte der Gruppe cloud-admin"),
        (
            "The mail server answered 535 to the user and password of EMAIL_URL.",
            "Der Mailserver antwortete auf Benutzer und Passwort von EMAIL_URL mit 535.",
        ),
        (
            "The mail server answered 550 to the address a@example.org, 551 to the address b@example.org.",
            "Der Mailserver antwortete mit 550 auf die Adresse a@example.org, 551 auf die Adresse b@example.org.",
        ),
        (MAIL_CLOSED.text, "Der Mailserver hat die Verbindung geschlossen."),
        ("It answered 500 Internal Server Error.", "Antwort: 500 Internal Server Error."),
        (
            "The run failed: The compute node compute-99 could not be found",
            "Der Lauf ist fehlgeschlagen: Compute-Knoten compute-99 wurde nicht gefunden",
        ),
        ("The password was changed.", "Das Passwort wurde geändert."),
        ("All tokens of the account were revoked.", "Alle Token des Kontos wurden widerrufen."),
        (
            "1,250 failed logins for rosa from 10.0.0.1 in 5 minutes. Further ones are refused until 10:00:00 UTC.",
            "1.250 fehlgeschlagene Anmeldungen für rosa von 10.0.0.1 in 5 Minuten."
            " Weitere werden bis 10:00:00 UTC abgelehnt.",
        ),
        (
            "Compute nodes compute-1, compute-2 are down, but not known to be off: servers may still run there, and"
            " would run twice. Nothing is evacuated. Switch the node off, or run the audit with fencing: power_off,"
            " or, when you have made sure that it is off, with failed_node and fencing: confirmed",
            "Compute-Knoten compute-1, compute-2 sind ausgefallen, aber nicht nachweislich aus: Server könnten dort"
            " noch laufen und liefen dann doppelt. Es wird nichts evakuiert. Den Knoten ausschalten, oder das Audit"
            " mit fencing: power_off ausführen, oder mit failed_node und fencing: confirmed, nachdem sichergestellt"
            " wurde, dass er aus ist",
        ),
        ("spec.adjustment: 'x' is not of type 'object'", "spec.adjustment: 'x' ist nicht vom Typ 'object'"),
        (
            "template: resources.web.properties: 'flavor' is a required property.",
            "template: resources.web.properties: 'flavor' ist erforderlich.",
        ),
        (
            "url: %zz is not a valid escape: write a percent sign as %25.",
            "url: %zz ist keine gültige Kodierung: ein Prozentzeichen wird als %25 geschrieben.",
        ),
        (
            "targets.servers: there are no servers web-1, web-2 and 3 more.",
            "targets.servers: nicht vorhanden: Server web-1, web-2 und 3 weitere.",
        ),
        (
            f"The CLUSTER_CHECK action for target {SERVER} conflicts with the following action(s): {SERVER}. Wait for"
            f" action plan {SERVER} to end, or cancel it. Suspended by rosa: nothing more of it begins until somebody"
            " resumes it.",
            f"Die Aktion CLUSTER_CHECK für {SERVER} steht im Konflikt mit diesen Aktionen: {SERVER}. Das Ende von"
            f" Aktionsplan {SERVER} abwarten oder ihn abbrechen. Angehalten von rosa: keine weitere Aktion beginnt,"
            " bis der Plan fortgesetzt wird.",
        ),
        (
            "Failed logins were reset: the account can log in again.",
            "Fehlgeschlagene Anmeldungen wurden zurückgesetzt: das Konto kann sich wieder anmelden.",
        ),
        (
            "Action failed in execute: the action that it derived failed: NODE_CREATE web-1: Action failed in execute:"
            " Policy check failure: Failed policy 'spread': There is no feasible plan to handle all nodes: no host of"
            " az-1 that is enabled and up has capacity.",
            "Aktion fehlgeschlagen (Ausführung): die von ihr abgeleitete Aktion ist fehlgeschlagen: NODE_CREATE web-1:"
            " Aktion fehlgeschlagen (Ausführung): Prüfung der Richtlinien fehlgeschlagen: Richtlinie 'spread' nicht"
            " erfüllt: Nicht alle Knoten können platziert werden: kein Host von az-1, der aktiviert und in Betrieb"
            " ist, hat Kapazität.",
        ),
        (
            "No valid host was found. compute-1 takes at most 8 VCPUs for one server, not 16.",
            "Kein geeigneter Host gefunden. compute-1 nimmt höchstens 8 vCPU für einen Server, nicht 16.",
        ),
        (
            "UPDATE completed successfully, but for what was skipped: web, db and others",
            "UPDATE erfolgreich beendet, bis auf Übersprungenes: web, db und weitere",
        ),
        ("Resizing a cluster in progress", "Ändern der Größe eines Clusters läuft"),
        (
            f"stack resource {SERVER}: something else is done to it",
            f"Stack-Ressource {SERVER}: eine andere Operation läuft",
        ),
        (
            f"It was interrupted 30 times. Its outcome is not known. Check instance {SERVER}, volume {SERVER} in the"
            " cloud, and reset its state if it is still busy.",
            f"Sie wurde 30 Mal unterbrochen. Ihr Ergebnis ist nicht bekannt. In der Cloud prüfen und bei laufender"
            f" Operation den Zustand zurücksetzen: Server {SERVER}, Volume {SERVER}.",
        ),
        (
            "Action waits for 2 actions that it derived. next: 2 of its nodes",
            "Aktion wartet auf 2 von ihr abgeleitete Aktionen. als Nächstes: 2 seiner Knoten",
        ),
        (
            f"Migrating instance {SERVER} failed: Connection refused by qemu",
            f"Migration von Server {SERVER} ist fehlgeschlagen: Connection refused by qemu",
        ),
        ("The cloud refused it: Flavor is in use.", "Die Cloud lehnte es ab: Flavor is in use."),
        ("Action was cancelled by 100%(user)s.", "Aktion von 100%(user)s abgebrochen."),
        (
            "The run of 2026-11-26 10:00:00 UTC failed: Wrong name or password.",
            "Der Lauf von 2026-11-26 10:00:00 UTC ist fehlgeschlagen: Falscher Name oder falsches Passwort.",
        ),
    ],
)
def test_stored_message_is_translated_with_its_values(stored: str, shown: str) -> None:
    with override("de"):
        assert translate_message(stored) == shown
    assert translate_message(stored) == stored.replace("Instance", "Server").replace("instance", "server")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The disk failed: it is full",
        "Maintenance in progress",
        "Rosa: the disk is full",
        "Read the log. Note: it is long",
        "web-1, web-2 and 3 more",
        "Action was",
    ],
)
def test_other_text_is_shown_unchanged(text: str) -> None:
    with override("de"):
        assert translate_message(text) == text


def test_cut_value_stays_in_english() -> None:
    with override("de"):
        shown = translate_message("Action was skipped automatically: Instance 156274ba-0b8c is not running on sou…")
    assert shown == "Aktion automatisch übersprungen: Instance 156274ba-0b8c is not running on sou…"


@pytest.mark.parametrize("message", stored_messages, ids=lambda message: message.text)
def test_text_of_each_message_is_read_by_this_message_first(message: StoredMessage) -> None:
    values = {name: VALUES.get(name, f"a value {uuid4()}") for name in PLACEHOLDER.findall(message.text)}
    text = message.fill(**values)
    assert find_stored_message(text) == (message, values)


@pytest.mark.parametrize("message", stored_messages, ids=lambda message: message.text)
def test_each_message_is_translated_with_its_values(message: StoredMessage) -> None:
    names = PLACEHOLDER.findall(message.text)
    with override("de"):
        translation = gettext(message.text)
    assert sorted(PLACEHOLDER.findall(translation)) == sorted(names)
    assert translation != message.text or message.text in SAME_IN_GERMAN


def test_opening_is_the_text_before_the_first_value() -> None:
    assert SKIPPED_BECAUSE.opening == "Action was skipped automatically:"


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (f"Instance {SERVER} not found", f"Server {SERVER} not found"),
        (
            f"Action was skipped automatically: Instance {SERVER} not found",
            f"Action was skipped automatically: Server {SERVER} not found",
        ),
        ("An instance for web is just being created", "A server for web is just being created"),
        ("Instance instance waits for capacity", "Server instance waits for capacity"),
    ],
)
def test_english_pages_say_server_where_the_api_says_instance(stored: str, shown: str) -> None:
    assert translate_message(stored) == shown
