"""Webhooks and notifications: where they connect, after resolution and at every redirection."""

import asyncio
import contextlib
import email
import email.policy
import gzip
import os
import socket
import subprocess
import threading
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from quarterdeck.sandboxes.reach import network_options
from quarterdeck.service.checks.calls import HostCall, HostError, make
from quarterdeck.service.errors import ApiError
from quarterdeck.service.hosts.api import HostApis, retry_after_seconds
from quarterdeck.service.hosts.settings import HostSettings, HostsSettings
from quarterdeck.service.http_client import open_client
from quarterdeck.service.identity.tokens import KeySet
from quarterdeck.service.notifications import confinement, notifier
from quarterdeck.service.notifications.notifier import Notice, is_target, send
from quarterdeck.service.notifications.rows import NotificationTarget, WebhookDelivery
from quarterdeck.service.notifications.sender import (
    NotificationService,
    SenderSettings,
    WebhookSender,
)
from quarterdeck.service.notifications.targets import PRIVATE, open_guarded_client
from quarterdeck.service.vault import webhook_place
from quarterdeck.wire.json_size import VALUES_LIMIT
from tests.fleet.conftest import World
from tests.service.people import bearing, key_of, settle
from tests.support.waiting import WAIT_SECONDS, eventually

pytestmark = pytest.mark.one_database

NOTICE = Notice("title", "text")
FORMS = ("127.0.0.1", "127.1", "2130706433", "0x7f000001", "[::ffff:127.0.0.1]", "localhost")


@dataclass
class Listener:
    """Counts connections, and answers requests with a status and a place to go."""

    port: int = 0
    location: str = ""
    requests: list[str] = field(default_factory=list[str])

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests.append("")
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests[-1] = head
            more = f"Location: {self.location}\r\n" if self.location else ""
            status = "302 Found" if self.location else "200 OK"
            writer.write(
                f"HTTP/1.1 {status}\r\n{more}Connection: close\r\nContent-Length: 0\r\n\r\n".encode()
            )
            await writer.drain()
        writer.close()


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    made = Listener()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    async with server:
        yield made


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Names and their addresses, as the system's resolver would answer."""
    usual, known = socket.getaddrinfo, dict[str, str]()

    def resolve(host: Any, *arguments: Any, **named: Any) -> Any:
        numeric = named.get("flags", 0) & socket.AI_NUMERICHOST
        return usual(host if numeric else known.get(host, host), *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return known


ODD_HOSTS = ("xn--", "xn--a", "a.xn--", "xn--i-7iq.invalid", "a" * 64, "a..b", "%", "*.a", "a$b")
"""A URL may have each of them; some are refused by one library, and some by another."""


@pytest.mark.parametrize("host", ODD_HOSTS)
async def test_a_call_to_an_odd_host_fails_like_any_other(world: World, host: str) -> None:
    for scheme in ("http", "https"):
        sender = WebhookSender(world.context, SenderSettings())
        url = f"{scheme}://{host}/"
        place = webhook_place("organization")
        delivery = WebhookDelivery(
            *("1", "organization", None, None),
            *(world.context.vault.seal(place, url), "{}", 0, "", ""),
        )
        assert await sender._call(delivery) is not None
        await sender._end()


async def test_a_host_with_letters_beyond_ascii_is_called_by_its_own_name(
    listener: Listener, names: dict[str, str]
) -> None:
    # Decoded and encoded again by the rules of the system it would be `fass.invalid`.
    names["xn--fa-hia.invalid"] = "127.0.0.1"
    async with open_guarded_client(5.0) as client:
        url = f"http://xn--fa-hia.invalid:{listener.port}/"
        assert (await client.post(url, extensions={PRIVATE: True})).status_code == 200
    assert f"host: xn--fa-hia.invalid:{listener.port}" in listener.requests[0].lower()


async def test_a_library_that_fails_ends_only_its_own_notification(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(url: str, *_: object) -> bool:
        raise KeyError("hush-4711")

    owner = notifier.Notifier(world.context, fail)
    url = world.context.vault.seal("1", "json://hush-4711/")
    target = NotificationTarget("1", "user", url, "")
    assert not await owner.try_target("a", target, NOTICE)
    assert "KeyError" in caplog.text and "hush" not in caplog.text


async def test_the_client_connects_only_to_what_it_judged(
    listener: Listener, names: dict[str, str]
) -> None:
    names |= {"inside.invalid": "127.0.0.1", "clouds.invalid": "169.254.169.254"}
    async with open_guarded_client(5.0) as client:
        for host in (*FORMS, "inside.invalid"):
            with pytest.raises(httpx.ConnectError, match="private"):
                await client.post(f"http://{host}:{listener.port}/")
        for host in ("clouds.invalid", "0xa9fea9fe", "[::ffff:a9fe:a9fe]"):
            with pytest.raises(httpx.ConnectError, match="no call may reach"):
                await client.post(f"http://{host}/", extensions={PRIVATE: True})
        assert not listener.requests
        url = f"http://inside.invalid:{listener.port}/path"
        answer = await client.post(url, extensions={PRIVATE: True})
    assert answer.status_code == 200
    assert f"host: inside.invalid:{listener.port}" in listener.requests[0].lower()


async def test_tls_keeps_the_name(names: dict[str, str]) -> None:
    names["inside.invalid"] = "127.0.0.1"
    hellos: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hellos.append(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, open_guarded_client(5.0) as client:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(httpx.ConnectError):
            await client.get(f"https://inside.invalid:{port}/", extensions={PRIVATE: True})
    assert b"inside.invalid" in hellos[0]


async def test_a_notification_connects_only_where_it_may(
    listener: Listener, names: dict[str, str]
) -> None:
    names["inside.invalid"] = "127.0.0.1"
    for host in (*FORMS, "inside.invalid"):
        url = f"json://{host}:{listener.port}/"
        assert not await asyncio.to_thread(send, url, NOTICE, False), host
    mail = f"mailto://user:password@inside.invalid:{listener.port}?to=a@b.example&smtp=127.0.0.1"
    assert not await asyncio.to_thread(send, mail, NOTICE, False)
    assert not listener.requests
    assert await asyncio.to_thread(send, f"json://127.0.0.1:{listener.port}/", NOTICE, True)
    assert len(listener.requests) == 1
    # A redirection is a connection like another.
    listener.location = "http://169.254.169.254/latest"
    assert not await asyncio.to_thread(send, f"json://127.0.0.1:{listener.port}/", NOTICE, True)


async def test_a_notification_reads_no_files(listener: Listener, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"text": "hush-4711"}')
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password hush-4711\n")
    for url in (
        *("syslog://", "dbus://", f"fcm://project/token?keyfile={secret}", "mqtt://127.0.0.1/x"),
        *(f"vapid://a@b.example/x?keyfile={secret}", "rsyslog://127.0.0.1", "smpp://u:p@127.1/1/2"),
        *("growl://127.0.0.1", "irc://127.0.0.1/x", "nothing://x", "macosx://", "x"),
    ):
        assert not await asyncio.to_thread(is_target, url, True), url
        assert not await asyncio.to_thread(send, url, NOTICE, True), url
    host = f"127.0.0.1:{listener.port}"
    await asyncio.to_thread(
        send, f"workflows://{host}/WORKFLOWID/SIGNATURE/?template={secret}", NOTICE, True
    )
    assert "hush-4711" not in "".join(listener.requests)


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect(str(path))


def datagram(host: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
        caller.sendto(b"x", (host, 514))


async def test_what_a_library_may_not_do_is_an_error(tmp_path: Path) -> None:
    """In the thread that sends a notification, and only there."""
    secret = tmp_path / "secret"
    secret.write_text("hush")
    link = tmp_path / "link"
    link.symlink_to(secret)
    refused: list[tuple[Callable[[], object], str]] = [
        (secret.read_text, "does not read"),
        (link.read_text, "does not read"),
        (lambda: os.open(secret, os.O_RDONLY), "does not read"),
        (lambda: os.open(confinement.__file__, os.O_RDWR), "does not read"),
        (lambda: subprocess.Popen(["true"]), "starts no programs"),
        (lambda: os.system("true"), "starts no programs"),
        (lambda: os.posix_spawn("/bin/true", ["true"], {}), "starts no programs"),
        (lambda: unix_socket(tmp_path / "x"), "only to addresses of the network"),
        (lambda: datagram("169.254.169.254"), "no call may reach"),
        (lambda: datagram("10.1.2.3"), "is a private address"),
    ]

    def within(act: Callable[[], object]) -> object:
        with confinement.confined(private=False, seconds=20):
            return act()

    for act, reason in refused:
        with pytest.raises(OSError, match=reason):
            await asyncio.to_thread(within, act)
    assert "confined" in str(await asyncio.to_thread(within, Path(confinement.__file__).read_text))
    assert await asyncio.to_thread(secret.read_text) == "hush"


async def test_what_a_proxy_is_asked_for_is_judged_as_far_as_it_is_an_address(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{listener.port}")
    monkeypatch.delenv("no_proxy", raising=False)
    async with open_guarded_client(10, proxy=True) as client:
        for host, private in (
            ("10.1.2.3", False),
            ("0x0a010203", False),
            ("169.254.169.254", True),
            ("2852039166", True),
        ):
            with pytest.raises(httpx.ConnectError):
                await client.get(f"http://{host}/", extensions={PRIVATE: private})
        assert not listener.requests
        assert (await client.get("http://93.184.215.14/")).status_code == 200
        assert listener.requests[0].startswith("GET http://93.184.215.14/ ")


async def test_silent_name_servers_leave_threads_to_others(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody who may name an address can name one whose server never answers."""
    usual, answered, asked = socket.getaddrinfo, threading.Event(), list[str]()

    def resolve(host: Any, *arguments: Any, **named: Any) -> Any:
        if str(host).endswith(".silent.invalid") and not named.get("flags"):
            asked.append(host)
            answered.wait(WAIT_SECONDS)
            host = "10.1.2.3"
        return usual(host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    try:
        async with open_guarded_client(WAIT_SECONDS) as client:
            urls = [f"http://{number}.silent.invalid/" for number in range(40)]
            calls = [asyncio.create_task(client.get(url)) for url in urls]
            sources = [
                asyncio.create_task(network_options(f"https://{number}.silent.invalid/x", False))
                for number in range(40)
            ]
            await eventually(lambda: bool(asked))
            async with asyncio.timeout(WAIT_SECONDS / 2):
                assert await asyncio.to_thread(lambda: 1) == 1
            answered.set()
            results = await asyncio.gather(*calls, *sources, return_exceptions=True)
        assert not [result for result in results if not isinstance(result, Exception)]
    finally:
        answered.set()


async def test_notifications_that_hang_keep_their_threads(
    world: World, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their time limit must not let further ones of the same organization hang, too."""
    monkeypatch.setattr(notifier, "SECONDS", 0.05)
    go, begun = threading.Event(), list[str]()

    def hang(url: str, *_: object) -> bool:
        begun.append(url)
        return go.wait(WAIT_SECONDS) if url == "json://slow/" else True

    owner = notifier.Notifier(world.context, hang)
    seal = world.context.vault.seal
    slow, quick = (
        NotificationTarget(str(n), "user", seal(str(n), f"json://{host}/"), "")
        for n, host in enumerate(("slow", "quick"))
    )
    try:
        sent = [
            asyncio.create_task(owner.try_target("a", slow, NOTICE))
            for _ in range(2 * notifier.THREADS)
        ]
        await asyncio.wait(sent, return_when=asyncio.FIRST_COMPLETED)
        assert await owner.try_target("b", quick, NOTICE)
        assert begun.count("json://slow/") == notifier.SHARE
    finally:
        go.set()
    await asyncio.gather(*sent)


PROXIES = ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY")


async def test_no_proxy_of_the_environment_is_used(
    listener: Listener, names: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would reach what the service may not, and nobody judges where it connects."""
    for name in PROXIES:
        monkeypatch.setenv(name, f"http://127.0.0.1:{listener.port}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    names["inside.invalid"] = "10.1.2.3"
    async with open_guarded_client(10) as client:
        for url in ("http://inside.invalid/", "https://inside.invalid/", "http://10.1.2.3/"):
            with pytest.raises(httpx.ConnectError, match="private"):
                await client.get(url)
        with pytest.raises(httpx.ConnectError):
            await client.get("http://unknown.invalid/")
    for target in ("json://inside.invalid/", "jsons://inside.invalid/", "json://unknown.invalid/"):
        assert not await asyncio.to_thread(send, target, NOTICE, False)
    assert not listener.requests
    # Where it is configured, it is used.
    assert await asyncio.to_thread(send, "json://inside.invalid/", NOTICE, False, True)
    assert listener.requests[0].startswith("POST http://inside.invalid/ ")


async def test_no_connection_is_used_for_a_second_call(names: dict[str, str]) -> None:
    """With TLS its certificate would be that of another name at the same address."""
    names |= {"one.invalid": "127.0.0.1", "two.invalid": "127.0.0.1"}
    connections: list[int] = []
    ended: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(0)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        ended.append(0)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with open_guarded_client(10) as client:
            for host in ("one.invalid", "two.invalid", "127.0.0.1"):
                url = f"http://{host}:{port}/"
                assert (await client.get(url, extensions={PRIVATE: True})).status_code == 200
        await eventually(lambda: len(ended) == len(connections))
        assert len(connections) == 3


class Talker:
    """A target that goes on with its answer until it is cut off, or has sent `most` parts."""

    def __init__(self, part: bytes, most: int, pause: float = 0) -> None:
        self.part, self.most, self.pause = part, most, pause
        self.heads: list[bytes] = []
        self.cut: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(b"HTTP/1.1 200 OK\r\n")
            for _ in range(self.most):
                writer.write(self.part)
                await writer.drain()
                await asyncio.sleep(self.pause)
            self.cut.set_result(False)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.cut.set_result(True)
        finally:
            writer.close()


async def sent_to(talker: Talker) -> bool:
    async with await asyncio.start_server(talker.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        accepted = await asyncio.to_thread(send, f"json://127.0.0.1:{port}/", NOTICE, True)
        assert not talker.heads or await talker.cut  # on a busy machine it may never connect
        return accepted


async def test_a_target_answers_as_long_as_it_likes_in_vain() -> None:
    talker = Talker(b"\r\n" + bytes(1 << 20), 256)
    assert not await sent_to(talker)
    (head,) = talker.heads
    # What is packed could be any size.
    assert b"accept-encoding: identity\r\n" in head.lower()


async def test_an_endless_greeting_of_a_mail_server_is_cut_off() -> None:
    cut: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent, part = 0, b"220-" + b"x" * 1000 + b"\r\n"
        with contextlib.suppress(ConnectionError):
            while sent < 64 << 20:
                writer.write(part * 64)
                await writer.drain()
                sent += len(part) * 64
        cut.set_result(sent)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        mail = f"mailto://user:password@mail.example:{port}?to=a@b.example&smtp=127.0.0.1"
        assert not await asyncio.to_thread(send, mail, NOTICE, True)
        assert await cut < 16 << 20


async def test_a_mail_server_is_understood() -> None:
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220-a\r\n220 b\r\n")
        in_text = False
        while line := await reader.readline():
            heard.append(line)
            word, in_text = line[:4].upper(), line != b".\r\n" and (in_text or line[:4] == b"data")
            replies = {b"EHLO": b"250-x\r\n250 AUTH PLAIN", b"AUTH": b"235 x", b"DATA": b"354 x"}
            if not in_text or word == b"DATA":
                writer.write(replies.get(word, b"250 x") + b"\r\n")
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        mail = f"mailto://user:password@mail.example:{port}?to=a@b.example&smtp=127.0.0.1&mode=insecure"
        assert await asyncio.to_thread(send, mail, Notice("a\r\nBcc: c@d.example", "text"), True)
    assert [line.lower() for line in heard if line.startswith(b"rcpt")] == [
        b"rcpt to:<a@b.example>\r\n"
    ]
    assert not any(line.lower().startswith(b"bcc") for line in heard)


HOSTILE = "B<b>t</b> <i>\n[e](http://evil.example) ![i](http://evil.example/i) [r][x] [x]: y @all <!channel>"


@pytest.mark.parametrize(
    "target",
    [
        *("mmost://{}/aaaaaaaaaaaaaaaaaaaaaaaaaa", "gotify://{}/tokentoken", "json://{}/"),
        *("ntfy://{}/topic", "ntfy://{}/topic?format=markdown", "ntfy://{}/topic?format=html"),
        *(
            "json://{}/?format=html",
            "json://{}/?format=markdown",
            "xml://{}/",
            "apprise://{}/token",
        ),
        *("hassio://{}/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "mailto://u:p@mail.example:{}"),
        *("mailto://u:p@mail.example:{}?format=html", "hassio://{}/token1?format=markdown"),
    ],
)
async def test_what_an_agent_says_is_plain_text(target: str) -> None:
    """Some targets read HTML or markdown, others also what is declared as text."""
    texts: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            if target.startswith("mailto"):
                texts.append(await take_mail(reader, writer))
            else:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length: ")[2].partition(b"\r")[0])
                texts.append(await reader.readexactly(length))
                answer = b'{"id":"1"}'
                writer.write(
                    b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
                    % (len(answer), answer)
                )
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        is_mail = target.startswith("mailto")
        url = target.format(port if is_mail else f"127.0.0.1:{port}")
        if is_mail:
            url += f"{'&' if '?' in url else '?'}to=a@b.example&smtp=127.0.0.1&mode=insecure"
        await asyncio.to_thread(send, url, Notice(f"T{HOSTILE}".replace("\n", ""), HOSTILE), True)
    (sent,) = texts
    text = sent.decode() if not is_mail else str(mail_text(sent))
    for escaped in ("\\u200b", "&#8203;"):
        text = text.replace(escaped, "\u200b")
    for markup in ("<b>", "<i>", "<!", "](", "][", "]:", "@all"):
        assert markup not in text.replace("xmlns", ""), markup
    assert "evil" in text


def mail_text(content: bytes) -> str:
    """Return the subject and all parts of a message."""
    mail = email.message_from_bytes(content, policy=email.policy.default)
    parts = [part.get_content() for part in mail.walk() if not part.is_multipart()]
    return "\n".join((str(mail["subject"]), *parts))


async def take_mail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Return the message that a client sends; accepts everything."""
    writer.write(b"220 a\r\n")
    content = b""
    while line := await reader.readline():
        word = line[:4].upper()
        if word == b"DATA":
            writer.write(b"354 x\r\n")
            content = await reader.readuntil(b"\r\n.\r\n")
        replies = {b"EHLO": b"250-x\r\n250 AUTH PLAIN", b"AUTH": b"235 x"}
        writer.write(replies.get(word, b"250 x") + b"\r\n")
        if word == b"QUIT":
            break
    return content


async def test_a_target_that_answers_bit_by_bit_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "SECONDS", 0.5)
    await sent_to(Talker(b"x", 600, 0.05))  # the library waits as long as something comes


async def test_who_may_name_which_address(
    world: World, listener: Listener, names: dict[str, str]
) -> None:
    names["inside.invalid"] = "127.0.0.1"
    people = await settle(world.context)
    member = bearing(await key_of(world.context, people.organization, people.member))
    outward = NotificationService(world.context, SenderSettings(tries=(0.0,)))
    outward.start()
    client, body = world.client, {"environment_id": world.environment}
    for host in FORMS[:-1]:
        url = f"http://{host}:{listener.port}/"
        asked = {**body, "name": "x", "webhook_url": url}
        answer = await client.post("/v1/replica", json=asked, headers=member)
        assert (answer.status_code, "private address" in answer.text) == (400, True), host
    for url in ("http://0xa9fea9fe/", "http://[::ffff:169.254.169.254]/", "http://0/"):
        asked = {**body, "name": "x", "webhook_url": url}
        assert (await client.post("/v1/replica", json=asked)).status_code == 400, url
    path = "/v1/chatapp/user/connection"
    for url in ("syslog://", "fcm://p/t?keyfile=/etc/passwd"):
        refused = await client.post(path, json={"url": url})
        assert (refused.status_code, "not sent to" in refused.text) == (400, True)
    target = {"url": f"json://127.0.0.1:{listener.port}/"}
    assert (await client.post(path, json=target, headers=member)).status_code == 400
    target = {"url": f"json://inside.invalid:{listener.port}/"}
    assert (await client.post(path, json=target, headers=member)).status_code == 201
    tried = await client.post(f"{path}/test", headers=member)
    assert tried.json() == {"delivered": False}
    hook = f"http://inside.invalid:{listener.port}/member"
    client.headers, own = httpx.Headers(member), client.headers
    await world.create(webhook_url=hook)

    async def given_up() -> bool:
        from tests.fleet.test_service_webhooks import waiting

        return not await waiting(world)

    await eventually(given_up)
    assert not listener.requests
    client.headers = own
    await world.create(webhook_url=f"http://inside.invalid:{listener.port}/owner")

    async def called() -> bool:
        return any("POST /owner" in request for request in listener.requests)

    await eventually(called)
    await outward.close()
    assert not any("/member" in request for request in listener.requests)


async def read_checks(world: World, url: str) -> str:
    async with open_client(5.0) as client:
        with pytest.raises(HostError) as refused:
            await make(client, url, HostCall("GET", "/x", {}))
    return str(refused.value)


async def read_pull_requests(world: World, url: str) -> str:
    world.context.hosts = HostsSettings(host_a=HostSettings(api_url=url, token="t"))
    apis = HostApis(world.context)
    with pytest.raises(ApiError) as refused:
        await apis.of("host-a", "team/shop").get("/pulls", object)
    await apis.close()
    return str(refused.value.details)


async def read_issuer(world: World, url: str) -> str:
    with pytest.raises(ApiError, match="cannot be fetched"):
        await KeySet(url).find("1")
    return ""


@pytest.mark.parametrize("read", [read_checks, read_pull_requests, read_issuer])
@pytest.mark.parametrize("layers", [1, 3])
async def test_an_answer_is_never_unpacked(
    world: World,
    caplog: pytest.LogCaptureFixture,
    read: Callable[[World, str], Awaitable[str]],
    layers: int,
) -> None:
    content = bytes(48 << 20)
    for _ in range(layers):
        content = gzip.compress(content, 9)
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        encodings = ", ".join(["gzip"] * layers)
        head = f"Content-Encoding: {encodings}\r\nContent-Length: {len(content)}\r\n\r\n"
        writer.write(f"HTTP/1.1 200 OK\r\n{head}".encode() + content)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        tracemalloc.start()
        reason = await read(world, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert "compressed" in reason + caplog.text
    assert b"accept-encoding: identity\r\n" in heads[0].lower()
    assert peak < 24 << 20


async def test_an_answer_of_many_values_is_refused_before_it_is_read(world: World) -> None:
    content = b"[" + b"[]," * VALUES_LIMIT + b"[]]"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        assert "too many values" in await read_pull_requests(world, url)


@pytest.mark.parametrize(
    "value",
    [
        "Mon, 01 Jan 2024 00:00:00 +99999999999999",
        "Mon, 01 Jan 9999999999999999999 00:00:00 GMT",
        "never",
    ],
)
def test_a_host_may_say_any_retry_after(value: str) -> None:
    assert retry_after_seconds(value, datetime(2026, 1, 1, tzinfo=UTC)) is None
