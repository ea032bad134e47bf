"""A transcript as lines to be read aloud: messages by the sentence, everything else when it changes.

What others wrote is indented after its first line. So an agent cannot write a line that looks like a
question, an answer to choose, or the state of a replica.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from quarterdeck.transcript.blocks import (
    Block,
    DiffPart,
    EchoBlock,
    MessageBlock,
    NoteBlock,
    PlanBlock,
    PlanEntry,
    PlanState,
    QuestionBlock,
    ResultBlock,
    SpeechBlock,
    TextPart,
    ThoughtBlock,
    ToolBlock,
    ToolState,
    UserBlock,
    duration_text,
    outcome_text,
    question_text,
    result_text,
    spent_text,
)
from quarterdeck.transcript.export import diff_lines, unfenced
from quarterdeck.transcript.fold import BlockChanges, Transcript
from quarterdeck.transcript.text import clean, one_line

LONGEST_NAME = 200
"""Characters of a command or title that are said; `output` shows all."""
MOST_OUTPUT = 3
"""Lines of output that are said at once."""

_ENDS = re.compile(r"[^\W\d_][.!?][\"')\]]*[^\S\n]+(?=[^\W\d_a-z])|[。\uff01\uff1f]")
"""The end of a sentence, by what follows it; not that of a number or an abbreviation."""
_LAST = re.compile(r"[.!?:。\uff01\uff1f][\"')\]]*\s*$")
"""Like the end of a sentence, when nothing follows for a while."""
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_DONE = {ToolState.COMPLETED: "Done", ToolState.FAILED: "Failed", ToolState.STOPPED: "Stopped"}
_STEPS = {PlanState.PENDING: "", PlanState.IN_PROGRESS: "in progress", PlanState.COMPLETED: "done"}


@dataclass
class _Read:
    """What was said of a block."""

    length: int = 0
    """Characters of a message."""
    steps: tuple[PlanEntry, ...] | None = None
    """Of a plan."""
    state: object = None
    """Of everything else, what the lines depended on."""


@dataclass
class TranscriptLines:
    """Returns the lines that are new. `agent` is the name before what the agent says."""

    transcript: Transcript
    agent: str
    _read: dict[int, _Read] = field(default_factory=dict[int, _Read])
    _open: SpeechBlock | None = None
    """The message whose last sentence is not complete."""

    def take(self, change: BlockChanges) -> list[str]:
        """Return the lines of changed blocks; those of an older page are not read."""
        if change.older:
            self._skip(change.added)
            return []
        found = (self.transcript.block(id) for id in (*change.added, *change.changed))
        return self.read(block for block in found if block is not None)

    def read(self, blocks: Iterable[Block]) -> list[str]:
        """Return what is new in blocks, in order."""
        lines: list[str] = []
        for block in blocks:
            if self._open is not None and block is not self._open:
                lines += self._finished()
            lines += self._news(block)
        if self._open is not None and not self._open.turn.is_open:
            lines += self._finished()
        return lines

    @property
    def waits(self) -> bool:
        """Whether the last sentence may be complete: what follows would tell."""
        block = self._open
        if block is None or self._of(block).length >= len(block.text):
            return False
        return _LAST.search(block.text) is not None

    def paused(self) -> list[str]:
        """Return the last sentence, as nothing has followed."""
        return list(self._speech(self._open, to_end=True)) if self._open and self.waits else []

    def continued_in(self, transcript: Transcript) -> "TranscriptLines":
        """Return a reader of the same chat, loaded again, that has read as much."""
        new = TranscriptLines(transcript, self.agent)
        known = {
            _identity(block): self._read[block.id]
            for block in self.transcript.blocks
            if block.id in self._read
        }
        newest = max((block.at for block in self.transcript.blocks), default=None)
        for block in transcript.blocks:
            if (read := known.get(_identity(block))) is not None:
                new._read[block.id] = read
            elif newest is not None and block.at <= newest:
                new._skip([block.id])
        return new

    def same_block(self, other: Block | None) -> Block | None:
        """Return the block that another transcript of the chat has too, else the oldest."""
        blocks = self.transcript.blocks
        wanted = _identity(other) if other is not None else None
        found = (block for block in blocks if _identity(block) == wanted)
        return next(found, blocks[0] if blocks else None)

    def skip_before(self, first: Block | None) -> None:
        """Treat all blocks before this one as read; None for all."""
        blocks = self.transcript.blocks
        end = self.transcript.position(first.id) if first is not None else None
        self._skip(block.id for block in blocks[:end])

    def _skip(self, ids: Iterable[int]) -> None:
        """Treat blocks as read, except a sentence at the end that is not complete."""
        for block in filter(None, map(self.transcript.block, ids)):
            if isinstance(block, MessageBlock | EchoBlock):
                is_last = block is self.transcript.blocks[-1]
                text = block.text
                self._of(block).length = complete_length(text) if is_last else len(text)
            else:
                self._news(block)

    def _finished(self) -> list[str]:
        block, self._open = self._open, None
        return list(self._speech(block, to_end=True)) if block is not None else []

    def _news(self, block: Block) -> list[str]:
        match block:
            case ThoughtBlock():
                return self._if_new(block, True, ["Thinking."])
            case MessageBlock() | EchoBlock():
                self._open = block
                return list(self._speech(block, to_end=False))
            case UserBlock():
                return self._if_new(block, True, _person_lines(block))
            case ToolBlock():
                return list(self._tool(block))
            case PlanBlock():
                return list(self._plan(block))
            case QuestionBlock():
                tool = self.transcript.tool(block.tool_id) if block.tool_id else None
                lines = question_lines(block, tool, self.agent)
                return self._if_new(block, block.is_open, lines)
            case ResultBlock():
                # The state of the replica says that a turn is over.
                text = labelled(f"{result_text(block).removesuffix('.')}.")
                lines = [] if block.is_plain else [text]
                return self._if_new(block, True, lines)
            case NoteBlock():
                return self._if_new(block, True, [labelled(block.text)])
            case _:
                return []

    def _of(self, block: Block) -> _Read:
        return self._read.setdefault(block.id, _Read())

    def _if_new(self, block: Block, state: object, lines: list[str]) -> list[str]:
        read = self._of(block)
        if read.state == state:
            return []
        read.state = state
        return lines

    def _speech(self, block: SpeechBlock, *, to_end: bool) -> Iterator[str]:
        read, text = self._of(block), block.text
        end = len(text) if to_end else complete_length(text)
        if end <= read.length:
            return
        fresh = text[read.length : end]
        lead = "" if text[: read.length].strip() else self._speaker(block)
        read.length = end
        if fresh := fresh.strip("\n").rstrip():
            yield labelled(f"{lead}{fresh}") if lead else indented(fresh)

    def _speaker(self, block: SpeechBlock) -> str:
        return "You: " if isinstance(block, EchoBlock) else f"{self.agent}: "

    def _tool(self, block: ToolBlock) -> Iterator[str]:
        read, ended = self._of(block), _DONE.get(block.state)
        if read.state == (ended or "begun"):
            return
        read.state = ended or "begun"
        if ended is None:
            asked = any(one.tool_id == block.tool_id for one in self.transcript.open_questions)
            if not asked:
                yield f"Tool: {_short(block.name)}"
            return
        facts = [] if block.exit_code is None else [f"exit {block.exit_code}"]
        facts += [] if block.duration is None else [duration_text(block.duration)]
        yield ", ".join([f"{ended}: {_short(block.name)}", *facts])
        yield from _outcome(block)

    def _plan(self, block: PlanBlock) -> Iterator[str]:
        read, steps = self._of(block), block.entries
        before, read.steps = read.steps, steps
        texts = [step.text for step in steps]
        if before is not None and [step.text for step in before] == texts:
            for number, (old, new) in enumerate(zip(before, steps, strict=True), 1):
                if old != new and _STEPS[new.state]:
                    yield f"Step {number} {_STEPS[new.state]}: {one_line(new.text)}"
            return
        yield f"Plan, {_count(len(texts), 'step')}:"
        for number, entry in enumerate(steps, 1):
            state = f" ({_STEPS[entry.state]})" if _STEPS[entry.state] else ""
            yield f"{number}. {one_line(entry.text)}{state}"


def indented(text: str) -> str:
    """Return what others wrote, so that none of its lines looks like one of the program's own."""
    return "\n".join(f"  {line}" if line else line for line in clean(text).split("\n"))


def labelled(text: str) -> str:
    """Return a line of the program's own; what others wrote follows in it, and is indented from there on."""
    first, newline, rest = clean(text).partition("\n")
    return f"{first}{newline}{indented(rest)}"


def _identity(block: Block) -> object:
    match block:
        case ToolBlock():
            return block.tool_id
        case QuestionBlock():
            return block.request_id
        case _:
            return type(block), block.at


def complete_length(text: str) -> int:
    """Return how much of a message consists of whole lines and sentences. Lines of code stay whole."""
    line = text.rfind("\n") + 1
    if len(_FENCE.findall(text)) % 2:
        return line
    ends = [match.end() for match in _ENDS.finditer(text, line)]
    return ends[-1] if ends else line


def question_lines(block: QuestionBlock, tool: ToolBlock | None, agent: str) -> list[str]:
    """Return a question with its answers, or how it ended."""
    if not block.is_open:
        return [labelled(f"Answered: {outcome_text(block)}")]
    lines = [labelled(f"{agent} asks: {question_text(block, tool)}")]
    if block.command:
        lines.append(labelled(f"Command: {block.command}"))
    lines += [
        _diff_line(part)
        for part in (tool.shown_parts if tool else ())
        if isinstance(part, DiffPart)
    ]
    options = block.options or ()
    lines += [f"{number}. {one_line(option.name)}" for number, option in enumerate(options, 1)]
    lines.append(_how_to_answer(block))
    return lines


def _how_to_answer(block: QuestionBlock) -> str:
    if block.secret:
        return "Type answer, then the secret when it is asked for; it is not shown."
    ways = ["a number"] if block.options else []
    ways += ["your own text"] if block.takes_text else []
    ways += ["reject and a reason"] if rejection_of(block) else []
    return f"Type {' or '.join(ways)}." if ways else "No answers to choose from."


def rejection_of(block: QuestionBlock) -> str | None:
    """Return the id of the option that rejects: only this time, where there is a choice."""
    kinds = {option.kind: option.id for option in reversed(block.options or ())}
    return kinds.get("reject_once") or kinds.get("reject_always")


def tool_lines(block: ToolBlock) -> list[str]:
    """Return everything that a tool call has to show."""
    lines = [labelled(f"{_DONE.get(block.state, 'Tool')}: {block.name}")]
    if block.command and block.command != block.name:
        lines.append(labelled(f"Command: {block.command}"))
    for part in block.shown_parts:
        match part:
            case TextPart():
                lines.append(indented(unfenced(part.text).rstrip("\n")))
            case DiffPart():
                lines += [_diff_line(part), *map(labelled, diff_lines(part))]
            case _:
                lines.append("Output in a terminal.")
    return lines if len(lines) > 1 else [*lines, "No output."]


def spent_lines(transcript: Transcript) -> list[str]:
    """Return what the newest turn took, where that is known."""
    ends = (block for block in reversed(transcript.blocks) if isinstance(block, ResultBlock))
    spent = next(map(spent_text, ends), "").replace(" \u00b7", ",")
    return [f"The last turn took: {spent}."] if spent else []


def _outcome(block: ToolBlock) -> Iterator[str]:
    """Yield short output, and what there is of longer output."""
    for part in block.shown_parts:
        match part:
            case TextPart():
                output = unfenced(part.text).strip("\n")
                lines = output.split("\n") if output else []
                if len(lines) <= MOST_OUTPUT:
                    yield from map(indented, lines)
                else:
                    yield f"{len(lines)} lines of output; type output to read them."
            case DiffPart():
                yield _diff_line(part)
            case _:
                pass


def _diff_line(part: DiffPart) -> str:
    signs = [line[:1] for line in diff_lines(part)]
    added, removed = signs.count("+"), signs.count("-")
    return f"Change of {one_line(part.path)}: {counts_text(added, removed)}"


def counts_text(added: int, removed: int) -> str:
    """Return counted lines as text: `2 lines added, 1 removed`."""
    return f"{_count(added, 'line')} added, {removed} removed"


def _person_lines(block: UserBlock) -> list[str]:
    files = [f"Image: {name}" for name in block.images] + [
        f"File: {name}" for name in block.uploads
    ]
    return [labelled(f"You: {block.text}"), *files]


def _short(name: str) -> str:
    line = one_line(name)
    return line if len(line) <= LONGEST_NAME else f"{line[:LONGEST_NAME]} ..."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
