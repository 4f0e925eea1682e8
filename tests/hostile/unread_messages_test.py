"""A file of which a message does not parse is refused, wherever the message stands and whether or not anything is read from it."""

import collections
import unittest

import hostile_test
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper
from promise import PromiseTest

#: Bytes that no message consists of: a tag that does not end, one of an unknown wire type, a length beyond the end, an end without a begin;
#: a tag and a length of six bytes, of which the last ones are 0.
RUBBISH = (b"\xff", b"\x0f", b"\x0a\x05a", b"\x0c", b"\x92\x80\x80\x80\x80\x00\x01a", b"\x12\x81\x80\x80\x80\x80\x00a")
LONG_NUMBER = b"\xff" * 10 + b"\x01"

WAY = (
    (onnx.ModelProto, "training_info"),
    (onnx.TrainingInfoProto, "initialization"),
    (onnx.GraphProto, "node"),
    (onnx.NodeProto, "attribute"),
    (onnx.AttributeProto, "g"),
)


def paths_to_fields():
    """By message and field of it: how one gets there from the model, the shortest way and the one through what a model is trained with."""
    found = {}
    training = onnx.ModelProto.DESCRIPTOR.fields_by_name["training_info"]
    for first in (None, training):
        waiting = collections.deque([(onnx.ModelProto.DESCRIPTOR, ())] if first is None else [(training.message_type, (training,))])
        seen = set()
        while waiting:
            message, path = waiting.popleft()
            if message in seen:
                continue
            seen.add(message)
            for field in message.fields:
                found[first is None, message.name, field.name] = (*path, field)
                if field.message_type is not None:
                    waiting.append((field.message_type, (*path, field)))
    return found


def varint(number):
    out = b""
    while number >= 128:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def delimited(field, content):
    return varint(field.number << 3 | 2) + varint(len(content)) + content


def broken(field):
    """Encodings of a field that no parser takes."""
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        for rubbish in RUBBISH:
            yield delimited(field, rubbish)
        yield delimited(field, RUBBISH[0]) + delimited(field, b"")  # of several the last one counts, and all are parsed
    elif field.cpp_type == field.CPPTYPE_STRING:
        yield varint(field.number << 3 | 2) + b"\x05a"
    elif field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        yield varint(field.number << 3 | (5 if field.cpp_type == field.CPPTYPE_FLOAT else 1)) + b"\0"
        if field.is_repeated:
            yield delimited(field, b"\0\0\0")
    else:
        yield varint(field.number << 3) + LONG_NUMBER
        if field.is_repeated:
            yield delimited(field, b"\x01\xff")
            for before in (0, 1, 9):  # numbers of one byte
                yield delimited(field, b"\x01" * before + LONG_NUMBER + b"\x01" * 3)


class UnreadMessagesTest(PromiseTest):
    def test_each_field_of_the_format(self):
        value = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N"])
        head = helper.make_model(helper.make_graph([], "g", [value], [value]), ir_version=10)
        graph = head.graph.SerializeToString()
        head.ClearField("graph")
        paths = paths_to_fields()
        self.assertGreater(len(paths), 200)
        for place, path in paths.items():
            for encoded in broken(path[-1]):
                content = encoded
                for field in reversed(path[:-1]):
                    # The graph is one message: what is to be in it stands among its fields.
                    content = delimited(field, graph + content if field is path[0] and field.name == "graph" else content)
                whole = head.SerializeToString() + content
                if path[0].name != "graph":
                    whole += delimited(onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"], graph)
                with self.assertRaises(DecodeError):
                    onnx.ModelProto.FromString(whole)
                self.path.write_bytes(whole)
                with self.subTest(place=place, encoded=encoded):
                    result = hostile_test.run(["check", self.path])
                    self.assertEqual(result.code, 2, result.output)

    def test_messages_that_nest_deeper_than_the_reader_follows(self):
        field = {name: message.DESCRIPTOR.fields_by_name[name] for message, name in WAY}
        model = helper.make_model(helper.make_graph([], "g", [], []), ir_version=10)
        for depth, code in ((8, hostile_test.CLEAN), (70, 2)):
            content = b""
            for _ in range(depth):
                for name in ("g", "attribute", "node"):
                    content = delimited(field[name], content)
            content = delimited(field["training_info"], delimited(field["initialization"], content))
            self.path.write_bytes(model.SerializeToString() + content)
            result = hostile_test.run(["check", self.path])
            self.assertEqual(result.code, code, result.errors)


if __name__ == "__main__":
    unittest.main()
