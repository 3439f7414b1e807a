"""CRC-32C in pure Python, fast enough for the sender.

A table look-up costs some 60 ns per byte in the interpreter. Therefore long inputs are folded first. A fold
multiplies the words of the first part by x^(8 * distance) modulo the polynomial, and adds them to the words `distance` bytes
later. The input gets shorter, and its CRC stays the same because a CRC is linear (the idea of Gopal et al., Fast CRC Computation
for Generic Polynomials Using PCLMULQDQ, 2009). The multiplication of a 32-bit word takes 16 tables that map a byte to a byte.
`bytes.translate` applies a table at the speed of C, so that all folds of a long input together cost some 5 ns per byte.

Before: wire. The polynomial is that of RFC 3720, section 12.1.
"""

from __future__ import annotations

POLYNOMIAL = 0x82F63B78
MASK = 0xFFFFFFFF

# A fold of a shorter input costs more time than it saves.
_FOLD_BYTES_MIN = 256


def _byte_table() -> list[int]:
    table = []
    for crc in range(256):
        for _ in range(8):
            crc = crc >> 1 ^ (POLYNOMIAL if crc & 1 else 0)  # noqa: PLW2901
        table.append(crc)
    return table


_TABLE = _byte_table()
_planes_by_distance: dict[int, list[list[bytes]]] = {}


def _advance(crc: int, zeros: int) -> int:
    """The register after `zeros` zero bytes."""
    for _ in range(zeros):
        crc = crc >> 8 ^ _TABLE[crc & 255]
    return crc


def _apply(columns: list[int], word: int) -> int:
    result, bit = 0, 0
    while word:
        if word & 1:
            result ^= columns[bit]
        word >>= 1
        bit += 1
    return result


def _columns(distance: int) -> list[int]:
    """The linear map from a word to its value `distance` bytes later, as the images of its 32 bits."""
    if distance <= 4:
        return [_advance(1 << bit, distance) for bit in range(32)]
    half = _columns(distance // 2)
    return [_apply(half, column) for column in half]


def _planes(distance: int) -> list[list[bytes]]:
    """`[source byte][target byte]` -> table of 256 bytes, for a distance that is a power of two, at least 4."""
    planes = _planes_by_distance.get(distance)
    if planes is None:
        columns = _columns(distance)
        planes = []
        for source in range(4):
            images = [0] * 256
            for value in range(1, 256):
                low = value & -value
                images[value] = images[value ^ low] ^ columns[8 * source + low.bit_length() - 1]
            planes.append([bytes(image >> 8 * target & 255 for image in images) for target in range(4)])
        _planes_by_distance[distance] = planes
    return planes


def _fold(planes: list[bytes]) -> list[bytes]:
    """A shorter input with the same remainder. `planes[i]`: byte i of each word."""
    words = len(planes[0])
    distance = 1 << (words - 1).bit_length() - 1
    head = words - distance
    tables = _planes(4 * distance)
    heads = [plane[:head] for plane in planes]
    folded = []
    for target in range(4):
        # In a big-endian number the last bytes are the lowest, so XOR adds the head to the last words.
        total = int.from_bytes(planes[target][head:], "big")
        for source in range(4):
            total ^= int.from_bytes(heads[source].translate(tables[source][target]), "big")
        folded.append(total.to_bytes(distance, "big"))
    return folded


def _folded(data: bytes) -> bytes:
    """Returns at most `_FOLD_BYTES_MIN` bytes. Their CRC with a register that starts at 0 is the CRC of `data` with a register
    that starts at `MASK`."""
    # Inverting the first four bytes replaces the register's start value. With a start value of 0, leading zeros have no effect.
    words = bytes(-len(data) % 4) + bytes(byte ^ 255 for byte in data[:4]) + data[4:]
    planes = [words[plane::4] for plane in range(4)]
    while len(planes[0]) > _FOLD_BYTES_MIN // 4:
        planes = _fold(planes)
    short = bytearray(4 * len(planes[0]))
    for plane in range(4):
        short[plane::4] = planes[plane]
    return bytes(short)


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli) of `data`, 0 to 2^32 - 1."""
    crc = MASK
    if len(data) > _FOLD_BYTES_MIN:
        data, crc = _folded(data), 0
    table = _TABLE
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ MASK
