"""An engine for tests: speaks the protocol of wire/engine.py, keeps a journal, and can be made to fail.

`RUN_DIR/report.json` holds what its report says beside the truth.

Run as `python double_engine.py RUN_DIR SKEW`, where SKEW is how many seconds its clock is ahead; it goes into the background once its socket answers. What
it should do wrong is told by files in `RUN_DIR/faults`: `refuse` (messages are refused), `hang` (no
call is answered), `old` (it knows no terminals and permissions), `slow` (calls take 0.2 s), `unready` (it never reports ready), `die` (it ends at
the first link). SIGUSR1 drops every link. A message that contains `wait` runs until `RUN_DIR/go` is there.
Standard library only, so that it starts quickly.
"""

import asyncio
import base64
import json
import os
import signal
import sys
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

VERSION = "0.1.0"
"""One that every service works with."""


def now() -> str:
    moment = datetime.now(UTC) + timedelta(seconds=float(sys.argv[2]))
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Refused(Exception):
    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.fault = {"code": -32000, "message": message, "data": {"code": code, "details": None}}


class Journal:
    def __init__(self, path: Path, known: int) -> None:
        self.known = known
        self.entries = []
        if path.exists():
            self.entries = [json.loads(line) for line in path.read_text().splitlines()]
        self.notes = path.with_name("notes.jsonl")
        self.file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.changed = asyncio.Event()

    def note(self, note: dict) -> None:
        """For the next engine alone."""
        with self.notes.open("a") as file:
            file.write(json.dumps(note) + "\n")

    def noted(self) -> list[dict]:
        lines = self.notes.read_text().splitlines() if self.notes.exists() else []
        return [json.loads(line) for line in lines]

    @property
    def last(self) -> int:
        return max(self.known, self.entries[-1]["index"] if self.entries else 0)

    def add(self, type: str, payload: dict) -> None:
        entry = {"index": self.last + 1, "ts": now(), "type": type, "payload": payload}
        os.write(self.file, json.dumps(entry).encode() + b"\n")
        self.entries.append(entry)
        self.changed.set()
        self.changed = asyncio.Event()


class Terminal:
    def __init__(self, cols: int, rows: int) -> None:
        self.record = {
            "id": str(uuid.uuid4()),
            "title": "double",
            "createdAt": now(),
            "exited": False,
            "exitCode": None,
        }
        self.size = (cols, rows)
        self.output = b"ready\r\n"
        self.changed = asyncio.Event()

    def tell(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class Engine:
    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        self.config = json.loads((run_dir / "engine.json").read_text())
        path = Path(self.config["stateDir"]) / "journal.jsonl"
        self.journal = Journal(path, self.config["knownIndex"])
        self.chats: dict[str, dict] = {}
        self.queues: dict[str, list[dict]] = {}
        self.known: set[str] = set()
        self.running: dict[str, dict] = {}
        self.terminals: dict[str, Terminal] = {}
        self.links: set[asyncio.StreamWriter] = set()
        self.tasks: set[asyncio.Task] = set()
        self.ending = asyncio.Event()
        self.used_at = self.elapsed()
        self.recall()

    def elapsed(self) -> float:
        """Seconds, as tests move them forward."""
        moved = self.run_dir.parent / "ahead"
        return time.monotonic() + (float(moved.read_text()) if moved.exists() else 0.0)

    def fault(self, name: str) -> bool:
        return (self.run_dir / "faults" / name).exists()

    def recall(self) -> None:
        open_turns = {}
        self.chats = {note["chat"]["id"]: note["chat"] for note in self.journal.noted()}
        for entry in self.journal.entries:
            payload = entry["payload"]
            match entry["type"]:
                case "chat.updated":
                    self.chats[payload["chat"]["id"]] = payload["chat"]
                case "chat.turn.accepted":
                    self.known.add(payload["messageId"])
                    self.queues.setdefault(payload["chatId"], []).append(payload["_message"])
                case "chat.turn.started":
                    queue = self.queues[payload["chatId"]]
                    open_turns[payload["chatId"]] = queue.pop(0)
                case "chat.turn.completed":
                    open_turns.pop(payload["chatId"], None)
        for chat_id, message in open_turns.items():
            self.end_turn(chat_id, message, "failed")
        if not self.fault("unready"):
            self.journal.add("engine.ready", {"version": VERSION})
        for chat_id in self.chats:
            self.go_on(chat_id)

    def start(self, coroutine) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # Chats

    def chat_changed(self, chat_id: str, **changes) -> None:
        self.chats[chat_id] = {**self.chats[chat_id], **changes, "updatedAt": now()}
        self.journal.add("chat.updated", {"chat": self.chats[chat_id]})

    def delta(self, chat_id: str, message_id: str, type: str, payload: dict) -> None:
        event = {"timestamp": now(), "type": type, "payload": payload}
        self.journal.add(
            "chat.turn.delta", {"chatId": chat_id, "messageId": message_id, "event": event}
        )

    def go_on(self, chat_id: str) -> None:
        if chat_id in self.running or not self.queues.get(chat_id):
            return
        message = self.queues[chat_id].pop(0)
        self.running[chat_id] = message
        self.start(self.turn(chat_id, message))

    async def turn(self, chat_id: str, message: dict) -> None:
        mid, text = message["messageId"], message["text"]
        self.journal.add("chat.turn.started", {"chatId": chat_id, "messageId": mid})
        self.chat_changed(chat_id, processing=True)
        self.delta(chat_id, mid, "user-message", {"messageId": mid, "text": text})
        while "wait" in text and not (self.run_dir / "go").exists():
            await asyncio.sleep(0.005)
            if chat_id not in self.running:
                return
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        self.delta(chat_id, mid, "acp-session_update", update)
        self.end_turn(chat_id, message, "end_turn")
        self.running.pop(chat_id, None)
        self.go_on(chat_id)

    def end_turn(self, chat_id: str, message: dict, reason: str) -> None:
        mid = message["messageId"]
        self.delta(chat_id, mid, "turn-result", {"messageId": mid, "stopReason": reason})
        done = {"chatId": chat_id, "messageId": mid, "isComplete": reason == "end_turn"}
        self.journal.add("chat.turn.completed", {**done, "processing": False})
        self.chat_changed(chat_id, processing=False, lastMessageText=message["text"])

    # Methods

    async def call(self, method: str, p: dict):
        if self.fault("hang"):
            await asyncio.sleep(3600)
        if self.fault("slow"):
            await asyncio.sleep(0.2)
        if self.fault("old") and method.startswith(("terminal.", "permissions.")):
            raise Refused("NOT_FOUND", f"The engine has no method {method!r}.")
        result = getattr(self, f"do_{method.replace('.', '_')}")(p)
        return await result if asyncio.iscoroutine(result) else result

    def do_status(self, p: dict) -> dict:
        idle = self.elapsed() - self.used_at
        report = {"uptimeSeconds": 1, "chatsTotal": len(self.chats), "idleSeconds": idle}
        report["chatsProcessing"] = len(self.running)
        told = self.run_dir / "report.json"
        return report | (json.loads(told.read_text()) if told.exists() else {})

    def do_shutdown(self, p: dict) -> None:
        asyncio.get_running_loop().call_later(0.01, self.ending.set)

    def do_chat_rename(self, p: dict) -> dict:
        self.chat_changed(self.chat(p)["id"], title=p["title"])
        return {**self.chats[p["chatId"]], "index": self.journal.last}

    def do_permissions_set(self, p: dict) -> None:
        (self.run_dir / "permissions.json").write_text(json.dumps(p))

    def do_chat_respond(self, p: dict) -> None:
        raise Refused("CONFLICT", "Nothing is awaited.")

    def do_terminal_list(self, p: dict) -> dict:
        return {"sessions": [one.record for one in self.terminals.values()]}

    def do_terminal_create(self, p: dict) -> dict:
        if len(self.terminals) >= 8:
            raise Refused("TERMINAL_LIMIT_REACHED", "Eight terminals are open.")
        terminal = Terminal(p["cols"], p["rows"])
        self.terminals[terminal.record["id"]] = terminal
        return {"session": terminal.record}

    def do_terminal_input(self, p: dict) -> None:
        self.type(self.terminal(p), p["data"])

    def do_terminal_resize(self, p: dict) -> None:
        self.terminal(p).size = (p["cols"], p["rows"])

    def do_terminal_close(self, p: dict) -> None:
        del self.terminals[self.terminal(p).record["id"]]

    async def do_exec(self, p: dict) -> dict:
        process = await asyncio.create_subprocess_shell(
            p["command"], stdout=asyncio.subprocess.PIPE, cwd=self.config["workspaceDir"]
        )
        output, _ = await process.communicate()
        return {
            "output": output.decode(),
            "exit_code": process.returncode,
            "timed_out": False,
            "truncated": False,
        }

    def chat(self, p: dict) -> dict:
        if p["chatId"] not in self.chats:
            raise Refused("NOT_FOUND", "There is no chat with this id.")
        return self.chats[p["chatId"]]

    def do_chat_open(self, p: dict) -> dict:
        if p["chatId"] not in self.chats:
            self.chats[p["chatId"]] = {
                "id": p["chatId"],
                "provider": p["provider"],
                "title": p.get("title"),
                "createdAt": p.get("createdAt") or now(),
                "updatedAt": now(),
                "processing": False,
                "awaitingInput": False,
                "parentChatId": p.get("parentChatId"),
                "lastMessageText": None,
            }
            self.journal.note({"chat": self.chats[p["chatId"]]})
        return self.chats[p["chatId"]]

    def do_chat_send(self, p: dict) -> dict:
        chat_id = self.chat(p)["id"]
        self.used_at = self.elapsed()
        if self.fault("refuse"):
            raise Refused("INTERNAL_ERROR", "The disk is full.")
        if p["messageId"] not in self.known:
            self.known.add(p["messageId"])
            self.queues.setdefault(chat_id, []).append(p)
            accepted = {"chatId": chat_id, "messageId": p["messageId"], "queued": False}
            self.journal.add("chat.turn.accepted", {**accepted, "_message": p})
            self.go_on(chat_id)
        return {"queued": False, "position": None}

    def do_chat_interrupt(self, p: dict) -> dict:
        chat_id = self.chat(p)["id"]
        message = self.running.pop(chat_id, None)
        if message is not None:
            self.end_turn(chat_id, message, "cancelled")
        waiting = [one["messageId"] for one in self.queues.get(chat_id, [])]
        done = {"interrupted": message is not None, "queue": waiting}
        self.journal.add("chat.interrupted", {"chatId": chat_id, **done})
        index = self.journal.last
        self.go_on(chat_id)
        return {**done, "index": index}

    def do_queue_held(self, p: dict) -> dict:
        return {"held": False, "queues": {}}

    def do_queue_cancel(self, p: dict) -> dict:
        chat_id, wanted = self.chat(p)["id"], p["messageIds"]
        waiting = {one["messageId"] for one in self.queues.get(chat_id, [])}
        gone = [one for one in wanted if one in waiting or one not in self.known]
        self.queues[chat_id] = [
            one for one in self.queues.get(chat_id, []) if one["messageId"] not in gone
        ]
        self.known |= set(gone)
        self.queue_changed(chat_id, gone)
        started = [one for one in wanted if one not in gone]
        return {"index": self.journal.last, "canceled": gone, "started": started}

    def do_queue_order(self, p: dict) -> dict:
        chat_id, order = self.chat(p)["id"], p["messageIds"]
        self.queues.setdefault(chat_id, []).sort(key=lambda one: order.index(one["messageId"]))
        self.queue_changed(chat_id, [])
        return {"index": self.journal.last, "canceled": [], "started": []}

    def queue_changed(self, chat_id: str, canceled: list[str]) -> None:
        waiting = [one["messageId"] for one in self.queues[chat_id]]
        told = {"chat": self.chats[chat_id], "queue": waiting, "canceledMessageIds": canceled}
        self.journal.add("chat.updated", told)

    def do_chat_delete(self, p: dict) -> dict:
        if p["chatId"] in self.chats:
            self.queues.pop(p["chatId"], None)
            self.do_chat_interrupt(p)
            del self.chats[p["chatId"]]
            if not p["told"]:
                self.journal.add("chat.deleted", {"chatId": p["chatId"]})
        return {"index": self.journal.last}

    def do_chat_goal(self, p: dict) -> dict:
        self.chat(p)
        return {"index": self.journal.last, "goal": None}

    # Terminals

    def terminal(self, p: dict) -> Terminal:
        if p["sessionId"] not in self.terminals:
            raise Refused("NOT_FOUND", "There is no terminal with this id.")
        return self.terminals[p["sessionId"]]

    def type(self, terminal: Terminal, data: str) -> None:
        if data == "exit\n":
            terminal.record.update(exited=True, exitCode=0)
        else:
            terminal.output += data.encode()
        terminal.tell()

    async def watch(self, p: dict, writer: asyncio.StreamWriter) -> None:
        terminal = self.terminal(p)
        at = p.get("offset")
        if at is None or at > len(terminal.output):
            at = len(terminal.output)
            cols, rows = terminal.size
            data = base64.b64encode(terminal.output).decode()
            event = {"type": "replay", "data": data, "offset": at, "reset": True}
            self.frame(writer, at, {**event, "cols": cols, "rows": rows})
        while True:
            changed = terminal.changed
            if at < len(terminal.output):
                data = base64.b64encode(terminal.output[at:]).decode()
                at = len(terminal.output)
                self.frame(writer, at, {"type": "output", "data": data})
            if terminal.record["exited"]:
                self.frame(writer, at, {"type": "exit", "exitCode": 0})
                return
            await changed.wait()

    # Links

    def frame(self, writer: asyncio.StreamWriter, offset: int, event: dict) -> None:
        params = {"offset": offset, "event": event}
        self.write(writer, {"jsonrpc": "2.0", "method": "terminal", "params": params})

    def write(self, writer: asyncio.StreamWriter, message: dict) -> None:
        if not writer.is_closing():
            writer.write(json.dumps(message).encode() + b"\n")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.fault("die"):
            os.kill(os.getpid(), signal.SIGKILL)
        self.links.add(writer)
        try:
            if await self.admit(reader, writer):
                while line := await reader.readline():
                    self.start(self.answer(json.loads(line), writer))
        except OSError:
            pass
        finally:
            self.links.discard(writer)
            writer.close()

    async def admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        call = json.loads(await reader.readline() or b"{}")
        params = call.get("params") or {}
        if call.get("method") != "open" or params.get("secret") != self.config["secret"]:
            error = {"code": -32001, "message": "wrong secret"}
            self.write(writer, {"jsonrpc": "2.0", "id": call.get("id"), "error": error})
            return False
        hello = {
            "version": VERSION,
            "workspaceId": self.config["workspaceId"],
            "lastIndex": self.journal.last,
            "bootTimeMs": 1,
            "pid": os.getpid(),
        }
        self.write(writer, {"jsonrpc": "2.0", "id": call["id"], "result": hello})
        if params.get("after") is not None:
            self.start(self.follow(params["after"], writer))
        return True

    async def follow(self, after: int, writer: asyncio.StreamWriter) -> None:
        while not writer.is_closing():
            changed = self.journal.changed
            for entry in [one for one in self.journal.entries if one["index"] > after]:
                self.write(writer, {"jsonrpc": "2.0", "method": "journal", "params": entry})
                after = entry["index"]
            await changed.wait()

    async def answer(self, call: dict, writer: asyncio.StreamWriter) -> None:
        message = {"jsonrpc": "2.0", "id": call["id"]}
        method, params = call["method"], call.get("params") or {}
        try:
            if method == "terminal.stream":
                self.terminal(params)
                self.start(self.watch(params, writer))
                message["result"] = None
            else:
                message["result"] = await self.call(method, params)
        except Refused as e:
            message["error"] = e.fault
        self.write(writer, message)

    def drop(self) -> None:
        for writer in list(self.links):
            writer.transport.abort()

    async def run(self, listening: int) -> None:
        loop = asyncio.get_running_loop()
        path = self.run_dir / "engine.sock"
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self.serve, path=path, limit=1 << 26)
        loop.add_signal_handler(signal.SIGUSR1, self.drop)
        loop.add_signal_handler(signal.SIGTERM, self.ending.set)
        os.write(listening, b"1")
        os.close(listening)
        await self.ending.wait()
        for chat_id, message in list(self.running.items()):
            self.running.pop(chat_id)
            self.end_turn(chat_id, message, "cancelled")
        await asyncio.sleep(0.01)
        server.close()
        for writer in list(self.links):
            writer.close()
        await asyncio.sleep(0.01)
        path.unlink(missing_ok=True)


def main() -> None:
    run_dir = Path(sys.argv[1])
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        sys.exit(0 if os.read(reading, 1) else 1)
    os.close(reading)
    os.setsid()
    (run_dir / "pid").write_text(str(os.getpid()))
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(run_dir / "engine.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for number, target in ((0, null), (1, null), (2, log)):
        os.dup2(target, number)

    async def live() -> None:
        await Engine(run_dir).run(writing)

    asyncio.run(live())


if __name__ == "__main__":
    main()
