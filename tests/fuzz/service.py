"""What is fuzzed: an installation, ids in it, and who asks."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.fuzz.automations import automated
from tests.fuzz.calls import Operation, Request, operations
from tests.fuzz.schemas import misfits
from tests.support.installation import Installation
from tests.support.waiting import WAIT_SECONDS

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
SECONDS = 30.0
"""An answer that takes longer is a hang."""


@dataclass
class Fuzzed:
    """The service under test; `ask` sends a request as whoever may make it."""

    installation: Installation
    client: httpx.Client
    operations: list[Operation]
    known: dict[str, list[str]]
    headers: dict[str, str]
    token_headers: dict[str, str]
    seen: dict[int, int] = field(default_factory=dict[int, int])

    @classmethod
    @contextmanager
    def over(cls, made: Installation) -> Iterator["Fuzzed"]:
        active, resting = made.create(), made.create()
        made.post(f"/v1/replica/{resting}/sleep")
        chats = [made.chat(active), made.chat(resting)] if made.replica(active)["chats"] else []
        if not chats:
            body = {"provider": "builtin"}
            chats = [made.post(f"/v1/replica/{active}/chats", body, 201)["chat"]["id"]]
        size = {"cols": 80, "rows": 24}
        session = made.post(f"/v1/replica/{active}/terminal/sessions", size, 201)["session"]["id"]
        environment = made.post("/v1/environments", {"name": "fuzzed"}, 201)["environment"]["id"]
        with made.client() as client:
            client.timeout = httpx.Timeout(SECONDS)
            yield cls(
                made,
                client,
                operations(client.get("/openapi.json").json()),
                {
                    "id": [active, resting],
                    "chat_id": chats,
                    "session_id": [session],
                    "environment_id": [environment, "global"],
                    "agent": ["builtin", "codex"],
                    "provider": ["provider-g", "provider-a"],
                    **automated(made, environment),
                },
                {"Authorization": f"Bearer {made.key}"},
                _token(made),
            )

    def send(self, operation: Operation, request: Request) -> httpx.Response:
        mine = "user" in operation.path.split("/") or operation.path == "/v1/organizations"
        more = dict(request.more)
        headers = {
            **(self.token_headers if mine else self.headers),
            **more.pop("headers", {}),
            **request.headers,
        }
        with self.client.stream(request.method, request.url, headers=headers, **more) as answer:
            if not answer.headers.get("content-type", "").startswith("text/event-stream"):
                answer.read()
        return answer

    def check(self, operation: Operation, request: Request, answer: httpx.Response) -> None:
        """The answer is one that the description tells of, and no failure of the service."""
        told = f"{request}\n-> {answer.status_code} "
        status = answer.status_code
        self.seen[status] = self.seen.get(status, 0) + 1
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            assert operation.streams and status == 200, told
            return
        told += answer.text[:500]
        assert status < 500, told
        assert status != 422, told
        if not self._is_own(operation, answer):
            # The address became another route, or none: an error all the same.
            assert status >= 400 or status < 300, told
        elif str(status) not in operation.spec["responses"]:
            raise AssertionError(f"a status that is not described: {told}")
        if status >= 400:
            body = answer.json()
            assert isinstance(body["error"], str) and set(body) <= {"error", "details", "code"}, (
                told
            )
            return
        schema = operation.answer_schema(status) if self._is_own(operation, answer) else None
        if schema is not None:
            wrong = misfits(json.loads(answer.content), schema, operation.components)
            assert not wrong, f"{wrong} {told}"

    def _is_own(self, operation: Operation, answer: httpx.Response) -> bool:
        """Whether the answered address is still the operation's: a parameter may hold a slash."""
        path = urlsplit(str(answer.request.url)).path
        wanted, given = operation.path.split("/"), path.split("/")
        return len(wanted) == len(given) and all(
            one == other or (one.startswith("{") and other not in ("", ".", ".."))
            for one, other in zip(wanted, given, strict=True)
        )


def _token(made: Installation) -> dict[str, str]:
    """The headers of a user: the installation's owner, let in over the unix socket."""
    transport = httpx.HTTPTransport(uds=str(made.seen_home.socket))
    with httpx.Client(transport=transport, base_url="http://qd", timeout=WAIT_SECONDS) as client:
        asked: Any = client.post("/v1/auth/device").json()
        body = {"grant_type": GRANT, "device_code": asked["device_code"]}
        token = client.post("/v1/auth/token", json=body).json()["access_token"]
    organization = made.get("/v1/organizations")["organizations"][0]["id"]
    return {"Authorization": f"Bearer {token}", "Service-Org-Id": organization}
