"""The rows of a large installation, and of one with a hundredth of them, written by SQL.

All values follow from the number of a row: the first plans of both installations are the same, and each of their lists
begins with the same kinds of rows. Plans, actions and history are of one year.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg

ACTIONS_PER_PLAN = 100
# As many compute nodes in both: their pages have a row or a cell for each.
NODES = 200


@dataclass(frozen=True)
class Size:
    """The number of plans, of servers and of entries of history. A plan has 100 actions on average."""

    plans: int
    servers: int
    history: int

    @classmethod
    def of(cls, share: float) -> "Size":
        """Return a share of 10,000 plans, 20,000 servers and 5,000,000 entries."""
        return cls(int(10_000 * share), int(20_000 * share), int(5_000_000 * share))

    @property
    def actions(self) -> int:
        return self.plans * ACTIONS_PER_PLAN


# The rows of the tables in the order in which they refer to each other. Tables are empty before, so that the key of a
# row is its number.
CLOUD = """
INSERT INTO cluster_computenode (id, uuid, created_at, hostname, status, state, vcpus, vcpu_reserved, vcpu_ratio,
    memory, memory_mb_reserved, memory_ratio, disk, disk_gb_reserved, disk_ratio)
SELECT i, md5('compute node ' || i)::uuid, now() - interval '1 year', 'compute-' || lpad(i::text, 4, '0'),
    CASE WHEN i % 50 = 0 THEN 'disabled' ELSE 'enabled' END, 'up', 64, 0, 4, 524288, 0, 1, 8000, 0, 1
FROM generate_series(1, {nodes}) AS i;

INSERT INTO cluster_server (id, uuid, created_at, updated_at, name, state, vcpus, memory, disk, metadata, project_id,
    locked, pinned_az, flavor_extra_specs, node_id, flavor, user_id, unhealthy_reason, launched_at)
SELECT i, md5('server ' || i)::uuid, now() - i * interval '1 year' / {servers},
    now() - i * interval '1 month' / {servers}, 'server-' || lpad((i * 7919 % 100000)::text, 5, '0'),
    (ARRAY['active', 'active', 'active', 'active', 'active', 'active', 'active', 'stopped', 'stopped', 'error'])
        [i % 10 + 1],
    1 << (i % 4), 2048 << (i % 4), 20 * (i % 4 + 1), '{{}}', md5('project ' || i % 20), false, '', '{{}}',
    1 + i % {nodes}, 'size-' || i % 4, md5('user ' || i % 50),
    CASE WHEN i % 500 = 0 THEN 'It does not answer.' END, now() - i * interval '1 year' / {servers}
FROM generate_series(1, {servers}) AS i;
"""

PLANS = """
INSERT INTO audits_audit (id, uuid, created_at, updated_at, name, audit_type, state, parameters, scope, auto_trigger,
    force, start_time, end_time, goal_id, strategy_id)
SELECT i, md5('audit ' || i)::uuid, now() - ({audits} - i) * interval '1 year' / {audits},
    now() - ({audits} - i) * interval '1 year' / {audits}, 'audit-' || lpad(i::text, 5, '0'), 'ONESHOT',
    CASE WHEN i % 20 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END, '{{}}', '[]', false, false,
    now() - ({audits} - i) * interval '1 year' / {audits}, now() - ({audits} - i) * interval '1 year' / {audits},
    strategy.goal_id, strategy.id
FROM generate_series(1, {audits}) AS i
JOIN audits_strategy AS strategy ON strategy.name =
    (ARRAY['basic', 'vm_workload_consolidation', 'workload_balance', 'host_maintenance', 'zone_migration'])[i % 5 + 1];

INSERT INTO plans_actionplan (id, uuid, created_at, updated_at, state, status_message, global_efficacy, audit_id,
    strategy_id, start_time, end_time, started_by)
SELECT i, md5('plan ' || i)::uuid, made, made + interval '1 hour', plan.state,
    CASE WHEN plan.state IN ('FAILED', 'CANCELLED') THEN 'One or more actions failed or were skipped.' END,
    '[{{"name": "released_nodes_ratio", "description": "", "unit": "%", "value": 25.0}}]', audit.id, audit.strategy_id,
    CASE WHEN plan.state IN ('SUCCEEDED', 'FAILED', 'CANCELLED') THEN made + interval '10 minutes' END,
    CASE WHEN plan.state <> 'RECOMMENDED' THEN made + interval '1 hour' END,
    CASE WHEN plan.state IN ('SUCCEEDED', 'FAILED', 'CANCELLED') THEN 'user-' || i % 50 END
FROM (SELECT i, now() - ({plans} - i) * interval '1 year' / {plans} AS made,
    (ARRAY['SUCCEEDED', 'SUCCEEDED', 'FAILED', 'SUCCEEDED', 'SUPERSEDED', 'SUCCEEDED', 'RECOMMENDED', 'SUCCEEDED',
        'SUPERSEDED', 'CANCELLED'])[i % 10 + 1] AS state
    FROM generate_series(1, {plans}) AS i) AS plan
JOIN audits_audit AS audit ON audit.id = 1 + plan.i % {audits};

INSERT INTO plans_efficacyindicator (name, description, unit, value, action_plan_id)
SELECT name, '', NULL, 1 + i % 40, i
FROM generate_series(1, {plans}) AS i, unnest(ARRAY['compute_nodes_count', 'released_compute_nodes_count']) AS name;
"""

# The sizes of plans go round from 50 to 150, so that the keys of the actions of each plan follow from its number.
ACTIONS = """
CREATE TEMPORARY TABLE place AS
SELECT i AS plan, number, row_number() OVER (ORDER BY i, number) AS id
FROM generate_series(1, {plans}) AS i, generate_series(0, 50 + i * 37 % 101 - 1) AS number;
CREATE UNIQUE INDEX place_id ON place (id);
ANALYZE place;

INSERT INTO actions_action (id, uuid, created_at, updated_at, action_type, input_parameters, state, status_message,
    skipped_by, reason, attempt, action_plan_id, start_time, end_time, name, target)
SELECT id, md5('action ' || id)::uuid, made, CASE WHEN state <> 'PENDING' THEN began + interval '1 minute' END,
    action_type,
    CASE WHEN action_type = 'change_nova_service_state' THEN
        jsonb_build_object('resource_id', target, 'resource_name', 'compute-' || lpad(node::text, 4, '0'),
            'state', 'disabled', 'disabled_reason', 'watcher_disabled')
    ELSE jsonb_build_object('resource_id', target, 'resource_name',
        'server-' || lpad((server * 7919 % 100000)::text, 5, '0'), 'migration_type', 'live',
        'source_node', 'compute-' || lpad(node::text, 4, '0'),
        'destination_node', 'compute-' || lpad((node % {nodes} + 1)::text, 4, '0')) END,
    state,
    CASE state WHEN 'SKIPPED' THEN 'Action skipped by user. Reason: It is in use.'
        WHEN 'FAILED' THEN 'Action failed in execute: No valid host was found.' END,
    CASE WHEN state = 'SKIPPED' THEN 'user-' || plan % 50 END,
    CASE WHEN state = 'SKIPPED' THEN 'It is in use.' ELSE '' END,
    CASE WHEN state IN ('SUCCEEDED', 'FAILED') THEN 1 ELSE 0 END, plan,
    CASE WHEN state IN ('SUCCEEDED', 'FAILED') THEN began END,
    CASE WHEN state IN ('SUCCEEDED', 'FAILED') THEN began + (10 + number % 50) * interval '1 second' END,
    action_type || '-' || substr(md5('action ' || id), 1, 8), target
FROM (
    SELECT place.id, plan, number, action_type, server, node, plans_actionplan.created_at AS made,
        coalesce(plans_actionplan.start_time, plans_actionplan.created_at) + number * interval '20 seconds' AS began,
        CASE WHEN action_type = 'change_nova_service_state' THEN md5('compute node ' || node)::uuid
            ELSE md5('server ' || server)::uuid END::text AS target,
        CASE WHEN number % 10 = 3 THEN 'SKIPPED'
            WHEN plans_actionplan.state = 'SUCCEEDED' THEN 'SUCCEEDED'
            WHEN plans_actionplan.state = 'FAILED' THEN CASE WHEN number % 10 = 5 THEN 'FAILED' ELSE 'SUCCEEDED' END
            WHEN plans_actionplan.state = 'RECOMMENDED' THEN 'PENDING'
            WHEN plans_actionplan.state = 'CANCELLED' THEN CASE WHEN number < 20 THEN 'SUCCEEDED' ELSE 'CANCELLED' END
            ELSE 'CANCELLED' END AS state
    FROM (SELECT id, plan, number, 1 + id * 31 % {servers} AS server, 1 + id * 17 % {nodes} AS node,
        (ARRAY['migrate', 'migrate', 'migrate', 'migrate', 'resize', 'migrate', 'migrate', 'change_nova_service_state',
            'migrate', 'stop'])[number % 10 + 1] AS action_type FROM place) AS place
    JOIN plans_actionplan ON plans_actionplan.id = plan
) AS action;

INSERT INTO actions_actionparent (child_id, parent_id)
SELECT child.id, child.id - 8 + step * (CASE WHEN child.number % 8 = 7 THEN -7 ELSE 1 END)
FROM place AS child, generate_series(0, 1) AS step WHERE child.number >= 8;

INSERT INTO actions_actionevent (event, attempt, start_time, finish_time, result, host, action_id)
SELECT event, 1, start_time, end_time,
    CASE WHEN state = 'FAILED' AND event = 'execute' THEN 'Error' ELSE 'Success' END, 'worker-' || id % 4, id
FROM actions_action, unnest(ARRAY['pre_condition', 'execute', 'post_condition']) AS event
WHERE start_time IS NOT NULL;

INSERT INTO actions_instanceaction (server_uuid, verb, request_id, user_id, project_id, start_time, updated_at,
    action_id)
SELECT target::uuid, 'live-migration', 'req-' || md5('request ' || id)::uuid, md5('user ' || id % 50),
    md5('project ' || id % 20), start_time, end_time, id
FROM actions_action WHERE start_time IS NOT NULL AND action_type = 'migrate';
"""

HISTORY = """
INSERT INTO watcher_site_historyentry (id, uuid, created_at, "user", user_id, project_id, request_id, deed, outcome,
    object_type, object_uuid, object_name, within, message, details)
SELECT i, md5('entry ' || i)::uuid, now() - ({history} - i) * interval '1 year' / {history},
    'user-' || i % 50, md5('user ' || i % 50), md5('project ' || i % 20), 'req-' || md5('request ' || i / 2)::uuid,
    deed, CASE WHEN i % 40 = 0 THEN 'refused' ELSE 'success' END, split_part(deed, '.', 1),
    md5(CASE split_part(deed, '.', 1) WHEN 'action' THEN 'action ' || 1 + i * 13 % {actions}
        WHEN 'action_plan' THEN 'plan ' || 1 + i * 13 % {plans} ELSE 'server ' || 1 + i * 13 % {servers} END)::uuid,
    CASE split_part(deed, '.', 1)
        WHEN 'server' THEN 'server-' || lpad(((1 + i * 13 % {servers}) * 7919 % 100000)::text, 5, '0') ELSE '' END,
    CASE WHEN deed LIKE 'action.%' THEN md5('plan ' || 1 + i * 13 % {plans})::uuid END,
    CASE WHEN deed = 'action.skip' THEN 'It is in use.' ELSE '' END,
    CASE WHEN deed = 'action_plan.start' THEN '{{"on_failure": "continue"}}'::jsonb ELSE '{{}}' END
FROM (SELECT i, (ARRAY['action.skip', 'action_plan.start', 'server.view', 'action.skip', 'action_plan.view',
    'server.stop', 'action.restore', 'action_plan.cancel', 'server.view', 'action.update'])[i % 10 + 1] AS deed
    FROM generate_series(1::bigint, {history}) AS i) AS entry;
"""

STATEMENTS = {"cloud": CLOUD, "plans": PLANS, "actions": ACTIONS, "history": HISTORY}

# What drops each index and each unique constraint of tables, except the primary keys, and what makes it again.
INDEXES = """
SELECT format('ALTER TABLE %%s DROP CONSTRAINT %%I', conrelid::regclass, conname),
    format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE conrelid = ANY (%(tables)s::regclass[]) AND contype = 'u'
UNION ALL
SELECT format('DROP INDEX %%s', indexrelid::regclass), pg_get_indexdef(indexrelid) FROM pg_index
WHERE indrelid = ANY (%(tables)s::regclass[]) AND NOT EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = indexrelid)
"""
LARGE = ["actions_action", "actions_actionparent", "actions_actionevent", "actions_instanceaction"]
LARGE += ["watcher_site_historyentry", "plans_actionplan"]
SEQUENCE = "SELECT setval(pg_get_serial_sequence('{0}', 'id'), max(id)) FROM {0}"
FILLED = [*LARGE, "audits_audit", "cluster_computenode", "cluster_server"]


def fill(database: str, size: Size) -> None:
    """Write the rows of a size into a database whose migrations were applied."""
    values = {
        "nodes": NODES,
        "servers": size.servers,
        "plans": size.plans,
        "audits": size.plans // 2,
        "actions": size.actions,
        "history": size.history,
    }
    with psycopg.connect(database, autocommit=True) as connection:
        # What is written refers to rows that are written as well: the triggers of foreign keys would check each row.
        connection.execute("SET session_replication_role = replica")
        connection.execute("SET synchronous_commit = off")
        connection.execute("SET maintenance_work_mem = '512MB'")
        connection.execute("SET work_mem = '256MB'")
        with without_indexes(connection):
            for statements in STATEMENTS.values():
                connection.execute(statements.format(**values).encode())
        for table in FILLED:
            connection.execute(SEQUENCE.format(table).encode())
        connection.execute("VACUUM ANALYZE")


@contextmanager
def without_indexes(connection: psycopg.Connection) -> Iterator[None]:
    """Drop the indexes of the large tables, and create them again after the block."""
    found = connection.execute(INDEXES, {"tables": LARGE}).fetchall()
    for drop, _make in found:
        connection.execute(drop)
    yield
    for _drop, make in found:
        connection.execute(make)
