"""Look-ups of names, of which some are never answered."""

import asyncio
import contextvars
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from quarterdeck.local import lookups
from quarterdeck.local.lookups import ORGANIZATION, SHARE, THREADS, LookupTimeoutError, look_up
from quarterdeck.local.shared_threads import SharedThreads
from tests.support.waiting import eventually


class Resolver:
    """The system's resolver: names of `silent.invalid` get no answer until `answered` is set."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answered = threading.Event()
        self._usual = socket.getaddrinfo

    def __call__(self, host: Any, *arguments: Any, **named: Any) -> Any:
        numeric = named.get("flags", 0) & socket.AI_NUMERICHOST
        if not numeric and str(host).endswith(".silent.invalid"):
            self.asked.append(host)
            self.answered.wait()
            host = "127.0.0.1"
        if not numeric and host == "known.invalid":
            host = "127.0.0.2"
        return self._usual(host, *arguments, **named)


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Resolver]:
    made = Resolver()
    monkeypatch.setattr(socket, "getaddrinfo", made)
    yield made
    made.answered.set()


def ask(organization: str, host: str) -> "asyncio.Task[list[str]]":
    context = contextvars.copy_context()
    context.run(ORGANIZATION.set, organization)
    return asyncio.create_task(look_up(host, 80, private=True), context=context)


async def test_silent_names_of_one_organization_delay_nobody_else(resolver: Resolver) -> None:
    silent = [ask("a", f"{number}.silent.invalid") for number in range(3 * THREADS)]
    await eventually(lambda: len(resolver.asked) == SHARE)
    assert await ask("b", "known.invalid") == ["127.0.0.2"]
    assert await asyncio.to_thread(lambda: 1) == 1
    assert await ask("a", "127.0.0.3") == ["127.0.0.3"]  # an address needs no server
    assert len(resolver.asked) == SHARE
    resolver.answered.set()
    assert await asyncio.gather(*silent) == [["127.0.0.1"]] * len(silent)


async def test_a_name_that_is_not_answered_is_given_up(
    resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "SECONDS", 0.05)
    results = await asyncio.gather(
        *(ask("a", f"{number}.silent.invalid") for number in range(2 * SHARE)),
        return_exceptions=True,
    )
    assert all(isinstance(result, LookupTimeoutError) for result in results)
    # The threads are still taken, until the system gives up.
    monkeypatch.setattr(lookups, "SECONDS", 15.0)
    later = ask("a", "known.invalid")
    assert await ask("b", "known.invalid") == ["127.0.0.2"]
    assert not later.done()
    resolver.answered.set()
    assert await later == ["127.0.0.2"]
    assert len(resolver.asked) == SHARE


async def test_all_threads_are_used_and_become_free(resolver: Resolver) -> None:
    groups = "abcdefgh"
    silent = [ask(group, f"{n}.{group}.silent.invalid") for group in groups for n in range(SHARE)]
    await eventually(lambda: len(resolver.asked) == THREADS)
    waiting = ask("z", "known.invalid")
    silent[-1].cancel()
    resolver.answered.set()
    assert await waiting == ["127.0.0.2"]
    results = await asyncio.gather(*silent, return_exceptions=True)
    assert [*map(type, results)] == [list] * (len(silent) - 1) + [asyncio.CancelledError]


async def test_errors_of_work_arrive_and_free_the_thread() -> None:
    threads = SharedThreads("test", 1, 1)

    def fail() -> None:
        raise KeyError("x")

    for _ in range(3):
        with pytest.raises(KeyError):
            await threads.run("a", fail)
    assert await threads.run("b", lambda: 2) == 2


def test_a_process_ends_while_a_name_is_looked_up() -> None:
    program = """
import asyncio, socket, threading
from quarterdeck.local import lookups

usual = socket.getaddrinfo
begun = threading.Event()

def resolve(host, *arguments, **named):
    if host == "silent.invalid" and not named.get("flags"):
        begun.set()
        threading.Event().wait()
    return usual(host, *arguments, **named)

async def main():
    asked = asyncio.create_task(lookups.look_up("silent.invalid", 80, False))
    await asyncio.to_thread(begun.wait)

socket.getaddrinfo = resolve
asyncio.run(main())
print("ended")
"""
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    assert run.stdout == "ended\n"
