"""Makes hostile messages from sound ones: other values, lengths and nesting, cuts, repetitions, splices.

All functions take the random generator they use, so that a message can be made again from its seed.
"""

import random
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

Format = Literal["json", "msgpack"]

DEPTHS = (20, 40, 200, 1_100, 20_000)
NUMBERS = (0, -1, 1, 2, 7, 255, 256, 65535, 2**31, 2**32, 2**53 + 1, 2**63 - 1, -(2**63))
TRICKY_TEXTS = (
    "",
    "\0",
    "\n",
    "a\nb",
    "\x1b[2J\x1b]0;owned\a",
    "..",
    "../../canary",
    "/etc/passwd",
    "//",
    "record//tmp/x",
    "~/.ssh/authorized_keys",
    "-rf",
    "$(id)",
    "%s%n",
    "{0.__class__}",
    "null",
    "NaN",
    "inf",
    "1e400",
    "0x10",
    "٣",
    "\u202e\ufeff",
    "\U0001f600" * 3,
    "<script>alert(1)</script>",
    "x" * 300,
    "x" * 70_000,
)
_JSON_RAW = (
    b"NaN",
    b"Infinity",
    b"1e999",
    b"-1e999",
    b"9223372036854775808",
    b"18446744073709551616",
    b"9" * 5_000,
    b"-0",
    b"1.5",
    b'"\\ud800"',
    b'"\\u0000"',
    b'"\xff\xfe"',
    b'{"a":1,"a":2}',
)
_MSGPACK_RAW = (
    b"\xcf" + b"\xff" * 8,
    b"\xd3\x80" + bytes(7),
    b"\xcb\x7f\xf8" + bytes(6),  # NaN
    b"\xcb\x7f\xf0" + bytes(6),  # infinity
    b"\xdd\xff\xff\xff\xff",  # announces a list of 4,294,967,295 elements without them
    b"\xdf\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",
    b"\xdb\x7f\xff\xff\xff",
    b"\xa2\xff\xfe",  # not UTF-8
    b"\xc7\x08\x01" + bytes(8),
    b"\xd6\xff" + bytes(4),  # a timestamp
    b"\xc1",  # never used
)


def deep(depth: int, format: Format, rng: random.Random) -> msgspec.Raw:
    """Returns nested lists, or maps."""
    if format == "json":
        opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}")))
        return msgspec.Raw(opening * depth + b"1" + closing * depth)
    return msgspec.Raw(rng.choice((b"\x91", b"\x81\xa1a")) * depth + b"\xc0")


def hostile(format: Format, rng: random.Random) -> Any:
    """Returns a value that a careless reader may fail on."""
    choice = rng.random()
    if choice < 0.3:
        return rng.choice(NUMBERS) + rng.randint(-1, 0) if rng.random() < 0.3 else rng.choice(NUMBERS)
    if choice < 0.55:
        return rng.choice(TRICKY_TEXTS)
    if choice < 0.75:
        return msgspec.Raw(rng.choice(_JSON_RAW if format == "json" else _MSGPACK_RAW))
    if choice < 0.85:
        return rng.choice((None, True, False, [], {}, 0.5, -1.5, b"\xff", [[]], {"": None}))
    if choice < 0.93:
        return deep(rng.choice(DEPTHS[:-1]), format, rng)
    if choice < 0.935:
        return deep(DEPTHS[-1], format, rng)
    return [rng.choice(NUMBERS)] * rng.choice((1, 3, 50, 1000))


def changed(value: Any, format: Format, rng: random.Random) -> Any:
    """Returns the same value with something changed in it."""
    inside = isinstance(value, (dict, list, tuple)) and len(value) > 0
    if not inside or rng.random() < 0.12:
        return _replaced(value, format, rng)
    if isinstance(value, dict):
        return _changed_map(value, format, rng)
    return _changed_list(list(value), format, rng)


def several_changes(value: Any, format: Format, rng: random.Random) -> Any:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = changed(value, format, rng)
    return value


def encoded(value: Any, format: Format) -> bytes:
    """Encodes a value; values that the format cannot express become its nearest hostile equivalent."""
    module: Any = msgspec.json if format == "json" else msgspec.msgpack
    try:
        data: bytes = module.encode(value)
    except (OverflowError, UnicodeEncodeError, TypeError, msgspec.MsgspecError):
        data = rng_free_garbage(format)
    return data


def rng_free_garbage(format: Format) -> bytes:
    return b'{"a":' if format == "json" else b"\xc1\xc1"


def _replaced(value: Any, format: Format, rng: random.Random) -> Any:
    if isinstance(value, bool):
        return rng.choice((not value, hostile(format, rng)))
    if isinstance(value, int) and rng.random() < 0.5:
        return value + rng.choice((-1, 1, 2**31, -(2**31), 1000))
    if isinstance(value, (str, bytes)) and value and rng.random() < 0.4:
        return _changed_text(value, rng)
    return hostile(format, rng)


def _changed_text(text: Any, rng: random.Random) -> Any:
    at = rng.randrange(len(text) + 1)
    if isinstance(text, bytes):
        return text[:at] + rng.choice((b"", b"\0", b"\xff", text)) + text[at + rng.randint(0, 2) :]
    return (
        text[:at] + rng.choice(("", "\0", "\n", "/", "/../", " ", text, "é")) + text[at + rng.randint(0, 2) :]
    )


def _changed_map(value: dict[Any, Any], format: Format, rng: random.Random) -> dict[Any, Any]:
    key = rng.choice(list(value))
    choice = rng.random()
    if choice < 0.1:
        return {k: v for k, v in value.items() if k != key}
    if choice < 0.2:
        return {**value, rng.choice(TRICKY_TEXTS[:-1]): hostile(format, rng)}
    if choice < 0.25:
        return {(rng.choice(TRICKY_TEXTS[:-1]) if k == key else k): v for k, v in value.items()}
    return {**value, key: changed(value[key], format, rng)}


def _changed_list(value: list[Any], format: Format, rng: random.Random) -> list[Any]:
    at = rng.randrange(len(value))
    choice = rng.random()
    if choice < 0.08:
        return value[:at] + value[at + 1 :]
    if choice < 0.16:
        return value[:at] + [value[at]] * rng.choice((2, 2, 3, 30, 300)) + value[at + 1 :]
    if choice < 0.24:
        return [*value, hostile(format, rng)]
    if choice < 0.30:
        return rng.sample(value, len(value))
    return [*value[:at], changed(value[at], format, rng), *value[at + 1 :]]


ByteChange = Callable[[bytearray, random.Random], None]


def flip_bits(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def truncate(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def extend(data: bytearray, rng: random.Random) -> None:
    data += rng.randbytes(rng.randint(1, 32))


def insert_or_cut(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    if rng.random() < 0.5:
        data[start:start] = rng.randbytes(rng.randint(1, 16))
    else:
        del data[start : start + rng.randint(1, 16)]


def repeat(data: bytearray, rng: random.Random) -> None:
    start = rng.randrange(len(data))
    piece = data[start : start + rng.randint(1, 32)]
    data[start:start] = piece * rng.choice((1, 2, 20))


_BYTE_CHANGES: Sequence[ByteChange] = (
    flip_bits,
    truncate,
    extend,
    insert_or_cut,
    repeat,
)


def changed_bytes(originals: Sequence[bytes], rng: random.Random) -> bytes:
    """Returns one of the messages, perhaps spliced with another, with bytes changed."""
    data = bytearray(rng.choice(originals))
    if rng.random() < 0.2:
        other = rng.choice(originals)
        data[rng.randrange(len(data) + 1) :] = other[rng.randrange(len(other) + 1) :]
    for _ in range(rng.randint(1, 3)):
        if data:
            rng.choice(_BYTE_CHANGES)(data, rng)
    return bytes(data)


def changed_message(values: Sequence[Any], format: Format, rng: random.Random) -> bytes:
    """Returns one of the values, changed and encoded; sometimes its bytes are changed as well, or instead."""
    value = rng.choice(values)
    choice = rng.random()
    data = encoded(several_changes(value, format, rng) if choice < 0.85 else value, format)
    return changed_bytes((data,), rng) if choice > 0.75 and data else data


def plain(value: Any) -> Any:
    """Turns structs into the lists and maps that they are on the wire."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(value))
