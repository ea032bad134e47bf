import asyncio
import random

import pytest

from quarterdeck.client.error_mapping import Backoff
from quarterdeck.client.errors import (
    ConflictError,
    NotActiveError,
    NotFoundError,
    UnavailableError,
    UnreachableError,
)
from quarterdeck.client.terminals import Keyboard
from quarterdeck.wire.terminals import MAX_INPUT_CHARACTERS

QUICK = Backoff(first=0.0001, longest=0.0002)


def conflict():
    return ConflictError("a gap", status=409, code="CONFLICT")


class FakeTerminal:
    """Applies numbered input by the contract's rule."""

    def __init__(self):
        self.typed = ""
        self.generation = -1
        self.expected = 0
        self.calls = []

    def take(self, keys):
        self.calls.append(keys)
        if keys.generation > self.generation:
            self.generation, self.expected = keys.generation, 0
        if keys.generation < self.generation or keys.sequence < self.expected:
            return
        if keys.sequence > self.expected:
            raise conflict()
        self.expected += 1
        self.typed += keys.data


async def test_keys_typed_during_a_request_go_together_in_the_next():
    terminal = FakeTerminal()
    first_sent, go_on = asyncio.Event(), asyncio.Event()

    async def send(keys):
        first_sent.set()
        await go_on.wait()
        terminal.take(keys)

    async with Keyboard(send, pace=QUICK) as keyboard, asyncio.timeout(60):
        keyboard.type("a")
        await first_sent.wait()
        for key in "bcd":
            keyboard.type(key)
        assert keyboard.pending == 3
        go_on.set()
        await keyboard.drain()
    assert [call.data for call in terminal.calls] == ["a", "bcd"]
    assert [call.sequence for call in terminal.calls] == [0, 1]


@pytest.mark.parametrize("seed", range(20))
async def test_a_broken_line_neither_loses_nor_doubles_nor_turns_keys(seed):
    chance = random.Random(seed)
    terminal = FakeTerminal()

    async def send(keys):
        await asyncio.sleep(0)
        fate = chance.random()
        if fate < 0.3:
            raise UnreachableError("before it arrived")
        terminal.take(keys)
        if fate < 0.6:
            raise UnreachableError("after it arrived")
        if fate < 0.7:
            raise UnavailableError("the engine restarts", status=503)

    text = "".join(chance.choice("abcdefgh\r\x1b") for _ in range(200))
    async with Keyboard(send, pace=QUICK) as keyboard, asyncio.timeout(60):
        for key in text:
            keyboard.type(key)
            if chance.random() < 0.3:
                await asyncio.sleep(0)
        await keyboard.drain()
    assert terminal.typed == text


async def test_long_pastes_go_in_chunks():
    terminal = FakeTerminal()

    async def send(keys):
        terminal.take(keys)

    text = "x" * (2 * MAX_INPUT_CHARACTERS) + "end"
    async with Keyboard(send, pace=QUICK) as keyboard, asyncio.timeout(60):
        keyboard.type(text)
        await keyboard.drain()
    assert [len(call.data) for call in terminal.calls] == [65_536, 65_536, 3]
    assert terminal.typed == text


async def test_a_409_begins_a_new_generation():
    terminal = FakeTerminal()
    refusals = [conflict()]

    async def send(keys):
        if refusals and keys.sequence == 0:
            terminal.calls.append(keys)
            raise refusals.pop()
        terminal.take(keys)

    async with Keyboard(send, pace=QUICK) as keyboard, asyncio.timeout(60):
        keyboard.type("ls\r")
        await keyboard.drain()
    first, second = terminal.calls
    assert second.generation > first.generation
    assert (second.sequence, terminal.typed) == (0, "ls\r")


async def test_a_409_that_stays_is_a_fault():
    async def send(keys):
        raise conflict()

    async with Keyboard(send, pace=QUICK) as keyboard, asyncio.timeout(60):
        keyboard.type("x")
        with pytest.raises(ConflictError):
            await keyboard.drain()


@pytest.mark.parametrize(
    "error", [NotActiveError("asleep", status=409), NotFoundError("gone", status=404)]
)
async def test_a_refusal_is_told_once_and_raised_afterwards(error):
    told = []

    async def send(keys):
        raise error

    async with Keyboard(send, told.append, pace=QUICK) as keyboard, asyncio.timeout(60):
        keyboard.type("x")
        with pytest.raises(type(error)):
            await keyboard.drain()
        with pytest.raises(type(error)):
            keyboard.type("y")
        assert keyboard.fault is error
    assert told == [error]


async def test_two_people_at_one_terminal_are_both_heard():
    terminal = FakeTerminal()

    async def send(keys):
        terminal.take(keys)

    async with Keyboard(send) as one, Keyboard(send) as other, asyncio.timeout(60):
        for number in range(20):
            keyboard = one if number % 2 else other
            keyboard.type(f"{number},")
            await keyboard.drain()
    assert terminal.typed == "".join(f"{number}," for number in range(20))


async def test_reconnect_now_sends_at_once():
    line_is_up = False
    tried = asyncio.Event()

    async def send(keys):
        tried.set()
        if not line_is_up:
            raise UnreachableError("down")

    async with Keyboard(send, pace=Backoff(3600, 3600)) as keyboard, asyncio.timeout(60):
        keyboard.type("x")
        await tried.wait()
        line_is_up = True
        await asyncio.sleep(0)
        keyboard.reconnect_now()
        await keyboard.drain()
