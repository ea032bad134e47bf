"""`qd keys`, `qd credentials` and `qd notify`: API keys, provider keys, notifications."""

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar
from uuid import UUID

import click

from quarterdeck.cli.clients import run_with, run_with_token, with_client
from quarterdeck.cli.errors import FailedError, UsageError
from quarterdeck.cli.options import Common, common_options, read_secret
from quarterdeck.cli.output import (
    ago,
    print_json,
    print_message,
    print_success,
    print_table,
    print_text,
)
from quarterdeck.cli.program import LazyGroup, Verb
from quarterdeck.cli.target import find_target

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.client.account import KeysApi
    from quarterdeck.wire.account import ApiKey
    from quarterdeck.wire.agents import CredentialSet, CredentialStatus


KEY_VERBS = {
    "ls": Verb(__name__, "List keys.", "list_keys"),
    "create": Verb(__name__, "Create a key and print it, once.", "create_key"),
    "rm": Verb(__name__, "Revoke keys immediately.", "remove_keys"),
}


@click.group(name="keys", cls=LazyGroup, verbs=KEY_VERBS)
def keys() -> None:
    """Create, list and revoke API keys: your own, or with --organization all."""


CREDENTIAL_VERBS = {
    "ls": Verb(__name__, "List providers and whether they have a key.", "list_credentials"),
    "set": Verb(__name__, "Set a key, from stdin or a prompt.", "set_credential"),
    "rm": Verb(__name__, "Remove a key.", "remove_credential"),
}


@click.group(name="credentials", cls=LazyGroup, verbs=CREDENTIAL_VERBS)
def credentials() -> None:
    """Manage provider credentials: your personal ones come first, then the organization's.

    Default: personal. A replica gets the current ones when it starts.
    """


Result = TypeVar("Result")

_organization_option = click.option(
    "--organization", is_flag=True, help="The organization's keys, for its admins."
)


def _with_keys(
    common: Common,
    organization: bool,
    work: Callable[["KeysApi"], Awaitable[Result]],
    create_token: bool = False,
) -> Result:
    """Run the work on the organization's or the person's keys.

    Creating a personal key needs a token, so a new one is used.
    """
    target = find_target(common.profile)

    async def shared(client: "Client") -> Result:
        return await work(client.organization_api_keys)

    async def own(client: "Client") -> Result:
        return await work(client.api_keys)

    if organization:
        return run_with(target, shared)
    return run_with_token(target, own) if create_token else run_with(target, own)


@click.command(name="ls")
@_organization_option
@common_options
def list_keys(common: Common, organization: bool) -> None:
    """List keys, newest first."""

    async def read(keys: "KeysApi") -> "list[ApiKey]":
        return [key async for key in keys.all()]

    keys_ = _with_keys(common, organization, read)
    if common.json:
        print_json({"api_keys": [k.model_dump(mode="json") for k in keys_], "total": len(keys_)})
        return
    if not keys_:
        print_message("No keys. Create one with: qd keys create NAME.")
        return
    print_table(["NAME", "KEY", "CREATED", "USED", "ID"], map(_key_row, keys_))


def _key_row(key: "ApiKey") -> list[str]:
    used = "never" if key.last_used_at is None else ago(key.last_used_at)
    return [key.name, f"{key.key_prefix}...", ago(key.created_at), used, str(key.id)]


@click.command(name="create")
@_organization_option
@click.argument("name", metavar="NAME")
@common_options
def create_key(common: Common, organization: bool, name: str) -> None:
    """Create a key and print it. It is shown once and stored as a hash."""
    api_key = _with_keys(common, organization, lambda keys: keys.create(name), create_token=True)
    if common.json:
        print_json(api_key)
        return
    print_text(api_key.key)
    print_message("Copy it now; it is not shown again.")


@click.command(name="rm")
@_organization_option
@click.argument("keys", metavar="KEY...", nargs=-1, required=True)
@common_options
def remove_keys(common: Common, organization: bool, keys: tuple[str, ...]) -> None:
    """Revoke keys immediately. KEY is a name, an id, or what ls shows of the key itself."""

    async def remove(api: "KeysApi") -> list[UUID]:
        known = {key.id: (key.name, key.key_prefix) async for key in api.all()}
        key_ids = [_find_key(wanted, known) for wanted in keys]
        for key_id in dict.fromkeys(key_ids):
            await api.delete(key_id)
            print_message(f"{known[key_id][0]} is revoked.")
        return key_ids

    key_ids = _with_keys(common, organization, remove)
    if common.json:
        print_json({"success": True, "deleted": [str(key_id) for key_id in key_ids]})


def _find_key(wanted: str, known: dict[UUID, tuple[str, str]]) -> UUID:
    shown = wanted.removesuffix("...")
    fitting = [
        key_id
        for key_id, (name, prefix) in known.items()
        if wanted in (str(key_id), name) or shown == prefix
    ]
    if len(fitting) != 1:
        count = "Several keys are" if fitting else "No key is"
        raise UsageError(f"{count} called {wanted!r}.", "Give the id that qd keys ls shows.")
    return fitting[0]


_scope_option = click.option(
    "--organization/--mine",
    "organization",
    default=False,
    help="Scope: the organization (admins only) or personal.",
)


@click.command(name="ls")
@_scope_option
@click.argument("providers", metavar="[PROVIDER...]", nargs=-1)
@common_options
def list_credentials(common: Common, organization: bool, providers: tuple[str, ...]) -> None:
    """Show which providers have a key; without a name, those of the known agents."""

    async def read(client: "Client") -> "dict[str, CredentialStatus]":
        wanted = providers or [agent.id for agent in await client.agents.list()]
        return {
            provider: await client.credentials.get(provider, shared=organization)
            for provider in wanted
        }

    statuses = with_client(common, read)
    if common.json:
        records = {
            provider: status.model_dump(mode="json", by_alias=True, exclude_none=True)
            for provider, status in statuses.items()
        }
        print_json({"credentials": records})
        return
    print_table(
        ["PROVIDER", "KEY", "FETCHED"],
        (_credential_row(name, status) for name, status in statuses.items()),
    )


def _credential_row(provider: str, status: "CredentialStatus") -> list[str]:
    fetched = status.last_fetched_at
    return [provider, status.api_key or "-", "-" if fetched is None else ago(fetched)]


@click.command(name="rm")
@_scope_option
@click.argument("provider", metavar="PROVIDER")
@common_options
def remove_credential(common: Common, organization: bool, provider: str) -> None:
    """Remove the key of a provider; running replicas keep it."""
    with_client(common, lambda client: client.credentials.delete(provider, shared=organization))
    print_success(f"Removed the key of {provider}.", common.json)


@click.command(name="set")
@_scope_option
@click.argument("provider", metavar="PROVIDER")
@common_options
def set_credential(common: Common, organization: bool, provider: str) -> None:
    """Set the key of a provider, from stdin or a hidden prompt."""
    key = read_secret(f"Key of {provider}")

    async def write(client: "Client") -> "CredentialSet":
        stored = await client.credentials.set(provider, key, shared=organization)
        owner = "The organization's" if organization else "Your"
        print_message(f"{owner} key of {provider} is set. Replicas get it when they start.")
        return stored

    stored = with_client(common, write)
    if common.json:
        print_json(stored)


@click.group(name="notify")
def notify() -> None:
    """Configure notifications of ended turns, open questions and failed replicas."""


@notify.command(name="set")
@click.argument("url", metavar="URL", default="-")
@common_options
def set_target(common: Common, url: str) -> None:
    """Send notifications to a URL, such as ntfy://host/topic; - reads it from stdin.

    A URL contains secrets; as an argument it is visible in the process list.
    """
    url = sys.stdin.readline().strip() if url == "-" else url
    if not url:
        raise UsageError("Give a URL.", "Pass it as an argument or on stdin.")
    with_client(common, lambda client: client.chatapp.connect(url))
    print_success("Notification target set. Test it with: qd notify test.", common.json)


@notify.command(name="show")
@common_options
def show_target(common: Common) -> None:
    """Show whether a notification target is set. Its URL is not shown."""
    target = with_client(common, lambda client: client.chatapp.get())
    if common.json:
        print_json(target)
    elif target.connected:
        print_text(target.service or "connected")
    else:
        print_message("No notification target. Set one with: qd notify set URL.")


@notify.command(name="rm")
@common_options
def remove_target(common: Common) -> None:
    """Stop sending notifications."""
    with_client(common, lambda client: client.chatapp.disconnect())
    print_success("Notifications are off.", common.json)


@notify.command(name="test")
@common_options
def test_target(common: Common) -> None:
    """Send a notification now."""
    if not with_client(common, lambda client: client.chatapp.test()):
        raise FailedError("The notification was not accepted.", "Check the URL: qd notify set.")
    print_success("Test notification sent.", common.json)
