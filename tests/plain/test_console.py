"""The console on a real terminal: what is shown while a line is typed, and what is left at the end."""

import sys
from collections.abc import Iterator

import pytest

from tests.support.program import Program

SCRIPT = """
import asyncio
from quarterdeck.plain.console import Console

async def main():
    console = Console()
    with console.opened(lambda: console.say("interrupted"), lambda e: talking.cancel()):
        talking = asyncio.create_task(talk(console))
        await asyncio.gather(talking, return_exceptions=True)
        console.say("restored")

async def talk(console):
    loop = asyncio.get_running_loop()
    while (line := await console.line()) is not None:
        word, _, rest = line.partition(" ")
        if word == "secret":
            secret = await console.line("Secret:", secret=True)
            console.say(f"{len(secret)} characters")
        elif word == "ask":
            console.say(await console.line("Rewind to \\x1b]0;x\\x07\\x9b2J\\u202eturn?"))
        elif word == "later":
            console.prompting = rest != "quiet"
            loop.call_later(0.3, console.say, "something has happened")
        else:
            console.say(line)

asyncio.run(main())
"""


@pytest.fixture
def program() -> Iterator[Program]:
    shell = f'trap : INT; "{sys.executable}" -c "$0"; stty -a'
    with Program(["sh", "-c", shell, SCRIPT], columns=40) as opened:
        opened.wait(lambda: opened.raw.endswith(b"> "))
        yield opened
        assert b"\x1b" not in opened.raw


def end(program: Program) -> None:
    """The end of input ends it, and the terminal is as it was."""
    program.type("\x04")
    assert program.finish() == 0
    last = program.text.partition("restored\n")[2]
    assert " icanon" in last and " echo " in last


def test_a_secret_is_not_shown(program: Program) -> None:
    program.type("secret\r")
    program.wait_for("Secret:")
    program.type("swordfish\r")
    program.wait_for("9 characters")
    program.type("and then\r")
    program.wait_for("> and then\nand then")
    assert b"sword" not in program.raw
    end(program)


def test_a_question_is_text(program: Program) -> None:
    """It may quote what others named."""
    program.type("ask\r")
    program.wait_for("Rewind to turn?")
    program.type("yes\r")
    program.wait_for("\nyes\n")
    assert not any(one in program.raw.decode() for one in "\x07\x9b\u202e")
    end(program)


def test_nothing_is_printed_into_a_line_that_is_typed(program: Program) -> None:
    program.type("later\rhal")
    program.wait_for("> hal")
    program.settle(0.6)
    assert "happened" not in program.text
    program.type("f\r")
    program.wait_for("> half\nsomething has happened\nhalf\n>")
    program.type("later\rx")
    program.wait_for("> x")
    program.settle(0.6)
    program.type("\x7f")
    program.wait(lambda: program.text.count("happened") == 2)
    end(program)


def test_there_is_no_prompt_while_nothing_is_expected(program: Program) -> None:
    program.type("later quiet\r")
    program.wait_for("happened")
    program.settle(0.2)
    assert program.text.rstrip().endswith("> later quiet\nsomething has happened")
    program.type("a")
    program.wait_for("> a")
    program.type("\r")
    end(program)


def test_the_interrupt_key_clears_the_line_before_it_interrupts(program: Program) -> None:
    program.type("hal")
    program.wait_for("> hal")
    program.type("\x03")
    program.wait_for("> hal\n>")
    assert "interrupted" not in program.text
    program.type("\x03")
    program.wait_for("interrupted")
    program.type("whole\r")
    program.wait_for("> whole\nwhole")
    end(program)


def test_long_lines_break_between_words(program: Program) -> None:
    program.type("one two three four five six seven eight nine ten\r")
    program.wait_for("\none two three four five six seven eight\n  nine ten")
    end(program)
