"""Damage to bytes that a parser reads."""

import random

TOKENS = [
    *(b"\0", b"\n", b"\r", b"\xff", b"\xc3", b"\xed\xa0\x80", "\u202e\u0301".encode(), b"\\", b"\\u0000"),
    *(b"null", b"true", b"-1", b"1e999", b"9" * 30, b"9" * 5_000, b"NaN", b"18446744073709551616"),
    *(b"[", b"]", b"{", b"}", b'"', b"'", b"''" + b"'", b"[" * 3_000, b'{"a":' * 1_000, b":", b",", b"="),
    *(b"\x1b[", b"\x1b]", b"\x1bP", b"\x1b\\", b"\x9b", b";" * 300, b"99999999"),
    *(b"*", b"/", b"-", b"#", b"L", b"../", b"/etc/", b"|", b"id: ", b"data: ", b"\n\n"),
]  # fmt: skip
"""What parsers give a meaning to."""


def damaged(whole: bytes, by: random.Random) -> bytes:
    """Return what one of many accidents, or somebody on purpose, makes of it."""
    start = by.randrange(len(whole))
    end = min(len(whole), start + by.choice((1, 7, 50, 400, 4096)))
    piece = whole[start:end]
    other = by.randrange(len(whole))
    match by.randrange(12):
        case 0:
            return whole[:start]
        case 1:
            return whole[:start] + b"\0" * len(piece) + whole[end:]
        case 2:
            return whole[:start] + by.randbytes(len(piece)) + whole[end:]
        case 3:
            return whole[:start] + whole[end:]
        case 4:
            return whole[:other] + piece + whole[other:]
        case 5:
            flipped = bytes([whole[start] ^ (1 << by.randrange(8))])
            return whole[:start] + flipped + whole[start + 1 :]
        case 6:
            return whole[:start] + str(by.randrange(10**18)).encode() + whole[start:]
        case 7:
            lines = whole.splitlines(keepends=True)
            a, b = by.randrange(len(lines)), by.randrange(len(lines))
            lines[a], lines[b] = lines[b], lines[a]
            return b"".join(lines)
        case 8 | 9:
            return whole[:start] + by.choice(TOKENS) + whole[by.choice((start, end)) :]
        case 10:
            return whole[:start] + piece * by.choice((2, 30)) + whole[end:]
        case _:
            return whole[start:]
