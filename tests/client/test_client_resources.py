import json
from uuid import UUID

import httpx
import pytest

from quarterdeck.client import Client, HttpConnection, WireNames
from quarterdeck.wire.chats import CreateChat, SendMessage
from quarterdeck.wire.environments import CreateEnvironment
from quarterdeck.wire.replicas import CreateReplica
from quarterdeck.wire.repositories import ConnectRepository

R = UUID("00000000-0000-4000-8000-00000000000a")
C = UUID("00000000-0000-4000-8000-00000000000b")
NOW = "2026-11-21T10:00:00.000Z"

CHAT = {"id": str(C), "provider": "builtin", "created_at": NOW, "updated_at": NOW}
REPOSITORY = {"id": str(C), "name": "n", "url": "/r", "default_branch": "main"}
REPLICA = {"id": str(R), "name": "n", "status": "active", "created_at": NOW, "chats": [CHAT]}
ENVIRONMENT = {
    "id": str(C),
    "organization_id": str(R),
    "name": "e",
    "created_at": NOW,
    "updated_at": NOW,
}
SESSION = {"id": str(C), "title": "sh", "createdAt": NOW, "exited": False, "exitCode": None}
ACCEPTED = {"status": "sent", "message_id": str(C), "chat_id": str(C), "position": None}
EXEC = {"output": "", "exit_code": 0, "timed_out": False, "truncated": False}
SUCCESS = {"success": True}
HISTORY = {"thread_id": "t", "events": [], "total": 0, "has_more": False}

CALLS = [
    (lambda c: c.health.get(), "GET /v1/health", None, {"status": "ok", "version": "1"}),
    (
        lambda c: c.services.list(),
        "GET /v1/services",
        None,
        {"services": [{"home_id": str(C), "own": True, "alive": True}]},
    ),
    (
        lambda c: c.repositories.list(),
        "GET /v1/replica/repositories",
        None,
        {"repositories": [REPOSITORY]},
    ),
    (
        lambda c: c.repositories.connect(ConnectRepository(url="/r")),
        "POST /v1/replica/repositories",
        {"url": "/r"},
        {"repository": REPOSITORY},
    ),
    (
        lambda c: c.environments.list(scope="all"),
        "GET /v1/environments?scope=all",
        None,
        {"environments": [ENVIRONMENT]},
    ),
    (
        lambda c: c.environments.create(CreateEnvironment(name="e", repository_id=C)),
        "POST /v1/environments",
        {"name": "e", "scope": "org", "repository_id": str(C)},
        {"environment": ENVIRONMENT},
    ),
    (
        lambda c: c.environments.get("global"),
        "GET /v1/environments/global",
        None,
        {"environment": ENVIRONMENT},
    ),
    (lambda c: c.agents.list(), "GET /v1/agents", None, {"agents": []}),
    (
        lambda c: c.replicas.create(CreateReplica(name="n", environment_id=C, message="m")),
        "POST /v1/replica",
        {"name": "n", "environment_id": str(C), "message": "m"},
        {"replica": REPLICA},
    ),
    (
        lambda c: c.replicas.get(R, include=["environment", "diffs"]),
        f"GET /v1/replica/{R}?include=environment%2Cdiffs",
        None,
        {"replica": REPLICA},
    ),
    (lambda c: c.replicas.delete(R), f"DELETE /v1/replica/{R}", None, SUCCESS),
    (lambda c: c.replicas.sleep(R), f"POST /v1/workspaces/{R}/sleep", None, SUCCESS),
    (lambda c: c.replicas.forget(R), f"POST /v1/workspaces/{R}/forget", None, SUCCESS),
    (
        lambda c: c.replicas.wake(R),
        f"POST /v1/workspaces/{R}/wake",
        None,
        {"status": "waking"},
    ),
    (
        lambda c: c.replicas.status(R),
        f"GET /v1/workspaces/{R}/status",
        None,
        {"status": "active", "lastChecked": NOW},
    ),
    (lambda c: c.chats.list(R), f"GET /v1/replica/{R}/chats", None, {"chats": [CHAT]}),
    (
        lambda c: c.chats.create(R, CreateChat(provider="builtin", client_request_id="q")),
        f"POST /v1/replica/{R}/chats",
        {"provider": "builtin", "clientRequestId": "q"},
        {"chat": CHAT},
    ),
    (
        lambda c: c.chats.rename(R, C, "t"),
        f"PATCH /v1/replica/{R}/chats/{C}",
        {"display_name": "t"},
        {"chat": CHAT},
    ),
    (
        lambda c: c.chats.interrupt(R, C),
        f"POST /v1/replica/{R}/chats/{C}/interrupt",
        None,
        {"interrupted": True, "queue": []},
    ),
    (
        lambda c: c.chats.respond(R, C, "q", option_id="yes"),
        f"POST /v1/replica/{R}/chats/{C}/respond",
        {"requestId": "q", "optionId": "yes"},
        SUCCESS,
    ),
    (
        lambda c: c.messages.send(R, SendMessage(message="m", canvas_upload_ids=["u"])),
        f"POST /v1/replica/{R}/messages",
        {"message": "m", "canvasUploadIds": ["u"]},
        ACCEPTED,
    ),
    (
        lambda c: c.messages.queue(R, C),
        f"GET /v1/replica/{R}/chats/{C}/queue",
        None,
        {"chatId": str(C), "processing": False, "queue": []},
    ),
    (
        lambda c: c.history.page(R, chat_id=C, limit=5, before_event=9, before_turn=2),
        f"GET /v1/replica/{R}/history?chat_id={C}&limit=5&beforeEvent=9&beforeTurn=2",
        None,
        HISTORY,
    ),
    (
        lambda c: c.exec.run(R, "ls", 5),
        f"POST /v1/replica/{R}/exec",
        {"command": "ls", "timeout_seconds": 5},
        EXEC,
    ),
    (
        lambda c: c.terminals.list(R),
        f"GET /v1/replica/{R}/terminal/sessions",
        None,
        {"sessions": [SESSION]},
    ),
    (
        lambda c: c.terminals.create(R, 80, 24),
        f"POST /v1/replica/{R}/terminal/sessions",
        {"cols": 80, "rows": 24},
        {"session": SESSION},
    ),
    (
        lambda c: c.terminals.resize(R, C, 80, 24),
        f"POST /v1/replica/{R}/terminal/sessions/{C}/resize",
        {"cols": 80, "rows": 24},
        SUCCESS,
    ),
    (
        lambda c: c.terminals.close(R, C),
        f"DELETE /v1/replica/{R}/terminal/sessions/{C}",
        None,
        SUCCESS,
    ),
]


def answering(answer, seen):
    def handle(request):
        seen.append(request)
        body = answer(request) if callable(answer) else answer
        return httpx.Response(200, json=body)

    return httpx.MockTransport(handle)


@pytest.mark.parametrize(
    ("call", "line", "body", "answer"), CALLS, ids=[call[1].split("?")[0] for call in CALLS]
)
async def test_each_operation_calls_its_route(call, line, body, answer):
    seen = []
    connection = HttpConnection("http://s", "k", transport=answering(answer, seen))
    async with Client(connection) as client:
        await call(client)
    (request,) = seen
    assert f"{request.method} {request.url.raw_path.decode()}" == line
    assert (json.loads(request.content) if request.content else None) == body


async def test_all_walks_every_page_once_though_new_ones_come_first():
    everything = [REPLICA | {"id": str(UUID(int=number))} for number in range(250)]

    def answer(request):
        page, limit = (int(request.url.params[name]) for name in ("page", "limit"))
        if page == 2:
            everything.insert(0, REPLICA | {"id": str(UUID(int=999))})
        part = everything[(page - 1) * limit : page * limit]
        return {"replicas": part, "total": 250, "page": page, "limit": limit, "total_pages": 3}

    connection = HttpConnection("http://s", "k", transport=answering(answer, []))
    async with Client(connection) as client:
        found = [replica.id.int async for replica in client.replicas.all()]
    assert sorted(found) == list(range(250))


async def test_history_walks_back_until_there_is_no_earlier_page():
    def answer(request):
        cursor = request.url.params.get("beforeCursor")
        after = {None: "b", "b": "a", "a": None}[cursor]
        return HISTORY | {"thread_id": cursor or "newest", "beforeCursor": after}

    connection = HttpConnection("http://s", "k", transport=answering(answer, []))
    async with Client(connection) as client:
        pages = [page.thread_id async for page in client.history.pages(R, limit=1)]
    assert pages == ["newest", "b", "a"]


async def test_a_renamed_transcript_key_is_found():
    answer = HISTORY | {"hostedTranscript": {"turns": [{"id": "t1"}]}}
    names = WireNames(transcript_key="hostedTranscript")
    connection = HttpConnection("http://s", "k", transport=answering(answer, []), names=names)
    async with Client(connection) as client:
        page = await client.history.page(R)
    assert page.agent_asp_transcript is not None
    assert [turn.id for turn in page.agent_asp_transcript.turns] == ["t1"]


async def test_unknown_fields_and_states_are_kept():
    answer = {"replica": REPLICA | {"status": "hibernating", "of_tomorrow": {"x": 1}}}
    connection = HttpConnection("http://s", "k", transport=answering(answer, []))
    async with Client(connection) as client:
        detail = await client.replicas.get(R)
    assert detail.status == "hibernating"
    assert detail.model_extra == {"of_tomorrow": {"x": 1}}
