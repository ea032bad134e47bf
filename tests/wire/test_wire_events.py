"""The event envelope: all nineteen types, and what is not known here."""

import pytest

from quarterdeck.wire.events import (
    PAYLOADS,
    ChatChanged,
    Event,
    EventType,
    TurnDelta,
    payload_of,
)

MOMENT = "2026-11-20T10:00:00.000Z"

SPECIFIED = {
    "engine.ready": {"version": "1.0"},
    "engine.status.changed": {
        "status": {
            "uptimeSeconds": 1,
            "activeSseClients": 0,
            "chatsTotal": 1,
            "chatsProcessing": 0,
            "reposTotal": 1,
            "hooksRunning": False,
        }
    },
    "repo.discovered": {"repos": [{"name": "r", "path": "/workspace/r", "prUrls": []}]},
    "repo.status.changed": {
        "repos": [{"name": "r", "path": "/r", "gitDiff": {"added": 1, "removed": 2}}]
    },
    "chat.created": {
        "chat": {
            "id": "7a0e8b8e-1111-4222-8333-444455556666",
            "provider": "builtin",
            "createdAt": MOMENT,
            "updatedAt": MOMENT,
        },
        "clientRequestId": "mine",
    },
    "chat.updated": {
        "chat": {
            "id": "7a0e8b8e-1111-4222-8333-444455556666",
            "provider": "builtin",
            "createdAt": MOMENT,
            "updatedAt": MOMENT,
            "processing": True,
        }
    },
    "chat.deleted": {"chatId": "c"},
    "chat.turn.accepted": {"chatId": "c", "messageId": "m", "queued": True, "position": 1},
    "chat.turn.started": {"chatId": "c", "messageId": "m"},
    "chat.turn.delta": {
        "chatId": "c",
        "messageId": "m",
        "event": {"timestamp": MOMENT, "type": "acp-session_update", "payload": {"a": 1}},
    },
    "chat.turn.completed": {
        "chatId": "c",
        "messageId": "m",
        "isComplete": True,
        "processing": False,
    },
    "chat.interrupted": {"chatId": "c", "interrupted": True, "queue": ["m2"]},
    "hooks.started": {"running": ["warm"], "completed": []},
    "hooks.progress": {"running": ["warm"], "completed": [], "hookName": "warm", "output": "x"},
    "hooks.completed": {"running": [], "completed": ["warm"]},
    "hooks.failed": {"running": [], "completed": ["warm"]},
    "hooks.status": {"running": [], "completed": []},
    "preview.changed": {
        "previews": [{"port": 80, "publicUrl": "http://127.0.0.1/", "createdAt": MOMENT}]
    },
    "error": {"code": "X", "message": "y"},
}


def envelope(kind: str, payload: dict[str, object]) -> Event:
    return Event.model_validate({"id": "e", "ts": MOMENT, "type": kind, "payload": payload})


def test_the_specification_names_nineteen_types() -> None:
    assert {kind.value for kind in EventType} == set(SPECIFIED)
    assert len(SPECIFIED) == 19
    assert set(PAYLOADS) == set(EventType)


@pytest.mark.parametrize("kind", sorted(SPECIFIED))
def test_each_payload_is_read_and_written_unchanged(kind: str) -> None:
    event = envelope(kind, SPECIFIED[kind])
    payload = payload_of(event)
    assert isinstance(payload, PAYLOADS[EventType(kind)])
    written = payload.model_dump(mode="json", exclude_unset=True)
    assert written == SPECIFIED[kind]


def test_an_unknown_type_keeps_its_payload() -> None:
    event = envelope("chat.danced", {"style": "polka"})
    assert payload_of(event) is None
    assert event.payload == {"style": "polka"}


def test_a_known_type_with_a_foreign_shape_is_no_exception() -> None:
    assert payload_of(envelope("chat.turn.delta", {"event": 7})) is None


def test_unknown_fields_survive_a_round_trip() -> None:
    payload = dict(SPECIFIED["chat.turn.delta"], traceId="t")
    read = payload_of(envelope("chat.turn.delta", payload))
    assert isinstance(read, TurnDelta)
    assert read.model_dump(mode="json")["traceId"] == "t"
    line = '{"id":"e","ts":"2026-11-20T10:00:00Z","type":"x","payload":{},"region":"north"}'
    assert Event.model_validate_json(line).model_dump(mode="json")["region"] == "north"


def test_a_chat_in_an_event_is_the_chat_of_the_control_plane() -> None:
    read = payload_of(envelope("chat.updated", SPECIFIED["chat.updated"]))
    assert isinstance(read, ChatChanged)
    chat = read.chat.as_chat()
    assert chat.processing
    assert set(chat.model_dump(mode="json")) == {
        "id",
        "provider",
        "title",
        "created_at",
        "updated_at",
        "processing",
        "awaiting_input",
        "parent_chat_id",
        "last_message_text",
        "goal",
        "plan_ready",
        "processing_since",
        "turn_failed",
        "permission_mode",
        "model",
        "thinking_level",
    }
