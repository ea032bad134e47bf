"""`qd agents search`: agents of the Agent Client Protocol's registry, as tables for `config.toml`.

A file in the registry's format ships with this program. `--refresh URL` stores a newer one, which is
then read instead. `_meta.quarterdeck` of an entry holds keys of the table that the registry has no
field for, or the agent of this program that it is; only those of the shipped file count.
"""

import asyncio
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, cast

import click
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from quarterdeck.cli.errors import FailedError
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import print_json, print_message, print_table, print_text, safe_line
from quarterdeck.cli.target import own_home
from quarterdeck.local.addresses import without_password
from quarterdeck.local.files import read_file, write_file
from quarterdeck.wire.agents import PROVIDER_PATTERN
from quarterdeck.wire.base import first_error

FILE = "agent-registry.json"
LARGEST = 8 << 20
"""Bytes of a registry."""
SECONDS = 30.0
OWN = "quarterdeck"


class _Shape(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Package(_Shape):
    package: Annotated[
        str,
        StringConstraints(
            pattern=r"^(@[a-z0-9][\w.-]*/)?[A-Za-z0-9][\w.-]*(\[[\w,.-]+\])?((@|==)[A-Za-z0-9][\w.+!-]*)?$"
        ),
    ]
    """A name, of npm or of Python's index, and perhaps a version: no path, address or option."""
    args: list[str] = []
    env: dict[str, str] = {}


class _Program(_Shape):
    archive: str = ""
    cmd: str
    args: list[str] = []
    env: dict[str, str] = {}


class _Distribution(_Shape):
    npx: _Package | None = None
    uvx: _Package | None = None
    binary: dict[str, _Program] = {}


class RegistryAgent(_Shape):
    """An entry of the registry."""

    id: Annotated[str, StringConstraints(pattern=PROVIDER_PATTERN)]
    name: str
    version: str = ""
    description: str = ""
    distribution: _Distribution = _Distribution()
    meta: dict[str, Any] = Field(alias="_meta", default={})

    def table(self) -> dict[str, Any]:
        """Return the keys of its table in `config.toml`."""
        kinds = self.distribution
        if kinds.npx is not None:
            command, env = ["npx", "-y", kinds.npx.package, *kinds.npx.args], kinds.npx.env
        elif kinds.uvx is not None:
            command, env = ["uvx", kinds.uvx.package, *kinds.uvx.args], kinds.uvx.env
        elif program := next(iter(kinds.binary.values()), None):
            command, env = [Path(program.cmd).name, *program.args], program.env
        else:
            command, env = [self.id], {}
        known: dict[str, Any] = {
            "name": self.name,
            "command": command,
            **({"environment": env} if env else {}),
        }
        if kinds.npx or kinds.uvx:
            package = f"npm install -g {kinds.npx.package}" if kinds.npx else ""
            known["install"] = (
                package or f"uv tool install {kinds.uvx.package if kinds.uvx else ''}"
            )
        return {**known, **self._own}

    @property
    def _own(self) -> dict[str, Any]:
        own = self.meta.get(OWN)
        return cast("dict[str, Any]", own) if isinstance(own, dict) else {}

    @property
    def preset(self) -> str | None:
        """The agent of this program that it is."""
        return self._own.get("preset")


class _Registry(_Shape):
    agents: list[RegistryAgent]


def parse_registry(text: str | bytes) -> list[RegistryAgent]:
    """Return the entries of a registry.

    Raises:
        FailedError: it is none.
    """
    try:
        return _Registry.model_validate_json(text).agents
    except ValidationError as error:
        raise FailedError(f"Not a registry of agents: {first_error(error)}.") from error


@click.command(name="search")
@click.option("--refresh", "url", metavar="URL", help="Store the registry of this address first.")
@click.argument("words", nargs=-1)
@common_options
def search(common: Common, words: tuple[str, ...], url: str | None) -> None:
    """Search the registry of agents; a single match is printed as a table for config.toml."""
    stored = own_home().root / FILE
    if url is not None:
        text = asyncio.run(download(url))
        parse_registry(text)
        write_file(stored, text)
    known = parse_registry(_shipped())
    if stored.exists():
        own = {agent.id: agent.meta for agent in known}
        newer = _read_stored(stored)
        known = [agent.model_copy(update={"meta": own.get(agent.id, {})}) for agent in newer]
    found = [agent for agent in known if _matches(agent, words)]
    if common.json:
        print_json({"agents": [{"id": agent.id, **agent.table()} for agent in found]})
        return
    if not found:
        raise FailedError("No agent of the registry matches.", "Leave out the words to see all.")
    rows = [[agent.id, agent.name, agent.version, safe_line(agent.description)] for agent in found]
    print_table(["ID", "NAME", "VERSION", "DESCRIPTION"], rows)
    if len(found) == 1:
        _print_way(found[0])


def _read_stored(path: Path) -> list[RegistryAgent]:
    """Return the agents of a registry that was stored earlier.

    Raises:
        FailedError: it cannot be read.
    """
    try:
        return parse_registry(read_file(path).decode())
    except (OSError, UnicodeDecodeError, FailedError) as e:
        raise FailedError(
            f"The registry in {path} cannot be read: {e}", "Remove it, or use --refresh URL."
        ) from e


def _print_way(agent: RegistryAgent) -> None:
    if agent.preset is not None:
        print_message(f"It is known as {agent.preset}: qd agents install {agent.preset}.")
        return
    import tomlkit  # slow to import

    print_message("Install it, add this to config.toml, and start the service again:")
    print_text(tomlkit.dumps({"agents": {agent.id: agent.table()}}).strip())


def _matches(agent: RegistryAgent, words: tuple[str, ...]) -> bool:
    text = f"{agent.id} {agent.name} {agent.description}".lower()
    return all(word.lower() in text for word in words)


def _shipped() -> str:
    return files("quarterdeck.agents").joinpath("registry.json").read_text("utf-8")


async def download(url: str) -> bytes:
    """Return the content of an address.

    Raises:
        FailedError: it cannot be read, is too large, or redirects from https to http.
    """
    import httpx  # rarely needed

    from quarterdeck.service.http_client import AnswerError, open_client, read_answer

    async def stay_encrypted(request: httpx.Request) -> None:
        if url.lower().startswith("https:") and request.url.scheme != "https":
            raise FailedError("The registry's address redirects to one without TLS.")

    try:
        async with open_client(SECONDS) as client:
            client.event_hooks = {"request": [stay_encrypted]}
            async with client.stream("GET", url, follow_redirects=True) as answer:
                answer.raise_for_status()
                return await read_answer(answer, LARGEST)
    except (httpx.HTTPError, httpx.InvalidURL, AnswerError) as error:
        reason = without_password(f"{url}: {error}.")
        raise FailedError(f"The registry cannot be read from {reason}") from error
