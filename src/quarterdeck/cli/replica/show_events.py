"""How followed events are shown: as a transcript, or as lines of JSON."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import UUID

from quarterdeck.cli.options import Common
from quarterdeck.cli.output import put_json, put_safe

if TYPE_CHECKING:
    from quarterdeck.cli.replica.printer import TranscriptPrinter
    from quarterdeck.client.items import Received


def put_event(item: "Received") -> None:
    """One line of JSON: the envelope, and `index`, its place in the replica's log."""
    put_json({"index": item.index, **item.event.model_dump(mode="json")})


@contextmanager
def printing(chat_id: UUID) -> "Generator[TranscriptPrinter]":
    """A printer to stdout whose last line is ended with the block."""
    from quarterdeck.cli.replica.printer import TranscriptPrinter

    printer = TranscriptPrinter(chat_id, lambda text: put_safe(text, end=""))
    try:
        yield printer
    finally:
        printer.finish()


@contextmanager
def showing(common: Common, chat_id: UUID) -> "Generator[Callable[[Received], None]]":
    """Shows events as `--json` asks."""
    if common.json:
        yield put_event
        return
    with printing(chat_id) as printer:
        yield lambda item: printer.take(item.event)
