"""Pull requests and rewinds from the cockpit: the real service, real pushes, a double of the hosts."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quarterdeck.local.home import Home
from quarterdeck.store import pull_requests
from quarterdeck.transcript.blocks import NoteBlock
from quarterdeck.wire.chats import SendMessage
from quarterdeck.wire.environments import CreateEnvironment
from quarterdeck.wire.replicas import CreateReplica
from quarterdeck.wire.repositories import ConnectRepository
from tests.git.hosts_double import FAILED, HOST_A, HOST_B, PASSED, SHOP, HostsDouble, Refusal
from tests.support.git import make_repository
from tests.support.waiting import eventually
from tests.tui_shell.live import Desk, Installation

WORK = "```sh\ngit commit -q --allow-empty -m 'Hoist the sails'\n```"
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def _hosts() -> Iterator[HostsDouble]:
    with HostsDouble.running() as double:
        yield double


@pytest.fixture
def hosts(_hosts: HostsDouble) -> Iterator[HostsDouble]:
    yield _hosts
    _hosts.forget()


@pytest.fixture(scope="module")
def installation(_hosts: HostsDouble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A service that uses host A with a token, and host B without one."""
    base = tmp_path_factory.mktemp("served")
    base.chmod(0o755)
    checkout = make_repository(base / "shop")
    _hosts.serve(checkout, base)
    variables = _hosts.variables(base)
    del variables["QD_HOST_B_TOKEN"]
    made = Installation(base / "home", checkout)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        made.start()
    yield made
    made.stop()


async def replica(live: Installation, url: str, message: str = WORK, name: str = "alpha") -> None:
    """Make a replica of a repository at an address."""
    async with live.client() as client:
        known = {one.url: one.id for one in await client.repositories.list()}
        connected = known.get(url)
        if connected is None:
            connected = (await client.repositories.connect(ConnectRepository(url=url))).id
        bound = {one.repository_id: one.id for one in await client.environments.list()}
        environment = bound.get(connected)
        if environment is None:
            binding = CreateEnvironment(name=f"shop{len(bound)}", repository_id=connected)
            environment = (await client.environments.create(binding)).id
        wish = CreateReplica(name=name, environment_id=environment, message=message)
        await client.replicas.create(wish)


def url_at(hosts: HostsDouble, host: str) -> str:
    return f"{hosts.root(host)}/{SHOP}.git"


async def tell_service(live: Installation, hosts: HostsDouble) -> None:
    """What the service knows of host A is expired by a webhook."""
    await asyncio.to_thread(hosts.tell, Home(live.home).socket)


async def ready(desk: Desk, name: str = "alpha") -> None:
    """Wait until the agent has done its work, and the list takes the keys."""
    await desk.see(name)
    await eventually(lambda: desk.replica(name).done_at)
    await eventually(lambda: desk.focus == "ReplicaListView")


@pytest.mark.long
async def test_a_pull_request_is_opened_made_green_and_merged(
    live: Installation, hosts: HostsDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pull_requests, "REFRESH_SECONDS", 0.2)
    await replica(live, url_at(hosts, HOST_A))
    async with live.cockpit(size=(190, 40)) as desk:
        await ready(desk)
        await desk.press("G")
        await desk.see("Open a pull request of qd/alpha", "into main", "$ qd replica pr alpha")
        await desk.press("o")
        await desk.see("Open a pull request: alpha", "Description", "main")
        for _ in "alpha":
            await desk.press("backspace")
        await desk.write("Sails")
        await desk.press("ctrl+s")
        await eventually(lambda: hosts.pulls)
        (pull,) = hosts.pulls.values()
        number = f"#{pull.number}"
        await desk.see(f"Opened {number}: {hosts.root(HOST_A)}/{SHOP}/pull/{pull.number}")
        assert (pull.title, pull.body, pull.base) == ("Sails", "- Hoist the sails", "main")
        await desk.see("open, qd/alpha into main", "Merge into main")

        await desk.press("x")
        await desk.see("No failed checks.")
        pull.runs = [FAILED]
        pull.reviews = [{"user": {"id": 1}, "state": "CHANGES_REQUESTED"}]
        pull.threads = [False, True, False]
        await tell_service(live, hosts)
        await desk.press("r")
        await desk.see("✗ 1 check failed", "lint  https://ci.invalid/lint", "changes requested")
        await desk.see("2 unresolved threads")
        await desk.press("x")
        await desk.see("Asked the agent to fix lint.")
        await desk.press("escape")
        await desk.see("changes requested, 2 unresolved threads,", "✗ 1 check failed; x asks")
        await desk.press("escape")
        # In the row and in the head line.
        await desk.see(f"↑1 {number} ✗1 !2 ", f"alpha · {number} open, ✗ 1 check failed, changes")
        await desk.see("These checks of pull request", "lint: https://ci.invalid/lint")

        await desk.press("3")
        await desk.see(f"{number} ✗ 1 check failed: F asks the agent to fix them")
        await desk.press("F")
        await desk.see("Asked the agent to fix lint.")

        pull.runs, pull.reviews, pull.threads = [PASSED], [], []
        await tell_service(live, hosts)
        await desk.see(f"{number} ✓ ", "checks passed")

        await desk.press("escape", "P")
        await desk.see("✓ checks passed")
        await desk.press("o")
        await desk.see("A pull request is open already.")
        await desk.press("s")
        await desk.see(f"Merge {number} of shop?", "as one commit")
        await desk.press("n")
        await desk.miss("as one commit.")
        assert not hosts.requests("PUT")
        await desk.press("s", "y")
        await desk.see(f"Merged {number} into main.", "The pull request is merged")
        (asked,) = hosts.requests("PUT")
        assert asked.body["merge_method"] == "squash"
        await desk.press("escape")
        await desk.see(f"{number} merged")


@pytest.mark.long
@pytest.mark.parametrize(
    ("host", "said"),
    [
        (HOST_B, ("No token is configured for host-b.", "QD_HOST_B_TOKEN")),
        ("", ("The source of shop is a local path", "qd replica fetch")),
    ],
)
async def test_why_there_are_no_pull_requests_is_said(
    live: Installation, hosts: HostsDouble, host: str, said: tuple[str, ...]
) -> None:
    await replica(live, url_at(hosts, host) if host else str(live.repository))
    async with live.cockpit(size=(80, 24)) as desk:
        await ready(desk)
        await desk.press("G")
        await desk.see("Open a pull request")
        if host:
            await desk.press("o")
            await desk.see(said[0])
        else:
            await desk.see("The source is a directory")
        await desk.press("escape")
        await desk.miss("Get changes: alpha")
        await desk.press("P")
        await desk.see(said[0].split(".")[0][:20])


@pytest.mark.long
async def test_a_host_that_limits_requests_says_until_when(
    live: Installation, hosts: HostsDouble
) -> None:
    await replica(live, url_at(hosts, HOST_A), name="limited")
    async with live.cockpit(size=(120, 40)) as desk:
        await ready(desk, "limited")
        await desk.press("P")
        await desk.see("Open a pull request: limited")
        hosts.refusals.append(Refusal(429, None, {"Retry-After": "1"}, method="POST"))
        await desk.press("ctrl+s")
        await desk.see("host-a limits requests. Try again after", "UTC")
        assert not hosts.pulls
        await desk.press("escape")
        await desk.miss("Open a pull request: limited")


@pytest.mark.long
async def test_the_palette_and_the_help_have_it(live: Installation) -> None:
    await replica(live, str(live.repository), name="helped")
    async with live.cockpit(size=(120, 50)) as desk:
        await ready(desk, "helped")
        await desk.press("question_mark")
        await desk.see("Pull request: open one, or show it", "Fix failed checks", "Rewind files")
        await desk.press("escape", "ctrl+p", *"fixfailed", "enter")
        await desk.see("The source of shop is a local")
        await desk.press("ctrl+p", *"pullreq", "enter")
        await desk.see("Pull requests of helped")
        await desk.press("ctrl+p", *"rewind", "enter")
        await desk.see("Rewind files: helped", "enter rewind")


CHANGE = "```sh\necho changed >> README\necho new > new\n```"


async def contents(live: Installation, desk: Desk) -> str:
    async with live.client() as client:
        done = await client.exec.run(desk.replica("alpha").id, "cd shop && git status --porcelain")
    return done.output


def rewinds(desk: Desk) -> list[str]:
    """Return the states before which the open chat says that files were rewound."""
    (chat,) = desk.replica("alpha").chats.values()
    blocks = chat.transcript.blocks if chat.transcript else ()
    told = [block.text for block in blocks if isinstance(block, NoteBlock)]
    return [text.removeprefix("Rewound the files to the state before the ") for text in told]


@pytest.mark.long
async def test_files_are_rewound_to_a_message_and_back(live: Installation, tmp_path: Path) -> None:
    await replica(live, str(live.repository), CHANGE)
    async with live.cockpit(size=(100, 30)) as desk:
        await ready(desk)
        await eventually(lambda: not desk.replica("alpha").works)
        await desk.press("enter")
        await eventually(lambda: desk.focus == "Composer")
        await desk.see("echo changed")
        await desk.press("tab")
        await eventually(lambda: desk.focus == "ChatTranscript")
        await desk.press("left_square_bracket", "R")
        await desk.see("Rewind to ", "files and branches of shop", "can be undone")
        await desk.see("Takes back +", " in README, new.", "The agent is informed with your next")
        await desk.press("n")
        await desk.miss("can be undone")
        assert "new" in await contents(live, desk)
        await desk.press("enter", "y")
        await desk.see("Restored the files of", "u undoes it.", "Before a rewind")
        assert await contents(live, desk) == ""
        await eventually(lambda: rewinds(desk) == ['message "echo changed >> README"'])
        await desk.press("t")
        await desk.see("inform the agent: no")
        await desk.press("u")
        await desk.see("Undone: files restored")
        assert "new" in await contents(live, desk)
        await desk.press("escape")
        await desk.miss("Before a rewind")
        assert len(rewinds(desk)) == 1

        async with live.client() as client:
            waiting = "```sh\nuntil [ -e go ]; do sleep 0.02; done\n```"
            state = desk.replica("alpha")
            chat = next(iter(state.chats))
            await client.messages.send(state.id, SendMessage(message=waiting, chat_id=chat))
            await eventually(lambda: state.works)
            await desk.press("escape")
            await desk.press("R")
            await desk.see("Rewind files: alpha", "Before a rewind")
            await desk.press("enter", "y")
            await desk.see("The agent is working. Interrupt the turn before you rewind.")
            await client.exec.run(state.id, "touch shop/go")
