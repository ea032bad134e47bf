"""What was typed into the dialog and not used, for the next time that it opens."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Typed:
    """The text fields of the create dialog."""

    repository: str
    name: str
    message: str
