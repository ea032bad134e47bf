"""A played service with automations: what it answers is what the test put there."""

import json
from typing import Any
from uuid import UUID, uuid4

import httpx

from tests.store.conftest import NOW, PlayedService

HOUR_LATER = "2026-11-20T13:00:00.000Z"


def automation(name: str, **fields: Any) -> dict[str, Any]:
    """A record as the service answers it."""
    return {
        "id": str(uuid4()),
        "organization_id": str(UUID(int=1)),
        "name": name,
        "prompt": "Run the tests.",
        "environment_id": str(UUID(int=2)),
        "enabled": True,
        "created_at": NOW,
        "updated_at": NOW,
        **fields,
    }


def run(of: str, status: str = "completed", at: str = NOW, **fields: Any) -> dict[str, Any]:
    """A run as the service answers it."""
    return {
        "id": str(uuid4()),
        "automation_id": of,
        "organization_id": str(UUID(int=1)),
        "triggered_at": at,
        "trigger_payload": None,
        "status": status,
        **fields,
    }


class AutomationService(PlayedService):
    """Answers for automations too; `refuses` are paths that fail with 500."""

    def __init__(self) -> None:
        super().__init__()
        self.automations: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, list[dict[str, Any]]] = {}
        self.skipped: dict[str, list[dict[str, Any]]] = {}
        self.bodies: list[dict[str, Any]] = []
        self.page_size = 2
        self.refuses: set[str] = set()
        self.has_events = True

    def put(self, record: dict[str, Any], *runs: dict[str, Any]) -> str:
        """Stores one with its runs, newest first."""
        self.automations[record["id"]] = record
        self.runs[record["id"]] = list(runs)
        return record["id"]

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method in {"POST", "PATCH"} and "/automations" in request.url.path:
            self.bodies.append(json.loads(await request.aread() or b"{}"))
        self._page = int(request.url.params.get("page", 1))
        self._limit = int(request.url.params.get("limit", 20))
        return await super().handle_async_request(request)

    def _answer(self, method: str, path: str) -> httpx.Response:
        parts = path.strip("/").split("/")[1:]
        if not parts or parts[0] != "automations":
            return super()._answer(method, path)
        if path in self.refuses:
            return httpx.Response(500, json={"error": "It failed.", "code": "INTERNAL_ERROR"})
        match method, parts[1:]:
            case "GET", ["events"] if self.has_events:
                head = {"content-type": "text/event-stream"}
                return httpx.Response(200, headers=head, stream=self._stream("automations"))
            case "GET", []:
                return self._listed("automations", list(self.automations.values()), 100)
            case "GET", [id] if id in self.automations:
                return httpx.Response(200, json={"automation": self.automations[id]})
            case "PATCH", [id] if id in self.automations:
                self.automations[id] |= self.bodies[-1]
                return httpx.Response(200, json={"automation": self.automations[id]})
            case "GET", [id, "executions"] if id in self.automations:
                size = min(self._limit, self.page_size)
                more = {"skipped": self.skipped.get(id, [])}
                return self._listed("executions", self.runs[id], size, **more)
            case "POST", [id, "executions", old, "retry"] if id in self.automations:
                made = run(id, "pending", HOUR_LATER, retry_of=old)
                self.runs[id].insert(0, made)
                told = {"execution_id": made["id"], "workspace_id": str(uuid4())}
                return httpx.Response(200, json=told)
            case "POST", [id, "executions", wanted, ("approve" | "cancel") as verb]:
                found = next(one for one in self.runs[id] if one["id"] == wanted)
                found |= {"awaiting_approval": False}
                found |= {"status": "failed", "reason": "canceled"} if verb == "cancel" else {}
                return httpx.Response(200, json={"execution": found})
            case "POST", [id, "webhook", "rotate"]:
                self.automations[id] |= {"webhook_token": "another"}
                return httpx.Response(200, json={"automation": self.automations[id]})
            case "GET", [id, "executions", wanted] if id in self.automations:
                found = next(one for one in self.runs[id] if one["id"] == wanted)
                return httpx.Response(200, json={"execution": found})
            case _:
                return httpx.Response(404, json={"error": "None.", "code": "NOT_FOUND"})

    def _listed(
        self, name: str, found: list[dict[str, Any]], size: int, **more: Any
    ) -> httpx.Response:
        begin = (self._page - 1) * size
        page = {"total": len(found), "page": self._page, "limit": size}
        pages = -(-len(found) // size)
        told = {name: found[begin : begin + size], **page, "totalPages": pages, **more}
        return httpx.Response(200, json=told)

    def tell(self, index: int, type: str, **payload: Any) -> None:
        """An event of the stream."""
        body = json.dumps({"id": f"e{index}", "type": type, "ts": NOW, "payload": payload})
        self.streams["automations"].put_nowait(f"id: {index}\ndata: {body}\n\n".encode())
