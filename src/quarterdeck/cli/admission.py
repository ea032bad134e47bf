"""Who the service lets in besides its own keys: options of `qd serve`, and the file's `[service]`.

What an option says comes before the file.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from quarterdeck.cli.config_path import config_path
from quarterdeck.cli.errors import UsageFault

if TYPE_CHECKING:
    from quarterdeck.service.identity.settings import IdentitySettings, IssuerSettings

_OPTIONS = (
    click.option("--issuer", metavar="URL", help="Take user tokens of this identity provider."),
    click.option("--jwks-url", metavar="URL", help="Where the provider publishes its keys."),
    click.option("--audience", metavar="TEXT", help="What its tokens must be meant for."),
    click.option(
        "--new-users",
        type=click.Choice(["member", "admin"]),
        help="What its users become when they come first; without it, members of nothing.",
    ),
    click.option(
        "--requests-per-minute",
        metavar="N",
        type=click.IntRange(1),
        help="How often one key or user may ask; without it, no bound.",
    ),
)


def admission_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options; they come to the function as keyword arguments."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def identity_settings(given: dict[str, Any]) -> "IdentitySettings":
    """The settings that the options and the configuration file make together.

    Raises:
        ConfigFault: the file is wrong.
        UsageFault: an issuer without a key URL, or settings of an issuer without one.
    """
    from quarterdeck.service.identity.settings import IdentitySettings

    path = config_path()
    merged: dict[str, Any] = {}
    if path.exists():
        from quarterdeck.cli.config import read_config  # pydantic is only needed for a file

        merged = read_config(path).service.model_dump(exclude_none=True)
    merged |= {name: value for name, value in given.items() if value is not None}
    limit = merged.pop("requests_per_minute", None)
    return IdentitySettings(_issuer(merged) if merged else None, limit)


def _issuer(given: dict[str, Any]) -> "IssuerSettings":
    from quarterdeck.service.identity.settings import IssuerSettings

    missing = [name for name in ("issuer", "jwks_url") if not given.get(name)]
    if missing:
        raise UsageFault(
            f"An identity provider needs {' and '.join(missing)}.",
            "Give --issuer and --jwks-url together, or put both into the table [service].",
        )
    return IssuerSettings(**given)
