"""What verbs may load: a verb that does not draw is no slower for those that do."""

import json
import subprocess
import sys

import pytest

DRAWING = {"textual", "rich", "pygments", "fastapi", "starlette", "uvicorn", "sqlalchemy"}

RUN = """
import json, sys
from quarterdeck.cli.program import run
code = run(sys.argv[1:])
names = sorted({name.partition(".")[0] for name in sys.modules})
print("loaded:", json.dumps(names), file=sys.stderr, flush=True)
sys.exit(code)
"""


def loaded(installation, *arguments):
    done = subprocess.run(
        [sys.executable, "-P", "-c", RUN, *arguments],
        env=installation.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("loaded: "))
    return set(json.loads(line.partition(" ")[2])), done.returncode


LINES = [
    "--version",
    "--help",
    "status",
    "auth key",
    "env ls --json",
    "env show global",
    "credentials ls gemini",
    "repo ls",
    "automation create nine --env global --prompt p --cron 0@9@*@*@* --webhook",
    "automation ls",
    "automation show nine",
    "automation edit nine --prompt q",
    "automation run nine --follow",
    "automation runs nine",
    "automation rm -y nine",
    "replica ls --json",
    "replica create --name x --environment global --wait -m hello",
    "replica show x",
    "replica send x y --wait",
    "replica watch x --once",
    "replica exec x -- true",
    "replica sleep x",
    "replica wake x --wait",
    "replica rm -y x",
]


def test_a_verb_that_does_not_draw_loads_nothing_that_draws(service):
    for line in LINES:
        modules, code = loaded(service, *(word.replace("@", " ") for word in line.split()))
        assert code == 0, line
        assert not modules & DRAWING, line
    for left in service.qd("replica", "ls", "--json").json["replicas"]:  # of the automation
        service.qd("replica", "rm", "--yes", left["id"])


@pytest.mark.parametrize(
    "line",
    [
        "--version",
        "--help",
        "replica --help",
        "env --help",
        "automation --help",
        "env variables --help",
        "credentials set --help",
        "repo sets --help",
        "stop",
        "auth key",
    ],
)
def test_a_verb_that_does_not_call_loads_no_client(installation, line):
    modules, _ = loaded(installation, *line.split())
    assert not modules & {"httpx", "pydantic"}
