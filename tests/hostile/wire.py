"""ONNX files written byte by byte: also those that no protobuf library would write."""
import struct

FLOAT, INT64, BOOL = 1, 7, 9


def varint(number):
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def attribute(name, value):
    """An int, a list of ints, a string, or the bytes of a graph, tensor or type given as ("g", bytes)."""
    head = data(1, name)
    if isinstance(value, int):
        return head + number(3, value) + number(20, 2)
    if isinstance(value, float):
        return head + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, str):
        return head + data(4, value) + number(20, 3)
    if isinstance(value, list):
        return head + b"".join(number(8, item) for item in value) + number(20, 7)
    kind, content = value
    field, code = {"t": (5, 4), "g": (6, 5)}[kind]
    return head + data(field, content) + number(20, code)


def node(op, inputs, outputs, name="", domain="", **attributes):
    out = b"".join(data(1, item) for item in inputs) + b"".join(data(2, item) for item in outputs)
    if name:
        out += data(3, name)
    out += data(4, op)
    out += b"".join(data(5, attribute(key, value)) for key, value in attributes.items())
    return out + (data(7, domain) if domain else b"")


def tensor(name, dtype, dims, raw=None, external=None):
    out = b"".join(number(1, dim) for dim in dims) + number(2, dtype) + data(8, name)
    if raw is not None:
        out += data(9, raw)
    if external is not None:
        out += b"".join(data(13, data(1, key) + data(2, value)) for key, value in external.items()) + number(14, 1)
    return out


def integers(name, values, scalar=False):
    return tensor(name, INT64, [] if scalar else [len(values)], struct.pack(f"<{len(values)}q", *values))


def tensor_type(dtype, dims):
    shape = b"".join(data(1, number(1, dim) if isinstance(dim, int) else data(2, dim)) for dim in dims)
    return data(1, number(1, dtype) + data(2, shape))


def value(name, dtype=FLOAT, dims=("N", 4)):
    return data(1, name) + data(2, tensor_type(dtype, dims))


def graph(nodes, inputs=(), outputs=(), initializers=(), name="g"):
    return (b"".join(data(1, item) for item in nodes) + data(2, name) + b"".join(data(5, item) for item in initializers)
            + b"".join(data(11, item) for item in inputs) + b"".join(data(12, item) for item in outputs))


def function(name, inputs, outputs, nodes, opsets=(("", 18), ("local", 1))):
    return (data(1, name) + b"".join(data(4, item) for item in inputs) + b"".join(data(5, item) for item in outputs)
            + b"".join(data(7, item) for item in nodes) + b"".join(data(9, data(1, domain) + number(2, version)) for domain, version in opsets)
            + data(10, "local"))


def model(main, functions=(), opsets=(("", 18), ("local", 1)), ir_version=8):
    return (number(1, ir_version) + data(7, main) + b"".join(data(8, data(1, domain) + number(2, version)) for domain, version in opsets)
            + b"".join(data(25, item) for item in functions))


def chain(count, op="Relu"):
    """A graph of `count` nodes in a row."""
    nodes = [node(op, [f"v{i}" if i else "x"], [f"v{i + 1}"]) for i in range(count)]
    return graph(nodes, [value("x")], [value(f"v{count}")])
