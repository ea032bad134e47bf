"""A fork of the open replica, and its files at the start of a turn, in lines."""

import re
from collections.abc import Callable

import pytest

from tests.plain.conftest import Shop, create

pytestmark = pytest.mark.timeout(240)


@pytest.mark.long
def test_a_fork_is_created_and_opened(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        talk.type("fork")
        talk.until("No replica is open.")
        create(talk, "stem", "mend the README")
        talk.type("wait", "fork", "twig")
        assert "Name (Enter for one made from stem):" in talk.until("The agent is working.")
        talk.type("1")
        talk.until("stem is idle.")
        talk.type("fork", "cancel", "fork", "two words", "twig")
        said = talk.until("Opened twig, Scripted.")
        assert "Canceled." in said
        assert "Names cannot contain spaces; use - instead. Name:" in said
        assert "Created twig. It is opened when it has the files." in said
        talk.type("hello", "wait", "changes", "open stem")
        said = talk.until("Opened stem")
        assert "Scripted: You said: hello." in said
        assert "shop, branch qd/twig: 1 file changed, 1 line added, 1 removed." in said
        talk.type("fork", "stem", "fork", "")
        talk.until("A replica has this name already.")
        talk.until("Opened stem-fork, Scripted.")
        talk.type("quit")
        assert talk.finish() == 0
    records = shop.qd("replica", "ls", "--json").json["replicas"]
    assert sorted(record["name"] for record in records) == ["stem", "stem-fork", "twig"]


@pytest.mark.long
def test_a_chat_that_goes_on_in_the_fork_is_not_read_out_again(
    shop: Shop, require_tool: Callable[[str], str]
) -> None:
    require_tool("bwrap")
    first = ("--agent", "builtin", "--wait", "-m", "```sh\necho one\n```")
    assert shop.qd("replica", "create", "--name", "told", *first).code == 0
    second = ("told", "--wait", "```sh\necho two\n```")
    assert shop.qd("replica", "send", *second).code == 0
    with shop.plain() as talk:
        talk.until("Type help")
        talk.type("open told", "fork", "retold", "say", "```sh", "echo three", "```", ".", "wait")
        talk.until("Created retold.")
        opened = talk.until("Forked from told")
        assert "Type earlier for what came before." in opened
        assert "  echo two" in opened and "  echo one" not in opened
        talk.until("You: ```sh")
        assert "  three" in talk.until("retold is idle.")
        assert talk.finish() == 0


def number_of(title: str, listed: list[str]) -> str:
    """Return the number of a checkpoint; those of one second are in any order."""
    pattern = rf'(\d+)\. \d\d \w+ [\d:]{{8}}, "{re.escape(title)}"'
    found = [match[1] for line in listed if (match := re.fullmatch(pattern, line))]
    assert len(found) == 1, listed
    return found[0]


@pytest.mark.long
def test_files_are_rewound_and_the_rewind_is_undone(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "back")
        talk.until("back is idle.")
        talk.type("rewind")
        talk.until("No checkpoints yet. Each turn of the agent starts with one.")
        talk.type("mend the README", "wait", "1")
        talk.until("back is idle.")
        talk.type("hello", "wait", "rewind")
        listed = talk.until("Rewind to which (Enter to cancel):")
        assert {number_of("hello", listed), number_of("mend the README", listed)} == {"1", "2"}
        talk.type("", "rewind", "3", number_of("mend the README", listed), "", "no")
        talk.until("Canceled.")
        asked = talk.until("Inform the agent?")
        assert "Type a number from 1 to 2." in asked
        asked = talk.until('"mend the README"? yes or no:')
        assert asked[:-1] == [
            "Restores the files and branches of shop to the start of this turn.",
            "Takes back +1 -1 in README.",
            "Later commits and changes are removed; ignored files are kept.",
            "The agent is informed with your next message.",
            "This can be undone.",
        ]
        talk.until("Canceled.")
        talk.type("changes", "rewind", number_of("mend the README", listed), "maybe", "n")
        talk.type("yes", "changes")
        assert "1. README, changed: 1 line added, 1 removed." in talk.until("Rewind to which")
        said = talk.until("No changes.")
        assert "Type yes or no." in said and "The agent is not informed." in said
        assert any(line.startswith("Restored the files of ") for line in said)
        talk.type("how are you", "wait", "rewind")
        listed = talk.until("Rewind to which")
        assert "Scripted: You said: how are you." in listed  # without a notice
        talk.type(number_of("Before a rewind", listed), "yes", "yes", "changes", "thanks", "wait")
        said = talk.until("Scripted: You said: ")
        assert "1. README, changed: 1 line added, 1 removed." in said
        assert "a person has rewound" in said[-1]
        assert talk.finish() == 0


def test_without_a_repository_nothing_is_rewound(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        talk.type("new", "-", "scripted", "bare", ".", "rewind")
        talk.until("The replica has no repository.")
        assert talk.finish() == 0


@pytest.mark.long
def test_many_checkpoints_are_listed_in_parts(shop: Shop) -> None:
    with shop.plain() as talk:
        talk.until("Type help")
        create(talk, "many")
        for number in range(21):
            talk.type(f"message {number}", "wait")
        talk.type("rewind", "", "22", "21", "", "yes")
        first = talk.until("Rewind to which (Enter for earlier ones):")
        assert [line.split(".")[0] for line in first[-21:-1]] == [str(n) for n in range(1, 21)]
        last, _ = talk.until("Rewind to which (Enter to cancel):")
        assert last.startswith("21. ")
        talk.until("Type a number from 1 to 21.")
        asked = talk.until("? yes or no:")[-1]
        assert asked == f"Rewind to {last.removeprefix('21. ')}? yes or no:"
        talk.until("Restored the files of ")
        assert talk.finish() == 0
