"""The deck: what it follows, what it tells, and what happens to messages on a bad line."""

import asyncio
import json
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from quarterdeck.client.errors import ClientError
from quarterdeck.store.outbox import Extras, QueuePlace, place_after
from quarterdeck.store.signals import ConnectionChanged, ListChanged, Noticed, ReplicaGone
from quarterdeck.store.status import ConnectionPhase
from quarterdeck.wire.replicas import Replica
from tests.store.conftest import NOW, PlayedService, Watched, watching


def chat_of(watched: Watched, id: UUID) -> UUID:
    state = watched.deck.replicas[id].first_chat
    assert state is not None
    return state.id


def event(index: int, type: str, **payload: object) -> bytes:
    body = json.dumps({"id": f"e{index}", "type": type, "ts": NOW, "payload": payload})
    return f"id: {index}\nevent: {type}\ndata: {body}\n\n".encode()


async def detailed(watched: Watched, id: UUID) -> None:
    await watched.until(
        lambda: id in watched.deck.replicas and watched.deck.replicas[id].detailed, "the record"
    )


async def test_only_replicas_that_run_or_are_looked_at_are_followed(
    watched: Watched, service: PlayedService
) -> None:
    runs, fails, sleeps = (service.add(n, n) for n in ("active", "error", "sleeping"))
    await detailed(watched, runs)
    deck = watched.deck
    assert deck.following.feed(fails) is None and deck.following.feed(sleeps) is None
    deck.look_at(sleeps)
    await detailed(watched, sleeps)
    deck.look_at(runs)
    assert deck.following.feed(sleeps) is None
    assert deck.following.feed(runs) is not None


async def test_one_that_falls_asleep_is_followed_no_longer_and_nothing_runs_in_it(
    watched: Watched, service: PlayedService
) -> None:
    id = service.add("one")
    await detailed(watched, id)
    state = watched.deck.replicas[id]
    state.chats[chat_of(watched, id)].record.processing = True
    await watched.until(lambda: str(id) in service.streams, "the stream")
    told = event(1, "engine.status.changed", workspaceStatus="sleeping")
    service.streams[str(id)].put_nowait(told)
    await watched.until(lambda: watched.deck.following.feed(id) is None, "the end of following")
    assert state.status == "sleeping" and not state.works


async def test_of_many_errors_a_few_are_told(watched: Watched, service: PlayedService) -> None:
    """Each is a notice on the screen, and keys wait behind it."""
    id = service.add("one")
    await detailed(watched, id)
    await watched.until(lambda: str(id) in service.streams, "the stream")
    for index in range(1, 1001):
        told = event(index, "error", code="X", message=f"Error {index}.")
        service.streams[str(id)].put_nowait(told)
    service.streams[str(id)].put_nowait(
        event(1001, "engine.status.changed", workspaceStatus="error")
    )
    await watched.until(lambda: watched.deck.replicas[id].status == "error", "the last event")
    texts = [one.text for one in watched.told if isinstance(one, Noticed)]
    assert texts[:4] == [f"Error {index}." for index in range(1, 5)]
    assert len(texts) == 5 and texts[4] == "Error 5. More errors are left out for up to 10 s."


async def test_a_queue_that_changes_while_it_is_read_is_read_again(
    watched: Watched, service: PlayedService
) -> None:
    id = service.add("one")
    await detailed(watched, id)
    chat = watched.deck.replicas[id].chats[chat_of(watched, id)]
    path = f"GET /v1/replica/{id}/chats/{chat.id}/queue"
    service.held["/queue"] = asyncio.Event()
    watched.deck.want_queue(id, chat.id)
    await watched.until(lambda: path in service.asked, "the first reading")
    service.queue.append({"id": str(uuid4()), "message": "late", "queuedAt": NOW})
    watched.deck.want_queue(id, chat.id)
    service.held["/queue"].set()
    await watched.until(lambda: [one.message for one in chat.queue] == ["late"], "the queue")


async def test_a_look_at_the_list_that_shows_nothing_new_tells_nothing(
    watched: Watched, service: PlayedService
) -> None:
    for name in ("a", "b"):
        service.add(name, "sleeping")
    await watched.until(lambda: len(watched.deck.replicas) == 2, "the list")
    await watched.until(lambda: watched.deck.online, "the line")
    watched.told.clear()
    looks = service.asked.count("GET /v1/health")
    watched.deck.reconnect_now()
    await watched.until(lambda: service.asked.count("GET /v1/health") > looks, "another look")
    watched.deck.reconnect_now()
    await watched.until(lambda: service.asked.count("GET /v1/health") > looks + 1, "another look")
    assert watched.told == []


async def test_a_list_does_not_overrule_what_a_live_stream_said(
    watched: Watched, service: PlayedService
) -> None:
    id = service.add("one", "preparing")
    await detailed(watched, id)
    await watched.until(lambda: str(id) in service.streams, "the stream")
    told = event(1, "engine.status.changed", workspaceStatus="active")
    service.streams[str(id)].put_nowait(told)
    await watched.until(lambda: watched.deck.replicas[id].status == "active", "the event")
    looks = service.asked.count("GET /v1/health")
    watched.deck.reconnect_now()  # the list still says preparing
    await watched.until(lambda: service.asked.count("GET /v1/health") > looks, "another look")
    assert watched.deck.replicas[id].status == "active"


async def test_a_replica_deleted_elsewhere_is_told_as_such_and_one_deleted_here_is_not(
    watched: Watched, service: PlayedService
) -> None:
    here, elsewhere = service.add("here", "sleeping"), service.add("elsewhere", "sleeping")
    await watched.until(lambda: len(watched.deck.replicas) == 2, "the list")
    await watched.deck.commands.delete(here)
    del service.replicas[str(elsewhere)]
    watched.deck.reconnect_now()
    await watched.until(lambda: elsewhere not in watched.deck.replicas, "the end")
    gone = {c.name: c.elsewhere for c in watched.told if isinstance(c, ReplicaGone)}
    assert gone == {"here": False, "elsewhere": True}
    assert ListChanged() in watched.told


async def test_a_list_that_was_requested_before_a_replica_was_created_does_not_remove_it(
    watched: Watched, service: PlayedService
) -> None:
    service.add("old", "sleeping")
    await watched.until(lambda: watched.deck.online and watched.deck.replicas, "the list")
    service.held["/replica"] = asyncio.Event()
    lists = service.asked.count("GET /v1/replica")
    watched.deck.reconnect_now()
    await watched.until(lambda: service.asked.count("GET /v1/replica") > lists, "the request")
    looks = service.asked.count("GET /v1/health")
    id = service.add("new", "sleeping")
    watched.deck.add(Replica.model_validate(service.replicas[str(id)]))
    service.held["/replica"].set()
    await watched.until(lambda: service.asked.count("GET /v1/health") > looks, "the next request")
    assert id in watched.deck.replicas
    assert not any(isinstance(change, ReplicaGone) for change in watched.told)


async def test_deleting_what_is_gone_already_is_no_error(
    watched: Watched, service: PlayedService
) -> None:
    id = service.add("one", "sleeping")
    await watched.until(lambda: id in watched.deck.replicas, "the replica")
    service.replicas.clear()
    await watched.deck.commands.delete(id)
    assert id not in watched.deck.replicas


async def test_what_is_sent_without_a_line_goes_out_later_in_its_order_and_once(
    watched: Watched, service: PlayedService
) -> None:
    id = service.add("one")
    await detailed(watched, id)
    service.down = True
    watched.deck.reconnect_now()
    await watched.until(
        lambda: watched.deck.connection.phase == ConnectionPhase.RECONNECTING, "the loss"
    )
    for text in ("first", "second", "third"):
        assert await watched.deck.outbox.send(id, chat_of(watched, id), text) is None
    assert [m.state for m in watched.deck.outbox.of_chat(chat_of(watched, id))] == ["unsent"] * 3
    service.down = False
    watched.deck.reconnect_now()
    await watched.until(lambda: len(service.messages) == 3, "the messages")
    await watched.until(lambda: not watched.deck.outbox.of_chat(chat_of(watched, id)), "the rest")
    assert [sent["message"] for sent in service.messages] == ["first", "second", "third"]


async def test_one_that_arrived_though_the_line_broke_is_not_sent_again(
    watched: Watched, service: PlayedService
) -> None:
    id = service.add("one")
    await detailed(watched, id)
    service.cut = lambda request: request.url.path.endswith("/messages")
    assert await watched.deck.outbox.send(id, chat_of(watched, id), "once") is None
    assert [m.state for m in watched.deck.outbox.of_chat(chat_of(watched, id))] == ["unsure"]
    service.cut = lambda request: False
    await watched.deck.outbox.flush()
    assert not watched.deck.outbox.of_chat(chat_of(watched, id))
    assert len(service.messages) == 1


async def test_one_of_unknown_fate_waits_for_the_person(
    watched: Watched, service: PlayedService
) -> None:
    id = service.add("one")
    await detailed(watched, id)
    outbox, chat = watched.deck.outbox, chat_of(watched, id)
    service.cut = lambda request: request.url.path.endswith("/messages")
    await outbox.send(id, chat, "maybe")
    service.cut = lambda request: False
    service.queue.clear()  # neither the queue nor the history shows it
    await outbox.flush()
    (message,) = outbox.of_chat(chat)
    assert message.state == "unsure"
    assert await outbox.resend(message) is not None
    assert not outbox.of_chat(chat)
    assert len(service.messages) == 2


@pytest.mark.parametrize(
    ("queue", "before", "place"),
    [((), (), 0), ((5, 6), (), 0), ((1, 2, 5), (1, 2), 2), ((2, 5), (1, 2), 1), ((5, 1), (1,), 2)],
)
def test_an_edited_message_goes_behind_what_was_before_it(
    queue: tuple[int, ...], before: tuple[int, ...], place: int
) -> None:
    ids = [UUID(int=number) for number in queue]
    assert place_after(ids, [UUID(int=number) for number in before]) == place


async def test_an_edited_message_is_there_though_its_place_is_lost(
    watched: Watched, service: PlayedService
) -> None:
    id = service.add("one")
    await detailed(watched, id)
    service.cut = lambda request: request.url.path.endswith("/queue")
    extras = Extras(place=QueuePlace(behind=()))
    assert await watched.deck.outbox.send(id, chat_of(watched, id), "edited", extras=extras)
    assert [sent["message"] for sent in service.messages] == ["edited"]
    assert not watched.deck.outbox.of_chat(chat_of(watched, id))
    (notice,) = [change for change in watched.told if isinstance(change, Noticed)]
    assert "Moved to the end" in notice.text


async def test_a_refused_message_is_not_kept_and_the_sender_hears_why(
    watched: Watched, service: PlayedService
) -> None:
    id = service.add("one")
    await detailed(watched, id)
    chat = chat_of(watched, id)
    service.replicas.clear()
    with pytest.raises(ClientError):
        await watched.deck.outbox.send(id, chat, "text")
    assert not watched.deck.outbox.of_chat(chat)


async def test_one_whose_replica_is_gone_is_set_aside_as_a_file(
    watched: Watched, service: PlayedService
) -> None:
    id = service.add("one")
    await detailed(watched, id)
    chat = chat_of(watched, id)
    service.down = True
    watched.deck.reconnect_now()
    await watched.until(lambda: not watched.deck.online, "the loss")
    await watched.deck.outbox.send(id, chat, "precious")
    service.replicas.clear()
    service.down = False
    watched.deck.reconnect_now()
    (notice,) = await watched.until(
        lambda: [c for c in watched.told if isinstance(c, Noticed)], "a notice"
    )
    assert "undelivered" in notice.text
    assert not watched.deck.outbox.of_chat(chat)


async def test_a_message_whose_file_is_damaged_is_told_of(
    service: PlayedService, tmp_path: Path
) -> None:
    outbox = tmp_path / "client" / "outbox"
    outbox.mkdir(parents=True)
    (outbox / "a.json").write_text('{"text": "precious')
    async with watching(service, tmp_path) as watched:
        (notice,) = await watched.until(
            lambda: [c for c in watched.told if isinstance(c, Noticed)], "a notice"
        )
    assert str(outbox / "a.unreadable") in notice.text


async def test_a_refused_key_says_what_to_do(watched: Watched, service: PlayedService) -> None:
    await watched.until(lambda: watched.deck.online, "the line")
    refusal = ClientError("That key is not known.", next_step="Check it.")
    watched.deck.refused(refusal)
    assert watched.deck.connection.phase == ConnectionPhase.REFUSED
    assert watched.deck.connection.problem == "That key is not known. Check it."
    assert ConnectionChanged() in watched.told
