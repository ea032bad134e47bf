"""Programs that need a Node: told so before they are started by one that is too old."""

import json
from pathlib import Path

import pytest

from quarterdeck.agents.availability import Need, need_of
from quarterdeck.agents.catalog import default_catalog
from quarterdeck.agents.port import AgentUnavailableError, SessionSpec


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def machine(tmp_path: Path) -> "Machine":
    return Machine(tmp_path)


class Machine:
    """A PATH with claude's adapter on it, as npm puts it there."""

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.bin.mkdir()
        self.package = root / "lib/node_modules/@acme/claude-agent-acp"
        self.engines("22", ">=22")
        self.true = program(self.package / "dist/index.js", "#!/usr/bin/env node\n")
        (self.bin / "claude-agent-acp").symlink_to(self.true)
        self.root = root

    def engines(self, version: str, asked: str | None) -> None:
        told = {"version": f"{version}.0.0", **({"engines": {"node": asked}} if asked else {})}
        self.package.mkdir(parents=True, exist_ok=True)
        (self.package / "package.json").write_text(json.dumps(told))

    def node(self, version: str) -> Path:
        return program(self.bin / "node", f"#!/bin/sh\necho v{version}\n")

    @property
    def path(self) -> str:
        return str(self.bin)

    @property
    def reason(self) -> str | None:
        environment = {"PATH": self.path, "ANTHROPIC_API_KEY": "k"}
        found = {one.id: one for one in default_catalog(environment).statuses()}["claude"]
        assert found.installed and found.available == (found.reason is None)
        return found.reason

    async def start(self) -> None:
        spec = SessionSpec("c", str(self.root), str(self.root / "state"), {"PATH": self.path})
        await default_catalog().driver("claude").open(spec, _unheard)


async def _unheard(_: object) -> None: ...


def test_an_old_node_is_told_and_a_new_one_will_do(machine: Machine) -> None:
    node = machine.node("20.20.2")
    assert machine.reason == (
        f"Claude needs Node 22 or newer: {node} is 20.20.2. Put a newer one before it on the PATH."
    )
    machine.node("22.1.0")
    assert machine.reason is None


def test_a_missing_node_is_told(machine: Machine) -> None:
    assert machine.reason == "Claude needs Node 22 or newer: node is not on the PATH."


def test_the_package_says_what_it_needs(machine: Machine) -> None:
    machine.node("20.20.2")
    machine.engines("0", "^20.19.0 || >=22.12.0")
    assert machine.reason is None
    machine.engines("1", None)
    assert machine.reason is None


async def test_an_old_node_starts_no_agent(machine: Machine) -> None:
    machine.node("18.0.0")
    with pytest.raises(AgentUnavailableError, match=r"needs Node 22 or newer: .* is 18\.0\.0"):
        await machine.start()


def test_it_is_found_behind_the_call_that_sandboxes_use(machine: Machine, tmp_path: Path) -> None:
    node = machine.node("20.0.0")
    call = f"#!/bin/sh\nexport A='b c'\nexec {machine.true} \"$@\"\n"
    called = program(tmp_path / "programs/claude-agent-acp", call)
    assert need_of(called, machine.path) == Need(22, node)


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit\n", "#!/usr/bin/env python3\n", "\x7fELF"])
def test_other_programs_need_no_node(machine: Machine, text: str) -> None:
    machine.true.write_text(text)
    assert need_of(machine.true, machine.path) is None


def test_a_node_that_does_not_say_its_version_is_let_try(machine: Machine) -> None:
    program(machine.bin / "node", "#!/bin/sh\nexit 1\n")
    assert machine.reason is None
