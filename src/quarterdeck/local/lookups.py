"""Look-ups of the names of hosts, whose name servers may never answer.

The system's resolver waits for them as long as its configuration says, often half a minute, and cannot be
interrupted. So look-ups have threads of their own, and each organization has a share of these.
"""

import asyncio
from contextvars import ContextVar
from weakref import WeakKeyDictionary

from quarterdeck.local.addresses import numeric_address, resolve
from quarterdeck.local.shared_threads import SharedThreads

THREADS = 16
SHARE = 4
"""How many look-ups of one organization run at a time; others wait."""
SECONDS = 15.0
"""A name that is not looked up within this, with the wait for a thread, has no address."""

ORGANIZATION: ContextVar[str] = ContextVar("lookup_organization", default="")
"""For whom names are looked up: set where a request or a job of an organization begins."""

_threads: WeakKeyDictionary[asyncio.AbstractEventLoop, SharedThreads] = WeakKeyDictionary()


class LookupTimeoutError(OSError):
    """A name was not looked up in time. Its text is for people."""


async def look_up(host: str, port: int, private: bool) -> list[str]:
    """Return the addresses of a host that may be reached; see `resolve`.

    Raises:
        AddressRefusedError: none of them may be reached.
        LookupTimeoutError: its name server does not answer.
        OSError: the name cannot be resolved.
    """
    if numeric_address(host) is not None:
        return resolve(host, port, private)
    loop = asyncio.get_running_loop()
    if (threads := _threads.get(loop)) is None:
        threads = _threads[loop] = SharedThreads("name look-up", THREADS, SHARE)
    try:
        async with asyncio.timeout(SECONDS):
            return await threads.run(ORGANIZATION.get(), resolve, host, port, private)
    except TimeoutError as e:
        raise LookupTimeoutError(f"The address of {host} could not be looked up in time.") from e
