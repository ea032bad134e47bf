"""Verdicts of runs on pull requests (specification, operation 12)."""

from typing import Annotated

from fastapi import APIRouter, Path

from quarterdeck.service.auth import CallerDep
from quarterdeck.service.checks.reporting import report_check
from quarterdeck.service.context import Context
from quarterdeck.service.identity.doors import admits
from quarterdeck.wire.automations import CheckReported, ReportCheck

router = APIRouter(tags=["automations"])

ID_LENGTH = 100


@router.post("/v1/automations/checks/{check_run_id}")
@admits(keys=False, tokens=False, engines=True)
async def report(
    check_run_id: Annotated[str, Path(max_length=ID_LENGTH)],
    body: ReportCheck,
    context: Context,
    caller: CallerDep,
) -> CheckReported:
    """Reports the verdict of the calling workspace's run; false when a later run took its place."""
    return await report_check(context, caller, check_run_id, body)
