"""`qd auth`: log in and out, print keys and tokens, approve devices."""

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.clients import fresh_token, run_with, run_with_token, with_client
from quarterdeck.cli.errors import NoServiceError, UsageError
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import print_json, print_message, print_table, print_text
from quarterdeck.cli.program import LazyGroup, Verb
from quarterdeck.cli.target import (
    Target,
    delete_stored_key,
    find_target,
    read_key,
    read_stored_key,
    store_key,
)

if TYPE_CHECKING:
    from quarterdeck.client import Client
    from quarterdeck.wire.account import ApiKey


VERBS = {
    "key": Verb(__name__, "Print the embedded service's own key.", "key"),
    "token": Verb(__name__, "Print a user token, valid for an hour.", "token"),
    "login": Verb(__name__, "Get and store a personal key of a remote service.", "login"),
    "logout": Verb(__name__, "Revoke and remove the stored key.", "logout"),
    "approve": Verb(__name__, "Approve a device login.", "approve"),
    "webhook-secret": Verb(__name__, "Print the signing secret of webhooks.", "webhook_secret"),
    "whoami": Verb(__name__, "Show the current identity.", "whoami"),
}


@click.group(name="auth", cls=LazyGroup, verbs=VERBS)
def auth() -> None:
    """Log in, print keys, approve devices."""


@click.command(name="approve")
@click.option("--deny", is_flag=True, help="Deny it.")
@click.argument("code", metavar="CODE")
@common_options
def approve(common: Common, code: str, deny: bool) -> None:
    """Approve the device that shows CODE, as you. Works on the service's machine."""
    with_client(common, lambda client: client.auth.approve(code, deny=deny))
    print_message("Device denied." if deny else "Device approved.")
    if common.json:
        print_json({"success": True, "approved": not deny})


@click.command(name="key")
@common_options
def key(common: Common) -> None:
    """Print the owner's key, created at the embedded service's first start."""
    target = find_target(common.profile)
    if not target.embedded:
        raise UsageError(
            f"{target.endpoint} is not the embedded service; its key is not stored here."
        )
    owner_key = read_key(target.home)
    if owner_key is None:
        raise NoServiceError(
            f"There is no key in {target.home.root} yet; it is created at the first start.",
            "Start the service with: qd serve (or qd).",
        )
    if common.json:
        print_json({"key": owner_key})
    else:
        print_text(owner_key)


@click.command(name="login")
@click.option("--name", metavar="TEXT", help="Name of the key; default: this host's name.")
@common_options
def login(common: Common, name: str | None) -> None:
    """Get a personal key of the profile's service, and keep it for this profile.

    The service's owner approves this device. The key stays valid until it is revoked with qd
    auth logout or qd keys rm.
    """
    target = find_target(common.profile)
    path = _stored_key_path(target)

    async def login(client: "Client") -> "ApiKey":
        created = await client.api_keys.create(name or f"qd on {socket.gethostname()}")
        store_key(path, created.key)
        return created.api_key

    api_key = run_with_token(target, login)
    if common.json:
        print_json({"api_key": api_key.model_dump(mode="json")})
    print_message(f"Logged in: key {api_key.key_prefix}... saved in profile {target.name}.")


def _stored_key_path(target: Target) -> Path:
    """Return where the key of a service is kept.

    Raises:
        UsageError: nowhere, as it comes from somewhere else.
    """
    if target.key_file is None:
        raise UsageError(
            "Only a profile without key, key_variable and key_command stores one.",
            "Add a profile with an address and no key to the configuration file, and name it with "
            "--profile. The embedded service needs no login.",
        )
    return target.key_file


_PREFIX_LENGTH = 7
"""How much of a key its record shows."""


@click.command(name="logout")
@common_options
def logout(common: Common) -> None:
    """Revoke and remove the key that qd auth login stored for the profile."""
    target = find_target(common.profile)
    path = _stored_key_path(target)
    key = read_stored_key(path)
    if key is not None:
        removed = run_with(target, lambda client: _revoke(client, key))
        delete_stored_key(path)
        print_message(
            "Logged out." if removed else "Logged out. The service no longer knew the key."
        )
    else:
        removed = False
        print_message(f"Profile {target.name} has no stored key.")
    if common.json:
        print_json({"success": True, "removed": removed})


async def _revoke(client: "Client", key: str) -> bool:
    from quarterdeck.client.errors import UnauthorizedError

    try:
        ids = [
            key_record.id
            async for key_record in client.api_keys.all()
            if key_record.key_prefix == key[:_PREFIX_LENGTH]
        ]
        # Four characters tell keys of one user apart nearly always; a wrong one is never deleted.
        if len(ids) == 1:
            await client.api_keys.delete(ids[0])
        return len(ids) == 1
    except UnauthorizedError:
        return False


@click.command(name="token")
@common_options
def token(common: Common) -> None:
    """Print a user token (JWT), valid for an hour.

    The embedded service gives it at once; another one when its owner approves. With a token, send
    the organization in the header Service-Org-Id.
    """
    token = with_client(common, fresh_token)
    if common.json:
        print_json(token)
    else:
        print_text(token.access_token)


@click.command(name="webhook-secret")
@click.option(
    "--rotate", is_flag=True, help="Create a new one first; the old one stops working immediately."
)
@common_options
def webhook_secret(common: Common, rotate: bool) -> None:
    """Print the signing secret of webhook calls; admins only.

    A receiver compares X-Service-Signature with sha256=<hex HMAC-SHA256 of the raw body, keyed with
    this text>.
    """

    async def read(client: "Client") -> str:
        if rotate:
            return await client.chatapp.rotate_webhook_secret()
        return await client.chatapp.webhook_secret()

    secret = with_client(common, read)
    if common.json:
        print_json({"secret": secret})
    else:
        print_text(secret)


@click.command(name="whoami")
@common_options
def whoami(common: Common) -> None:
    """Show the key's user and organizations."""
    report = with_client(common, _identity)
    if common.json:
        print_json(report)
        return
    user = report["user"]
    name = user and (user["email"] or user["name"] or user["id"])
    print_text(f"user  {name or 'none: this is an organization key'}")
    rows = [
        [organization["name"], organization["role"], organization["id"]]
        for organization in report["organizations"]
    ]
    print_table(["ORGANIZATION", "ROLE", "ID"], rows)


async def _identity(client: "Client") -> dict[str, Any]:
    from quarterdeck.client.errors import UnauthorizedError

    organizations = await client.account.organizations()
    try:
        user = await client.account.profile()
    except UnauthorizedError as e:
        if e.code != "USER_REQUIRED":
            raise
        user = None
    return {
        "user": None if user is None else user.model_dump(mode="json"),
        "organizations": [organization.model_dump(mode="json") for organization in organizations],
    }
