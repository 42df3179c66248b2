"""The checksum of TensorFlow's checkpoints and of LevelDB."""

import functools

import numpy as np


def crc32c(data: bytes | np.ndarray) -> int:
    """CRC-32C (Castagnoli; RFC 3720, B.4) of bytes, some 400 MB a second.

    A CRC is linear, so rows of 2^16 bytes can be folded: moving a row's words on by one row, which
    is a table look-up for all of them at once, and adding them to the next row gives a row that has
    the checksum of both. What is left at the end goes byte by byte.
    """
    data, state = np.frombuffer(data, np.uint8), 0xFFFFFFFF
    for exponent in (16, 8):
        count = data.size >> exponent
        if count < 2:
            continue
        low, high = _shift_tables(exponent)
        rows = data[: count << exponent].view("<u4").reshape(count, -1)
        folded = rows[0].copy()
        folded[0] ^= np.uint32(state)
        state = 0
        for row in rows[1:]:
            halves = folded.view("<u2")
            folded = low.take(halves[::2])
            folded ^= high.take(halves[1::2])
            folded ^= row
        data = np.concatenate([folded.view(np.uint8), data[count << exponent :]])
    table = _byte_table()
    for byte in data.tolist():
        state = table[(state ^ byte) & 255] ^ state >> 8
    return state ^ 0xFFFFFFFF


def masked(checksum: int) -> int:
    """LevelDB's mask, for checksums that are stored beside what they are of."""
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


@functools.cache
def _byte_table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [crc >> 1 ^ (0x82F63B78 if crc & 1 else 0) for crc in table]
    return table


@functools.cache
def _shift_tables(exponent: int) -> tuple[np.ndarray, np.ndarray]:
    """What 2^exponent zero bytes make of each lower and each upper half of a state."""

    def apply(columns, states):
        found = np.zeros_like(states)
        for bit in range(32):
            found ^= columns[bit] * (states >> np.uint32(bit) & np.uint32(1))
        return found

    table = _byte_table()
    bits = [1 << bit for bit in range(32)]
    columns = np.array([table[bit & 255] ^ bit >> 8 for bit in bits], np.uint32)
    for _ in range(exponent):
        columns = apply(columns, columns)
    halves = np.arange(1 << 16, dtype=np.uint32)
    return apply(columns, halves), apply(columns, halves << np.uint32(16))
