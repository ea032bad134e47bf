"""Opens the check of a run that is about to start, and makes the ticket for its prompt."""

import logging
import secrets
from dataclasses import dataclass, replace

from sqlalchemy import Connection, RowMapping

from quarterdeck.service.automations.prompts import Occasion, Ticket
from quarterdeck.service.automations.runs import tell_run
from quarterdeck.service.checks.calls import HostError
from quarterdeck.service.checks.heads import Head, fetch_ref_at
from quarterdeck.service.checks.places import host_of, place_of, wants_check
from quarterdeck.service.checks.states import give_out, open_check
from quarterdeck.service.context import ServiceContext
from quarterdeck.service.identity.keys import hash_of
from quarterdeck.service.moments import moment_text
from quarterdeck.service.records.checks import find_check
from quarterdeck.service.records.executions import find_execution
from quarterdeck.service.records.repositories import list_repositories
from quarterdeck.wire.automations import ExecutionStatus

TOKEN_BYTES = 32

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Known:
    """An occasion with its pull request's head; `why_not` says why the host did not tell it."""

    occasion: Occasion
    why_not: str | None = None


@dataclass(frozen=True)
class Opened:
    """A check with a ticket that opens it once `store` was called in the start's own write.

    `occasion` is the run's with what the host said of the pull request.
    """

    check_id: str
    ticket: Ticket
    occasion: Occasion

    def store(self, connection: Connection) -> None:
        """The prompt with the ticket is being stored: from now on its token counts, no other."""
        give_out(connection, self.check_id, self.ticket.id, hash_of(self.ticket.token))


async def check_for(
    context: ServiceContext, execution: RowMapping, automation: RowMapping, occasion: Occasion
) -> Opened | None:
    """Opens the check of a run, or finds it as an earlier try left it; None when it has none.

    The host is given a moment to say where the pull request's head stands, when nobody else has,
    and to make a record of its own, whose id the agent then gets. One that does not answer holds
    nothing up: the check keeps an id of ours, and the host is told later.
    """
    if not wants_check(automation, occasion):
        return None
    known = await _with_head(context, automation["organization_id"], occasion)
    check_id = await context.database.write(
        lambda c: _open(c, context, execution["id"], automation, known)
    )
    if check_id is None:
        return None
    if context.checks is not None:
        await context.checks.tell(check_id)
    row = await context.database.read(lambda c: find_check(c, check_id))
    if row is None:
        return None
    ticket = Ticket(
        row["host_ref"] or row["check_run_id"], secrets.token_urlsafe(TOKEN_BYTES), row["name"]
    )
    return Opened(check_id, ticket, known.occasion)


async def _with_head(context: ServiceContext, organization_id: str, occasion: Occasion) -> _Known:
    """Asks the host for the head that an occasion does not name; later it may be another one."""
    about = occasion.pull_request
    if about is None or about.head_sha is not None or context.checks is None:
        return _Known(occasion)
    repositories = await context.database.read(lambda c: list_repositories(c, organization_id))
    found = host_of(context.hosts, occasion, about, repositories)
    if found is None:
        return _Known(occasion)
    told: Head = {"fetch_ref": fetch_ref_at(found[0], about.number)}
    why_not = None
    try:
        told = await context.checks.head_of(*found, about.number)
    except HostError as e:
        why_not = f"{found[0]} was asked for the head of {found[1]}#{about.number}: {e}."
        log.warning("A check is kept here. %s", why_not)
    missing = {name: text for name, text in told.items() if getattr(about, name) is None}
    return _Known(replace(occasion, pull_request=about.model_copy(update=missing)), why_not)


def _open(
    connection: Connection,
    context: ServiceContext,
    execution_id: str,
    automation: RowMapping,
    known: _Known,
) -> str | None:
    execution = find_execution(connection, execution_id)
    if execution is None or execution["status"] != ExecutionStatus.PENDING:
        return None  # somebody else has started it, or it is gone
    repositories = list_repositories(connection, automation["organization_id"])
    place = replace(place_of(context.hosts, known.occasion, repositories), why_here=known.why_not)
    now = moment_text(context.clock())
    check_id, superseded = open_check(connection, execution, automation, place, now)
    for one in (*superseded, execution_id):
        tell_run(connection, one, now)
    return check_id
