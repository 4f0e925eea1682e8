"""Each repeated field of the format with as many small entries as a file of a MiB holds: memory stays within what SECURITY.md promises of its size."""

import unittest

import hostile_test
import onnx
from onnx import TensorProto, helper
from promise import PromiseTest
from unread_messages_test import delimited, paths_to_fields, varint

MIB = 1 << 20
COMMANDS = (["check"], ["check", "--placement", "runtime"], ["show", "--format", "json"], ["contract"], ["fix", "--diff"], ["place"])


def smallest(field):
    if field.cpp_type == field.CPPTYPE_MESSAGE:
        return delimited(field, b"")
    if field.cpp_type == field.CPPTYPE_STRING:
        return delimited(field, b"a")
    return varint(field.number << 3) + b"\x01"


class EachRepeatedFieldTest(PromiseTest):
    def test_memory_of_small_entries(self):
        x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
        head = helper.make_model(helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", [x], [y]), ir_version=11)
        graph = head.graph.SerializeToString()
        head.ClearField("graph")
        main = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"]
        tried = 0
        for (is_shortest, message, name), path in paths_to_fields().items():
            field = path[-1]
            if not is_shortest or not field.is_repeated or field.cpp_type in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
                continue
            entry = smallest(field)
            content = entry * (MIB // len(entry))
            for outer in reversed(path[:-1]):
                content = delimited(outer, graph + content if outer is main else content)
            self.path.write_bytes(head.SerializeToString() + content + (b"" if path[0] is main else delimited(main, graph)))
            size = self.path.stat().st_size
            tried += 1
            for command in COMMANDS:
                with self.subTest(message=message, field=name, command=command):
                    result = hostile_test.run([*command, self.path])
                    allowed = 64 * MIB + 40 * size
                    if command[0] == "place" or "runtime" in command:
                        allowed += 64 * MIB
                    if command[0] in ("fix", "place"):
                        allowed += 16 * MIB + 36 * size
                    self.assertIn(result.code, (0, 1, 2), result.errors[:200])
                    self.assertLess(result.memory, allowed)
                    self.assertLess(result.cpu, size / (1 << 16))
        self.assertGreater(tried, 35)


if __name__ == "__main__":
    unittest.main()
