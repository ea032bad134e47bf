"""Textual's queues tell of what waits in them, for `key_trail`.

Replaces private methods of one exact version of Textual, once for all widgets: those that take part are
Textual's own as often as ours.
"""
# pyright: reportPrivateUsage=false

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

from textual import _callback
from textual.message import Message
from textual.message_pump import MessagePump
from textual.screen import Screen

from quarterdeck.tui.key_trail import Trail, anything_waits, current_trail, gone, met, wait_for


def _may_vanish(message: Message) -> bool:
    """Whether the next message in the queue may take its place. All such are about painting."""
    return message.no_dispatch or type(message).can_replace is not Message.can_replace


# what replaces methods of Textual

_post_message = MessagePump.post_message
_dispatch_message = MessagePump._dispatch_message
_start_messages = MessagePump._start_messages
_pre_process = MessagePump._pre_process
_process_messages = MessagePump._process_messages
_call_next = MessagePump.call_next
_invoke_later = cast("Callable[..., None]", Screen[Any]._invoke_later)


def _posting(self: MessagePump, message: Message) -> bool:
    posted = _post_message(self, message)
    if posted and (trail := current_trail()) is not None and not _may_vanish(message):
        wait_for(trail, self, message)
    return posted


async def _dispatching(self: MessagePump, message: Message) -> None:
    if not anything_waits():
        await _dispatch_message(self, message)
        return
    with met(self, message):
        await _dispatch_message(self, message)


def _starting(self: MessagePump) -> None:
    _start_messages(self)
    if (trail := current_trail()) is not None and self._task is not None:
        wait_for(trail, self, self)


async def _preparing(self: MessagePump) -> bool:
    with met(self, self):
        return await _pre_process(self)


async def _processing(self: MessagePump) -> None:
    try:
        await _process_messages(self)
    finally:
        gone(self)


def _calling_next(self: MessagePump, callback: Callable[..., Any], *args: Any, **kw: Any) -> None:
    if (trail := current_trail()) is not None:
        _call_next(self, _marked(trail, self, partial(callback, *args, **kw)))
    else:
        _call_next(self, callback, *args, **kw)


def _invoking_later(self: "Screen[Any]", callback: Any, sender: MessagePump) -> None:
    trail = current_trail()
    _invoke_later(self, callback if trail is None else _marked(trail, self, callback), sender)


def _marked(
    trail: Trail, pump: MessagePump, callback: Callable[..., Any]
) -> Callable[[], Awaitable[None]]:
    """A callback that belongs to a trail until it was called."""

    async def called() -> None:
        with met(pump, called):
            await _callback.invoke(callback)

    wait_for(trail, pump, called)
    return called


def install() -> None:
    """Makes all widgets tell."""
    MessagePump.post_message = _posting
    MessagePump._dispatch_message = _dispatching
    MessagePump._start_messages = _starting
    MessagePump._pre_process = _preparing
    MessagePump._process_messages = _processing
    MessagePump.call_next = _calling_next
    Screen._invoke_later = _invoking_later
