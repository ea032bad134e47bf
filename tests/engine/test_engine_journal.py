import asyncio
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from quarterdeck.engine import journal as journal_module
from quarterdeck.engine.journal import INDEX_JUMP, EntryTooLargeError, Journal, event, note
from quarterdeck.wire.events import EventType


def ignore(type: str, line: bytes) -> None:
    pass


def draft(number: int, size: int = 0):
    return event(EventType.ERROR, {"number": number, "fill": "x" * size})


def number_of(line: bytes) -> int:
    return json.loads(line)["payload"]["number"]


async def take(journal: Journal, after: int, count: int) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    async with asyncio.timeout(60):
        async for lines in journal.follow(after):
            found += lines
            if len(found) >= count:
                break
    return found


async def test_numbers_from_one_and_reads_from_any_index(tmp_path: Path):
    journal = await Journal.open(tmp_path, ignore)
    await asyncio.gather(*(journal.append(draft(n, 300)) for n in range(3000)))
    assert journal.last_index == 3000
    for after in (0, 1, 999, 1500, 2990, 2999):
        found = await take(journal, after, 3000 - after)
        assert [index for index, _ in found] == list(range(after + 1, 3001))
        assert [number_of(line) for _, line in found] == list(range(after, 3000))
    await journal.close()


async def test_a_subscriber_sees_old_then_live_without_gap_or_repeat(tmp_path: Path):
    journal = await Journal.open(tmp_path, ignore)
    for n in range(200):
        await journal.append(draft(n, 2000))
    reading = asyncio.create_task(take(journal, 0, 600))
    for n in range(200, 600):
        await journal.append(draft(n, 2000))
    assert [index for index, _ in await reading] == list(range(1, 601))
    await journal.close()


async def test_pieces_line_up_behind_the_disk_in_order_and_in_few_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    journal = await Journal.open(tmp_path, ignore)
    await journal.append(draft(0))
    written = 0
    write = journal._file.append

    def counted(data: bytes, sync: bool) -> None:
        nonlocal written
        written += 1
        write(data, sync)

    monkeypatch.setattr(journal._file, "append", counted)
    for n in range(1, 1000):
        await journal.append_relaxed(draft(n))
    await journal.append(draft(1000), durable=True)
    assert [number_of(line) for _, line in await take(journal, 0, 1001)] == list(range(1001))
    assert written < 100
    await journal.close()


async def test_a_piece_waits_when_much_is_in_line_or_it_is_large(tmp_path: Path):
    journal = await Journal.open(tmp_path, ignore)
    most = journal_module.RELAXED_ENTRIES - 1  # the journal's own note of its boot is in line too
    for n in range(most):
        await journal.append_relaxed(draft(n))
    assert journal.last_index == 0  # nothing gave way to the disk yet
    await journal.append_relaxed(draft(most))
    assert journal.last_index == most + 1
    await journal.append_relaxed(draft(0, journal_module.RELAXED_BYTES))
    assert journal.last_index == most + 2
    await journal.close()


async def test_a_slow_subscriber_costs_no_memory(tmp_path: Path):
    journal = await Journal.open(tmp_path, ignore)
    following = journal.follow(0)
    await journal.append(draft(0))
    seen = [index for index, _ in await anext(following)]
    for n in range(1, 400):
        await journal.append(draft(n, 10_000))
    kept = sum(len(line) for _, line in journal._recent)
    assert kept <= journal_module.RECENT_BYTES
    while len(seen) < 400:
        seen += [index for index, _ in await anext(following)]
    assert seen == list(range(1, 401))
    await following.aclose()
    await journal.close()


@pytest.mark.parametrize("torn", [b'{"index":4,"ts":"2026', b"#{", b"\0\0\0\0", b'{"index":4}'])
async def test_a_torn_last_line_is_cut_off(tmp_path: Path, torn: bytes):
    journal = await Journal.open(tmp_path, ignore)
    for n in range(3):
        await journal.append(draft(n))
    await journal.close()
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(torn)
    again = await Journal.open(tmp_path, ignore)
    assert again.last_index == 3
    assert await again.append(draft(3)) == 4
    assert [number_of(line) for _, line in await take(again, 0, 4)] == [0, 1, 2, 3]
    await again.close()


async def test_lines_are_told_at_start_and_notes_stay_private(tmp_path: Path):
    journal = await Journal.open(tmp_path, ignore)
    await journal.append(note("secret", {"a": 1}), draft(0), durable=True)
    assert len(await take(journal, 0, 1)) == 1
    await journal.close()
    told: list[str] = []
    again = await Journal.open(tmp_path, lambda type, line: told.append(type))
    assert told == ["#boot", "#secret", "error"]
    await again.close()


def test_the_jump_is_above_all_that_a_crash_may_have_lost() -> None:
    assert INDEX_JUMP > journal_module.UNSYNCED_ENTRIES > journal_module.RELAXED_ENTRIES


async def test_numbers_jump_after_another_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(journal_module, "boot_id", lambda: "first")
    journal = await Journal.open(tmp_path, ignore)
    await journal.append(draft(0))
    await journal.close()
    monkeypatch.setattr(journal_module, "boot_id", lambda: "second")
    again = await Journal.open(tmp_path, ignore)
    assert await again.append(draft(1)) == INDEX_JUMP + 2
    assert [i for i, _ in await take(again, 0, 2)] == [1, INDEX_JUMP + 2]
    assert [i for i, _ in await take(again, 1, 1)] == [INDEX_JUMP + 2]
    await again.close()


async def test_numbers_go_on_above_those_that_are_known(tmp_path: Path):
    """Also where nothing is left of the file, or only its beginning."""
    journal = await Journal.open(tmp_path, ignore, 7)
    assert journal.last_index == 7
    assert await journal.append(draft(0)) == 8
    await journal.close()
    again = await Journal.open(tmp_path, ignore, 20)
    assert await again.append(draft(1)) == 21
    assert [i for i, _ in await take(again, 0, 2)] == [8, 21]
    assert [i for i, _ in await take(again, 20, 1)] == [21]
    await again.close()
    last = await Journal.open(tmp_path, ignore, 15)
    assert last.last_index == 21
    await last.close()


FULL_DISK = """
    import asyncio, json, resource, sys
    from pathlib import Path
    from quarterdeck.engine.journal import event
    from quarterdeck.engine.errors import JournalError
    from quarterdeck.engine.journal import Journal
    from quarterdeck.wire.events import EventType

    def draft(number):
        return event(EventType.ERROR, {"number": number, "fill": "x" * 1000})

    async def main():
        directory = Path(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_500, resource.RLIM_INFINITY))
        journal = await Journal.open(directory, lambda type, line: None)
        number = 0
        while True:
            waiting = asyncio.create_task(journal.append(draft(number)))
            done = {}
            while not (done or journal.fault):
                done, _ = await asyncio.wait({waiting}, timeout=0.3)
            if not done:
                break
            number += 1
        text = (directory / "journal.jsonl").read_bytes()
        assert text.endswith(b"}\\n"), "half-written"
        assert journal.fault == "File too large", journal.fault
        held = [waiting] + [asyncio.create_task(journal.append(draft(number + n))) for n in (1, 2)]
        try:
            await journal.append(draft(999), durable=True, refusable=True)
        except JournalError as error:
            print("refused:", error.message)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        async with asyncio.timeout(60):
            await asyncio.gather(*held)
            await journal.append(draft(number + 3))
        assert journal.fault is None
        await journal.close()
        lines = [json.loads(l) for l in (directory / "journal.jsonl").read_text().splitlines()
                 if not l.startswith("#")]
        assert [l["index"] for l in lines] == list(range(1, number + 5))
        assert [l["payload"]["number"] for l in lines] == list(range(number + 4))
        print("kept", number)

    asyncio.run(main())
"""


def test_a_full_disk_holds_writers_back_and_loses_nothing(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL_DISK), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "refused: The workspace cannot write to its disk: File too large" in done.stdout
    assert "Free some space or make it writable, then try again." in done.stdout
    assert "kept" in done.stdout


def test_an_entry_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(journal_module, "ENTRY_LIMIT", 200)
    draft(1, 100)
    with pytest.raises(EntryTooLargeError, match="over the limit"):
        draft(1, 200)
