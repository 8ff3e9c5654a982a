"""The references for measurements of the API: the same rows by plain SQL and orjson, one query, and an empty view.

They pass through the same middleware, check no credential, and use neither models nor serializers.
"""

from functools import cache
from typing import Any

import orjson
import psycopg
from django.conf import settings
from django.http import HttpRequest, HttpResponse

from watcher_site.keystone.tokens import identify_user

ACTIONS = """
    SELECT action.uuid, action.state, action.action_type, action_plan.uuid AS action_plan_uuid,
           ARRAY(SELECT parent.uuid FROM actions_actionparent AS edge JOIN actions_action AS parent
                 ON parent.id = edge.parent_id WHERE edge.child_id = action.id ORDER BY parent.id) AS parents,
           action.input_parameters, action.status_message, action.created_at, action.updated_at, action.deleted_at
    FROM actions_action AS action JOIN plans_actionplan AS action_plan ON action_plan.id = action.action_plan_id
    WHERE action.deleted_at IS NULL ORDER BY action.id LIMIT %s
"""
ACTION_PLANS = """
    SELECT action_plan.id, action_plan.uuid, action_plan.state, audit.uuid AS audit_uuid,
           strategy.uuid AS strategy_uuid, strategy.name AS strategy_name, action_plan.global_efficacy,
           action_plan.hostname, action_plan.status_message, action_plan.created_at, action_plan.updated_at,
           action_plan.deleted_at
    FROM plans_actionplan AS action_plan
    LEFT JOIN audits_audit AS audit ON audit.id = action_plan.audit_id AND audit.deleted_at IS NULL
    LEFT JOIN audits_strategy AS strategy ON strategy.id = action_plan.strategy_id
    WHERE action_plan.deleted_at IS NULL ORDER BY action_plan.id LIMIT %s
"""
INDICATORS = """
    SELECT action_plan_id, name, description, unit, value FROM plans_efficacyindicator
    WHERE action_plan_id <= (SELECT id FROM plans_actionplan ORDER BY id OFFSET 99 LIMIT 1) ORDER BY id
"""


@cache
def connection() -> "psycopg.Connection[dict[str, Any]]":
    database = settings.DATABASES["default"]
    return psycopg.connect(
        host=database["HOST"],
        port=database["PORT"],
        user=database["USER"],
        password=database["PASSWORD"],
        dbname=database["NAME"],
        autocommit=True,
        row_factory=psycopg.rows.dict_row,
    )


def bare(request: HttpRequest) -> HttpResponse:
    return HttpResponse(b"{}", "application/json")


def validated(request: HttpRequest) -> HttpResponse:
    """Identify the user of a token of Keystone: a bare view and the validation."""
    identify_user(request)
    return HttpResponse(b"{}", "application/json")


def query(request: HttpRequest) -> HttpResponse:
    """Read the efficacy indicators of 100 plans, and discard them: a bare view and one query."""
    connection().execute(INDICATORS).fetchall()
    return HttpResponse(b"{}", "application/json")


def actions(request: HttpRequest) -> HttpResponse:
    rows = connection().execute(ACTIONS, [int(request.GET["limit"])]).fetchall()
    return answer("actions", rows)


def action_plans(request: HttpRequest) -> HttpResponse:
    rows = connection().execute(ACTION_PLANS, [int(request.GET["limit"])]).fetchall()
    return answer("action_plans", rows)


def answer(collection: str, rows: list[dict[str, Any]]) -> HttpResponse:
    for row in rows:
        row["links"] = [
            {"href": f"http://127.0.0.1/v1/{collection}/{row['uuid']}", "rel": "self"},
            {"href": f"http://127.0.0.1/{collection}/{row['uuid']}", "rel": "bookmark"},
        ]
    return HttpResponse(orjson.dumps({collection: rows}), "application/json")
