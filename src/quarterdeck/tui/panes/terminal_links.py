"""Opening a link that stands in a terminal: by the person alone, and only what a browser is for."""

import asyncio
import os
import shutil
import sys
from collections.abc import Mapping
from urllib.parse import urlsplit

OPENED = ("http", "https")
"""Any other scheme may start any program: such an address can be copied."""
OPENERS = ("xdg-open", "wslview")
OPEN_SECONDS = 10.0


def shown_address(uri: str) -> str:
    """An address with nothing invisible in it, and its host as the network knows it."""
    return "".join(c if " " < c <= "~" else f"\\u{{{ord(c):x}}}" for c in uri)


def opener(uri: str, environment: Mapping[str, str] = os.environ) -> list[str] | None:
    """The command that opens an address; null where nothing here can or should."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    if parts.scheme.lower() not in OPENED or not parts.hostname or shown_address(uri) != uri:
        return None
    if "SSH_CONNECTION" in environment:
        return None  # a browser here would not be the person's
    if sys.platform == "darwin":
        return ["open", uri]
    if not (environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY")):
        return None
    return next(([path, uri] for name in OPENERS if (path := shutil.which(name))), None)


async def open_address(command: list[str]) -> bool:
    """Runs it, away from the terminal; whether it said that it did."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            return await process.wait() == 0
    except TimeoutError:
        return True  # some openers stay as long as the browser does
