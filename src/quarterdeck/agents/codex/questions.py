"""Approvals and questions of codex."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from quarterdeck.agents.codex.items import command_of
from quarterdeck.agents.codex.link import Reply
from quarterdeck.agents.objects import as_list, as_object
from quarterdeck.agents.port import AgentError
from quarterdeck.agents.session.permissions import (
    NO_ANSWER,
    Decision,
    GivenAnswer,
    PermissionRequests,
)
from quarterdeck.agents.session.policy import ProposedCall


@dataclass(frozen=True)
class CodexOption:
    """One answer to choose."""

    id: str
    name: str
    kind: str = "allow_once"


@dataclass(frozen=True)
class CodexQuestion:
    """One decision. With `free`, text is an answer as well; a secret one is not stored."""

    title: str
    options: Sequence[CodexOption] = ()
    call: dict[str, Any] | None = None
    free: bool = False
    secret: bool = False
    proposed: ProposedCall | None = None

    @property
    def decision(self) -> Decision:
        """The question for `PermissionRequests`."""
        payload = {
            "title": self.title,
            **({"toolCall": self.call} if self.call else {}),
            "options": [
                {"optionId": option.id, "name": option.name, "kind": option.kind}
                for option in self.options
            ],
            **({"acceptsText": True} if self.free else {}),
            **({"secret": True} if self.secret else {}),
        }
        options = [option.id for option in self.options]
        return Decision(payload, options, self._check, self.secret, self.proposed)

    def _check(self, _: str) -> None:
        if not self.free:
            offered = ", ".join(option.name for option in self.options)
            raise AgentError(f"This question is answered with one of its options: {offered}.")


Params = dict[str, Any]

_DECISIONS = {
    "accept": CodexOption("accept", "Allow once"),
    "acceptForSession": CodexOption("acceptForSession", "Allow for this session", "allow_always"),
    "decline": CodexOption("decline", "Decline", "reject_once"),
    "cancel": CodexOption("cancel", "Decline and stop", "reject_once"),
}
_WHOLE = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?")
_USUAL = ("accept", "acceptForSession", "decline", "cancel")
_BEYOND_COMMAND = ("additionalPermissions", "networkApprovalContext")
"""Parts of a request that ask for more than to run its command."""


class Approvals:
    """Asks a person to answer codex's requests."""

    def __init__(
        self, requests: PermissionRequests, edited_files: Callable[[str], Sequence[str]]
    ) -> None:
        self._requests = requests
        self._edited_files = edited_files
        """Returns the files that a call edits, when it does nothing else."""

    async def handle_request(self, method: str, params: Params) -> Reply | None:
        """Announce a request; return None when it is not one that a person answers."""
        handler = _HANDLERS.get(method)
        return await handler(self, params) if handler else None

    async def _ask(self, question: CodexQuestion) -> str:
        return await self._requests.ask(question.decision)

    async def _command(self, params: Params) -> Reply:
        command = command_of(params)
        call = {
            "toolCallId": params.get("itemId"),
            "title": command,
            "kind": "execute",
            "rawInput": {"command": command, "cwd": params.get("cwd")},
        }
        offered = as_list(params.get("availableDecisions")) or list[object](_USUAL)
        if "decline" not in offered:
            offered = [
                *(decision for decision in offered if decision != "cancel"),
                "decline",
                "cancel",
            ]
        decisions = dict(_decision(decision) for decision in offered)
        title = params.get("reason") or command
        command_line = params.get("command")
        proposed = ProposedCall(
            "accept" if "accept" in decisions else None,
            "decline",
            command_line if isinstance(command_line, str) else None,
            runs=True,
            is_whole=True,
            tool_call=call,
        )
        asks_more = any(params.get(name) for name in _BEYOND_COMMAND)
        asks_more = asks_more or params.get("kind", "command") != "command"  # input for a program
        return await self._decide(str(title), call, decisions, None if asks_more else proposed)

    async def _files(self, params: Params) -> Reply:
        root = params.get("grantRoot")
        question = f"Allow changes below {root}?" if root else "Allow these changes?"
        call = {"toolCallId": params.get("itemId"), "kind": "edit"}
        decisions = dict(_decision(decision) for decision in _USUAL)
        edited = self._edited_files(str(params.get("itemId")))
        proposed = ProposedCall("accept", "decline", edited=edited, tool_call=call)
        title = str(params.get("reason") or question)
        return await self._decide(title, call, decisions, None if root else proposed)

    async def _decide(
        self,
        title: str,
        call: Params,
        decisions: dict[str, tuple[CodexOption, object]],
        proposed: ProposedCall | None,
    ) -> Reply:
        options = [option for option, _ in decisions.values()]
        request_id = await self._ask(CodexQuestion(title, options, call, proposed=proposed))

        async def reply() -> Params:
            chosen = (await self._requests.wait_for_answer(request_id)).option
            return {"decision": decisions[chosen][1] if chosen else "cancel"}

        return reply

    async def _permissions(self, params: Params) -> Reply:
        permissions = as_object(params.get("permissions"))
        options = (
            CodexOption("turn", "Allow for this turn"),
            CodexOption("session", "Allow for this session", "allow_always"),
            CodexOption("decline", "Decline", "reject_once"),
        )
        title = str(params.get("reason") or "Codex requests more permissions.")
        call = {"toolCallId": params.get("itemId"), "title": title, "rawInput": permissions}
        request_id = await self._ask(CodexQuestion(title, options, call))

        async def reply() -> Params:
            chosen = (await self._requests.wait_for_answer(request_id)).option
            if chosen not in ("turn", "session"):
                return {"permissions": {}, "scope": "turn"}
            return {"permissions": _granted(permissions), "scope": chosen}

        return reply

    async def _questions(self, params: Params) -> Reply:
        questions = [as_object(question) for question in as_list(params.get("questions"))]
        first = await self._ask(_as_question(questions[0])) if questions else None

        async def reply() -> Params:
            answers: dict[str, Any] = {}
            waiting = first
            for number, question in enumerate(questions):
                request_id = waiting or await self._ask(_as_question(question))
                answer = await self._requests.wait_for_answer(request_id)
                waiting = None
                if answer == NO_ANSWER:
                    break  # cancelled, so further questions are not asked
                answers[str(question.get("id", number))] = {
                    "answers": [answer.text or _chosen(question, answer)]
                }
            return {"answers": answers}

        return reply

    async def _elicitation(self, params: Params) -> Reply | None:
        if params.get("mode") not in ("form", "openai/form", "openaiForm", "url"):
            return None
        fields = as_object(as_object(params.get("requestedSchema")).get("properties"))
        message = f"{params.get('serverName')}: {params.get('message')}"
        title = f"{message} {params['url']}" if params.get("url") else message
        options = (
            CodexOption("accept", "Answer" if fields else "Accept"),
            CodexOption("decline", "Decline", "reject_once"),
        )
        request_id = await self._ask(CodexQuestion(title, options))

        async def reply() -> Params:
            chosen = (await self._requests.wait_for_answer(request_id)).option
            content = await self._fields(fields) if chosen == "accept" else None
            action = "cancel" if chosen is None or content == {} != fields else chosen
            return {"action": action, "content": content, "_meta": None}

        return reply

    async def _fields(self, fields: Params) -> Params:
        """Return a value for each field of a form; an empty result when one is cancelled."""
        values: Params = {}
        for name, field in fields.items():
            shape = as_object(field)
            answer = await self._requests.wait_for_answer(await self._ask(_as_field(name, shape)))
            if answer == NO_ANSWER:
                return {}
            values[name] = _value(shape, answer)
        return values

    HANDLERS: "dict[str, Callable[[Approvals, Params], Awaitable[Reply | None]]]" = {
        "item/commandExecution/requestApproval": _command,
        "item/fileChange/requestApproval": _files,
        "item/permissions/requestApproval": _permissions,
        "item/tool/requestUserInput": _questions,
        "mcpServer/elicitation/request": _elicitation,
    }


_HANDLERS = Approvals.HANDLERS


def _decision(offered: object) -> tuple[str, tuple[CodexOption, object]]:
    """Return the option of a decision, by its id, and the answer to codex when it is chosen."""
    if isinstance(offered, str):
        return offered, (_DECISIONS.get(offered, CodexOption(offered, offered)), offered)
    kind, details = next(iter(as_object(offered).items()), ("accept", None))
    match kind, details:
        case "acceptWithExecpolicyAmendment", _:
            option = CodexOption(kind, "Allow this command from now on", "allow_always")
        case "applyNetworkPolicyAmendment", {"network_policy_amendment": {"host": host, **rest}}:
            refuses = cast("dict[str, object]", rest).get("action") == "deny"
            verb, sort = ("Refuse", "reject_always") if refuses else ("Allow", "allow_always")
            kind = f"{kind} {verb} {host}"
            option = CodexOption(kind, f"{verb} {host} from now on", sort)
        case _:
            option = CodexOption(kind, kind)
    return option.id, (option, offered)


def _granted(permissions: Params) -> Params:
    return {name: value for name, value in permissions.items() if value is not None}


def _as_question(question: Params) -> CodexQuestion:
    options = [as_object(option) for option in as_list(question.get("options"))]
    return CodexQuestion(
        str(question.get("question") or question.get("header") or "Codex asks"),
        [CodexOption(str(n), _option_name(option)) for n, option in enumerate(options)],
        free=bool(question.get("isOther")) or not options,
        secret=bool(question.get("isSecret")),
    )


def _option_name(option: Params) -> str:
    label, description = str(option.get("label", "")), str(option.get("description") or "")
    return f"{label}: {description}" if description not in ("", label) else label


def _chosen(question: Params, answer: GivenAnswer) -> str:
    options = as_list(question.get("options"))
    return str(as_object(options[int(answer.option or 0)]).get("label", ""))


def _as_field(name: str, shape: Params) -> CodexQuestion:
    choices = [str(choice) for choice in as_list(shape.get("enum"))]
    if shape.get("type") == "boolean":
        choices = ["true", "false"]
    title = str(shape.get("description") or shape.get("title") or name)
    return CodexQuestion(
        title, [CodexOption(choice, choice) for choice in choices], free=not choices
    )


def _value(shape: Params, answer: GivenAnswer) -> object:
    text = answer.option or answer.text or ""
    match shape.get("type"):
        case "boolean":
            return text == "true"
        case "integer" if _WHOLE.fullmatch(text):
            return int(text)
        case "number" if _NUMBER.fullmatch(text):
            return float(text)
        case _:
            return text  # the server refuses what is not a number
