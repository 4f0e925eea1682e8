"""Records what an engine computes for the values of a model: `python3 record.py model.onnx --out FOLDER`.

Needs numpy and the engine, onnxruntime or torch, and nothing else: it runs on the machine that has the accelerator. Copy
FOLDER to where tensorlint is and run `tensorlint compare model.onnx --against FOLDER`.

Values become outputs of the graph by appending to the bytes of the model: a protobuf message that follows another one
is merged with it, and outputs are a repeated field. They are recorded in groups, so that only some are in memory, and
in shards `values-0000.npz`, ... of bounded size. Each run checks that the outputs of the model are still what they are
without further outputs: engines fuse less where values between nodes are recorded. The model that runs is in memory; one
that may have external data is a temporary file beside it, and names no file outside of its folder.

Models are untrusted: what is printed of their names, and of messages that repeat them, is escaped and shortened.

`--torch PROGRAM.pt2` runs the program that the model was exported from instead, in PyTorch, operator by operator, and
records what has a name in the model. `torch.onnx.export(module, args, dynamo=True)` gives such a program:
`torch.export.save(result.exported_program, "program.pt2")`.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import errno
import io
import math
import os
import re
import stat
import subprocess
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

if TYPE_CHECKING:
    import onnxruntime as ort

# Field numbers of onnx.proto.
MODEL_GRAPH = 7
GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_INPUT, GRAPH_OUTPUT = 1, 5, 11, 12
NODE_INPUT, NODE_OUTPUT, NODE_OP, NODE_ATTRIBUTE = 1, 2, 4, 5
ATTRIBUTE_NAME, ATTRIBUTE_INT = 1, 3
VALUE_NAME, TENSOR_NAME = 1, 8
TENSOR_DIM, TENSOR_DTYPE, TENSOR_RAW, TENSOR_LOCATION = 1, 2, 9, 14
ENTRY_KEY, ENTRY_VALUE = 1, 2
# The messages between a model and the entries of its tensors that name external data, and in which fields they are.
WAYS_TO_EXTERNAL_DATA = {
    "model": {MODEL_GRAPH: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {GRAPH_NODE: "node", GRAPH_INITIALIZER: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {NODE_ATTRIBUTE: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
# onnx.TensorProto.DataType: elements in raw data, and the field that has them else, as what.
TENSOR_KINDS: dict[int, tuple[Any, int, Any]] = {
    1: (np.float32, 4, np.float32), 11: (np.float64, 10, np.float64), 7: (np.int64, 7, None), 12: (np.uint32, 11, None), 13: (np.uint64, 11, None),
    **{code: (dtype, 5, None) for code, dtype in ((2, np.uint8), (3, np.int8), (4, np.uint16), (5, np.int16), (6, np.int32), (9, np.bool_), (10, np.float16), (16, np.uint16))},
}
DTYPES = {
    "tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16,
    "tensor(int8)": np.int8, "tensor(int16)": np.int16, "tensor(int32)": np.int32, "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8, "tensor(uint16)": np.uint16, "tensor(uint32)": np.uint32, "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}
BFLOAT16 = "tensor(bfloat16)"
CPU = "CPUExecutionProvider"
# Bytes that are shown of a name, of an engine's message, and of all that one line says; names that it lists.
NAME_LENGTH, ERROR_LENGTH, LINE_LENGTH, LISTED = 200, 1000, 5000, 20
PIECE = 1 << 16  # elements that are drawn at once
MEMBER_LENGTH = 0xFFFF  # bytes of a name in a zip file

T = TypeVar("T")


def visible(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python decodes a byte of a path that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return short.get(character, f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}")


def escaped(text: object, limit: int = NAME_LENGTH) -> str:
    """As base/escape.h has it: controls, marks of direction, surrogates and what else cannot be seen become visible, and
    more than `limit` bytes lose their middle. Escaping twice changes nothing."""
    whole = str(text)
    if len(whole) > 2 * limit + 16:  # what the shortening drops is not escaped: a character becomes no shorter
        whole = whole[: limit + 8] + whole[-(limit // 4) - 8 :]
    shown = "".join(map(visible, whole)).encode()
    gap = "…"
    kept = limit - len(gap.encode())
    if len(shown) <= limit:
        return shown.decode()
    return shown[: kept - kept // 4].decode(errors="ignore") + gap + shown[len(shown) - kept // 4 :].decode(errors="ignore")


def quoted(name: object) -> str:
    return f"`{escaped(name)}`"


def listed(names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(quoted, names[:LISTED])) + more


def say(text: object, to_errors: bool = False) -> None:
    """One line, for people. All that this program prints goes through here: a model chooses names that it repeats."""
    stream = sys.stderr if to_errors else sys.stdout
    encoding = getattr(stream, "encoding", None) or "utf-8"
    print(escaped(text, LINE_LENGTH).encode(encoding, "backslashreplace").decode(encoding), file=stream)


def refuse(why: object) -> NoReturn:
    say(f"record.py: {why}", to_errors=True)
    sys.exit(1)


def first_line(error: BaseException) -> str:
    return escaped(next(iter(str(error).strip().splitlines()), type(error).__name__), ERROR_LENGTH)


def say_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    say(f"record.py: {category.__name__}: {escaped(message, ERROR_LENGTH)}", to_errors=True)


def say_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    for line in "".join(traceback.format_exception(kind, error, trace)).split("\n"):
        say(line, to_errors=True)


def content_of(path: Path) -> bytes:
    """Without waiting for what is no regular file, whose content may have no end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return file.read()


def parsed_model(path: Path, read: Callable[[], T]) -> T:
    try:
        return read()
    except (ValueError, IndexError):
        refuse(f"{quoted(path)} is not an ONNX model, or it is cut short")


def read_model(path: Path) -> bytes:
    """Its names are UTF-8: the engine has no others."""
    try:
        model = content_of(path)
    except OSError as error:
        refuse(f"the model {quoted(path)} cannot be read: {error.strerror}")
    parsed_model(path, lambda: [node_results(model), names_in(model, GRAPH_INPUT, VALUE_NAME), names_in(model, GRAPH_OUTPUT, VALUE_NAME)])
    return model


def varint(data: memoryview, at: int) -> tuple[int, int]:
    """Errors: more than the ten bytes that 64 bits take."""
    value = shift = 0
    while shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("not an ONNX model")


def fields(data: memoryview, numbers: list[tuple[int, int]] | None = None) -> Iterator[tuple[int, memoryview]]:
    """The length-delimited fields of a message; `numbers` gets the fields that are one number.

    Errors: keys of more than 32 bits, of which other readers drop the rest and see another field."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key > 0xFFFFFFFF:
            raise ValueError("not an ONNX model")
        kind = key & 7
        if kind == 0:
            number, at = varint(data, at)
            if numbers is not None:
                numbers.append((key >> 3, number))
        elif kind == 1:
            at += 8
        elif kind == 5:
            at += 4
        elif kind == 2:
            size, at = varint(data, at)
            yield key >> 3, data[at : at + size]
            at += size
        else:
            raise ValueError("not an ONNX model")
    if at != len(data):
        raise ValueError("the model is cut short")


def delimited(field: int, payload: bytes) -> bytes:
    def number(value: int) -> bytes:
        out = bytearray()
        while value >= 0x80:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        out.append(value)
        return bytes(out)

    return number(field << 3 | 2) + number(len(payload)) + payload


def names_in(model: bytes, of: int, name: int) -> list[str]:
    """The strings in field `name` of the main graph's fields `of`, in file order."""
    return [bytes(text).decode() for field, graph in fields(memoryview(model)) if field == MODEL_GRAPH
            for part, message in fields(graph) if part == of for key, text in fields(message) if key == name and len(text) > 0]


def varints(data: memoryview) -> list[int]:
    found, at = [], 0
    while at < len(data):
        number, at = varint(data, at)
        found.append(number)
    return found


def tensor_in(path: Path) -> np.ndarray:
    """The elements of an onnx.TensorProto; of bfloat16 ones their bits."""
    numbers: list[tuple[int, int]] = []
    parts = list(fields(memoryview(content_of(path)), numbers))
    dims = [number for field, number in numbers if field == TENSOR_DIM] + [dim for field, part in parts if field == TENSOR_DIM for dim in varints(part)]
    code = next((number for field, number in numbers if field == TENSOR_DTYPE), 0)
    if code not in TENSOR_KINDS or (TENSOR_LOCATION, 1) in numbers:
        raise ValueError("not a tensor of numbers in one file")
    dtype, field_of_elements, kind = TENSOR_KINDS[code]
    raw = b"".join(bytes(part) for field, part in parts if field == TENSOR_RAW)
    elements = b"".join(bytes(part) for field, part in parts if field == field_of_elements)
    if raw:
        array = np.frombuffer(raw, np.dtype(dtype).newbyteorder("<"))
    elif kind is not None:
        array = np.frombuffer(elements, np.dtype(kind).newbyteorder("<"))
    else:
        found = varints(memoryview(elements)) + [number for field, number in numbers if field == field_of_elements]
        wide = np.array(found, np.uint64)
        array = wide.astype(np.uint16).view(np.float16) if dtype == np.float16 else wide.astype(dtype)
    return array.astype(dtype).reshape(dims)


def node_results(model: bytes) -> list[str]:
    return names_in(model, GRAPH_NODE, NODE_OUTPUT)


def sequence_lengths(model: bytes) -> dict[str, tuple[str, int]]:
    """Values that recurrent layers read as lengths of sequences: which value has the sequences, and its axis of steps."""
    found: dict[str, tuple[str, int]] = {}
    for field, graph in fields(memoryview(model)):
        for part, node in fields(graph) if field == MODEL_GRAPH else ():
            parts = list(fields(node)) if part == GRAPH_NODE else []
            operands = [bytes(text).decode(errors="replace") for key, text in parts if key == NODE_INPUT]
            if len(operands) <= 4 or not any(key == NODE_OP and bytes(text) in (b"LSTM", b"GRU", b"RNN") for key, text in parts):
                continue
            axis = 0
            for attribute in (message for key, message in parts if key == NODE_ATTRIBUTE):
                numbers: list[tuple[int, int]] = []
                if (ATTRIBUTE_NAME, b"layout") in [(key, bytes(text)) for key, text in fields(attribute, numbers)]:
                    axis = dict(numbers).get(ATTRIBUTE_INT, 0)
            found[operands[4]] = operands[0], axis
    return found


def external_locations(model: bytes) -> set[bytes]:
    """Of all tensors, also of those within attributes, nested bodies and functions, and whether or not they say that
    their elements are there: a message that comes twice is merged with what follows."""
    found: set[bytes] = set()
    pending: list[tuple[str, memoryview]] = [("model", memoryview(model))]
    while pending:
        kind, message = pending.pop()
        if kind == "entry":
            parts = [(field, bytes(text)) for field, text in fields(message)]
            if (ENTRY_KEY, b"location") in parts:
                found |= {text for field, text in parts if field == ENTRY_VALUE}
            continue
        ways = WAYS_TO_EXTERNAL_DATA[kind]
        pending += [(ways[field], part) for field, part in fields(message) if field in ways]
    return found


def check_location(folder: Path, location: bytes) -> None:
    """Errors: what leads out of the folder, except into the files of a model hub's cache, and what is not a regular file.
    onnxruntime takes one name, which may be a file's as well, to mean an address in memory."""
    path, real = os.fsdecode(location), folder.resolve()
    if b"\0" in location or b"_ORT_MEM_ADDR_" in location or location.startswith(b"/") or ".." in Path(path).parts:
        refuse(f"external data {quoted(path)} leads out of the model's folder")
    file = Path(os.path.realpath(real / path))
    hub = file.parent.parent
    in_hub = file.parent.name == "blobs" and hub in real.parents and (hub / "snapshots").is_dir()
    if not file.is_relative_to(real) and not in_hub:
        refuse(f"external data {quoted(path)} leads out of the model's folder")
    try:
        is_other = file.exists() and not file.is_file()
    except OSError as error:
        refuse(f"external data {quoted(path)} cannot be read: {error.strerror}")
    if is_other:
        refuse(f"external data {quoted(path)} is not a regular file")


def with_outputs(model: bytes, names: list[str]) -> bytes:
    """The model with further outputs, whose types the engine infers."""
    infos = b"".join(delimited(GRAPH_OUTPUT, delimited(VALUE_NAME, name.encode())) for name in names)
    return model + delimited(MODEL_GRAPH, infos)


def chosen_providers(names: str) -> list[str]:
    """Errors: what the package does not have, where it would run on the CPU instead."""
    import onnxruntime as ort

    providers, available = [name for name in names.split(",") if name], ort.get_available_providers()
    for name in providers:
        if name not in available:
            refuse(f"this onnxruntime has no provider {quoted(name)}: it has {', '.join(available)}")
    return providers


@contextlib.contextmanager
def removed_file(folder: Path) -> Iterator[Any]:
    """A temporary file that is gone afterwards, also where a signal ends this process, as a limit of time does: another
    one waits for that."""
    remove = "import os, sys; sys.stdin.read(); os.path.exists(sys.argv[1]) and os.unlink(sys.argv[1])"
    with tempfile.NamedTemporaryFile(suffix=".onnx", dir=folder, delete=False) as file:
        command = [sys.executable, "-I", "-S", "-c", remove, file.name]
        try:
            remover = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        except BaseException:
            os.unlink(file.name)
            raise
        with remover:  # it ends with its input
            yield file


class Runner:
    def __init__(self, path: Path, providers: list[str], level: str, threads: int) -> None:
        import onnxruntime as ort

        self.path, self.providers, self.threads = path, providers, threads
        self.level = getattr(ort.GraphOptimizationLevel, f"ORT_{level.upper()}" if level == "disable_all" else f"ORT_ENABLE_{level.upper()}")
        self.model = read_model(path)
        # These bytes are in every model with external data: a string is written as it is, whatever surrounds it.
        self.has_locations = b"location" in self.model
        for location in parsed_model(path, lambda: external_locations(self.model)) if self.has_locations else ():
            check_location(path.parent, location)
        ort.set_default_logger_severity(4)  # see `session`

    def session(self, names: list[str]) -> ort.InferenceSession:
        import onnxruntime as ort

        options = ort.SessionOptions()
        options.graph_optimization_level = self.level
        options.intra_op_num_threads = self.threads
        options.log_severity_level = 4  # it writes names as they are; what goes wrong is in the exception, too
        # It would take bytes of another format, of which nothing has been checked, for what they are.
        options.add_session_config_entry("session.load_model_format", "ONNX")
        model = with_outputs(self.model, names) if names else self.model
        try:
            session = self.opened(model, options)
        except OSError as error:
            why = "the model may have external data, so that a copy of it has to be written beside it"
            refuse(f"{why}: {first_line(error)}; copy the model and its data to a folder of yours")
        except Exception as error:
            hint = "; choose other --providers, or record PyTorch with --torch" if "NOT_IMPLEMENTED" in str(error) else ""
            refuse(f"onnxruntime does not take the model: {first_line(error)}{hint}")
        for name in self.providers:
            if name not in session.get_providers():
                refuse(f"onnxruntime cannot start {quoted(name)} here: it would run on {', '.join(session.get_providers())}")
        return session

    def opened(self, model: bytes, options: ort.SessionOptions) -> ort.InferenceSession:
        import onnxruntime as ort

        # Without falling back, of which it prints why, and records other providers than those that were asked for.
        if not self.has_locations:
            return ort.InferenceSession(model, options, providers=self.providers, enable_fallback=0)
        # Of a model in memory it would look for external data in the current folder.
        with removed_file(self.path.parent) as file:
            file.write(model)
            file.flush()
            return ort.InferenceSession(file.name, options, providers=self.providers, enable_fallback=0)

    def kinds(self, names: list[str]) -> dict[str, str]:
        return {each.name: each.type for each in self.session(names).get_outputs()}

    def run(self, names: list[str], inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """All outputs, and the values of `names` that are tensors."""
        session = self.session(names)
        kinds = {each.name: each.type for each in session.get_outputs()}
        wanted = [name for name, kind in kinds.items() if kind in DTYPES or kind == BFLOAT16 or kind == "tensor(string)"]
        feeds = {each.name: ort_input(each.type, inputs[each.name]) for each in session.get_inputs() if each.name in inputs}
        try:
            values = session.run_with_ort_values(wanted, feeds)
        except Exception as error:
            refuse(f"onnxruntime does not run the model with these inputs; --inputs gives others: {first_line(error)}")
        return {name: array_of(kinds[name], value) for name, value in zip(wanted, values, strict=True)}


def ort_input(kind: str, array: np.ndarray) -> ort.OrtValue:
    import onnxruntime as ort

    if kind == BFLOAT16:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(np.asarray(array, order="C").view(np.uint16), 16)
    return ort.OrtValue.ortvalue_from_numpy(np.asarray(array, order="C"))


def array_of(kind: str, value: ort.OrtValue) -> np.ndarray:
    """numpy has no bfloat16: its bits are two opaque bytes, as the package ml_dtypes writes them."""
    if kind != BFLOAT16:
        return np.asarray(value.numpy())
    shape = tuple(value.shape())
    count = int(np.prod(shape, dtype=np.int64))
    import ctypes

    raw = ctypes.string_at(value.data_ptr(), 2 * count) if count else b""
    return np.frombuffer(raw, np.uint16).reshape(shape)


class Shards:
    """`values-0000.npz`, ...: a new one where the next array would make it larger than `limit` bytes.

    `left_out` has the names that no member of a zip file can have: Python cuts them at a NUL byte."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder, self.limit, self.count, self.size = folder, limit, 0, 0
        self.file: zipfile.ZipFile | None = None
        self.left_out: set[str] = set()
        self.names: set[str] = set()

    def add(self, name: str, array: np.ndarray, is_bfloat16: bool) -> None:
        if "\0" in name or len(f"{name}.npy".encode()) > MEMBER_LENGTH:
            self.left_out.add(name)
            return
        if name in self.names:  # an input that is an output, too
            return
        self.names.add(name)
        if self.file is None or self.size + array.nbytes > self.limit:
            self.close()
            path = self.folder / f"values-{self.count:04d}.npz"
            self.file = zipfile.ZipFile(path, "w", zipfile.ZIP_STORED, allowZip64=True)
            self.count, self.size = self.count + 1, 0
        if is_bfloat16:
            array = array.view("V2")
        with self.file.open(f"{name}.npy", "w", force_zip64=True) as member:
            np.lib.format.write_array(member, array, allow_pickle=False)
        self.size += array.nbytes

    def close(self) -> None:
        if self.file is not None:
            self.file.close()

    def say_left_out(self) -> None:
        if self.left_out:
            why = f"a file of values cannot have names with a NUL byte, nor of more than {MEMBER_LENGTH} bytes with `.npy`"
            say(f"not recorded: {listed(sorted(self.left_out))}: {why}")


def numbered_inputs(folder: Path, most: int) -> list[Path]:
    """The first file of each number below `most`, by number."""
    found: dict[int, Path] = {}
    for path in sorted(folder.iterdir()):
        if named := re.fullmatch(r"input_(0|[1-9][0-9]{0,8})\.[np][pb].*", path.name):
            found.setdefault(int(named[1]), path)
    return [found[i] for i in sorted(found) if i < most]


def given_inputs(arguments: argparse.Namespace, names: list[str]) -> dict[str, np.ndarray]:
    """Of NAME=FILE and of folders with `input_0.pb`, `input_1.npy`, ... in the order of `names`."""
    inputs: dict[str, np.ndarray] = {}

    def take(name: str, path: Path) -> None:
        try:
            inputs[name] = tensor_in(path) if path.suffix == ".pb" else np.load(io.BytesIO(content_of(path)), allow_pickle=False)
        except OSError as error:
            refuse(f"{quoted(path)} cannot be read: {error.strerror}")
        except Exception:  # parsers of the standard library, which read headers, raise errors of many classes
            refuse(f"{quoted(path)} is not a {'tensor message of ONNX' if path.suffix == '.pb' else '.npy file'} with numbers")
        if not isinstance(inputs[name], np.ndarray):
            refuse(f"{quoted(path)} has several arrays: give the input {quoted(name)} a .npy file")

    for given in arguments.inputs:
        if Path(given).is_dir():
            files = numbered_inputs(Path(given), len(names) + 1)
            if not files or len(files) > len(names):
                refuse(f"{quoted(given)} has {len(files)} inputs, the model {len(names)}")
            for name, path in zip(names, files, strict=False):
                take(name, path)
            continue
        name, _, file = given.partition("=")
        if "=" not in given:
            refuse(f"{quoted(given)} is neither a folder nor NAME=FILE")
        if name not in names:
            refuse(f"the model has no input {quoted(name)}: it has {listed(names)}")
        take(name, Path(file))
    return inputs


def check_given(declared: ort.NodeArg, array: np.ndarray) -> None:
    kind = np.dtype(np.uint16 if declared.type == BFLOAT16 else DTYPES.get(declared.type, array.dtype))
    fits = len(declared.shape) == array.ndim and all(extent == given for extent, given in zip(declared.shape, array.shape, strict=True) if isinstance(extent, int))
    if array.dtype != kind and array.dtype.itemsize == kind.itemsize and declared.type == BFLOAT16:
        return
    if array.dtype != kind or not fits:
        dims = ", ".join("?" if extent is None else escaped(extent) for extent in declared.shape)
        wanted = f"{'bfloat16' if declared.type == BFLOAT16 else kind}[{dims}]"
        refuse(f"the input {quoted(declared.name)} is {array.dtype}[{', '.join(map(str, array.shape))}], and the model declares {wanted}")


def drawn(shape: list[int], dtype: Any, draw: Callable[[int], np.ndarray]) -> np.ndarray:
    """In pieces, since generators make numbers of 64 bits. Together they are what one call gives."""
    array = np.empty(shape, dtype)
    flat = array.reshape(-1)
    for at in range(0, flat.size, PIECE):
        flat[at : at + PIECE] = draw(min(PIECE, flat.size - at))
    return array


def load_inputs(arguments: argparse.Namespace, session: ort.InferenceSession, lengths: dict[str, tuple[str, int]]) -> dict[str, np.ndarray]:
    """`lengths`: inputs that are lengths of sequences, of which others are drawn first.

    Errors: drawn inputs of more bytes than --memory, all together; a model may declare any extents."""
    inputs = given_inputs(arguments, [each.name for each in session.get_inputs()])
    generator = np.random.default_rng(arguments.seed)
    sizes: dict[str, int] = {}
    total = 0

    def normal(count: int) -> np.ndarray:
        return generator.standard_normal(count)

    def bfloat16(count: int) -> np.ndarray:
        return normal(count).astype(np.float32).view(np.uint32) >> 16

    def below(least: int, most: int) -> Callable[[int], np.ndarray]:
        return lambda count: generator.integers(least, most, count)

    for each in sorted(session.get_inputs(), key=lambda given: given.name in lengths):
        if each.name in inputs:
            check_given(each, inputs[each.name])
            continue
        shape = [extent if isinstance(extent, int) else sizes.setdefault(str(extent), int(generator.integers(2, 5))) for extent in each.shape]
        kind = BFLOAT16 if each.type == BFLOAT16 else DTYPES.get(each.type)
        if kind is None:
            refuse(f"give the input {quoted(each.name)} of type {escaped(each.type)} with --inputs")
        dtype = np.dtype(np.uint16 if kind == BFLOAT16 else kind)
        what = f"the input {quoted(each.name)}, declared as {'bfloat16' if kind == BFLOAT16 else dtype}[{escaped(', '.join(map(str, shape)))}],"
        size = math.prod(shape, start=dtype.itemsize)
        total += size
        if total > arguments.memory:
            beside = f", {total} with the inputs drawn before it" if total > size else ""
            refuse(f"{what} has {size} bytes{beside}, and --memory is {arguments.memory}: give it with --inputs, or allow more")
        draw: Callable[[int], np.ndarray] = normal
        if kind == BFLOAT16:
            draw = bfloat16
        elif each.name in lengths:
            sequences, axis = lengths[each.name]
            extents = inputs[sequences].shape if sequences in inputs else ()
            draw = below(1, max(extents[axis] if axis < len(extents) else 1, 1) + 1)
        elif kind == np.bool_:
            draw = below(0, 2)
        elif np.issubdtype(kind, np.integer):
            draw = below(0, arguments.most)
        try:
            inputs[each.name] = drawn(shape, dtype, draw)
        except (ValueError, MemoryError) as error:
            refuse(f"{what} cannot be drawn: {first_line(error)}")
    return inputs


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def new_shards(arguments: argparse.Namespace) -> Shards:
    folder = Path(arguments.out)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.glob("values*.npz")):
        refuse(f"{quoted(folder)} has recorded values already: name another folder with --out")
    return Shards(folder, arguments.shard)


def chosen_names(arguments: argparse.Namespace, names: list[str], others: list[str]) -> list[str]:
    """Those of `names` that --values lists; it may list `others`, too."""
    chosen = {name.strip() for name in arguments.values.split(",")} if arguments.values else set(names)
    if unknown := chosen - set(names) - set(others):
        near = difflib.get_close_matches(min(unknown), [*names, *others], 1)
        refuse(f"--values: the model has no value {quoted(min(unknown))}" + "".join(f"; did you mean {quoted(name)}?" for name in near))
    return [name for name in names if name in chosen]


def record(arguments: argparse.Namespace) -> int:
    runner = Runner(Path(arguments.model), chosen_providers(arguments.providers), arguments.level, arguments.threads)
    plain = runner.session([])
    inputs = load_inputs(arguments, plain, parsed_model(runner.path, lambda: sequence_lengths(runner.model)))
    bfloat16 = {each.name for each in plain.get_inputs() if each.type == BFLOAT16}
    outputs = [each.name for each in plain.get_outputs()]
    wanted = chosen_names(arguments, [name for name in node_results(runner.model) if name not in outputs], [*outputs, *inputs])
    shards = new_shards(arguments)
    unmarked = runner.run([], inputs)
    again = runner.run([], inputs)
    repeats = all(same(unmarked[name], again[name]) for name in unmarked)
    for name, array in inputs.items():
        shards.add(name, array, name in bfloat16)
    changed: set[str] = set()
    for names, kinds, values in runs(runner, wanted, inputs, arguments.memory):
        changed |= {name for name in unmarked if not same(unmarked[name], values[name])}
        for name in names:
            if name in values and values[name].dtype != object:
                shards.add(name, values[name], kinds[name] == BFLOAT16)
        last = kinds, values
    for name in unmarked:
        if last[1][name].dtype != object:
            shards.add(name, last[1][name], last[0][name] == BFLOAT16)
    shards.close()
    of_inputs = len(shards.left_out & set(inputs))
    say(f"recorded {len(wanted) + len(unmarked) - len(shards.left_out) + of_inputs} values and {len(inputs) - of_inputs} inputs in {escaped(arguments.out)}")
    shards.say_left_out()
    if not repeats:
        say("the engine is not deterministic: two runs of the model give different outputs")
    elif changed:
        are = ("output", "changes") if len(changed) == 1 else ("outputs", "change")
        say(f"{are[0]} {listed(sorted(changed))} {are[1]} when more values are recorded: the engine fuses less then")
    return 0


Run = tuple[list[str], dict[str, str], dict[str, np.ndarray]]


def runs(runner: Runner, wanted: list[str], inputs: dict[str, np.ndarray], memory: int) -> Iterator[Run]:
    """Names, types and values of all, in one run if that fits: values of several runs need not belong together."""
    first = wanted[:16]  # so few at first: nothing is known of their sizes
    values = runner.run(first, inputs)
    each = sum(values[name].nbytes for name in first if name in values) // max(len(first), 1)
    group = len(wanted) if each * len(wanted) <= memory else max(1, memory // max(each, 1))
    for at in range(0, max(len(wanted), 1), max(group, 1)):
        names = wanted[at : at + group]
        yield names, runner.kinds(names), runner.run(names, inputs)


def array_of_torch(tensor: Any) -> tuple[np.ndarray, bool]:
    """The elements, and whether they are bits of bfloat16 numbers."""
    import torch

    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(np.uint16), True
    return tensor.numpy(), False


def torch_inputs(arguments: argparse.Namespace, program: Any, names: list[str]) -> list[Any]:
    """By input of the program: what is given, else the examples that it was exported with."""
    import torch

    given = given_inputs(arguments, names)
    args, kwargs = program.example_inputs or ((), {})
    examples = torch.utils._pytree.tree_leaves((args, kwargs))
    inputs = []
    for i, name in enumerate(names):
        if name not in given and i >= len(examples):
            refuse(f"give the input {quoted(name)} with --inputs: the program has no example")
        value = torch.from_numpy(given[name]) if name in given else examples[i]
        if name in given and i < len(examples) and value.dtype != examples[i].dtype:
            value = value.view(torch.bfloat16) if examples[i].dtype == torch.bfloat16 else value.to(examples[i].dtype)
        inputs.append(value.to(arguments.device))
    return inputs


def record_torch(arguments: argparse.Namespace) -> int:
    import torch

    model = read_model(Path(arguments.model))
    constants = set(names_in(model, GRAPH_INITIALIZER, TENSOR_NAME))
    input_names = [name for name in names_in(model, GRAPH_INPUT, VALUE_NAME) if name not in constants]
    output_names = names_in(model, GRAPH_OUTPUT, VALUE_NAME)
    wanted = set(chosen_names(arguments, node_results(model), input_names))
    try:
        program = torch.export.load(arguments.torch)
    except Exception as error:
        refuse(f"{quoted(arguments.torch)} is not a program of torch.export.save: {first_line(error)}")
    try:
        torch.empty(1, device=arguments.device)
    except Exception as error:
        refuse(f"--device {escaped(arguments.device)}: torch does not start it here: {first_line(error)}")
    if len(program.graph_signature.user_inputs) != len(input_names):
        refuse(f"the program has {len(program.graph_signature.user_inputs)} inputs, and the model {len(input_names)}: was it exported from another one?")
    inputs = torch_inputs(arguments, program, input_names)
    shards = new_shards(arguments)
    module = program.module().to(arguments.device)
    recorded: set[str] = set()

    def keep(name: str, value: Any) -> None:
        if isinstance(value, torch.Tensor) and name not in recorded:
            recorded.add(name)
            shards.add(name, *array_of_torch(value))

    class Recorder(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            value = super().run_node(n)
            if n.name in wanted and n.op != "placeholder":
                keep(n.name, value)
            return value

    for name, value in zip(input_names, inputs, strict=True):
        keep(name, value)
    with torch.no_grad():
        results = torch.utils._pytree.tree_leaves(Recorder(module).run(*inputs))
        again = torch.utils._pytree.tree_leaves(module(*inputs))
    for name, value in zip(output_names, results, strict=False):
        if name in wanted:
            keep(name, value)
    shards.close()
    of_inputs = len(shards.left_out & set(input_names))
    say(f"recorded {len(recorded) - len(inputs) - len(shards.left_out) + of_inputs} values and {len(inputs) - of_inputs} inputs in {escaped(arguments.out)}")
    shards.say_left_out()
    if not all(torch.equal(a, b) for a, b in zip(results, again, strict=True) if isinstance(a, torch.Tensor)):
        say("the engine is not deterministic: two runs of the program give different outputs")
    return 0


# Options of the one engine that mean nothing to the other one, and their defaults.
ONNXRUNTIME: dict[str, Any] = {"seed": 0, "most": 2, "providers": CPU, "level": "disable_all", "threads": 0, "memory": 1 << 30}
TORCH: dict[str, Any] = {"device": "cpu"}


def number(least: int) -> Callable[[str], int]:
    def integer(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"expected at least {least}")
        return int(text)

    return integer


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        say(f"record.py: error: {message}", to_errors=True)
        sys.exit(2)


def parsed() -> argparse.Namespace:
    parser = Parser(description="record what onnxruntime or torch computes for the values of a model")
    parser.add_argument("model")
    parser.add_argument("--out", required=True, help="folder for the shards; made if it is not there")
    parser.add_argument("--inputs", action="append", default=[], metavar="DIR|NAME=FILE", help="a folder with input_0.pb, input_1.npy, ..., or a file of one input")
    parser.add_argument("--values", default="", help="only these, comma-separated (default: all)")
    parser.add_argument("--shard", type=number(1), default=1 << 30, help="bytes of arrays in a file (default: 2^30)")
    engine = parser.add_argument_group("onnxruntime")
    engine.add_argument("--providers", help=f"comma-separated, as CUDAExecutionProvider (default: {CPU})")
    engine.add_argument("--level", choices=["disable_all", "basic", "extended", "all"], help="of its graph optimisations (default: disable_all)")
    engine.add_argument("--threads", type=number(0), help="(default: its choice)")
    engine.add_argument("--memory", type=number(1), help="bytes of values that are outputs at once, and of drawn inputs at most (default: 2^30)")
    engine.add_argument("--seed", type=number(0), help="draw the inputs that are not given (default: 0)")
    engine.add_argument("--most", type=number(1), help="drawn integers are below this (default: 2)")
    engine = parser.add_argument_group("torch")
    help_of_torch = "run this program of torch.export, from which the model was exported; inputs that are not given are its examples"
    engine.add_argument("--torch", default="", metavar="PROGRAM.pt2", help=help_of_torch)
    engine.add_argument("--device", help="cpu, cuda, ... (default: cpu)")
    arguments = parser.parse_args()
    for name in ONNXRUNTIME if arguments.torch else TORCH:
        if getattr(arguments, name) is not None:
            refuse(f"--{name} is of {'onnxruntime, and --torch is given' if arguments.torch else '--torch, which is not given'}")
    for name, default in {**ONNXRUNTIME, **TORCH}.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, default)
    return arguments


def main() -> int:
    warnings.showwarning = say_warning
    sys.excepthook = say_traceback
    arguments = parsed()
    engine = "torch" if arguments.torch else "onnxruntime"
    try:
        __import__(engine)
    except ImportError as error:
        other = "record onnxruntime, without --torch" if arguments.torch else "record PyTorch with --torch"
        refuse(f"this Python has no {engine} ({first_line(error)}): install it, or {other}")
    try:
        return record_torch(arguments) if arguments.torch else record(arguments)
    except OSError as error:
        refuse(f"{quoted(error.filename)}: {error.strerror}" if error.filename else first_line(error))


if __name__ == "__main__":
    sys.exit(main())
