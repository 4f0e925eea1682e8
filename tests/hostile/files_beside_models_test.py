"""What stands beside a model costs little too: links, configuration, recorded values, folders of links."""

import json
import os
import pathlib
import struct
import tempfile
import unittest
import zlib

import wire
from hostile_test import CLEAN, UNREADABLE, VERDICT, run, simple
from rules_work_test import names

X = wire.value("x", dims=["N"])
RELU = wire.node("Relu", ["x"], ["y"])


def npy(shape, content, dtype="<f4"):
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


def deflated(name, content, claimed, *others):
    """An archive of one member that claims to hold so many bytes; under other names, too."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = compressor.compress(content) + compressor.flush()
    sums = struct.pack("<III", zlib.crc32(content), len(packed), claimed)
    member = b"PK\x03\x04" + struct.pack("<HHHHH", 20, 0, 8, 0, 0) + sums + struct.pack("<HH", len(name), 0) + name + packed
    names = [name, *others]
    head = b"PK\x01\x02" + struct.pack("<HHHHHH", 20, 20, 0, 8, 0, 0) + sums
    directory = b"".join(head + struct.pack("<HHHHHII", len(each), 0, 0, 0, 0, 0, 0) + each for each in names)
    return member + directory + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, len(names), len(names), len(directory), len(member), 0)


class FilesBesideModelsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.model = self.folder / "m.onnx"

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def test_files_that_cannot_be_read_to_their_end(self):
        """Regular files, and in one of them nothing comes: only its owner may ask."""
        self.model.write_bytes(simple([RELU]))
        for path, said in (("/proc/self/mem", b"cannot be read: Input/output error"), ("/proc/kmsg", b"cannot be read: Resource temporarily unavailable")):
            if not os.access(path, os.R_OK):
                continue
            for name, content in (("--config", None), ("--baseline", None), ("--placement-file", None), ("--signatures", None), ("", f'baseline = "{path}"'), ("", f'placement-file = "{path}"')):
                with self.subTest(path, option=name or content):
                    if content:
                        self.write("tensorlint.toml", content + "\n")
                    result = run(["check", *([] if content else [name, path]), self.model], seconds=5)
                    self.assertEqual(result.code, UNREADABLE)
                    self.assertIn(said, result.errors)

    def test_a_glob_of_links_to_folders(self):
        """Each folder is gone through once for a glob, whatever matches lead to it or hold it."""
        (self.folder / "big").mkdir()
        self.write("big/m.onnx", simple([RELU]))
        (self.folder / "d").mkdir()
        (self.folder / "all").mkdir()
        self.write("all/m.onnx", simple([RELU]))
        for i in range(1500):
            (self.folder / "d" / f"l{i}").symlink_to("../big")
            (self.folder / "all" / f"l{i:04}").symlink_to(".")
        for glob, count in (("d/*", 1), ("all/*", 2)):
            result = run(["check", f"{self.folder}/{glob}"])
            self.assertEqual(result.code, CLEAN, result.errors[:500])
            self.assertIn(f"{count} checked file".encode(), result.output)
            self.assertLess(result.cpu, 0.5)

    def test_reports_over_files_that_are_read(self):
        self.model.write_bytes(simple([RELU]))
        for option, content in (("--baseline", '{"schema": 1, "findings": []}'), ("--placement-file", ""), ("--signatures", ""), ("--config", ""), ("--provider", "provider p\ndevice cpu\n")):
            side = self.write("side", content)
            result = run(["check", "--placement", "runtime", option, side, "-o", f"{self.folder}/./side", self.model])
            self.assertEqual((result.code, side.read_text()), (UNREADABLE, content), option)
            self.assertIn(b"refusing to write a report over ", result.errors)

    def test_external_data_through_links_with_long_targets(self):
        (self.folder / "d").mkdir()
        self.write("w", bytes(4))
        for i in range(16):
            (self.folder / f"l{i}").symlink_to("d/../" * 815 + (f"l{i + 1}" if i < 15 else "w"))
        spelled = ["".join("./" if bit == "1" else ".//" for bit in f"{i + 2:b}"[1:]) + "l0" for i in range(900)]
        weights = [wire.tensor(f"t{i}", wire.FLOAT, [1], external={"location": location}) for i, location in enumerate(spelled)]
        self.model.write_bytes(simple([RELU], weights))
        result = run(["check", self.model])
        self.assertIn(result.code, VERDICT)
        self.assertLess(result.cpu, 1)
        self.assertIn("TL-G", result.output.decode())

    def test_patterns_of_suppressions(self):
        name = "a" * 10_000
        calls = "".join(f"u{i} = Relu (x)\n" for i in range(2500))
        self.model = self.write(
            "m.onnxtxt",
            f'<ir_version: 10, opset_import: ["" : 21, "f" : 1]>\ng (float[2] x) => (float[2] y) {{\ny = f.{name} (x)\n}}\n'
            f'<domain: "f", opset_import: ["" : 21]>\n{name} (x) => (y) {{\n{calls}y = Relu (x)\n}}\n',
        )
        row = '[[suppress]]\nrule = "TL-G612"\ngraph = "*' + "?" * 140 + 'c*"\nreason = "x"\n'
        self.write("tensorlint.toml", row * (65536 // len(row)))
        result = run(["check", "--format", "json", self.model])
        self.assertIn(result.code, VERDICT, result.errors[:500])
        self.assertLess(result.cpu, 1)
        report = json.loads(result.output)
        self.assertTrue(report["inputs"][0]["partial"])
        self.assertNotIn("TL-G615", result.output.decode())  # which row is of no use is not known then

    def test_patterns_of_a_placement_file(self):
        results = names("", 10_000)
        self.write("tensorlint.toml", 'placement-file = "p.toml"\n')
        self.write("p.toml", "place = [\n" + '{values = "*?#*", device = "cpu"},\n' * 1800 + "]\n")
        self.model.write_bytes(simple([wire.node("Split", ["x"], results, axis=0)], outputs=[results[0]]))
        for command in ("check", "show"):
            result = run([command, self.model])
            self.assertIn(result.code, VERDICT, result.errors[:500])
            self.assertLess(result.cpu, 1)

    def test_what_a_found_configuration_names_is_not_quoted(self):
        self.model.write_bytes(simple([RELU]))
        self.write("tensorlint.toml", 'placement-file = "other"\n')
        for content, secret in (("key = 99999999999999999999999", "9999"), ("key = 1e99999999", "1e99"), ("key = tru3secret", "tru3"),
                                ("root:x:0:0", "root"), ("key = \"a\\qb\"", "\\q"), ("a = 1\na = 2", "`a`"), ("key = {a = ~", "~")):
            self.write("other", content)
            result = run(["check", self.model])
            self.assertEqual(result.code, UNREADABLE)
            self.assertRegex(result.errors.decode(), r"other:\d+:\d+: not TOML\n$")
            self.assertNotIn(secret, result.errors.decode())
            # Who gives the file may read it.
            self.assertNotIn("not TOML", run(["check", "--placement-file", self.folder / "other", self.model]).errors.decode())

    def test_patterns_that_suppress_findings(self):
        self.write("tensorlint.toml", "suppress = [\n" + '{rule = "dead-node", reason = "r", node = "*?q*"},\n' * 1500 + "]\n")
        self.model.write_bytes(simple([*[wire.node("Tanh", ["x"], [""])] * 5500, RELU]))
        result = run(["check", self.model])
        self.assertIn(result.code, VERDICT, result.errors[:500])
        self.assertLess(result.cpu, 1.2)

    def test_suppressions_of_nearly_all_rules(self):
        self.model.write_bytes(simple([RELU]))
        for rules in ('["TL-V","TL-L","TL-G"]', '"TL-V"'):
            row = f'{{rule={rules},reason="r"}},'
            for size in (120_000, 520_000, 1_040_000):
                with self.subTest(rules=rules, size=size):
                    config = f"suppress=[{row * (size // len(row))}]\n"
                    self.write("tensorlint.toml", config)
                    for command in (["check"], ["fix", "-o", self.folder / "o.onnx"]):
                        result = run([*command, self.model])
                        self.assertIn(result.code, VERDICT if size < 1 << 19 else [UNREADABLE], result.errors[:500])
                        self.assertLess(result.memory, (64 << 20) + 40 * len(config))
                        self.assertLess(result.cpu, max(1, size / (1 << 16)))

    def test_a_member_of_an_archive_that_claims_4_gib(self):
        self.model.write_bytes(simple([RELU], inputs=[X]))
        self.write("r/x.npy", npy("(2,)", struct.pack("<2f", 1, -1)))
        self.write("r/a.npz", deflated(b"y.npy", npy("(2,)", struct.pack("<2f", 1, 0)), (4 << 30) - 4096))
        result = run(["compare", self.model, "--against", self.folder / "r"])
        self.assertEqual(result.code, UNREADABLE)
        self.assertIn("shorter than the archive says", result.errors.decode())
        self.assertLess(result.cpu, 1)
        self.assertLess(result.memory, 64 << 20)

    def test_members_of_an_archive_that_share_their_bytes(self):
        """Each of the 500 would be unpacked to 16 MB."""
        inputs = names("i", 500)
        self.model.write_bytes(simple([wire.node("Sum", inputs, ["y"])], inputs=[wire.value(name, dims=["N"]) for name in inputs]))
        content = npy("(4000000,)", bytes(16_000_000))
        self.write("r/a.npz", deflated(b"y.npy", content, len(content), *(name.encode() + b".npy" for name in inputs)))
        result = run(["compare", self.model, "--against", self.folder / "r"])
        self.assertEqual(result.code, UNREADABLE)
        self.assertIn("members overlap", result.errors.decode())
        self.assertLess(result.cpu, 1)
        self.assertLess(result.memory, 128 << 20)

    def test_programs_of_traces_behind_links_with_long_targets(self):
        (self.folder / "d").mkdir()
        for i in range(20):
            (self.folder / f"l{i}").symlink_to("d/../" * 810 + (f"l{i + 1}" if i < 19 else "."))
        self.write("a.py", "one\n")

        def add(result, program):
            trace = wire.data(1, "pkg.torch.onnx.stack_trace") + wire.data(2, f'File "{program}", line 1, in f')
            return wire.node("Add", ["x", "i"], [result]) + wire.data(9, trace)

        nodes = [add(name, f"l0/{k}.py") for k, name in enumerate(names("w", 500))]
        self.model.write_bytes(simple([add("y", "./a.py"), *nodes], inputs=[X, wire.value("i", wire.INT64, ["N"])]))
        for options in ([], ["--source-root", self.folder]):
            with self.subTest(options=options):
                result = run(["check", *options, self.model])
                self.assertIn(result.code, VERDICT)
                self.assertLess(result.cpu, 1)
                self.assertIn("| one", result.output.decode())

    def test_messages_about_recorded_values_hold_no_escape_sequences(self):
        self.model.write_bytes(simple([wire.node("Relu", ["x"], ["y"], name="\x1b[31m\x1b]0;t\x07\u202e\n::error::x")], inputs=[X]))
        two = struct.pack("<2f", 1, -1)
        for folder, recorded in (("a", npy("(3,)", bytes(12))), ("b", npy("(2,)", bytes(8), "<\x1b[31m"))):
            self.write(f"{folder}/x.npy", npy("(2,)", two))
            self.write(f"{folder}/y.npy", recorded)
        for arguments in (["compare", self.model, "--against", self.folder / "a"], ["compare", self.model, "--against", self.folder / "b"],
                          ["run", self.model, "--inputs", f"x={self.folder}/b/y.npy"]):
            with self.subTest(arguments=arguments[2:]):
                result = run(arguments)
                self.assertEqual(result.code, UNREADABLE)
                self.assertRegex(result.errors.decode(), r"^tensorlint (run|compare): .*\\u001b\[31m.*\n$")
                self.assertTrue(all(character.isprintable() for character in result.errors.decode()[:-1]))

    def test_a_pattern_of_the_command_line_through_links_to_their_own_folder(self):
        model = simple([RELU], inputs=[X])
        for name in ("m.onnx", "real/m.onnx", "real/deeper/m.onnx"):
            self.write(name, model)
        for i in range(20):
            (self.folder / f"l{i:02}").symlink_to(".")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
        for pattern, files in (("*/*.onnx", {"l00/m.onnx", "real/m.onnx"}), ("./*/*.onnx", {"./l00/m.onnx", "./real/m.onnx"}), ("real/*.onnx", {"real/m.onnx"}),
                               ("*/deeper/*.onnx", {"real/deeper/m.onnx"}), ("l0[3-5]/*.onnx", {"l03/m.onnx"}), ("l00/*.onnx", {"l00/m.onnx"}),
                               ("*/*/*/*/*/*.onnx", {"l00/l00/l00/l00/l00/m.onnx", "l00/l00/l00/l00/real/m.onnx", "l00/l00/l00/real/deeper/m.onnx"})):
            with self.subTest(pattern):
                result = run(["check", "--format", "json", pattern], seconds=20)
                self.assertEqual(result.code, CLEAN, result.errors[:500])
                self.assertLess(result.cpu, 1)
                self.assertEqual({entry["path"] for entry in json.loads(result.output)["inputs"]}, files)
        self.assertEqual(run(["check", "l*/*.onnxtxt"]).code, UNREADABLE)


if __name__ == "__main__":
    unittest.main()
