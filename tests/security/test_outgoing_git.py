"""Where git connects to: judged after resolution and at every redirection; and paths of the machine."""

import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from quarterdeck.local.addresses import AddressRefusedError, check_address, numeric_address
from quarterdeck.local.shared_threads import SharedThreads
from quarterdeck.sandboxes.errors import NotARepositoryError, SandboxError
from quarterdeck.sandboxes.port import RepositorySource
from quarterdeck.sandboxes.process import ProcessDriver
from quarterdeck.sandboxes.reach import network_options
from tests.fleet.conftest import World
from tests.service.people import bearing, key_of, settle
from tests.support.git import make_repository

pytestmark = pytest.mark.one_database

NEVER = (
    *("169.254.169.254", "0xa9fea9fe", "2852039166", "169.254.43518", "[fe80::1]"),
    *("[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "0.0.0.0", "0"),
    *("224.0.0.1", "[ff02::1]", "100.100.100.200", "[fd00:ec2::254]", "168.63.129.16", "[::]"),
    *("[fd20:ce::254]", "[fd00:42::42]", "[fd00:c1::a9fe:a9fe]", "[::ffff:0:169.254.169.254]"),
    # By translation on the way, and through a tunnel of Teredo: its server, and its client.
    *("[64:ff9b:1::a9fe:a9fe]", "[2001:0:a9fe:a9fe::1]", "[2001:0:808:808:0:0:5601:5601]"),
)
PRIVATE = (
    *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "[::1]", "[::127.0.0.1]"),
    *("[::ffff:127.0.0.1]", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "[fd12::1]"),
    *("[::ffff:0:127.0.0.1]", "[fec0::1]", "[5f00::1]", "[3fff::1]"),
)


@pytest.mark.parametrize("host", [*NEVER, *PRIVATE])
def test_every_form_of_an_address_is_judged(host: str) -> None:
    address = numeric_address(host)
    assert address is not None
    with pytest.raises(AddressRefusedError):
        check_address(address, private=False)
    if host in NEVER:
        with pytest.raises(AddressRefusedError):
            check_address(address, private=True)
    else:
        check_address(address, private=True)


@pytest.mark.parametrize("host", ["93.184.215.14", "[2606:2800:21f:cb07:6820:80da:af6b:8b2c]"])
def test_public_addresses_are_allowed(host: str) -> None:
    address = numeric_address(host)
    assert address is not None
    check_address(address, private=False)
    assert numeric_address("host.example") is None


class _Handler(SimpleHTTPRequestHandler):
    server: "_Server"

    def do_GET(self) -> None:
        self.server.requests.append(self.path)
        for start, target in self.server.moved.items():
            if self.path.startswith(start):
                self.send_response(302)
                self.send_header("Location", target + self.path.removeprefix(start))
                self.end_headers()
                return
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        return


class _Server(ThreadingHTTPServer):
    def __init__(self, directory: Path) -> None:
        super().__init__(("127.0.0.1", 0), partial(_Handler, directory=str(directory)))
        self.requests: list[str] = []
        self.moved: dict[str, str] = {}


@dataclass
class Served:
    """A repository over HTTP on loopback, and the requests that arrived."""

    server: _Server
    port: int = field(init=False)

    def __post_init__(self) -> None:
        self.port = self.server.server_port

    def url(self, host: str = "127.0.0.1", name: str = "shop.git") -> str:
        return f"http://{host}:{self.port}/{name}"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = make_repository(tmp_path / "shop")
    bare = tmp_path / "shop.git"
    subprocess.run(["git", "clone", "-q", "--bare", made, bare], check=True)
    subprocess.run(["git", "-C", bare, "update-server-info"], check=True)
    with _Server(tmp_path) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Served(server)
        server.shutdown()
        thread.join()


@pytest.fixture
def driver(world: World) -> ProcessDriver:
    world.context.sources = ProcessDriver(world.home)
    return world.context.sources


@pytest.mark.parametrize(
    "url",
    [
        *("https://ann:hush-4711@host.example/a.git", " HTTPS://ann:hush-4711@host.example/a"),
        *("https://hush-4711:@host.example/a", "ssh://git:hush-4711@host.example/a"),
        *("https://:hush-4711@host.example/a", "https://a:hush@4711@host.example/a"),
    ],
)
@pytest.mark.usefixtures("driver")
async def test_an_address_with_a_password_is_refused(world: World, url: str) -> None:
    client, skills = world.client, f"/v1/environments/{world.environment}/skills"
    for answer in (
        await client.post("/v1/replica/repositories", json={"url": url}),
        await client.post(skills, json={"name": "a", "slug": "a", "source": f"{url}#skills"}),
    ):
        assert (answer.status_code, "contains a password" in answer.text) == (400, True), (
            answer.text
        )
        assert "credential helpers" in answer.json()["details"]
        assert "hush" not in answer.text


async def test_a_user_in_an_address_is_no_password(driver: ProcessDriver) -> None:
    for url in ("https://ann@127.0.0.1/a", "ssh://git@127.0.0.1/a", "git@127.0.0.1:a/b:c@d"):
        await driver.require_source(url)


@pytest.mark.parametrize(
    "url",
    ["ssh://$(x)/a", "ssh://a;x;@h.example/a", "git+ssh://h|x/a", "ssh://git@x$IFS-esh/a"],
)
async def test_a_user_or_host_is_no_command(url: str) -> None:
    """A `ProxyCommand` of the user's SSH configuration gives both to a shell."""
    with pytest.raises(NotARepositoryError, match="characters of a shell"):
        await network_options(url, True)


@pytest.mark.parametrize(
    "url",
    [
        # curl skips further slashes, and connects to what follows them.
        *("http:///127.0.0.1:1/x", "https:////127.0.0.1/x", "http://", "http://:1/x", "ssh:///a"),
        # What follows the last @ is the host for SSH; others end the user at the first.
        *("ssh://a@b@127.0.0.1/x", "a@b@127.0.0.1:x", "@127.0.0.1:x", "ssh://@127.0.0.1/x"),
        *("http://a@b@127.0.0.1/x", "http://a@host.example@127.0.0.1/x", "a@:x", "ssh://a@/x"),
        *("http://host.example\\@127.0.0.1/x", "http://127.0.0.1\\.host.example/x"),
        *("http://127.0.0.1?@host.example/x", "http://127.0.0.1#@host.example/x"),
        *("http://127.0.0.1;x/x", "http://host.example /x", "http://host.example\x7f/x"),
        # Zones, brackets, and names that look like addresses.
        *("http://[fe80::1%25lo]/x", "http://[::1/x", "http://::1/x", "http://[[::1]]/x"),
        *("ssh://[a@127.0.0.1]/x", "ssh://[127.0.0.1]:22/x", "http://[v1.a]/x", "http://[::1]x/x"),
        *("http://127.0.0.1./x", "http://localhost./x", "http://127.0.0.1.5/x", "http://08.1/x"),
        *(
            "http://a..example/x",
            "http://.example/x",
            "http://1.2.3.0xffffff/x",
            "git@localhost.:x",
        ),
        # Ports that are read in several ways, or not at all.
        *("http://host.example:/x", "http://host.example:+80/x", "ssh://host.example:22x/x"),
        *("http://host.example:080000/x", "http://host.example:65536/x", "http://host.example:0/x"),
    ],
)
async def test_an_address_that_can_be_read_in_several_ways_is_refused(url: str) -> None:
    for private in (False, True):
        with pytest.raises(NotARepositoryError):
            await network_options(url, private)


@pytest.mark.parametrize(
    "url",
    [
        *("https://127.0.0.1", "https://127.0.0.1/team/shop.git", "HTTP://ann@127.0.0.1:8080/a@b"),
        *("https://[::1]:8443/x?y=a@b#c", "ssh://git@127.0.0.1:22/~ann/x", "git+ssh://127.1/a b"),
        *("git@127.0.0.1:team/shop.git", "127.0.0.1:srv/a:b@c", "https://a-b_c.invalid/x"),
        *("ssh://ann.lee+x@127.0.0.1/x", "https://oauth2-token_1.x~y@127.0.0.1/x", "ssh://[::1]/x"),
    ],
)
async def test_usual_addresses_are_accepted(url: str) -> None:
    await network_options(url, True)


async def test_a_host_without_a_name_is_not_connected_to(
    driver: ProcessDriver, served: Served
) -> None:
    for url in (
        *(
            f"http:///127.0.0.1:{served.port}/shop.git",
            f"http:////127.0.0.1:{served.port}/shop.git",
        ),
        f"http://a@b@127.0.0.1:{served.port}/shop.git",
    ):
        with pytest.raises(NotARepositoryError):
            await driver.connect_repository("r", url, private=False)
        with pytest.raises(NotARepositoryError):
            await driver.require_source(url, private=False)
    assert not served.server.requests


async def test_no_form_of_a_private_address_is_connected_to(
    driver: ProcessDriver, served: Served
) -> None:
    hosts = ("127.0.0.1", "127.1", "2130706433", "0x7f000001", "localhost", "[::ffff:127.0.0.1]")
    for number, host in enumerate(hosts):
        with pytest.raises(NotARepositoryError, match="may not be reached"):
            await driver.connect_repository(f"r{number}", served.url(host), private=False)
    for host in (
        "%31%32%37.0.0.1",
        "loc%61lhost",
        "127%2e0%2e0%2e1",
        "127.0.0.1%2f",
        "127。0。0。1",
    ):
        for scheme in ("http", "https", "ssh", "git+ssh"):
            with pytest.raises(NotARepositoryError, match="Write the host name in ASCII"):
                await driver.connect_repository(
                    "written", f"{scheme}://{host}:{served.port}/shop.git", private=False
                )
    for url in ("ssh://x.example%40127.0.0.1/a", "ssh://127.0.0.1%2f@x.example/a"):
        with pytest.raises(NotARepositoryError, match="Write the host name in ASCII"):
            await driver.connect_repository("written", url, private=False)
    for url in (f"ssh://git@127.1:{served.port}/shop.git", "git@127.0.0.1:shop.git"):
        with pytest.raises(NotARepositoryError, match="may not be reached"):
            await driver.connect_repository("ssh", url, private=False)
    for url in ("-oProxyCommand=x:y", "--upload-pack=x:y", "-c", " -x:y"):  # git would read options
        with pytest.raises(NotARepositoryError, match="neither a path nor a git URL"):
            await driver.connect_repository("option", url)
    # A helper of git's by name, of whatever address follows.
    for helper in ("ext", "http", "https", "ssh"):
        with pytest.raises(NotARepositoryError, match="not supported"):
            await driver.connect_repository("helper", f"{helper}::{served.url()}")
    for scheme in ("git", "ext", "ftp", "gopher"):
        with pytest.raises(NotARepositoryError, match="not supported"):
            await driver.connect_repository("other", f"{scheme}://127.0.0.1/x")
    assert not served.server.requests
    info = await driver.connect_repository("allowed", served.url("127.1"))
    assert info.default_branch == "main"


async def test_git_connects_to_the_address_that_was_judged(
    driver: ProcessDriver, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = served.url("rebound.invalid")
    usual, answers = socket.getaddrinfo, ["127.0.0.1"]

    def resolve(host: Any, *arguments: Any, **named: Any) -> Any:
        return usual(answers[0] if host == "rebound.invalid" else host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    # Only the service resolves the name; git could not.
    await driver.connect_repository("r", url)
    source = RepositorySource("r", "shop", url, "main")
    assert await driver.branches(source) == ["main"]
    served.server.requests.clear()
    answers[0] = "169.254.169.254"
    assert await driver.branches(source) == ["main"]  # from the mirror
    with pytest.raises(SandboxError, match="may not be reached"):
        await driver.require_ref(source, ["refs/heads/main"])
    assert not served.server.requests


async def test_git_uses_proxies_of_the_environment_unless_told_otherwise(
    world: World, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{served.port}")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    url = "http://unknown.invalid/shop.git"
    with pytest.raises(NotARepositoryError):
        await ProcessDriver(world.home, outgoing_proxy=False).connect_repository("r", url)
    assert not served.server.requests
    with pytest.raises(NotARepositoryError):
        await ProcessDriver(world.home).connect_repository("r", url, private=False)
    assert served.server.requests[0].startswith(url)


async def test_a_redirection_is_judged_like_the_first_address(
    driver: ProcessDriver, served: Served
) -> None:
    served.server.moved = {
        "/old.git": "/shop.git",
        "/away.git": "http://169.254.169.254/latest",
        "/round.git": "/round.git",
        "/users.git": f"http://a@b@127.0.0.1:{served.port}/shop.git",
        "/brackets.git": "http://[127.0.0.1/shop.git",
    }
    info = await driver.connect_repository("moved", served.url(name="old.git"))
    assert info.url == served.url()
    source = RepositorySource("moved", "shop", served.url(name="old.git"), "main")
    await driver.require_ref(source, ["refs/heads/main"])
    with pytest.raises(NotARepositoryError, match=r"169\.254\.169\.254 may not be reached"):
        await driver.connect_repository("away", served.url(name="away.git"))
    with pytest.raises(NotARepositoryError, match="name one host"):
        await driver.connect_repository("users", served.url(name="users.git"))
    with pytest.raises(NotARepositoryError, match="git cannot read"):
        await driver.connect_repository("brackets", served.url(name="brackets.git"))
    with pytest.raises(NotARepositoryError, match="too often"):
        await driver.connect_repository("round", served.url(name="round.git"))


async def test_a_mirror_remembers_whose_address_it_has(
    driver: ProcessDriver, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, answers = socket.getaddrinfo, ["93.184.215.14"]

    def resolve(host: Any, *arguments: Any, **named: Any) -> Any:
        return usual(answers[0] if host == "later.invalid" else host, *arguments, **named)

    await driver.connect_repository("r", served.url())
    mirror = driver._mirrors.path("r")
    config = (mirror / "config").read_text()
    assert "private = true" in config
    (mirror / "config").write_text(
        config.replace("private = true", "private = false").replace("127.0.0.1", "later.invalid")
    )
    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    answers[0] = "127.0.0.1"
    served.server.requests.clear()
    source = RepositorySource("r", "shop", served.url("later.invalid"), "main")
    await driver.branches(source)
    with pytest.raises(SandboxError, match="may not be reached"):
        await driver.require_ref(source, ["refs/heads/main"])
    assert not served.server.requests
    assert "private = false" in (mirror / "config").read_text()


@pytest.mark.usefixtures("driver")
async def test_names_are_looked_up_in_the_share_of_the_caller(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = await settle(world.context)
    key = bearing(await key_of(world.context, people.other, people.stranger))
    usual, groups = SharedThreads.run, list[str]()

    async def run(threads: SharedThreads, group: str, *work: Any, **named: Any) -> Any:
        groups.append(group)
        return await usual(threads, group, *work, **named)

    monkeypatch.setattr(SharedThreads, "run", run)
    body = {"url": "https://unknown.invalid/x"}
    refused = await world.client.post("/v1/replica/repositories", json=body, headers=key)
    assert refused.status_code == 400
    assert set(groups) == {people.other}


async def test_who_may_name_what(world: World, driver: ProcessDriver, served: Served) -> None:
    people = await settle(world.context)
    member = bearing(await key_of(world.context, people.organization, people.member))
    shared = bearing(await key_of(world.context, people.organization))
    secret = world.home.root / "private"
    make_repository(secret)
    own = world.home.skills / "pdf"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text("---\nname: pdf\n---\n")
    body = {"name": "mine", "scope": "user"}
    made = await world.client.post("/v1/environments", json=body, headers=member)
    assert made.status_code == 201, made.text
    skills = f"/v1/environments/{next(iter(made.json().values()))['id']}/skills"

    async def post(path: str, body: dict[str, Any], headers: Any = None) -> httpx.Response:
        return await world.client.post(path, json=body, headers=headers or {})

    for source in (str(secret), f"file://{secret}", "/root/.ssh#keys", "~/x"):
        answer = await post(skills, {"name": "s", "slug": "s", "source": source}, member)
        assert answer.status_code == 403, answer.text
        assert "path on the service's machine" in answer.json()["error"]
    refused = await post(skills, {"name": "s", "slug": "s", "source": served.url()}, member)
    assert (refused.status_code, "private" in refused.text) == (400, True)
    found = f"{world.home.skills}#pdf"
    assert (await post(skills, {"name": "p", "slug": "p", "source": found}, member)).is_success
    repositories = "/v1/replica/repositories"
    assert (await post(repositories, {"url": str(secret)}, member)).status_code == 403
    for headers in (shared,):
        answer = await post(repositories, {"url": served.url("localhost")}, headers)
        assert (answer.status_code, "may not be reached" in answer.text) == (400, True)
    assert not served.server.requests
    assert (await post(repositories, {"url": served.url()})).status_code == 201
    world.context.outgoing_private = True
    answer = await post(repositories, {"url": served.url("127.1")}, shared)
    assert answer.status_code == 201, answer.text
    world.context.outgoing_private = False
    assert (await post(repositories, {"url": served.url("127.0.1")})).status_code == 400
