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
        modules, code = loaded(service, *line.split())
        assert code == 0, line
        assert not modules & DRAWING, line


@pytest.mark.parametrize(
    "line",
    [
        "--version",
        "--help",
        "replica --help",
        "env --help",
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
