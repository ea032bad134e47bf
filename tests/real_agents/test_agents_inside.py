"""Real agents in a sandbox: seen there, and given skills and instructions in their own way."""

import base64
import json
import re
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from quarterdeck.local.home import Home
from quarterdeck.sandboxes.bubblewrap import Wanted
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.wire.setup import Setup, SetupSkill, SkillFile
from tests.sandboxes.conftest import ENGINE, Bench

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
AGENTS = ROOT / ".venv/agents/bin"
PINNED = json.loads(Path(__file__).with_name("package.json").read_text())["dependencies"]
PACKAGES = {"codex": "codex-bin", "opencode": "opencode-linux-x64"}
"""The packages of agents that have presets."""
NAMES = tuple(PACKAGES)

INSTRUCTIONS = "Speak of nothing but pears."
SKILL = "---\nname: pear-peeling\ndescription: How a pear is peeled here.\n---\nFrom its top.\n"
INSTALL = """
import os, sys
from pathlib import Path
from quarterdeck.engine.setup.boot import install
from quarterdeck.wire.setup import Setup
install(Setup.model_validate_json(sys.stdin.read()), Path.home(), Path("/var/lib/replica"))
"""


@pytest.fixture
async def inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require_tool: Callable[[str], str]
) -> AsyncGenerator[Callable[[str], str]]:
    """Runs commands in a sandbox of a person who has both agents on the PATH."""
    require_tool("bwrap")
    assert all((AGENTS / name).exists() for name in NAMES), "run: make agents"
    monkeypatch.setenv("PATH", f"{AGENTS}:/usr/bin:/bin")
    wanted = Wanted(NAMES)
    home = Home(tmp_path / "home")
    bench = Bench(home, ProcessDriver(home, engine=ENGINE, grace=1.0, wanted=lambda: wanted))
    workspace = await bench.started()
    try:
        yield lambda command: bench.said(workspace, command)
    finally:
        await bench.close()


async def set_up(inside) -> None:
    """As an engine does when it starts."""
    file = SkillFile(path="SKILL.md", content=base64.b64encode(SKILL.encode()))
    setup = Setup(
        system_prompt=INSTRUCTIONS, skills=[SetupSkill(slug="pear-peeling", files=[file])]
    )
    text = setup.model_dump_json(by_alias=True)
    await inside(f"cat >/tmp/setup.json <<'END'\n{text}\nEND")
    await inside(f"{sys.executable} -I -c '{INSTALL}' </tmp/setup.json")


async def test_the_pinned_agents_run_where_only_they_are_seen(inside) -> None:
    for name, package in PACKAGES.items():
        (version,) = re.findall(r"\d+\.\d+\.\d+", PINNED[package])
        assert version in await inside(f"{name} --version 2>/dev/null")


async def test_codex_is_told_the_instructions_and_the_skill_once(inside) -> None:
    await set_up(inside)
    prompt = await inside("codex debug --disable plugins prompt-input hello 2>/dev/null")
    assert prompt.count(INSTRUCTIONS) == 1
    assert prompt.count("How a pear is peeled here.") == 1


async def test_opencode_finds_the_skill_once(inside) -> None:
    await set_up(inside)
    found = json.loads(await inside("opencode debug skill 2>/dev/null"))
    (skill,) = (one for one in found if one["name"] == "pear-peeling")
    assert skill["content"].strip() == "From its top."
