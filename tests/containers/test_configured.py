"""What the configuration file says about containers, where no Docker Engine is needed."""

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from quarterdeck.sandboxes.image import build_context, engine_requirements

PROGRAM = (sys.executable, "-I", "-m", "quarterdeck")
NOWHERE = "unix:///nowhere/docker.sock"


def qd(table: str, *words: str) -> "subprocess.CompletedProcess[str]":
    with TemporaryDirectory(prefix="qd-") as home:
        (Path(home) / "config.toml").write_text(f"[sandboxes]\n{table}\n")
        return subprocess.run(
            [*PROGRAM, *words],
            env={**os.environ, "QUARTERDECK_HOME": home},
            capture_output=True,
            text=True,
            timeout=120,
        )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('driver = "lxc"', "sandboxes.driver"),
        ('driver = "docker"\naddress = "tcp://10.0.0.1:2375"', "sandboxes.address"),
        ('driver = "docker"\nhome_url = "deck.example"', "sandboxes.home_url"),
        ('driver = "docker"\nswarm = true', "sandboxes.swarm"),
    ],
)
def test_the_service_does_not_start_with_what_cannot_work(table: str, said: str) -> None:
    done = qd(table, "serve")
    assert done.returncode != 0
    assert said in done.stderr and "Traceback" not in done.stderr


def test_the_doctor_says_that_docker_does_not_answer() -> None:
    done = qd(f'driver = "docker"\naddress = "{NOWHERE}"', "doctor", "--json")
    found: dict[str, Any] = {one["name"]: one for one in json.loads(done.stdout)["checks"]}
    assert done.returncode == 1 and found["docker"]["level"] == "fail"
    assert NOWHERE in found["docker"]["message"]


def test_an_image_cannot_be_built_without_docker() -> None:
    done = qd(f'driver = "docker"\naddress = "{NOWHERE}"', "image", "build")
    assert done.returncode == 1 and NOWHERE in done.stderr


def test_an_image_has_the_engine_and_not_the_service() -> None:
    with tarfile.open(fileobj=io.BytesIO(build_context())) as tar:
        names = set(tar.getnames())
    assert {"Dockerfile", "requirements.txt", "wheels"} <= names
    assert "quarterdeck/engine/dial_home.py" in names and "quarterdeck/cli/git_remote.py" in names
    packages = {Path(name).parts[1] for name in names if name.startswith("quarterdeck/")}
    assert not packages & {"tui", "service", "store", "transcript"}
    required = " ".join(engine_requirements())
    assert "pydantic" in required and "websockets" in required and "fastapi" not in required


def test_nothing_for_containers_is_loaded_where_none_are_chosen() -> None:
    script = (
        "import sys, quarterdeck.cli.serve, quarterdeck.cli.doctor, quarterdeck.engine.daemon\n"
        "import quarterdeck.service.server, quarterdeck.sandboxes.process\n"
        "print({name.partition('.')[0] for name in sys.modules}"
        " & {'websockets', 'aiodocker', 'aiohttp'})"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
