"""What verbs may load: a verb that does not draw is no slower for those that do."""

import json
import subprocess
import sys

import pytest

DRAWING = {"textual", "rich", "pygments", "fastapi", "starlette", "uvicorn", "sqlalchemy", "mcp"}

RUN = """
import json, sys
from quarterdeck.cli.program import run
for line in json.loads(sys.argv[1]):
    code = run(line)
    names = sorted({name.partition(".")[0] for name in sys.modules} | sys.modules.keys())
    print("loaded:", json.dumps([names, code]), file=sys.stderr, flush=True)
"""


def loaded(installation, *lines):
    """What is loaded after each of the verbs, which one interpreter runs in turn; and its code."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", RUN, json.dumps(lines)],
        env=installation.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    told = [line for line in done.stderr.splitlines() if line.startswith("loaded: ")]
    assert len(told) == len(lines), done.stderr
    ends = [json.loads(line.partition(" ")[2]) for line in told]
    return [(set(names), code) for names, code in ends]


LINES = [
    "--version",
    "--help",
    "status",
    "config show",
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
    "replica create --name x --env global --wait -m hello",
    "--plain",
    "replica chats x",
    "replica rename x title",
    "replica interrupt x",
    "replica permissions x --allow ls",
    "replica show x",
    "replica send x y --wait",
    "replica watch x --once",
    "replica exec x -- true",
    "replica sleep x",
    "replica wake x --wait",
    "replica rm -y x",
]


@pytest.mark.long
def test_a_verb_that_does_not_draw_loads_nothing_that_draws(service):
    words = [[word.replace("@", " ") for word in line.split()] for line in LINES]
    for line, (modules, code) in zip(LINES, loaded(service, *words), strict=True):
        assert code == 0, line
        assert not modules & DRAWING, line
    for left in service.qd("replica", "ls", "--json").json["replicas"]:  # of the automation
        service.qd("replica", "rm", "--yes", left["id"])


def test_a_verb_loads_no_resource_that_it_does_not_call(service):
    ((modules, code),) = loaded(service, ["replica", "ls"])
    ours = {name for name in modules if name.startswith("quarterdeck.client.")}
    assert code == 0 and "quarterdeck.client.replicas" in ours
    assert not ours & {f"quarterdeck.client.{name}" for name in ("automations", "events", "files")}


LOCAL = (
    "--version",
    "--help",
    "replica --help",
    "env --help",
    "automation --help",
    "env variables --help",
    "credentials set --help",
    "repo sets --help",
    "mcp --help",
    "stop",
    "auth key",
    "config path",
    "completion bash",
)


def test_a_verb_that_does_not_call_loads_no_client(installation):
    ends = loaded(installation, *(line.split() for line in LOCAL))
    for line, (modules, _) in zip(LOCAL, ends, strict=True):
        assert not modules & {"httpx", "pydantic"}, line


ALONE = """
import sys
from quarterdeck.cli import main
sys.argv = ["qd"]
try:
    main()
except SystemExit as end:
    print(end.code, "quarterdeck.cli.cockpit" in sys.modules, "click" in sys.modules)
"""


def test_the_cockpit_opens_without_the_library_for_the_command_line():
    assert printed(ALONE) == ["2 True False"]  # there is no terminal


def test_the_first_frame_needs_no_client_and_the_list_no_form():
    """What the cockpit loads before its first frame, and then for the main screen."""
    script = (
        "import sys, quarterdeck.cli.cockpit, quarterdeck.tui.app\n"
        "print([n for n in sys.modules if n in ('httpx', 'pydantic', 'quarterdeck.store.drafts')])\n"
        "import quarterdeck.tui.screens.main\n"
        f"print([n for n in sys.modules if n.startswith({NOT_IN_THE_LIST!r})])\n"
    )
    assert printed(script) == ["[]", "[]"]


NOT_IN_THE_LIST = (
    "quarterdeck.tui.forms.",
    "quarterdeck.tui.terminal.",
    "quarterdeck.tui.kit.dialogs",
    "quarterdeck.tui.kit.rows",
    "quarterdeck.tui.panes.chat_dialogs",
    "quarterdeck.tui.pictures",
    "quarterdeck.tui.screens.page",
    "quarterdeck.local.checkout",
    "quarterdeck.store.git",
    *(
        f"quarterdeck.wire.{name}"
        for name in ("environment", "repositories", "files", "setup", "terminals")
    ),
    "markdown_it",
)

BUILT = """
import {module}
from pydantic import BaseModel
kinds = [BaseModel]
for kind in kinds:
    kinds += kind.__subclasses__()
kinds = [kind for kind in kinds if kind.__module__.startswith("quarterdeck")]
print(len(kinds) > 20, [kind.__name__ for kind in kinds if kind.__pydantic_complete__])
"""


@pytest.mark.parametrize("module", ["quarterdeck.tui.screens.main", "quarterdeck.client.replicas"])
def test_models_are_built_when_they_are_first_used(module):
    assert printed(BUILT.format(module=module)) == ["True []"]


def printed(script):
    """The lines that a new interpreter prints."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, timeout=120
    )
    assert not done.returncode, done.stderr
    return done.stdout.splitlines()


LATER = """
import sys
from quarterdeck.loading import load_later
load_later("ssl", "urllib.request")
import ssl
import urllib.request
print("_ssl" in sys.modules, "http.client" in sys.modules)
from ssl import SSLContext
print(ssl.SSLContext is SSLContext, urllib.request.Request.__module__)
"""


def test_a_module_is_loaded_when_something_in_it_is_used():
    assert printed(LATER) == ["False False", "True urllib.request"]


TYPES = """
from quarterdeck.loading import load_later
load_later("textual.types", light="textual._types")
from textual._types import CallbackType
from textual.types import CallbackType as Passed
print(Passed is CallbackType)
from textual.types import DirEntry
import textual.types
print(DirEntry is textual.types.DirEntry, textual.types.DirEntry.__module__)
"""


def test_a_light_module_has_names_of_the_one_that_is_loaded_later():
    assert printed(TYPES) == ["True", "True textual.widgets._directory_tree"]


PALETTE = """
import sys
import quarterdeck.cli.cockpit
quarterdeck.cli.cockpit.load_less()
import quarterdeck.tui.app
import quarterdeck.tui.screens.main
print([n for n in ("_button", "_option_list", "_tree") if f"textual.widgets.{n}" in sys.modules])
from textual.command import CommandPalette, Matcher
from textual.fuzzy import Matcher as Known
print(CommandPalette is object, Matcher is Known)
"""


def test_the_cockpit_does_not_load_the_palette_of_textual():
    assert printed(PALETTE) == ["[]", "True True"]


TLS = """
import sys
from quarterdeck.loading import load_tls_later
load_tls_later()
import asyncio, hashlib, random, httpx
async def main():
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert not await reader.read()
        writer.close()
asyncio.run(main())
print([name for name in ("_ssl", "_hashlib") if name in sys.modules], len(hashlib.sha256().digest()))
from ssl import SSLContext, create_default_context
print(type(create_default_context()) is asyncio.base_events.ssl.SSLContext is SSLContext)
print(issubclass(asyncio.sslproto.SSLProtocol, asyncio.BufferedProtocol))
"""


def test_tls_is_loaded_when_it_is_used():
    assert printed(TLS) == ["[] 32", "True", "True"]


CORE = """
import typing, typing_extensions
kept = typing.TypedDict, typing_extensions.TypedDict
from quarterdeck.loading import leave_plugins_out, load_pydantic_core
leave_plugins_out()
load_pydantic_core()
from pydantic import BaseModel, TypeAdapter
from pydantic_core import core_schema
assert kept == (typing.TypedDict, typing_extensions.TypedDict)
class Point(typing_extensions.TypedDict, total=False):
    x: int
class Model(BaseModel):
    point: Point
print(Model.model_validate_json('{"point": {"x": "1"}}'), typing_extensions.is_typeddict(Point))
print(Model.model_json_schema()["$defs"]["Point"]["properties"]["x"]["type"])
print(TypeAdapter(list[Point]).dump_json([{"x": 1}]), typing.is_typeddict(core_schema.StringSchema))
"""


def test_the_core_of_pydantic_is_loaded_without_the_types_of_its_schemas():
    assert printed(CORE) == ["point={'x': 1} True", "integer", """b'[{"x":1}]' False"""]


PLUGINS = """
import sys
from quarterdeck.loading import leave_plugins_out
leave_plugins_out()
from pydantic import BaseModel
class Model(BaseModel):
    number: int
assert Model(number="1").number == 1
print("importlib.metadata" in sys.modules)
"""


@pytest.mark.parametrize(
    ("given", "searched"), [({}, False), ({"PYDANTIC_DISABLE_PLUGINS": "no"}, True)]
)
def test_plugins_of_pydantic_are_searched_for_when_asked(given, searched):
    done = subprocess.run(
        [sys.executable, "-P", "-c", PLUGINS], env=given, capture_output=True, text=True
    )
    assert done.stdout == f"{searched}\n", done.stderr
