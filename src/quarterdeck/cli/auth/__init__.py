"""`qd auth`: what lets you in."""

import click

from quarterdeck.cli.lazy import LazyGroup, Verb

_HERE = "quarterdeck.cli.auth"

VERBS = {
    "key": Verb(f"{_HERE}.key", "Print the embedded service's own key."),
    "token": Verb(f"{_HERE}.token", "Print a user token, good for an hour."),
    "login": Verb(f"{_HERE}.login", "Get and keep a personal key of a service elsewhere."),
    "logout": Verb(f"{_HERE}.logout", "Take that key away again."),
    "approve": Verb(f"{_HERE}.approve", "Let a device that shows a code in."),
    "webhook-secret": Verb(f"{_HERE}.webhook_secret", "Print what webhooks are signed with."),
    "whoami": Verb(f"{_HERE}.whoami", "Say who you are to the service."),
}


@click.group(name="auth", cls=LazyGroup, verbs=VERBS)
def command() -> None:
    """Keys and tokens: get one, let a device in, say who you are."""
