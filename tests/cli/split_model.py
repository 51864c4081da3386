"""Cuts a GGUF file into a split set of two."""
import struct

SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # bytes of a scalar, by type
STRING, ARRAY = 8, 9
ALIGNMENT = 32


def skip_string(data, at):
    return at + 8 + struct.unpack_from("<Q", data, at)[0]


def skip_value(data, at, kind):
    if kind == STRING:
        return skip_string(data, at)
    if kind != ARRAY:
        return at + SIZES[kind]
    element, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if element != STRING:
        return at + SIZES[element] * count
    for _ in range(count):
        at = skip_string(data, at)
    return at


def aligned(size):
    return -size % ALIGNMENT


def key(name, kind, value):
    return struct.pack("<Q", len(name)) + name + struct.pack("<I", kind) + value


def read(data):
    """The keys' bytes and number; each tensor's (head up to its offset, bytes of data)."""
    magic, version, n_tensors, n_keys = struct.unpack_from("<4sIQQ", data)
    assert magic == b"GGUF" and version == 3
    first = at = 24
    for _ in range(n_keys):
        at = skip_string(data, at)
        at = skip_value(data, at + 4, *struct.unpack_from("<I", data, at))
    keys, heads, offsets = data[first:at], [], []
    for _ in range(n_tensors):
        end = skip_string(data, at)
        end += 4 + 8 * struct.unpack_from("<I", data, end)[0] + 4
        heads.append(data[at:end])
        offsets.append(struct.unpack_from("<Q", data, end)[0])
        at = end + 8
    start = at + aligned(at)
    ends = offsets[1:] + [len(data) - start]
    return keys, n_keys, [(head, data[start + a:start + b]) for head, a, b in zip(heads, offsets, ends)]


def shard(index, keys, n_keys, tensors, total):
    split = key(b"split.no", 2, struct.pack("<H", index)) + key(b"split.count", 2, struct.pack("<H", 2)) + key(
        b"split.tensors.count", 5, struct.pack("<i", total))
    head = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), n_keys + 3) + keys + split
    body = b""
    for info, data in tensors:
        head += info + struct.pack("<Q", len(body))
        body += data + bytes(aligned(len(data)))
    return head + bytes(aligned(len(head))) + body


def split_model(path, folder):
    """Write the set into a folder; the paths of its files."""
    keys, n_keys, tensors = read(path.read_bytes())
    half = len(tensors) // 2
    shards = [shard(0, keys, n_keys, tensors[:half], len(tensors)), shard(1, b"", 0, tensors[half:], len(tensors))]
    paths = [folder / f"split-0000{i + 1}-of-00002.gguf" for i in range(2)]
    for file, data in zip(paths, shards):
        file.write_bytes(data)
    return paths
