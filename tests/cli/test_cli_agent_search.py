"""`qd agents search`: the registry of agents."""

import gzip
import json
import os
import ssl
import threading
import tomllib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.cli.agent_search import FILE, RegistryAgent, download, parse_registry
from quarterdeck.cli.errors import FailedError
from quarterdeck.cli.schema import read_config
from quarterdeck.service.certificate import certificate_for
from quarterdeck.service.http_client import trusted_context
from tests.cli.conftest import Installation, new_installation

NEW = {"id": "pear", "name": "Pear", "version": "1", "description": "Peels pears.",
       "distribution": {"npx": {"package": "pear@1", "args": ["acp"], "env": {"PEAR": "1"}}}}  # fmt: skip


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = new_installation(tmp_path_factory.mktemp("search") / "home")
    made.home.mkdir()
    return made


@pytest.fixture
def served() -> list[str]:
    """The paths that were asked for."""
    return []


@pytest.fixture
def address(served: list[str]) -> Iterator[str]:
    """Where a registry is served."""

    class Serving(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.append(self.path)
            if self.path == "/packed":
                self.send_response(200)
                self.send_header("Content-Encoding", "gzip, gzip")
                self.end_headers()
                self.wfile.write(gzip.compress(gzip.compress(bytes(1 << 20))))
                return
            answer = json.dumps({"version": "2", "agents": [NEW]}) if self.path == "/r" else "[]"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Serving)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_every_entry_is_a_table_or_an_agent_that_is_known(installation: Installation) -> None:
    listed = installation.qd("agents", "search").out.splitlines()
    assert listed[0].split() == ["ID", "NAME", "VERSION", "DESCRIPTION"]
    for id in ("goose", "mistral-vibe", "qwen-code"):
        found = installation.qd("agents", "search", id)
        table = found.out[found.out.index("[") :]
        assert list(tomllib.loads(table)["agents"]) == [id]
        (installation.home / "config.toml").write_text(table)
        assert read_config(installation.home / "config.toml").agents[id].command
    (installation.home / "config.toml").unlink()
    assert "qd agents install claude" in installation.qd("agents", "search", "claude").err


def test_the_registry_is_refreshed(installation: Installation, address: str) -> None:
    wrong = installation.qd("agents", "search", "--refresh", f"{address}/none")
    assert wrong.code == 1 and "Not a registry" in wrong.err
    found = installation.qd("agents", "search", "pear", "--refresh", f"{address}/r", "--json")
    assert found.json["agents"] == [
        {"id": "pear", "name": "Pear", "command": ["npx", "-y", "pear@1", "acp"],
         "environment": {"PEAR": "1"}, "install": "npm install -g pear@1"}
    ]  # fmt: skip
    gone = installation.qd("agents", "search", "qwen")
    assert gone.code == 1 and "No agent" in gone.err
    (installation.home / FILE).unlink()


@pytest.mark.parametrize("damage", ["binary", "truncated", "endless", "pipe", "directory"])
def test_a_stored_registry_that_cannot_be_read_is_named(
    installation: Installation, damage: str
) -> None:
    installation.home.mkdir(exist_ok=True)
    stored = installation.home / FILE
    match damage:
        case "binary":
            stored.write_bytes(bytes(range(256)))
        case "truncated":
            stored.write_text('{"agents": [')
        case "endless":
            stored.symlink_to("/dev/zero")
        case "pipe":
            os.mkfifo(stored)
        case _:
            stored.mkdir()
    try:
        ended = installation.qd("agents", "search")
        assert ended.code == 1
        assert f"The registry in {stored} cannot be read" in ended.err
        assert "Traceback" not in ended.err
    finally:
        stored.rmdir() if damage == "directory" else stored.unlink()


def test_text_that_is_not_a_registry_is_refused() -> None:
    assert isinstance(parse_registry(json.dumps({"agents": [NEW]}))[0], RegistryAgent)
    for text in ("", "[]", '{"agents": [{}]}'):
        with pytest.raises(FailedError, match="Not a registry"):
            parse_registry(text)


@pytest.mark.parametrize("package", ["a", "@a/b@1.2.3", "a-b==3.0.2", "a[b,c]==1", "a@latest"])
def test_a_package_is_a_name(package: str) -> None:
    for kind in ("npx", "uvx"):
        entry = {**NEW, "distribution": {kind: {"package": package}}}
        assert parse_registry(json.dumps({"agents": [entry]}))[0].table()["command"][-1] == package


@pytest.mark.parametrize(
    "changed",
    [
        *({"distribution": {"npx": {"package": package}}} for package in (
            "/tmp/x", "../x", "https://a.example/x.tgz", "git+ssh://a.example/x", "a@file:x", "a@npm:b",
            "--registry=http://a.example", "a; id", "a\nb", "a/b", "")),
        {"distribution": {"uvx": {"package": "a @ https://a.example/x.whl"}}},
        *({"id": id} for id in ("A", "a\x1b[2J", "a]\n[agents.b", "-a", "")),
    ],
)  # fmt: skip
def test_an_entry_names_no_path_and_no_address(changed: dict[str, Any]) -> None:
    with pytest.raises(FailedError, match="Not a registry"):
        parse_registry(json.dumps({"agents": [NEW | changed]}))


@pytest.fixture
def redirecting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], str]]:
    """Serve with TLS, which is trusted, and redirect to a location; return the address of that."""

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/"))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    certificate_for(tmp_path / "pem", "127.0.0.1")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "pem"))
    trusted_context.cache_clear()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "pem")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Redirecting)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield lambda location: f"https://127.0.0.1:{server.server_port}/{location}"
    trusted_context.cache_clear()
    server.shutdown()
    thread.join()
    server.server_close()


async def test_a_redirection_does_not_leave_tls(
    redirecting: Callable[[str], str], address: str, served: list[str]
) -> None:
    for location in (f"{address}/r", redirecting(f"{address}/r")):
        with pytest.raises(FailedError, match="without TLS"):
            await download(redirecting(location))
    assert not served
    assert parse_registry(await download(f"{address}/r"))


async def test_a_registry_is_not_unpacked(address: str) -> None:
    with pytest.raises(FailedError, match="compressed"):
        await download(f"{address}/packed")


async def test_a_password_is_not_shown() -> None:
    with pytest.raises(FailedError) as refused:
        await download("http://user:hush-4711@127.0.0.1:1/r")
    assert "hush-4711" not in str(refused.value)
