"""A container engine that answers anything: it is refused or believed, and nothing else happens."""

import asyncio
import gzip
import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from quarterdeck import __version__
from quarterdeck.local.home import Home
from quarterdeck.sandboxes import containers as containers_module
from quarterdeck.sandboxes import docker, docker_client
from quarterdeck.sandboxes.container_engine import Launch
from quarterdeck.sandboxes.containers import ContainerDriver, HomeAddress
from quarterdeck.sandboxes.docker import DockerContainers
from quarterdeck.sandboxes.errors import EngineAwayError, ProcessError, SandboxError
from quarterdeck.sandboxes.image import VERSION_LABEL
from quarterdeck.sandboxes.process import ProcessDriver
from tests.containers.deck import Deck
from tests.containers.fake_engine import (
    GOOD,
    UPGRADED,
    Answer,
    FakeEngine,
    answered,
    cut,
    fake_engine,
    frame,
    http,
    variants,
)
from tests.support.waiting import eventually

MOST_BYTES = 32 << 20
"""Of an answer without an end: what is read, and what the sockets hold."""
MOST_SECONDS = 60


@pytest.fixture(autouse=True)
def version(monkeypatch: pytest.MonkeyPatch) -> None:
    labels = {"Labels": {VERSION_LABEL: __version__}}
    monkeypatch.setitem(GOOD, "GET /images/image/json", {"Id": "sha256:1", "Config": labels})


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[tuple[FakeEngine, DockerContainers]]:
    async with fake_engine(tmp_path) as (engine, address):
        containers = DockerContainers(Home(tmp_path / "home"), "image", address)
        await containers.open()
        try:
            yield engine, containers
        finally:
            await containers.close()


def _ignore(line: str) -> None:
    """Take a line of progress."""


async def _run(containers: DockerContainers) -> bytes:
    return b"".join([part async for part in containers.run("w", ("true",), data=b"input")])


CALLS: dict[str, Callable[[DockerContainers], Awaitable[Any]]] = {
    "open": DockerContainers.open,
    "require": DockerContainers.require,
    "image": DockerContainers.image,
    "find": lambda c: c.find("w"),
    "has_volume": lambda c: c.has_volume("w"),
    "start": lambda c: c.start(Launch("w", "d", {}, "small"), _ignore),
    "ended": lambda c: c.ended("w"),
    "stop": lambda c: c.stop("w"),
    "destroy": lambda c: c.destroy("w"),
    "tidy": DockerContainers.tidy,
    "run": _run,
    "in_image": lambda c: c.in_image(("true",), b"input"),
}


def raw(key: str) -> list[bytes | Answer]:
    """What is no answer of an API, or a bad one."""
    body = json.dumps(GOOD.get(key)).encode()
    kinds = ("text/plain", "text", "application/x-tar", "application/json; charset=none")
    broken = (
        b"",
        b"\x00\xff\xfe garbage\r\n\r\n",
        b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 9000\r\n\r\n{",
        b"HTTP/1.1 200 X\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\nzzz\r\n",
        b"HTTP/1.1 200 X\r\n\r\n" + body,
        b"HTTP/1.1 999999 X\r\n\r\n",
    )
    refusals: list[Any] = [{"message": ["x"]}, {"message": None}, {}, [], "x"]
    return [
        *map(cut, broken),
        http(body[: len(body) // 2]),
        http(b"[" * 100_000),
        http(b'{"NCPU": Infinity, "StatusCode": NaN}'),
        http(b"\xff\xfe\x00"),
        *(http(body, kind=kind) for kind in kinds),
        http(gzip.compress(b" " * (1 << 20)), more="Content-Encoding: gzip\r\n"),
        *(answered(one, 500) for one in refusals),
        answered({"message": "x" * 100_000}, 409),
        answered({"message": {"image": 1}}, 404),
        http(b"\xff", 500, "text/plain"),
    ]


@pytest.mark.parametrize("call", CALLS)
async def test_any_answer_is_refused_or_believed(
    opened: tuple[FakeEngine, DockerContainers], call: str
) -> None:
    """Each answer that a call needs is replaced by each damaged one."""
    engine, containers = opened
    engine.asked.clear()
    await CALLS[call](containers)
    wrong: list[str] = []
    tried = 0
    for key in dict.fromkeys(engine.asked):
        damaged = [answered(one) for one in variants(GOOD[key])] if key in GOOD else []
        for damage in [*raw(key), *damaged]:
            engine.damages = {key: damage}
            tried += 1
            try:
                async with asyncio.timeout(MOST_SECONDS):
                    await CALLS[call](containers)
            except (SandboxError, ProcessError) as e:
                said = f"{e} {e.details}" if isinstance(e, SandboxError) else str(e)
                if len(said) > 10_000:
                    wrong.append(f"{key}: {len(said)} characters")
            except Exception as e:  # noqa: BLE001 - all of them are listed
                wrong.append(f"{key}: {e!r} after {damage!r:.200}")
            engine.damages = {}
    assert wrong == [], f"{len(wrong)} of {tried}"
    await CALLS[call](containers)


@pytest.mark.parametrize("call", CALLS)
async def test_an_answer_without_an_end_is_given_up(
    opened: tuple[FakeEngine, DockerContainers], call: str
) -> None:
    engine, containers = opened
    engine.asked.clear()
    await CALLS[call](containers)
    heads = [
        b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\n\r\n[",
        b"HTTP/1.1 500 X\r\nContent-Type: text/plain\r\n\r\n",
    ]
    for key in dict.fromkeys(engine.asked):
        for head in heads:
            engine.sent = 0
            engine.damages = {key: partial(engine.endless, head=head, part=b"1," * (1 << 15))}
            try:
                async with asyncio.timeout(MOST_SECONDS):
                    await CALLS[call](containers)
            except (SandboxError, ProcessError):
                pass
            assert engine.sent < MOST_BYTES, key
            engine.damages = {}
            await containers.open()


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (frame(1, b"a") + frame(2, b"b") + frame(1, b"") + frame(1, b"c"), b"ac"),
        (frame(1, b"a") + frame(1, b"cut off", 100), b"a"),
        (frame(1, b"a") + b"\x01\x00", b"a"),
        (frame(9, b"x" * 100_000) + frame(1, b"a"), b"a"),
        (b"\x00" * 8 * 10_000 + frame(1, b"a"), b"a"),
        (b"", b""),
    ],
    ids=["good", "cut frame", "cut header", "other stream", "empty frames", "nothing"],
)
async def test_frames_are_read_in_parts(
    opened: tuple[FakeEngine, DockerContainers], output: bytes, expected: bytes
) -> None:
    engine, containers = opened
    engine.output = engine.log = output
    assert await _run(containers) == expected
    await containers.ended("w")


async def test_the_length_of_a_log_is_bounded(
    opened: tuple[FakeEngine, DockerContainers],
) -> None:
    engine, containers = opened
    head = b"HTTP/1.1 200 X\r\nContent-Type: application/vnd.docker.raw-stream\r\n\r\n"
    for length in (1 << 16, (1 << 32) - 1):
        part = frame(1, b"x" * (1 << 16), length)
        engine.damages = {"GET /containers/logs": partial(engine.endless, head=head, part=part)}
        async with asyncio.timeout(MOST_SECONDS):
            assert 0 < len(await containers.ended("w")) <= 1 << 16
        assert engine.sent < MOST_BYTES


async def test_it_is_connected_to_again_after_any_answer(
    opened: tuple[FakeEngine, DockerContainers],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With pauses; replicas are told why they wait, and the log once."""
    engine, containers = opened
    monkeypatch.setattr(docker, "UNUSABLE_SECONDS", 0.01)
    monkeypatch.setattr(docker, "AGAIN_SECONDS", 0.01)
    back = asyncio.Event()
    failures: list[BaseException] = [OSError("the disk is full")]

    async def connected() -> None:
        if failures:
            raise failures.pop()
        back.set()

    keeping = asyncio.create_task(containers.keep_connected(connected))
    try:
        silent = {"GET /info": cut(b""), "GET /version": cut(b"")}
        for damages in (silent, {"GET /info": answered({"NCPU": []})}):
            engine.damages = {**damages}
            if containers.absence is None:
                with pytest.raises(EngineAwayError):
                    await containers.require()
            asked = len(engine.asked)
            await eventually(lambda n=asked: len(engine.asked) > n + 6, "further attempts")
        absence = containers.absence
        assert absence is not None and "cannot be understood" in absence.reason
        said = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
        assert len([one for one in said if "cannot be understood" in one]) == 1
        assert not keeping.done()
        engine.damages = {}
        async with asyncio.timeout(MOST_SECONDS):
            await back.wait()
        assert failures == [] and containers.absence is None
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


@pytest.mark.parametrize("gateway", ["0.0.0.0", "::", "224.0.0.1", "", "localhost", None])
async def test_the_service_listens_nowhere_else_than_at_a_bridge(
    opened: tuple[FakeEngine, DockerContainers], gateway: str | None
) -> None:
    engine, containers = opened
    network = {"Id": "x", "Options": {}, "IPAM": {"Config": [{"Gateway": gateway}]}}
    engine.damages = {"GET /networks/quarterdeck": answered(network)}
    with pytest.raises(SandboxError, match="cannot be understood"):
        await containers.open()
    assert containers.gateway == "10.89.0.1"


async def test_an_input_that_cannot_be_read_is_no_fault_of_the_engine(
    opened: tuple[FakeEngine, DockerContainers],
) -> None:
    """A damaged archive: its replica fails, and others do not wait."""
    engine, containers = opened

    async def damaged() -> AsyncGenerator[bytes]:
        yield b"part"
        raise gzip.BadGzipFile("not a gzipped file")

    async def until_killed(writer: asyncio.StreamWriter) -> None:
        writer.write(UPGRADED)
        await eventually(lambda: "POST /containers/kill" in engine.asked, "its end")

    engine.damages = {"POST /containers/attach": until_killed}
    with pytest.raises(gzip.BadGzipFile):
        async for _ in containers.run("w", ("tar", "-x"), data=damaged()):
            pass
    assert containers.absence is None


@pytest.mark.long
async def test_the_record_of_a_replica_says_it(tmp_path: Path) -> None:
    async with fake_engine(tmp_path) as (engine, address):
        with TemporaryDirectory(prefix="qd-") as directory:
            home = Home(Path(directory) / "home")
            containers = DockerContainers(home, "image", address)
            await containers.open()
            deck = Deck(home, containers, "127.0.0.1")
            await deck.start()
            try:
                none = {"GET /containers/json of one": answered({"message": "none"}, 404)}
                for damages in (
                    {**none, "POST /containers/create": answered([])},
                    {"GET /containers/json of one": answered([])},
                ):
                    engine.damages = {**damages}
                    body = {"name": "one", "environment_id": await deck.environment()}
                    id = (await deck.post("/v1/replica", body, 201))["replica"]["id"]
                    said = (await deck.reach(id, "error"))["error"]
                    assert "cannot be understood" in said, said
                    engine.damages = {}
                    assert (await deck.client.delete(f"/v1/replica/{id}")).status_code == 200
            finally:
                await deck.stop()
                await containers.close()


@pytest.mark.parametrize(
    "printed",
    ["endless", "a\0none\0", "a\0" + "9" * 5000 + "\0", "x\nfile"],
    ids=["endless", "no number", "long number", "no size"],
)
async def test_what_commands_print_of_a_sleeping_replicas_files_is_bounded(
    opened: tuple[FakeEngine, DockerContainers], tmp_path: Path, printed: str
) -> None:
    """The image's programs, or the engine, may print anything in place of names, sizes and content."""
    engine, containers = opened
    home = Home(tmp_path / "home")
    driver = ContainerDriver(home, ProcessDriver(home).mirrors, containers, HomeAddress)
    sending = partial(engine.endless, head=UPGRADED, part=frame(1, b"1\n" * (1 << 15)))
    engine.output = frame(1, printed.encode())
    if printed == "endless":
        engine.damages = {"POST /containers/attach": sending}
    read: dict[str, Callable[[], Awaitable[Any]]] = {
        "kept_files": lambda: driver.kept_files("w", "canvas"),
        "kept_file": lambda: driver.kept_file("w", "canvas", b"plan", 1 << 20),
    }
    async with asyncio.timeout(MOST_SECONDS):
        for call in read.values():
            with suppress(SandboxError):
                assert await call() in ([], None)
    assert engine.sent < 2 * MOST_BYTES


async def test_reading_a_kept_file_has_an_end(
    opened: tuple[FakeEngine, DockerContainers], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program inside may exchange it for a pipe, from which nothing comes."""
    engine, containers = opened
    monkeypatch.setattr(containers_module, "_READ_SECONDS", 0.1)
    home = Home(tmp_path / "home")
    driver = ContainerDriver(home, ProcessDriver(home).mirrors, containers, HomeAddress)

    async def silent(writer: asyncio.StreamWriter) -> None:
        writer.write(UPGRADED)
        await eventually(lambda: "DELETE /containers" in engine.asked, "its end")

    engine.damages = {"POST /containers/attach": silent}
    async with asyncio.timeout(MOST_SECONDS):
        with pytest.raises(SandboxError, match="cannot be read"):
            await driver.kept_file("w", "canvas", b"plan", 1 << 20)
    assert containers.absence is None


@pytest.mark.parametrize("lost", [0, 1, 32, 5000, 10_000])
async def test_a_part_of_an_archive_is_not_taken_for_all_of_it(
    opened: tuple[FakeEngine, DockerContainers], tmp_path: Path, lost: int
) -> None:
    """A connection that breaks looks like the end of what a command prints; its status is 0."""
    engine, containers = opened
    home = Home(tmp_path / "home")
    home.root.mkdir(mode=0o700)
    driver = ContainerDriver(home, ProcessDriver(home).mirrors, containers, HomeAddress)
    whole = b"an archive" * 1000

    async def pack(writer: asyncio.StreamWriter) -> None:
        writer.write(UPGRADED)
        await engine.started.wait()
        mark = engine.bodies[-1]["Cmd"][-1].encode()
        printed = whole + mark
        writer.write(frame(1, printed[:50]) + frame(1, printed[50 : len(printed) - lost]))

    engine.damages = {"POST /containers/attach": pack}
    archive = home.archives / "w.tar.gz"
    if lost == 0:
        await driver.pack("w")
        assert gzip.decompress(archive.read_bytes()) == whole
        return
    engine.asked.clear()
    with pytest.raises(SandboxError, match="a part of them"):
        await driver.pack("w")
    assert not archive.exists() and "DELETE /volumes" not in engine.asked


async def test_an_engine_that_says_nothing_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is connected to, and when it is asked to do something."""

    async def silent(writer: asyncio.StreamWriter) -> None:
        await writer.wait_closed()

    async with fake_engine(tmp_path) as (engine, address), asyncio.timeout(MOST_SECONDS):
        monkeypatch.setattr(docker_client, "ANSWER_SECONDS", 5.0)
        containers = DockerContainers(Home(tmp_path / "home"), "image", address)
        try:
            await containers.open()
            for key, call in (("GET /containers/json of one", "find"), ("GET /info", "open")):
                engine.damages = {key: silent}
                monkeypatch.setattr(docker, "OPEN_SECONDS", 0.1)
                with pytest.raises(EngineAwayError):
                    await CALLS[call](containers)
                assert containers.absence is not None
        finally:
            await containers.close()
