"""Takes a host's webhook: the receipt and what it starts are stored in one transaction.

So one that was answered is done, one that was not can be sent again, and nothing is done twice.
"""

import hashlib
import logging
from collections.abc import Callable

from pydantic import ValidationError
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from quarterdeck.service.automations.payloads import read_payload
from quarterdeck.service.automations.prompts import Occasion
from quarterdeck.service.automations.triggering import take_event
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.errors import ApiError
from quarterdeck.service.hosts.events import HostEvent
from quarterdeck.service.hosts.host_a import read_host_a
from quarterdeck.service.hosts.host_b import read_host_b
from quarterdeck.service.hosts.matching import matches
from quarterdeck.service.hosts.settings import HOST_A, HOST_B
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.receipts import add_receipt
from quarterdeck.wire.errors import ErrorCode

log = logging.getLogger(__name__)

_READERS: dict[str, Callable[[str, object], HostEvent | None]] = {
    HOST_A: read_host_a,
    HOST_B: read_host_b,
}


async def take_host_webhook(context: ServiceContext, host: str, kind: str, body: bytes) -> None:
    """Begins the runs of an authentic webhook. One that is not understood begins none.

    Raises:
        ApiError: INVALID_REQUEST when it is no JSON, CONFLICT when it was taken before.
    """
    try:
        payload = read_payload(body)
    except ValueError as e:
        raise ApiError(ErrorCode.INVALID_REQUEST, "A webhook's body is JSON.", str(e)) from e
    event = _understood(host, kind, payload)
    digest, now = hashlib.sha256(host.encode() + b"\n" + body).hexdigest(), context.clock()

    def run(connection: Connection) -> int:
        add_receipt(connection, digest, moment_text(now))
        found = [] if event is None else matches(connection, host, event)
        for automation, joins in found:
            assert event is not None  # something matched it
            about = event.pull_request
            occasion = Occasion(host, event.name, moment_text(now), payload, about, joins)
            group = f"{host} {event.repository}#{about.number}"
            take_event(connection, automation, occasion, now, group)
        return len(found)

    try:
        begun = await context.database.write(run)
    except IntegrityError as e:
        raise ApiError(ErrorCode.CONFLICT, "This webhook was taken before.") from e
    if event is not None:
        where = f"{event.repository}#{event.pull_request.number}"
        log.info("%s of %s at %s met %d automations", event.name, where, host, begun)


def _understood(host: str, kind: str, payload: object) -> HostEvent | None:
    try:
        return _READERS[host](kind, payload)
    except ValidationError as e:
        first = e.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        said = f"{where}: {first['msg']}"
        log.warning("A webhook %.60r of %s is not understood: %s", kind, host, said)
        return None
