#!/usr/bin/env python3
"""Hold Hearth's reading of GGUF to the `gguf` Python package, bit for bit. Needs the PyPI packages gguf and numpy.

    scripts/oracle/dequant_check.py [--library build/release/src/libhearth.so] [--blocks N] [--seed S] [MODEL.gguf ...]

Random blocks of every dtype that Hearth computes with are written by the package into a GGUF file, read back through
the public C functions of include/hearth/file.h, and compared with what the package makes of them. Of each model named,
every metadata value is compared, and some rows of every tensor.
"""

import argparse
import ctypes
import pathlib
import sys
import tempfile

import environment  # says what to run where the packages below are missing

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize

from dequant_vectors import NAMES, expand


class Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("text", ctypes.c_char * 504)]


class Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("name_size", ctypes.c_size_t), ("dtype", ctypes.c_char_p),
                ("supported", ctypes.c_int), ("n_dims", ctypes.c_int), ("dims", ctypes.c_uint64 * 4),
                ("bytes", ctypes.c_uint64), ("shard", ctypes.c_int), ("offset", ctypes.c_uint64),
                ("data", ctypes.c_void_p)]


class Entry(ctypes.Structure):
    _fields_ = [("key", ctypes.c_void_p), ("key_size", ctypes.c_size_t), ("type", ctypes.c_char_p),
                ("element", ctypes.c_char_p), ("count", ctypes.c_uint64)]


class File:
    """A file opened through the C functions."""

    def __init__(self, library, path):
        self.library = library
        self.error = Error()
        self.handle = ctypes.c_void_p()
        for name in ("tensor_count", "entry_count"):
            getattr(library, f"hearth_file_{name}").restype = ctypes.c_uint64
        self._call("open", str(path).encode(), ctypes.byref(self.handle))

    def _call(self, name, *args):
        if getattr(self.library, f"hearth_file_{name}")(*args, ctypes.byref(self.error)) != 0:
            raise RuntimeError(self.error.text.decode())

    def tensors(self):
        for i in range(self.library.hearth_file_tensor_count(self.handle)):
            tensor = Tensor()
            self._call("tensor_at", self.handle, ctypes.c_uint64(i), ctypes.byref(tensor))
            yield ctypes.string_at(tensor.name, tensor.name_size).decode(), tensor

    def row(self, tensor, row):
        out = np.empty(tensor.dims[0], np.float32)
        pointer = out.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        self._call("read_row", self.handle, ctypes.byref(tensor), ctypes.c_uint64(row), pointer)
        return out

    def entries(self):
        for i in range(self.library.hearth_file_entry_count(self.handle)):
            entry = Entry()
            self._call("entry_at", self.handle, ctypes.c_uint64(i), ctypes.byref(entry))
            key = ctypes.string_at(entry.key, entry.key_size).decode()
            kind = (entry.element or entry.type).decode()
            yield key, entry, [self._value(kind, i, e) for e in range(entry.count)]

    def _value(self, kind, i, e):
        where = (self.handle, ctypes.c_uint64(i), ctypes.c_uint64(e))
        if kind == "string":
            data, size = ctypes.c_void_p(), ctypes.c_size_t()
            self._call("string", *where, ctypes.byref(data), ctypes.byref(size))
            return ctypes.string_at(data, size.value)
        if kind in ("f32", "f64"):
            value = ctypes.c_double()
            self._call("float", *where, ctypes.byref(value))
            return value.value
        value = ctypes.c_uint64() if kind.startswith("u") else ctypes.c_int64()
        self._call("uint" if kind.startswith("u") else "int", *where, ctypes.byref(value))
        return bool(value.value) if kind == "bool" else value.value

    def close(self):
        self.library.hearth_file_close(ctypes.byref(self.handle))


def same_bits(a, b):
    """Equal bit for bit, any NaN standing for any other."""
    return bool(np.all((a.view(np.uint32) == b.view(np.uint32)) | (np.isnan(a) & np.isnan(b))))


def check_random(library, folder, blocks, seed):
    rng = np.random.default_rng(seed)
    path = folder / "random.gguf"
    writer = GGUFWriter(path, "random")
    stored = {}
    for name in NAMES:
        dtype = GGMLQuantizationType[name]
        _, size = GGML_QUANT_SIZES[dtype]
        stored[name] = rng.integers(0, 256, (blocks // 4, 4 * size), dtype=np.uint8)
        if dtype in (GGMLQuantizationType.F32, GGMLQuantizationType.F16):
            writer.add_tensor(name, stored[name].view(np.float32 if name == "F32" else np.float16))
        else:
            writer.add_tensor(name, stored[name], raw_dtype=dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    file = File(library, path)
    failures = 0
    for name, tensor in file.tensors():
        assert tensor.dtype.decode() == name and tensor.supported
        with np.errstate(all="ignore"):
            want = expand(GGMLQuantizationType[name], stored[name].reshape(-1)).reshape(len(stored[name]), -1)
        got = np.stack([file.row(tensor, row) for row in range(len(want))])
        good = same_bits(got, np.ascontiguousarray(want))
        print(f"{name}: {want.size} values, {'equal' if good else 'DIFFERENT'}")
        failures += not good
    file.close()
    return failures


def field_values(field):
    """The values of a reader's field as a list."""
    kind = field.types[-1]
    if kind == GGUFValueType.STRING:
        return [bytes(field.parts[index]) for index in field.data]
    return [field.parts[index][0].item() for index in field.data]


def check_model(library, path, seed):
    rng = np.random.default_rng(seed)
    reader, file = GGUFReader(path), File(library, path)
    failures = 0
    fields = {name: field for name, field in reader.fields.items() if not name.startswith("GGUF.")}
    entries = {key: values for key, _, values in file.entries()}
    if list(fields) != list(entries):
        print(f"{path}: other keys")
        failures += 1
    for key, field in fields.items():
        if field_values(field) != entries.get(key):
            print(f"{path}: {key} differs")
            failures += 1
    wanted = {tensor.name: tensor for tensor in reader.tensors}
    rows = 0
    for name, tensor in file.tensors():
        want = wanted.pop(name)
        dims = [int(d) for d in want.shape] + [1] * (4 - len(want.shape))
        if list(tensor.dims) != dims or tensor.offset != want.data_offset or tensor.bytes != want.n_bytes:
            print(f"{path}: {name}: other shape or place")
            failures += 1
        if not tensor.supported:
            continue
        total = dims[1] * dims[2] * dims[3]
        data = want.data.reshape(total, -1)
        for row in {0, total - 1, *rng.integers(0, total, 6).tolist()}:
            value = data[row]
            if want.tensor_type in (GGMLQuantizationType.F32, GGMLQuantizationType.F16):
                value = value.astype(np.float32)
            else:
                value = dequantize(value.reshape(1, -1), want.tensor_type).reshape(-1)
            rows += 1
            if not same_bits(file.row(tensor, row), value):
                print(f"{path}: {name} row {row} differs")
                failures += 1
    if wanted:
        print(f"{path}: missing {list(wanted)}")
        failures += 1
    print(f"{path}: {len(fields)} metadata records and {rows} rows compared, {failures} failures")
    file.close()
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", default="build/release/src/libhearth.so")
    parser.add_argument("--blocks", type=int, default=20000, help="random blocks a dtype")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("models", nargs="*")
    args = parser.parse_args()
    library = ctypes.CDLL(str(pathlib.Path(args.library).resolve()))
    with tempfile.TemporaryDirectory() as folder:
        failures = check_random(library, pathlib.Path(folder), args.blocks, args.seed)
    failures += sum(check_model(library, model, args.seed) for model in args.models)
    print("all equal" if not failures else f"{failures} FAILURES")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
