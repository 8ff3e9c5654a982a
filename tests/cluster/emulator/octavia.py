"""Octavia: load balancers, pools and members. A change takes some reads, during which others are refused."""

from typing import Any
from uuid import uuid4

from werkzeug import Request, Response
from werkzeug.exceptions import Conflict, NotFound
from werkzeug.routing import Rule

from tests.cluster.emulator.paging import page

ROOT = "/load-balancer/v2.0/lbaas"
STATUS = "provisioning_status"


class Octavia:
    """If ``failing``, objects are in ERROR after they are created, changed or deleted."""

    def __init__(self, cloud: Any) -> None:
        self.cloud = cloud
        self.balancers: dict[str, dict[str, Any]] = {}
        self.pools: dict[str, dict[str, Any]] = {}
        self.members: dict[str, dict[str, dict[str, Any]]] = {}
        self.reads_left: dict[str, float] = {}
        self.failing = False

    def rules(self) -> list[Rule]:
        members = f"{ROOT}/pools/<pool>/members"
        return [
            Rule(f"{ROOT}/loadbalancers/<balancer>", endpoint=self.show_balancer),
            Rule(f"{ROOT}/pools", endpoint=self.list_pools),
            Rule(f"{ROOT}/pools/<pool>", endpoint=self.show_pool),
            Rule(members, methods=["GET"], endpoint=self.list_members),
            Rule(members, methods=["POST"], endpoint=self.create_member),
            Rule(f"{members}/<member>", methods=["PUT"], endpoint=self.update_member),
            Rule(f"{members}/<member>", methods=["DELETE"], endpoint=self.delete_member),
        ]

    def add_pool(self, uuid: str, name: str, balancer: str, subnet: str) -> None:
        self.balancers[balancer] = {"id": balancer, "name": "lb-1", STATUS: "ACTIVE", "vip_subnet_id": subnet}
        self.pools[uuid] = {"id": uuid, "name": name, STATUS: "ACTIVE", "loadbalancers": [{"id": balancer}]}
        self.members[uuid] = {}

    def add_member(self, pool: str, **columns: Any) -> dict[str, Any]:
        key = str(uuid4())
        member = {"id": key, "weight": 1, STATUS: "ACTIVE", "operating_status": "NO_MONITOR", **columns}
        self.members[pool][key] = member
        return member

    # Responses.

    def show_balancer(self, request: Request, balancer: str) -> Any:
        self.advance(balancer)
        return {"loadbalancer": self.balancers[balancer]}

    def list_pools(self, request: Request) -> Any:
        wanted = request.args.get("name")
        found = [pool for pool in self.pools.values() if wanted in {None, pool["name"]}]
        return page(request, "pools", found, self.cloud.page_size)

    def show_pool(self, request: Request, pool: str) -> Any:
        return {"pool": self.find_pool(pool)}

    def find_pool(self, pool: str) -> dict[str, Any]:
        if pool not in self.pools:
            raise NotFound(f"Pool {pool} not found.")
        return self.pools[pool]

    def list_members(self, request: Request, pool: str) -> Any:
        self.find_pool(pool)
        return page(request, "members", list(self.members[pool].values()), self.cloud.page_size)

    def create_member(self, request: Request, pool: str) -> Any:
        wanted = request.get_json()["member"]
        place = (wanted["address"], wanted["protocol_port"])
        balancer = self.require_mutable(pool)
        if any((one["address"], one["protocol_port"]) == place for one in self.members[pool].values()):
            raise Conflict("Another member on this pool is already using ip {} on protocol_port {}.".format(*place))
        self.begin(balancer)
        return {"member": self.add_member(pool, **{**wanted, STATUS: "PENDING_CREATE"})}

    def update_member(self, request: Request, pool: str, member: str) -> Any:
        found = self.find_member(pool, member)
        self.begin(self.require_mutable(pool))
        found.update({**request.get_json()["member"], STATUS: "PENDING_UPDATE"})
        return {"member": found}

    def delete_member(self, request: Request, pool: str, member: str) -> Response:
        found = self.find_member(pool, member)
        self.begin(self.require_mutable(pool))
        found[STATUS] = "PENDING_DELETE"
        return Response(status=204)

    def find_member(self, pool: str, member: str) -> dict[str, Any]:
        if member not in self.members[pool]:
            raise NotFound(f"Member {member} not found.")
        return self.members[pool][member]

    def require_mutable(self, pool: str) -> str:
        key = str(self.find_pool(pool)["loadbalancers"][0]["id"])
        if self.balancers[key][STATUS] != "ACTIVE":
            raise Conflict(f"Load Balancer {key} is immutable and cannot be updated.")
        return key

    def begin(self, balancer: str) -> None:
        self.balancers[balancer][STATUS] = "PENDING_UPDATE"
        self.reads_left[balancer] = self.cloud.readings

    def advance(self, balancer: str) -> None:
        if balancer in self.reads_left:
            self.reads_left[balancer] -= 1
            if self.reads_left[balancer] <= 0:
                del self.reads_left[balancer]
                self.finish(balancer)

    def finish(self, balancer: str) -> None:
        self.balancers[balancer][STATUS] = "ACTIVE"
        for pool in self.pools.values():
            if pool["loadbalancers"] == [{"id": balancer}]:
                for member in list(self.members[pool["id"]].values()):
                    self.finish_member(pool["id"], member)

    def finish_member(self, pool: str, member: dict[str, Any]) -> None:
        if not member[STATUS].startswith("PENDING_"):
            return
        if member[STATUS] == "PENDING_DELETE" and not self.failing:
            del self.members[pool][member["id"]]
        member[STATUS] = "ERROR" if self.failing else "ACTIVE"
