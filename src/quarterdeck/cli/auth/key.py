"""`qd auth key`."""

import click

from quarterdeck.cli.errors import NoService, UsageFault
from quarterdeck.cli.options import Common, common_options
from quarterdeck.cli.output import put, put_json
from quarterdeck.cli.target import find_target, read_key


@click.command(name="key")
@common_options
def command(common: Common) -> None:
    """Print the key that the embedded service made for its owner at its first start."""
    target = find_target(common.profile)
    if not target.embedded:
        raise UsageFault(
            f"{target.endpoint} is not the embedded service; its key is not kept here."
        )
    found = read_key(target.home)
    if found is None:
        raise NoService(
            f"There is no key in {target.home.root} yet: it is made at the first start.",
            "Start the service with: qd serve (or qd).",
        )
    if common.json:
        put_json({"key": found})
    else:
        put(found)
