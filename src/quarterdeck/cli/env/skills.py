"""`qd env skills`."""

from typing import TYPE_CHECKING

import click

from quarterdeck.cli.env.find import environment_argument, find_environment
from quarterdeck.cli.errors import AmbiguousName, NotDone
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put_json, say, table
from quarterdeck.cli.running import with_client

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.environment_skills import CreateSkill, EnvironmentSkill, FoundSkill


@click.group(name="skills")
def command() -> None:
    """Skills that an environment installs into its replicas."""


@command.command(name="ls")
@environment_argument
@common_options
def ls(common: Common, environment: str) -> None:
    """List the skills of an environment."""

    async def read(client: "Client") -> "list[EnvironmentSkill]":
        return await client.skills.list((await find_environment(client, environment)).id)

    found = with_client(common, read)
    if common.json:
        put_json({"environment_skills": [one.model_dump(mode="json") for one in found]})
        return
    table(["SLUG", "NAME", "SOURCE"], ([one.slug, one.name, one.source] for one in found))


@command.command(name="search")
@click.argument("query", metavar="[QUERY]", default="")
@common_options
def search(common: Common, query: str) -> None:
    """Search the service's registries; without a query everything in them is listed."""

    async def read(client: "Client") -> "list[FoundSkill]":
        return await client.skills.search(query)

    found = with_client(common, read)
    if common.json:
        put_json({"skills": [one.model_dump(mode="json") for one in found]})
        return
    if not found:
        say("No skill of the service's registries fits.")
        return
    rows = ([one.slug, one.source, one.description or one.name] for one in found)
    table(["SLUG", "SOURCE", "DESCRIPTION"], rows)


@command.command(name="add")
@environment_argument
@click.argument("skill", metavar="SKILL")
@click.option("--slug", metavar="SLUG", help="Its directory's name, when SKILL is a source.")
@click.option("--name", metavar="NAME", help="What to call it; by default its slug.")
@common_options
def add(common: Common, environment: str, skill: str, slug: str | None, name: str | None) -> None:
    """Enable a skill: a slug that `search` finds, or a source (PATH#FOLDER, URL#FOLDER)."""
    from quarterdeck.wire.environment_skills import CreateSkill

    async def write(client: "Client") -> "EnvironmentSkill":
        of = (await find_environment(client, environment)).id
        if "/" in skill:
            guessed = slug or skill.rstrip("/#").replace("#", "/").rsplit("/", 1)[-1]
            wanted = CreateSkill(name=name or guessed, slug=guessed, source=skill)
        else:
            wanted = await _registered(client, skill, name)
        return await client.skills.add(of, wanted)

    one = with_client(common, write)
    if common.json:
        put_json({"environment_skill": one.model_dump(mode="json")})
    else:
        say(f"{one.slug} is enabled, from {one.source}.")


@command.command(name="rm")
@environment_argument
@click.argument("slug", metavar="SLUG")
@common_options
def rm(common: Common, environment: str, slug: str) -> None:
    """Take a skill away; replicas keep it until they start again."""

    async def remove(client: "Client") -> None:
        of = (await find_environment(client, environment)).id
        for one in await client.skills.list(of):
            if slug in (one.slug, str(one.id)):
                await client.skills.delete(of, one.id)
                return
        raise NotDone(f"There is no skill {slug!r}.", f"See: qd env skills ls {environment}.")

    with_client(common, remove)
    say(f"{slug} is gone.")
    if common.json:
        put_json({"success": True})


async def _registered(client: "Client", slug: str, name: str | None) -> "CreateSkill":
    from quarterdeck.wire.environment_skills import CreateSkill

    found = [one for one in await client.skills.search(slug) if one.slug == slug]
    if not found:
        raise NotDone(f"No registry has a skill {slug!r}.", "Look with: qd env skills search.")
    if len(found) > 1:
        sources = ", ".join(one.source for one in found)
        raise AmbiguousName(f"{slug!r} is in several places: {sources}.", "Give one of them.")
    return CreateSkill(name=name or found[0].name, slug=slug, source=found[0].source)
