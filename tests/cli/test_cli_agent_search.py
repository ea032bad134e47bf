"""`qd agents search`: the registry of agents."""

import json
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from quarterdeck.cli.agent_search import FILE, RegistryAgent, parse_registry
from quarterdeck.cli.errors import FailedError
from quarterdeck.cli.schema import read_config
from tests.cli.conftest import Installation, new_installation

NEW = {"id": "pear", "name": "Pear", "version": "1", "description": "Peels pears.",
       "distribution": {"npx": {"package": "pear@1", "args": ["acp"], "env": {"PEAR": "1"}}}}  # fmt: skip


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    made = new_installation(tmp_path_factory.mktemp("search") / "home")
    made.home.mkdir()
    return made


@pytest.fixture
def address() -> Iterator[str]:
    """Where a registry is served."""

    class Serving(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
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
    assert wrong.code == 1 and "no registry" in wrong.err
    found = installation.qd("agents", "search", "pear", "--refresh", f"{address}/r", "--json")
    assert found.json["agents"] == [
        {"id": "pear", "name": "Pear", "command": ["npx", "-y", "pear@1", "acp"],
         "environment": {"PEAR": "1"}, "install": "npm install -g pear@1"}
    ]  # fmt: skip
    gone = installation.qd("agents", "search", "qwen")
    assert gone.code == 1 and "No agent" in gone.err
    (installation.home / FILE).unlink()


def test_what_is_no_registry_is_refused() -> None:
    assert isinstance(parse_registry(json.dumps({"agents": [NEW]}))[0], RegistryAgent)
    for text in ("", "[]", '{"agents": [{}]}'):
        with pytest.raises(FailedError, match="no registry"):
            parse_registry(text)
