"""Drafts, unacknowledged messages and seen marks survive a crash."""

import os
import resource
import stat
from pathlib import Path
from uuid import uuid4

import pytest

from quarterdeck.local.files import LARGEST
from quarterdeck.store.disk import ClientDisk, OutgoingMessage
from quarterdeck.wire.base import utc_now


def outgoing(key: str, state: str = "sending") -> OutgoingMessage:
    return OutgoingMessage.model_validate(
        {
            "key": key,
            "replica_id": str(uuid4()),
            "chat_id": str(uuid4()),
            "text": "fix the tests",
            "created_at": utc_now(),
            "state": state,
        }
    )


def test_a_draft_is_there_for_the_next_cockpit(tmp_path: Path) -> None:
    chat = uuid4()
    ClientDisk(tmp_path).save_draft(chat, "half a thought\n")
    assert ClientDisk(tmp_path).draft(chat) == "half a thought\n"
    ClientDisk(tmp_path).save_draft(chat, "")
    assert ClientDisk(tmp_path).draft(chat) == ""


def test_a_draft_is_for_its_owner_alone(tmp_path: Path) -> None:
    chat = uuid4()
    ClientDisk(tmp_path / "deep").save_draft(chat, "secret plan")
    file = tmp_path / "deep" / "drafts" / f"{chat}.txt"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_message_that_was_being_sent_is_unsure_after_a_crash(tmp_path: Path) -> None:
    first, second = outgoing("a"), outgoing("b", "unsent")
    disk = ClientDisk(tmp_path)
    disk.save_outgoing(second)
    disk.save_outgoing(first)
    found = ClientDisk(tmp_path).outgoing()
    assert [message.key for message in found] == ["a", "b"]
    assert [message.state for message in found] == ["unsure", "unsent"]
    disk.forget_outgoing("a")
    assert [message.key for message in ClientDisk(tmp_path).outgoing()] == ["b"]


def test_a_file_that_cannot_be_read_is_set_aside(tmp_path: Path) -> None:
    disk = ClientDisk(tmp_path)
    disk.save_outgoing(outgoing("good"))
    (tmp_path / "outbox" / "bad.json").write_text("{half")
    assert [message.key for message in disk.outgoing()] == ["good"]
    assert (tmp_path / "outbox" / "bad.unreadable").read_text() == "{half"


def test_seen_marks_survive_and_garbage_is_nothing_seen(tmp_path: Path) -> None:
    disk = ClientDisk(tmp_path)
    seen = {uuid4(): utc_now()}
    disk.save_seen(seen)
    assert ClientDisk(tmp_path).seen() == seen
    for text in ("[1, 2]", '{"a": 1}', f'{{"{uuid4()}": "2026-11-27T20:00"}}', "[" * 100_000):
        (tmp_path / "seen.json").write_text(text)
        assert disk.seen() == {}, text[:20]


@pytest.mark.parametrize("length", range(33))
def test_a_first_start_that_was_cut_has_a_time_zone_or_is_forgotten(
    tmp_path: Path, length: int
) -> None:
    """Others are compared with it, so one without a zone would end the cockpit."""
    (tmp_path / "since").write_text("2026-11-27T20:18:07.123456+00:00"[:length])
    known = ClientDisk(tmp_path).first_opened()
    assert known is None or known < utc_now()
    assert ClientDisk(tmp_path).since() <= utc_now()


def test_a_damaged_draft_is_read_as_far_as_it_can_be_and_none_is_waited_for(tmp_path: Path) -> None:
    chat, replica, disk = uuid4(), uuid4(), ClientDisk(tmp_path)
    for directory, name in (("drafts", f"{chat}.txt"), ("comments", f"{replica}.json")):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / name).write_bytes(b"my \xff text")
    assert disk.draft(chat) == disk.comments(replica) == "my \ufffd text"
    for path in (tmp_path / "drafts" / f"{chat}.txt", tmp_path / "comments" / f"{replica}.json"):
        path.unlink()
        os.mkfifo(path)
    assert disk.draft(chat) == disk.comments(replica) == ""


def test_what_can_be_read_later_stays(tmp_path: Path) -> None:
    """A process without free descriptors reads no draft, which is there again when it has some."""
    chat, replica, disk = uuid4(), uuid4(), ClientDisk(tmp_path)
    disk.save_draft(chat, "mine")
    disk.save_prompts(replica, ["mine"])
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    try:
        assert (disk.draft(chat), disk.prompts(replica)) == ("", [])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert (disk.draft(chat), disk.prompts(replica)) == ("mine", ["mine"])


def test_what_was_set_aside_before_stays(tmp_path: Path) -> None:
    chat, disk = uuid4(), ClientDisk(tmp_path)
    for name in ("unreadable", "unreadable-2"):
        (tmp_path / "drafts" / f"{chat}.txt").mkdir(parents=True)
        assert disk.draft(chat) == ""
        assert (tmp_path / "drafts" / f"{chat}.{name}").is_dir()


@pytest.mark.parametrize("kind", ["drafts", "comments", "prompts"])
@pytest.mark.parametrize("how", ["too large", "directory", "damaged"])
def test_what_cannot_be_read_is_not_written_over(tmp_path: Path, kind: str, how: str) -> None:
    owner, disk = uuid4(), ClientDisk(tmp_path)
    file = tmp_path / kind / f"{owner}.{'txt' if kind == 'drafts' else 'json'}"
    file.parent.mkdir()
    if how == "directory":
        (file / "inner").mkdir(parents=True)
    elif how == "too large":
        file.write_bytes(b"mine")
        os.truncate(file, LARGEST + 1)
    elif kind == "prompts":
        file.write_text('["mine", ')
    else:
        return  # of a text as much is read as can be
    read = {"drafts": disk.draft, "comments": disk.comments, "prompts": disk.prompts}[kind]
    assert not read(owner)
    if kind == "prompts":
        disk.save_prompts(owner, ["new"])
    else:
        {"drafts": disk.save_draft, "comments": disk.save_comments}[kind](owner, "new")
    assert read(owner) in ("new", ["new"])
    aside = file.with_suffix(".unreadable")
    assert aside.is_dir() if how == "directory" else b"mine" in aside.read_bytes()


def test_a_write_that_fails_leaves_the_old_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = uuid4()
    disk = ClientDisk(tmp_path)
    disk.save_draft(chat, "old")

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        disk.save_draft(chat, "new")
    assert disk.draft(chat) == "old"
