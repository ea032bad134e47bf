"""The models against the contract's fields, bounds and cases."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from pydantic import BaseModel, ValidationError

from quarterdeck.wire.base import first_error
from quarterdeck.wire.chats import CreateChat, Queue, RenameChat, SendMessage
from quarterdeck.wire.environment_parts import CreateVariable
from quarterdeck.wire.errors import STATUS_OF, ErrorCode, ErrorObject
from quarterdeck.wire.history import AspTurn, History
from quarterdeck.wire.replicas import CreateReplica, Replica, WorkspaceStatusAnswer
from quarterdeck.wire.terminals import (
    CreateTerminal,
    ExecRequest,
    TerminalInput,
    TerminalSession,
    terminal_event,
)

MOMENT = "2026-11-20T10:00:00.000Z"
SOME_ID = "7a0e8b8e-1111-4222-8333-444455556666"


def accepted(model: type[BaseModel], body: dict[str, object]) -> bool:
    try:
        model.model_validate(body)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize(
    ("seconds", "fits"), [(0, False), (1, True), (50, True), (51, False), ("x", False)]
)
def test_exec_timeout_is_1_to_50(seconds: object, fits: bool) -> None:
    assert accepted(ExecRequest, {"command": "true", "timeout_seconds": seconds}) is fits


@pytest.mark.parametrize("value", [30.5, "30", True, None, 1e999, "30.0"])
def test_an_integer_is_a_json_integer(value: object) -> None:
    assert not accepted(ExecRequest, {"command": "true", "timeout_seconds": value})
    assert not accepted(CreateTerminal, {"cols": value, "rows": 24})
    assert not accepted(TerminalInput, {"data": "x", "generation": value, "sequence": 0})


def test_an_integer_may_be_written_with_a_fraction_of_zero() -> None:
    """JSON Schema: a number is an integer by its value."""
    body = b'{"command": "true", "timeout_seconds": 23.0}'
    taken = ExecRequest.model_validate_json(body).timeout_seconds
    assert (taken, type(taken)) == (23, int)
    assert not accepted(ExecRequest, {"command": "true", "timeout_seconds": 51.0})


@pytest.mark.parametrize("value", ["true", 1, 0.0])
def test_a_boolean_is_a_json_boolean(value: object) -> None:
    assert not accepted(SendMessage, {"message": "x", "plan_mode": value})
    assert not accepted(CreateReplica, {"name": "a", "environment_id": SOME_ID, "fast_mode": value})


def test_half_a_character_is_no_text() -> None:
    for text in ("\ud800", "x\udfff"):
        assert not accepted(SendMessage, {"message": text})
        assert not accepted(ExecRequest, {"command": text})
        assert not accepted(CreateChat, {"provider": "builtin", "clientRequestId": text})
    assert accepted(SendMessage, {"message": "\U0001f6a2"})


def test_exec_timeout_is_30_by_default() -> None:
    assert ExecRequest(command="true").timeout_seconds == 30


@pytest.mark.parametrize(("length", "fits"), [(0, False), (1, True), (100, True), (101, False)])
def test_display_name_is_1_to_100(length: int, fits: bool) -> None:
    assert accepted(RenameChat, {"display_name": "x" * length}) is fits


@pytest.mark.parametrize("name", ["two words", "tab\there", "line\n", " lead", ""])
def test_a_replica_name_has_no_white_space(name: str) -> None:
    assert not accepted(CreateReplica, {"name": name, "environment_id": SOME_ID})


def test_a_message_is_optional_when_creating() -> None:
    assert accepted(CreateReplica, {"name": "fix-login", "environment_id": SOME_ID})


@pytest.mark.parametrize(
    ("cols", "rows", "fits"),
    [
        (2, 1, True),
        (500, 200, True),
        (1, 1, False),
        (501, 200, False),
        (80, 0, False),
        (80, 201, False),
    ],
)
def test_terminal_size_bounds(cols: int, rows: int, fits: bool) -> None:
    assert accepted(CreateTerminal, {"cols": cols, "rows": rows}) is fits


@pytest.mark.parametrize(("length", "fits"), [(65_536, True), (65_537, False)])
def test_terminal_input_bound(length: int, fits: bool) -> None:
    body: dict[str, object] = {"data": "x" * length, "generation": 0, "sequence": 0}
    assert accepted(TerminalInput, body) is fits


def test_the_engine_speaks_camel_case() -> None:
    session = TerminalSession.model_validate(
        {"id": SOME_ID, "title": "sh", "createdAt": MOMENT, "exited": True, "exitCode": 3}
    )
    assert session.model_dump(mode="json") == {
        "id": SOME_ID,
        "title": "sh",
        "createdAt": MOMENT,
        "exited": True,
        "exitCode": 3,
        "ended": False,
        "program": None,
    }
    queue = Queue.model_validate({"chatId": SOME_ID, "processing": False, "queue": []})
    assert "chatId" in queue.model_dump(mode="json")


def test_history_keeps_the_mixed_case_of_the_specification() -> None:
    page = History.model_validate(
        {
            "thread_id": "t",
            "events": [{"timestamp": MOMENT, "type": "claude-x", "payload": {}}],
            "total": 3,
            "has_more": True,
            "eventsStartIndex": 2,
            "beforeCursor": "c",
            "canceledMessageIds": ["m"],
        }
    )
    assert page.events_start_index == 2
    written = page.model_dump(mode="json", by_alias=True)
    assert {"eventsStartIndex", "beforeCursor", "canceledMessageIds", "has_more"} <= set(written)


def test_unknown_enum_values_never_raise_in_the_client() -> None:
    replica = Replica.model_validate(
        {"id": SOME_ID, "name": "n", "status": "dreaming", "created_at": MOMENT, "mood": "calm"}
    )
    assert replica.status == "dreaming"
    assert replica.model_dump(mode="json")["mood"] == "calm"


def test_status_answer_is_camel_case() -> None:
    answer = WorkspaceStatusAnswer.model_validate({"status": "active", "lastChecked": MOMENT})
    assert answer.model_dump(mode="json", exclude_none=True) == {
        "status": "active",
        "lastChecked": MOMENT,
    }


def test_send_takes_uploads_by_their_wire_name() -> None:
    body = SendMessage.model_validate({"message": "hi", "canvasUploadIds": ["u"], "novel": 1})
    assert body.canvas_upload_ids == ["u"]
    assert "novel" not in body.model_dump()


def test_create_chat_takes_camel_case() -> None:
    body = CreateChat.model_validate({"provider": "builtin", "clientRequestId": "r"})
    assert body.client_request_id == "r"


def test_every_code_has_its_status() -> None:
    assert set(STATUS_OF) == set(ErrorCode)
    assert ErrorObject(error="x").model_dump()["details"] is None


@pytest.mark.parametrize("kind", ["replay", "output", "resize", "exit", "error"])
def test_terminal_events_are_told_apart_by_type(kind: str) -> None:
    bodies: dict[str, dict[str, object]] = {
        "replay": {"data": "", "offset": 3, "cols": 80, "rows": 24, "reset": True},
        "output": {"data": "aGk="},
        "resize": {"cols": 80, "rows": 24},
        "exit": {"exitCode": 0},
        "error": {"message": "gone"},
    }
    event = terminal_event.validate_python({"type": kind, **bodies[kind]})
    assert terminal_event.dump_python(event, mode="json") == {"type": kind, **bodies[kind]}


def test_ids_are_uuids() -> None:
    assert not accepted(CreateReplica, {"name": "n", "environment_id": "global"})
    assert accepted(CreateReplica, {"name": "n", "environment_id": str(uuid4())})


def test_a_nul_character_is_for_terminals_alone() -> None:
    assert not accepted(ExecRequest, {"command": "true\0"})
    assert not accepted(SendMessage, {"message": "a\0b"})
    replica = {"name": "r", "environment_id": SOME_ID}
    assert not accepted(CreateReplica, replica | {"config": {"deep": [{"text": "\0"}]}})
    assert not accepted(CreateReplica, replica | {"config": {"\0": 1}})
    assert accepted(CreateReplica, replica | {"config": {"deep": [{"text": "fine"}]}})
    assert accepted(CreateReplica, replica | {"unknown": "\0"})
    typed = {"data": "\0", "generation": 0, "sequence": 0}
    assert TerminalInput.model_validate(typed).data == "\0"


@pytest.mark.parametrize("moment", ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z", 1767225600])
def test_times_of_a_native_transcript_are_taken_in_either_form(moment: object) -> None:
    turn = AspTurn.model_validate({"id": "t", "startedAt": moment, "completedAt": moment})
    assert turn.started_at == turn.completed_at == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "command: required"),
        ({"command": "x", "timeout_seconds": 0}, "timeout_seconds: Input should be"),
        ({"command": "x", "in_repository": "secret"}, "in_repository: Input should be"),
    ],
)
def test_the_first_error_of_a_model_names_the_field_and_not_the_value(
    body: dict[str, object], told: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        ExecRequest.model_validate(body)
    assert first_error(caught.value).startswith(told)
    assert "secret" not in first_error(caught.value)
    assert first_error(caught.value, "it").startswith("it: ")


def test_a_pattern_that_does_not_fit_is_named() -> None:
    with pytest.raises(ValidationError) as caught:
        CreateVariable(key="A B", value="x")
    assert first_error(caught.value).startswith("key: does not match ^[A-Za-z_]")
