"""What keys do to a reader: the block cursor, pages, prompts, questions."""

from quarterdeck.transcript import Block, QuestionBlock, UserBlock
from quarterdeck.tui.transcript_view.reader import Reader


def step(reader: Reader, by: int) -> None:
    """The cursor to the next (1) or previous (-1) block; through a high block line by line."""
    question = _question(reader)
    if question and reader.choose(question, reader.choice(question) + by):
        return
    index = _cursor_index(reader)
    if index is None:
        _enter(reader, by)
        return
    row, end = _extent(reader, index)
    viewport = reader.viewport
    if (by > 0 and end > viewport.height) or (by < 0 and row < 0):
        viewport.move(by)
        return
    target = index + by
    if not 0 <= target < len(reader.transcript.blocks):
        return
    _set(reader, target)
    if by < 0 and viewport.heights[target] > viewport.height - 1:
        viewport.move(-1)
    else:
        viewport.reveal(target)


def page(reader: Reader, by: int) -> None:
    """A window further, one line kept."""
    reader.viewport.move(by * max(1, reader.viewport.height - 1))
    shown = [index for index, row in reader.viewport.rows() if row >= 0]
    if shown:
        _set(reader, shown[-1] if by > 0 else shown[0])


def top(reader: Reader) -> None:
    """The first line known."""
    reader.viewport.show(0)
    _set(reader, 0)


def bottom(reader: Reader) -> None:
    """The end, and follow it."""
    reader.viewport.end()
    _set(reader, len(reader.transcript.blocks) - 1)


def prompt(reader: Reader, by: int) -> bool:
    """The next or previous user message at the top; False when there is none."""
    blocks = reader.transcript.blocks
    at = _cursor_index(reader)
    at = reader.viewport.index if at is None else at
    for index in range(at + by, len(blocks) if by > 0 else -1, by):
        if isinstance(blocks[index], UserBlock):
            reader.viewport.show(index)
            _set(reader, index)
            return True
    if by > 0:
        bottom(reader)
    return False


def open_question(reader: Reader) -> QuestionBlock | None:
    """The question that a number answers: the one under the cursor, else the only one open.

    None when it is out of sight: nobody answers what they do not see.
    """
    waiting = reader.transcript.open_questions
    question = _question(reader) or (waiting[0] if len(waiting) == 1 else None)
    if question is None:
        return None
    index = reader.transcript.position(question.id)
    return question if any(index == seen for seen, _ in reader.viewport.rows()) else None


def cursor_block(reader: Reader) -> Block | None:
    """The block under the cursor."""
    return None if reader.cursor is None else reader.transcript.block(reader.cursor)


def _question(reader: Reader) -> QuestionBlock | None:
    block = cursor_block(reader)
    return block if isinstance(block, QuestionBlock) and block.is_open else None


def _cursor_index(reader: Reader) -> int | None:
    """Where the cursor is, when it is in the window."""
    index = None if reader.cursor is None else reader.transcript.position(reader.cursor)
    if index is None:
        return None
    return index if any(index == seen for seen, _ in reader.viewport.rows()) else None


def _enter(reader: Reader, by: int) -> None:
    """Puts a cursor that is nowhere, or out of the window, into it."""
    seen = [index for index, _ in reader.viewport.rows()]
    if seen:
        target = seen[-1] if by < 0 or reader.viewport.following else seen[0]
        _set(reader, target)
        reader.viewport.reveal(target)


def _extent(reader: Reader, index: int) -> tuple[int, int]:
    for seen, row in reader.viewport.rows():
        if seen == index:
            return row, row + reader.viewport.heights[index]
    return 0, 0


def _set(reader: Reader, index: int) -> None:
    if 0 <= index < len(reader.transcript.blocks):
        reader.cursor = reader.transcript.blocks[index].id
