"""Event files that TensorBoard shows, written without TensorBoard.

A file is a row of records (length, its checksum, content, its checksum; the TFRecord format), each
an ``Event`` in the wire format of protocol buffers. Only scalars are written.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_DOUBLE, _BYTES, _FLOAT, _VARINT = 1, 2, 5, 0  # wire types
_POLYNOMIAL: Final = 0x82F63B78  # CRC-32C (Castagnoli), reversed


def _table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        value = byte
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE: Final = _table()


def _checksum(content: bytes) -> bytes:
    """CRC-32C, rotated and offset as the record format has it."""
    value = 0xFFFFFFFF
    for byte in content:
        value = (value >> 8) ^ _TABLE[(value ^ byte) & 0xFF]
    value ^= 0xFFFFFFFF
    masked = (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    return struct.pack("<I", masked)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, wire_type: int, content: bytes) -> bytes:
    length = _varint(len(content)) if wire_type == _BYTES else b""
    return _varint(number << 3 | wire_type) + length + content


def _event(body: bytes, step: int) -> bytes:
    stamp = _field(1, _DOUBLE, struct.pack("<d", time.time()))
    return stamp + _field(2, _VARINT, _varint(step)) + body


class EventFile:
    """A new event file.

    Parameters
    ----------
    path : path-like
        The name must hold ``tfevents`` for TensorBoard to find it.
    """

    def __init__(self, path: str | Path) -> None:
        self._file = Path(path).open("wb")  # noqa: SIM115
        self._write(_event(_field(3, _BYTES, b"brain.Event:2"), 0))

    def add(self, scalars: Mapping[str, float], step: int) -> None:
        """Write scalars by tag at a step, and flush."""
        body = b""
        for tag, number in scalars.items():
            value = _field(1, _BYTES, tag.encode()) + _field(2, _FLOAT, struct.pack("<f", number))
            body += _field(1, _BYTES, value)
        self._write(_event(_field(5, _BYTES, body), step))

    def _write(self, content: bytes) -> None:
        head = struct.pack("<Q", len(content))
        self._file.write(head + _checksum(head) + content + _checksum(content))
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
