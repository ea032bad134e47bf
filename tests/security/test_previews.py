"""Previews of programs that break HTTP, and of clients that leave: over real connections."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, contextmanager
from uuid import uuid4

import pytest

from quarterdeck.service.previews.reverse_proxy import serve_connection
from quarterdeck.service.previews.rows import PreviewTarget
from quarterdeck.wire.replicas import WorkspaceStatus
from tests.support.waiting import WAIT_SECONDS

TOKEN = "0123456789abcdef" * 2
PREFIX = "qd-01234567-"
"""Of cookies that are set by path."""
HOST = "Host: 127.0.0.1:5000\r\n"
OK = b"HTTP/1.1 200 OK\r\n"

Program = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Front:
    """The proxy in front of one program."""

    def __init__(self, port: int) -> None:
        self._target = PreviewTarget(str(uuid4()), port, WorkspaceStatus.ACTIVE)
        self.ended = asyncio.Event()
        """Whether a connection was served to its end."""
        self.failed: BaseException | None = None

    async def resolve(self, token: str) -> PreviewTarget:
        assert token == TOKEN
        return self._target

    async def dial(
        self, target: PreviewTarget
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", target.port)

    @contextmanager
    def waiting(self) -> Generator[None]:
        yield

    @contextmanager
    def exchanging(self, target: PreviewTarget) -> Generator[None]:
        yield

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve_connection(reader, writer, self)
        except ValueError as e:
            self.failed = e
        finally:
            self.ended.set()


class Preview:
    """A preview that a client connects to."""

    def __init__(self, front: Front, port: int) -> None:
        self.front = front
        self._port = port

    async def send(self, sent: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(sent)
        return reader, writer

    async def ask(
        self, path: str = "x", headers: str = HOST, method: str = "GET", base: str = f"/{TOKEN}"
    ) -> bytes:
        """Everything that comes back for a request."""
        head = f"{method} {base}/{path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n"
        reader, writer = await self.send(head.encode("latin-1"))
        async with asyncio.timeout(WAIT_SECONDS):
            answer = await reader.read()
        writer.close()
        assert self.front.failed is None
        return answer


Opener = Callable[[Program], Awaitable[Preview]]


@pytest.fixture
async def preview() -> AsyncIterator[Opener]:
    """Opens the preview of a program."""
    async with AsyncExitStack() as stack:

        async def open_preview(program: Program) -> Preview:
            behind = await asyncio.start_server(program, "127.0.0.1", 0)
            front = Front(behind.sockets[0].getsockname()[1])
            proxy = await asyncio.start_server(front.serve, "127.0.0.1", 0)
            stack.callback(behind.close)
            stack.callback(proxy.close)
            return Preview(front, proxy.sockets[0].getsockname()[1])

        yield open_preview


def answers(*parts: bytes) -> Program:
    async def program(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            for part in parts:
                writer.write(part)
                await writer.drain()
        except OSError:
            return  # the proxy has had enough
        finally:
            writer.close()

    return program


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await reader.read(1000):
        pass
    writer.close()


@pytest.mark.parametrize(
    "parts",
    [
        (b"",),
        (b"hello\r\n",),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",),
        (bytes(range(256)) * 300,),
        (OK, *[b"X-Header: x\r\n" * 100] * 1000),
        (OK + b"X-Header: ", *[b"x" * 1000] * 1000),
        (OK + b"X-A: a\0b\r\n\r\n",),
        (OK + b"Content-Length: -1\r\n\r\n",),
        (OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n",),
        (b"HTTP/1.1 1000 X\r\n\r\n",),
    ],
    ids=range(11),
)
async def test_a_program_that_does_not_answer_in_http_is_told_of(
    preview: Opener, parts: tuple[bytes, ...]
) -> None:
    opened = await preview(answers(*parts))
    answer = await opened.ask()
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"did not answer with HTTP" in answer


@pytest.mark.parametrize(
    "sent",
    [
        f"GET /{TOKEN}/ws HTTP/1.1\r\n{HOST}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        f"GET /{TOKEN}/x HTTP/1.1\r\n{HOST}\r\n" * 2,
        f"POST /{TOKEN}/x HTTP/1.1\r\n{HOST}Content-Length: 9\r\n\r\nabc",
        f"POST /{TOKEN}/x HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
    ],
    ids=["upgrade", "pipelined", "body", "chunk"],
)
async def test_a_client_that_leaves_a_silent_program_is_let_go(preview: Opener, sent: str) -> None:
    opened = await preview(silent)
    _, writer = await opened.send(sent.encode())
    writer.write_eof()
    async with asyncio.timeout(WAIT_SECONDS):
        await opened.front.ended.wait()
    writer.close()


async def test_what_a_client_sends_before_the_protocol_is_switched_comes_through(
    preview: Opener,
) -> None:
    goes_on = asyncio.Event()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await goes_on.wait()
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"
        )
        writer.write(await reader.readexactly(6))
        writer.close()

    opened = await preview(echo)
    head = f"GET /{TOKEN}/ws HTTP/1.1\r\n{HOST}Connection: Upgrade\r\nUpgrade: x\r\n\r\nabc"
    reader, writer = await opened.send(head.encode())
    await asyncio.sleep(0)
    goes_on.set()
    writer.write(b"def")
    async with asyncio.timeout(WAIT_SECONDS):
        assert (await reader.read()).endswith(b"\r\n\r\nabcdef")
    writer.close()


async def test_a_message_has_one_length(preview: Opener) -> None:
    heard = bytearray()

    async def program(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.extend(await reader.readuntil(b"0\r\n\r\n"))
        writer.write(OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"5\r\nhello\r\n0\r\n\r\n")
        writer.close()

    opened = await preview(program)
    lengths = "Content-Length: 2\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
    head = f"POST /{TOKEN}/x HTTP/1.1\r\n{HOST}{lengths}\r\n5\r\nthere\r\n0\r\n\r\n"
    reader, writer = await opened.send(head.encode())
    async with asyncio.timeout(WAIT_SECONDS):
        answer = await reader.read()
    writer.close()
    assert b"there" in heard and b"content-length" not in heard.lower()
    assert b"hello" in answer and b"content-length" not in answer.lower()


@pytest.mark.parametrize(
    ("host", "seen"),
    [
        ("127.0.0.1", "localhost"),
        ("[::1]", "localhost"),
        ("[::1]:5000", "localhost:5000"),
        ("a:.elsewhere.example", "localhost"),
        ("a:\xe9", "localhost"),
        ("localhost:5000", "localhost:5000"),
    ],
)
async def test_a_page_stays_on_this_machine(preview: Opener, host: str, seen: str) -> None:
    opened = await preview(silent)
    answer = await opened.ask("x", f"Host: {host}\r\nSec-Fetch-Mode: navigate\r\n")
    assert f"Location: http://{TOKEN}.{seen}/x\r\n".encode() in answer


async def test_cookies_are_for_their_preview_alone(preview: Opener) -> None:
    opened = await preview(
        answers(
            OK + b"Set-Cookie: a=1; Path=/; Domain=127.0.0.1; HttpOnly\r\n"
            b"Set-Cookie: b=2\r\nset-cookie: c=3;path=/sub ;SameSite=Lax\r\n"
            b"Set-Cookie: d=4; Path=x; Path=/y\r\nSet-Cookie: e=5; DOMAIN =.localhost\r\n"
            b"Content-Length: 0\r\n\r\n"
        )
    )
    cookies = [
        line.partition(b": ")[2].decode()
        for line in (await opened.ask()).split(b"\r\n")
        if line.lower().startswith(b"set-cookie")
    ]
    assert cookies == [
        f"{PREFIX}a=1; HttpOnly; Path=/{TOKEN}/",
        f"{PREFIX}b=2; Path=/{TOKEN}/",
        f"{PREFIX}c=3; SameSite=Lax; Path=/{TOKEN}/sub",
        f"{PREFIX}d=4; Path=/{TOKEN}/y",
        f"{PREFIX}e=5; Path=/{TOKEN}/",
    ]
    own = await opened.send(
        f"GET / HTTP/1.1\r\nConnection: close\r\nHost: {TOKEN}.localhost:5000\r\n\r\n".encode()
    )
    by_host = await own[0].read()
    own[1].close()
    assert b"domain" not in by_host.lower()
    assert b"Set-Cookie: a=1; HttpOnly; Path=/\r\n" in by_host
    assert b"Set-Cookie: b=2\r\n" in by_host


def fields(message: bytes, name: str) -> list[str]:
    """The values of a header."""
    lines = [line.decode("latin-1").partition(":") for line in message.split(b"\r\n")]
    return [value.strip() for key, _, value in lines if key.lower() == name]


OF_A_SERVER = (
    "Strict-Transport-Security Alt-Svc Public-Key-Pins Public-Key-Pins-Report-Only Expect-CT"
)
OF_AN_ORIGIN = (
    "Service-Worker-Allowed Clear-Site-Data Set-Login NEL Report-To Reporting-Endpoints Accept-CH"
    " Origin-Agent-Cluster Use-As-Dictionary Secure-Session-Registration Sec-Session-Registration"
)


async def test_a_page_at_the_address_of_all_previews_acts_for_itself_alone(preview: Opener) -> None:
    names = f"{OF_A_SERVER} {OF_AN_ORIGIN}".split()
    head = "".join(f"{name}: x\r\n{name.lower()}: y\r\n" for name in (*names, "X-Kept"))
    own_policy = "Content-Security-Policy: sandbox allow-same-origin\r\n"
    opened = await preview(answers(OK + f"{head}{own_policy}Content-Length: 0\r\n\r\n".encode()))
    by_path = await opened.ask()
    assert {name: fields(by_path, name.lower()) for name in names} == {name: [] for name in names}
    assert fields(by_path, "x-kept") == ["x", "y"]
    policies = fields(by_path, "content-security-policy")
    assert policies[0] == "sandbox allow-same-origin"
    assert policies[1].startswith("sandbox ") and "allow-same-origin" not in policies[1]
    by_host = await opened.ask("x", f"Host: {TOKEN}.localhost:5000\r\n", base="")
    for name in OF_A_SERVER.split():
        assert fields(by_host, name.lower()) == [], name
    for name in OF_AN_ORIGIN.split():
        assert fields(by_host, name.lower()) == ["x", "y"], name
    assert fields(by_host, "content-security-policy") == ["sandbox allow-same-origin"]


async def test_service_workers_need_the_host_of_the_preview(preview: Opener) -> None:
    opened = await preview(answers(OK + b"Content-Length: 0\r\n\r\n"))
    worker = "Service-Worker: script\r\n"
    refused = await opened.ask("sw.js", HOST + worker)
    assert refused.startswith(b"HTTP/1.1 403 ")
    assert f"http://{TOKEN}.localhost:5000/sw.js".encode() in refused
    own = f"Host: {TOKEN}.localhost:5000\r\n"
    assert (await opened.ask("sw.js", own + worker, base="")).startswith(b"HTTP/1.1 200 ")


async def test_a_program_gets_its_own_cookies_alone(preview: Opener) -> None:
    heads: list[bytes] = []

    async def program(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(OK + b"Set-Cookie: a=1; Path=/\r\nSet-Cookie: b=x=y\r\n")
        writer.write(b"Content-Length: 0\r\n\r\n")
        writer.close()

    opened = await preview(program)
    kept = [cookie.partition(";")[0] for cookie in fields(await opened.ask(), "set-cookie")]
    # Those of other servers on this host, whatever their port, come along.
    sent = f"Cookie: session=secret; {kept[0]};a=foreign\r\ncookie: {kept[1]} ;=;q\r\n"
    await opened.ask("x", HOST + sent)
    await opened.ask("x", f"{HOST}Cookie: session=secret\r\n")
    await opened.ask("x", f"Host: {TOKEN}.localhost\r\nCookie: c=3; d=4\r\n", base="")
    assert [fields(head, "cookie") for head in heads] == [[], ["a=1; b=x=y"], [], ["c=3; d=4"]]
