"""Glance: images and the projects that they are shared with."""

from typing import Any

from werkzeug import Request
from werkzeug.routing import Rule

ROOT = "/image/v2/images"


class Glance:
    """Images. An unknown image is public."""

    def __init__(self, cloud: Any) -> None:
        self.images: dict[str, dict[str, Any]] = {}
        self.members: dict[str, list[str]] = {}

    def rules(self) -> list[Rule]:
        return [
            Rule(f"{ROOT}/<image>", endpoint=self.show_image),
            Rule(f"{ROOT}/<image>/members", endpoint=self.list_members),
        ]

    def add_image(self, uuid: str, owner: str, visibility: str = "private", **columns: Any) -> None:
        self.images[uuid] = {"id": uuid, "owner": owner, "visibility": visibility, **columns}

    def show_image(self, request: Request, image: str) -> Any:
        return self.images.get(image, {"id": image, "owner": "a project", "visibility": "public"})

    def list_members(self, request: Request, image: str) -> Any:
        members = [{"member_id": project, "status": "pending"} for project in self.members.get(image, ())]
        return {"members": members}
