"""Sending to a notification target, whatever service it names.

The library is imported when it is first used: it takes as long as the rest of the service.
"""

import logging
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Notice:
    """What a person is told."""

    title: str
    text: str


def service_of(url: str) -> str:
    """The part of an address that names the service, and nothing of its secrets."""
    return url.partition("://")[0].lower()[:40]


def is_target(url: str) -> bool:
    """Whether an address is one that can be sent to. Blocks: call it in a thread."""
    return _opened(url) is not None


def send(url: str, notice: Notice) -> bool:
    """Sends; False when the target did not take it. Blocks: call it in a thread."""
    target = _opened(url)
    return target is not None and bool(target.notify(body=notice.text, title=notice.title))


def _opened(url: str) -> Any | None:
    import apprise

    # Both write addresses into their logs, with the secrets in them.
    logging.getLogger("apprise").disabled = True
    logging.getLogger("urllib3").setLevel(logging.INFO)
    opened: Any = apprise.Apprise()
    return opened if "://" in url and opened.add(url) and len(opened) == 1 else None
