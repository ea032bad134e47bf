"""The agents in an image of replicas, which `qd image build` puts there by npm."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from quarterdeck.agents.presets import load_presets
from tests.containers.daemons import BASE, Daemon, DockerEngine, configure
from tests.containers.installed import PROGRAM, Installation

TAG = "qd-test-agents"
NPM = """#!/bin/sh
# Notes what it was told, and installs programs that say their version.
echo "$*" >>"$NPM_SEEN"
while [ "$1" != --prefix ]; do shift; done
prefix=$2
shift 2
for spec; do
  case $spec in -*) continue ;; esac
  package=${spec%@*} version=${spec##*@} name=${package##*/}
  [ "$name" != opencode-ai ] || name=opencode
  mkdir -p "$prefix/bin" "$prefix/lib/node_modules/$package/bin"
  echo "{\\"version\\": \\"$version\\"}" >"$prefix/lib/node_modules/$package/package.json"
  printf '#!/bin/sh\\necho %s\\n' "$version" >"$prefix/lib/node_modules/$package/bin/run"
  chmod 755 "$prefix/lib/node_modules/$package/bin/run"
  ln -s "../lib/node_modules/$package/bin/run" "$prefix/bin/$name"
done
"""


def build(engine: Daemon, home: Path, agents: str) -> "subprocess.CompletedProcess[str]":
    """Build with an npm that does as it is told, without a network."""
    programs = home / "programs"
    programs.mkdir(exist_ok=True)
    (programs / "npm").write_text(NPM)
    (programs / "npm").chmod(0o755)
    wheels = ("--base", BASE, "--wheels", engine.parts / "wheels")
    variables = {
        "QUARTERDECK_HOME": str(home),
        "NPM_SEEN": str(home / "seen"),
        "PATH": f"{programs}:{os.environ['PATH']}",
    }
    return subprocess.run(
        [*PROGRAM, "image", "build", "--agents", agents, "--tag", TAG, *wheels],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
    )


@pytest.mark.long
@pytest.mark.parametrize("engine", [DockerEngine], ids=["docker"], indirect=True)
async def test_agents_are_built_in(engine: Daemon, tmp_path: Path) -> None:
    configure(tmp_path, engine)
    for agents, reason in (("hermit", "There is no agent 'hermit'"), ("builtin", "is built in")):
        refused = build(engine, tmp_path, agents)
        assert refused.returncode != 0 and reason in refused.stderr
    built = build(engine, tmp_path, "codex, claude@1.2.3,opencode")
    assert built.returncode == 0, built.stderr
    plain, scripted = (tmp_path / "seen").read_text().splitlines()
    # Versions that were tested, for the engine's machine, and scripts only where they are needed.
    assert "--ignore-scripts" in plain and "--ignore-scripts" not in scripted
    presets = load_presets()
    codex, opencode = (presets[name].tested for name in ("codex", "opencode"))
    assert f"@openai/codex@{codex} @agentclientprotocol/claude-agent-acp@1.2.3" in plain
    assert f"opencode-ai@{opencode}" in scripted and "node-linux-" in plain
    assert all("--os=linux --cpu=" in line for line in (plain, scripted))
    with engine.client() as client:
        labels = client.get(f"/images/{TAG}/json").json()["Config"]["Labels"]
    assert labels["quarterdeck.agents"] == f"codex@{codex},claude@1.2.3,opencode@{opencode}"
    installed = Installation(engine, tmp_path, image=TAG)

    async def versions() -> dict[str, str]:
        listed = json.loads(await installed.qd("agents", "--json"))["agents"]
        return {one["id"]: one["version"] for one in listed if one["installed"]}

    expected = {"codex": codex, "claude": "1.2.3", "opencode": opencode}
    async with installed.serving():
        assert (await versions()).items() >= expected.items()
        await installed.qd("replica", "create", "--env", "global", "--name", "one", "--wait")
        said = await installed.qd("replica", "exec", "one", "--", "sh", "-c", "codex --version")
        assert said == f"{codex}\n"
        await installed.qd("replica", "rm", "one", "--yes")
    # The image is not asked again, until it is another one.
    known = tmp_path / "service/image-agents.json"
    known.write_text(known.read_text().replace(f'"{codex}"', '"9.9.9"'))
    async with installed.serving():
        assert (await versions())["codex"] == "9.9.9"
    configure(tmp_path, engine)
    async with installed.serving():
        assert not (await versions()).keys() & expected.keys()
