"""Loading of the policy file: errors with their lines, and reloading while the site runs."""

from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client

from tests.watcher_site.authorization.conftest import Write
from tests.watcher_site.site_process import run
from watcher_site.authorization.enforcement import decide, policy_file
from watcher_site.checks import check_policy_file
from watcher_site.configuration.policy_file import PolicyFault, load_rules

GOOD = '"action:update": "role:admin"\n'


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('"a:b": "role:admin"\n"c:d": "role:admin\n', "line 3: found unexpected end of stream."),
        ("[]\n", "line 1: it must be a table of rules by name."),
        ("# nothing\n\n- a\n", "line 3: it must be a table of rules by name."),
        (f'{GOOD}\n"b:c":\n  x: y\n', "line 3: a rule must be a text, or a list of texts, with a text for its name."),
        (f'{GOOD}"b:c": "admin"\n', "line 2: the rule b:c cannot be parsed."),
        (f'{GOOD}"b:c": "role:admin or"\n', "line 2: the rule b:c cannot be parsed."),
        (f'{GOOD}"b:c": "(role:admin"\n', "line 2: the rule b:c cannot be parsed."),
        (f'{GOOD}"b:c": "not ! and nonsense"\n', "line 2: the rule b:c cannot be parsed."),
        (f'{GOOD}"b:c": "rule:gone"\n', "line 2: the rule b:c refers to the rule gone, which is not there."),
        (f'{GOOD}"b:c": "not rule:c:d"\n"c:d": "rule:b:c"\n', "line 2: the rule b:c refers to itself."),
    ],
)
def test_error_has_its_line(tmp_path: Path, text: str, fault: str) -> None:
    (tmp_path / "policy.yaml").write_text(text)
    with pytest.raises(PolicyFault) as found:
        load_rules(str(tmp_path / "policy.yaml"))
    assert str(found.value) == fault


@pytest.mark.parametrize(
    "rule", ["!", "@", "", "not !", "role:a or ! and role:b", "project_id:%(project_id)s", "'x':%(y)s"]
)
def test_every_rule_of_oslo_policy_is_accepted(tmp_path: Path, rule: str) -> None:
    (tmp_path / "policy.yaml").write_text(f'"a:b": "{rule}"\n"a:c": [["role:x", "role:y"], "role:z"]\n')
    assert set(load_rules(str(tmp_path / "policy.yaml"))) == {"a:b", "a:c"}


@pytest.mark.parametrize("text", ["", "# nothing\n", '{"a:b": "role:admin"}'])
def test_file_can_be_empty_or_json(tmp_path: Path, text: str) -> None:
    (tmp_path / "policy.json").write_text(text)
    assert len(load_rules(str(tmp_path / "policy.json"))) == text.count("role")


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ('"actoin:update": "role:admin"\n', ["actoin:update is not a policy, and no rule refers to it."]),
        ('"operator": "role:x"\n"action:update": "rule:operator"\n', []),
        ('"action:update": "right:actions.fly"\n', ["action:update: there is no permission actions.fly."]),
        ('"action:update": "right:by_body or right:actions.skip_action or right:member"\n', []),
        ('"os_compute_api:os-instance-actions:events:details": "role:x"\n', []),
    ],
)
def test_rule_without_effect_causes_a_warning(write: Write, text: str, warnings: list[str]) -> None:
    write(text)
    assert [problem.msg for problem in check_policy_file()] == [f"WATCHER_POLICY_FILE: {one}" for one in warnings]


def test_generated_file_causes_no_warning(write: Write) -> None:
    printed = StringIO()
    call_command("generate_policy", stdout=printed)
    write(printed.getvalue().replace('\n#"', '\n"'))
    assert check_policy_file() == []


def test_generated_file_lists_the_requests_of_each_policy() -> None:
    printed = StringIO()
    call_command("generate_policy", stdout=printed)
    lines = printed.getvalue().splitlines()
    for request, policy in (
        ("# PATCH /v1/actions/{identifier}", '#"action:update": '),
        ("# GET /compute/v2.1/servers", '#"os_compute_api:servers:index": '),
        ("# GET /orchestration/v1/{project}/stacks/{name}/{identifier}", '#"stacks:show": '),
    ):
        assert lines[lines.index(request) + 1].startswith(policy)


def test_invalid_file_prevents_the_start_with_one_line(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(f'{GOOD}"b:c": "nonsense"\n')
    ended = run("manage.py", "check", WATCHER_POLICY_FILE=str(file))
    expected = f"WATCHER_POLICY_FILE: {file}: line 2: the rule b:c cannot be parsed.\n"
    assert (ended.returncode, ended.stderr) == (2, expected)


def test_missing_file_prevents_the_start(tmp_path: Path) -> None:
    ended = run("manage.py", "check", WATCHER_POLICY_FILE=str(tmp_path / "none.yaml"))
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("WATCHER_POLICY_FILE: must be the path of a file")


@pytest.mark.django_db
def test_changed_file_is_reloaded(write: Write, cloud_admin: User) -> None:
    write(GOOD)
    assert decide("action:update", cloud_admin) is True
    write('"action:update": "!"\n# longer\n')
    assert decide("action:update", cloud_admin) is False


@pytest.mark.django_db
def test_former_rules_apply_while_the_file_is_invalid(
    write: Write, cloud_admin: User, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    write(GOOD)
    assert decide("action:update", cloud_admin) is True
    write('"action:update": "!"\n"b:c": "nonsense"\n')
    assert decide("action:update", cloud_admin) is True
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["policy_file"]) == (
        200,
        "line 2: the rule b:c cannot be parsed. The rules of before count.",
    )
    assert "line 2: the rule b:c cannot be parsed." in caplog.text


@pytest.mark.django_db
def test_corrected_file_is_reloaded_and_readyz_reports_no_problem(
    write: Write, cloud_admin: User, client: Client
) -> None:
    write(GOOD)
    client.get("/readyz")
    write("nonsense\n")
    assert "policy_file" in client.get("/readyz").json()
    write('"action:update": "!"\n')
    assert "policy_file" not in client.get("/readyz").json()
    assert decide("action:update", cloud_admin) is False


@pytest.mark.django_db
def test_former_rules_apply_after_the_file_is_deleted(write: Write, cloud_admin: User, client: Client) -> None:
    file = write(GOOD)
    decide("action:update", cloud_admin)
    file.unlink()
    assert decide("action:update", cloud_admin) is True
    assert "cannot be read" in client.get("/readyz").json()["policy_file"]


def test_unchanged_file_is_read_once(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = policy_file(str(write(GOOD)))
    rules.refresh()
    monkeypatch.setattr("watcher_site.authorization.enforcement.load_rules", None)
    rules.refresh()
    assert set(rules.rules) == {"action:update"}
