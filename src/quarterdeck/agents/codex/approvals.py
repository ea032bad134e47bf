"""What codex may ask, as questions to a person, and their answers as codex takes them."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, cast

from quarterdeck.agents.codex.items import command_of
from quarterdeck.agents.codex.link import Reply
from quarterdeck.agents.codex.questions import Option, Question
from quarterdeck.agents.objects import as_object
from quarterdeck.agents.session.desk import CALLED_OFF, Answer, Desk

Params = dict[str, Any]

_DECISIONS = {
    "accept": Option("accept", "Allow once"),
    "acceptForSession": Option("acceptForSession", "Allow for this session", "allow_always"),
    "decline": Option("decline", "Decline", "reject_once"),
    "cancel": Option("cancel", "Decline and stop", "reject_once"),
}
_WHOLE = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,18})?")
_USUAL = ("accept", "acceptForSession", "decline", "cancel")


class Approvals:
    """Puts codex's requests to a person."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def asked(self, method: str, params: Params) -> Reply | None:
        """Announces a request; None when it is none that a person answers."""
        ask = _ASKED.get(method)
        return await ask(self, params) if ask else None

    async def _ask(self, question: Question) -> str:
        return await self._desk.ask(question.asked)

    async def _command(self, params: Params) -> Reply:
        command = command_of(params)
        call = {
            "toolCallId": params.get("itemId"),
            "title": command,
            "kind": "execute",
            "rawInput": {"command": command, "cwd": params.get("cwd")},
        }
        offered = cast("list[object]", params.get("availableDecisions") or list(_USUAL))
        if "decline" not in offered:
            offered = [*(one for one in offered if one != "cancel"), "decline", "cancel"]
        decisions = dict(_decision(one) for one in offered)
        title = params.get("reason") or command
        return await self._decide(str(title), call, decisions)

    async def _files(self, params: Params) -> Reply:
        root = params.get("grantRoot")
        asked = f"Allow changes below {root}?" if root else "Allow these changes?"
        call = {"toolCallId": params.get("itemId"), "kind": "edit"}
        decisions = dict(_decision(one) for one in _USUAL)
        return await self._decide(str(params.get("reason") or asked), call, decisions)

    async def _decide(
        self, title: str, call: Params, decisions: dict[str, tuple[Option, object]]
    ) -> Reply:
        options = [option for option, _ in decisions.values()]
        asked_for = await self._ask(Question(title, options, call))

        async def reply() -> Params:
            chosen = (await self._desk.answered(asked_for)).option
            return {"decision": decisions[chosen][1] if chosen else "cancel"}

        return reply

    async def _permissions(self, params: Params) -> Reply:
        asked = as_object(params.get("permissions"))
        options = (
            Option("turn", "Allow for this turn"),
            Option("session", "Allow for this session", "allow_always"),
            Option("decline", "Decline", "reject_once"),
        )
        title = str(params.get("reason") or "Codex asks for more permissions.")
        call = {"toolCallId": params.get("itemId"), "title": title, "rawInput": asked}
        asked_for = await self._ask(Question(title, options, call))

        async def reply() -> Params:
            chosen = (await self._desk.answered(asked_for)).option
            if chosen not in ("turn", "session"):
                return {"permissions": {}, "scope": "turn"}
            return {"permissions": _granted(asked), "scope": chosen}

        return reply

    async def _questions(self, params: Params) -> Reply:
        asked = [as_object(one) for one in cast("list[object]", params.get("questions") or [])]
        first = await self._ask(_as_question(asked[0])) if asked else None

        async def reply() -> Params:
            answers: dict[str, Any] = {}
            waiting = first
            for number, one in enumerate(asked):
                asked_for = waiting or await self._ask(_as_question(one))
                given = await self._desk.answered(asked_for)
                waiting = None
                if given == CALLED_OFF:
                    break  # called off, so what follows is not asked
                answers[str(one.get("id", number))] = {
                    "answers": [given.text or _chosen(one, given)]
                }
            return {"answers": answers}

        return reply

    async def _elicitation(self, params: Params) -> Reply | None:
        if params.get("mode") not in ("form", "openai/form", "openaiForm", "url"):
            return None
        fields = as_object(as_object(params.get("requestedSchema")).get("properties"))
        asked = f"{params.get('serverName')}: {params.get('message')}"
        title = f"{asked} {params['url']}" if params.get("url") else asked
        options = (
            Option("accept", "Answer" if fields else "Accept"),
            Option("decline", "Decline", "reject_once"),
        )
        asked_for = await self._ask(Question(title, options))

        async def reply() -> Params:
            chosen = (await self._desk.answered(asked_for)).option
            content = await self._fields(fields) if chosen == "accept" else None
            action = "cancel" if chosen is None or content == {} != fields else chosen
            return {"action": action, "content": content, "_meta": None}

        return reply

    async def _fields(self, fields: Params) -> Params:
        """A value for each field of a form; none at all when one is called off."""
        found: Params = {}
        for name, field in fields.items():
            shape = as_object(field)
            given = await self._desk.answered(await self._ask(_as_field(name, shape)))
            if given == CALLED_OFF:
                return {}
            found[name] = _value(shape, given)
        return found

    ASKED: "dict[str, Callable[[Approvals, Params], Awaitable[Reply | None]]]" = {
        "item/commandExecution/requestApproval": _command,
        "item/fileChange/requestApproval": _files,
        "item/permissions/requestApproval": _permissions,
        "item/tool/requestUserInput": _questions,
        "mcpServer/elicitation/request": _elicitation,
    }


_ASKED = Approvals.ASKED


def _decision(offered: object) -> tuple[str, tuple[Option, object]]:
    """The option of a decision, by its id, and what codex is told when it is chosen."""
    if isinstance(offered, str):
        return offered, (_DECISIONS.get(offered, Option(offered, offered)), offered)
    kind, details = next(iter(as_object(offered).items()), ("accept", None))
    match kind, details:
        case "acceptWithExecpolicyAmendment", _:
            option = Option(kind, "Allow this command from now on", "allow_always")
        case "applyNetworkPolicyAmendment", {"network_policy_amendment": {"host": host, **rest}}:
            refuses = cast("dict[str, object]", rest).get("action") == "deny"
            verb, sort = ("Refuse", "reject_always") if refuses else ("Allow", "allow_always")
            kind = f"{kind} {verb} {host}"
            option = Option(kind, f"{verb} {host} from now on", sort)
        case _:
            option = Option(kind, kind)
    return option.id, (option, offered)


def _granted(asked: Params) -> Params:
    return {name: value for name, value in asked.items() if value is not None}


def _as_question(asked: Params) -> Question:
    options = [as_object(one) for one in cast("list[object]", asked.get("options") or [])]
    return Question(
        str(asked.get("question") or asked.get("header") or "Codex asks"),
        [Option(str(n), _option_name(one)) for n, one in enumerate(options)],
        free=bool(asked.get("isOther")) or not options,
        secret=bool(asked.get("isSecret")),
    )


def _option_name(option: Params) -> str:
    label, description = str(option.get("label", "")), str(option.get("description") or "")
    return f"{label}: {description}" if description not in ("", label) else label


def _chosen(asked: Params, given: Answer) -> str:
    options = cast("list[object]", asked.get("options") or [])
    return str(as_object(options[int(given.option or 0)]).get("label", ""))


def _as_field(name: str, shape: Params) -> Question:
    choices = [str(one) for one in cast("list[object]", shape.get("enum") or [])]
    if shape.get("type") == "boolean":
        choices = ["true", "false"]
    title = str(shape.get("description") or shape.get("title") or name)
    return Question(title, [Option(one, one) for one in choices], free=not choices)


def _value(shape: Params, given: Answer) -> object:
    text = given.option or given.text or ""
    match shape.get("type"):
        case "boolean":
            return text == "true"
        case "integer" if _WHOLE.fullmatch(text):
            return int(text)
        case "number" if _NUMBER.fullmatch(text):
            return float(text)
        case _:
            return text  # what is no number is for the server to refuse
