"""What a session says when the line breaks under a message, over a service that is played."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from quarterdeck.plain.commands import obey
from quarterdeck.plain.console import Console
from quarterdeck.plain.session import Here, Session
from quarterdeck.store.services import Services
from tests.store.conftest import PlayedService, Watched, service, watched

pytestmark = pytest.mark.long

__all__ = ["service", "watched"]


class Said:
    """What was printed so far."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._text = ""

    @property
    def text(self) -> str:
        self._text += self._capsys.readouterr().out
        return self._text


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Said]:
    """Nothing is ever typed."""
    reading, writing = os.pipe()
    with os.fdopen(reading) as source:
        monkeypatch.setattr("sys.stdin", source)
        yield Said(capsys)
    os.close(writing)


async def opened(watched: Watched, service: PlayedService, name: str) -> Session:
    session = Session(Services(watched.deck), Console(), Here(None, Path.cwd()))
    session.services.changed.watch(session.take)
    service.add(name)
    await session.greet()
    await watched.until(lambda: watched.deck.replicas)
    await obey(session, f"open {name}")
    return session


async def test_a_message_of_unknown_fate_is_sent_again_when_the_person_says_so(
    watched: Watched, service: PlayedService, said: Said
) -> None:
    session = await opened(watched, service, "shop")
    service.cut = lambda request: request.url.path.endswith("/messages")
    await obey(session, "hello there")
    assert "the message may not have arrived. Type resend or drop." in said.text
    service.cut = lambda request: False
    await obey(session, "resend")
    assert said.text.endswith("Sent again: 1.\n")
    assert [message["message"] for message in service.messages] == ["hello there"] * 2
    await obey(session, "drop")
    assert said.text.endswith("Every message has arrived.\n")


async def test_a_message_without_a_connection_is_kept(
    watched: Watched, service: PlayedService, said: Said
) -> None:
    session = await opened(watched, service, "shop")
    service.down = True
    await obey(session, "hello there")
    assert "Not connected: the message is kept" in said.text
    await watched.until(lambda: "Trying again" in said.text)
    assert service.messages == []
    service.down = False
    watched.deck.reconnect_now()
    await watched.until(lambda: service.messages, "the message")
    await watched.until(lambda: "Connected again." in said.text)
    assert said.text.count("Trying again") == 1
