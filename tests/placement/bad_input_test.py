"""Placement files, device names and ONNX device configurations that are wrong: one clear sentence each, never a crash."""

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

import onnx

TOOL = os.environ["TENSORLINT_BINARY"]
MODEL = '<ir_version: 11, opset_import: ["": 21]>\ng (float[6, 4] x, float[6, 4] w) => (float[6, 4] y) { [add] y = Add (x, w) }'


class BadInputTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.model = self.folder / "model.onnx"
        onnx.save(onnx.parser.parse_model(MODEL), self.model)

    def check(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([TOOL, "check", "--format", "json", *arguments, str(self.model)], capture_output=True, text=True, timeout=60, check=False)

    def test_more_conditions_than_a_finding_names(self) -> None:
        """The device is that of the first value only where each of 22 branches keeps it."""
        rows, at = [], "x"
        for k in range(22):
            rows.append(f'x{k} = If (c{k}) <then_branch = stays () => (float[3] t) {{ t = Neg ({at}) }}, else_branch = moves () => (float[3] e) {{ e = tensorlint.Transfer <device = "cuda:0"> ({at}) }}>')
            at = f"x{k}"
        self.model = self.folder / "model.onnxtxt"
        self.model.write_text(
            '<ir_version: 10, opset_import: ["": 21, "tensorlint": 1], metadata_props: ["tensorlint.device:x": "cpu", "tensorlint.device:w": "cuda:0"]>\n'
            f"g ({', '.join(f'bool c{k}' for k in range(22))}, float[3] x, float[3] w) => (y) {{ {' '.join(rows)} y = Add ({at}, w) }}"
        )
        self.assertEqual(json.loads(self.check().stdout)["findings"][0]["witness"]["left_out"], 2)
        said = subprocess.run([TOOL, "check", str(self.model)], capture_output=True, text=True, timeout=60, check=False).stdout
        self.assertIn("`c9` is true, 2 more decide", said)

    def test_placement_files_that_are_refused(self) -> None:
        rows = self.folder / "place.toml"
        for text, said in [
            ("[[place]\n", "place.toml:1:"),
            ("[[[", "place.toml:1:3: "),
            ('[[place]]\ndevcie = "cpu"\nnodes = "*"\n', "unknown key `devcie`"),
            ('[[rows]]\ndevice = "cpu"\n', "unknown key `rows`"),
            ('[[place]]\nnodes = "*"\n', "the row has no device"),
            ('[[place]]\ndevice = "cpu"\n', "the row needs nodes, values or modules"),
            ('[[place]]\ndevice = "gpu five"\nnodes = "*"\n', "`gpu five` is not a device"),
            ('[[place]]\ndevice = "cuda:-1"\nnodes = "*"\n', "`cuda:-1` is not a device"),
            ("[[place]]\ndevice = 3\nnodes = '*'\n", "`device` is not a string"),
            ('place = "cpu"\n', "`place` is not a list of tables"),
            ("place = [1]\n", "an entry of `place` is not a table"),
        ]:
            with self.subTest(text):
                rows.write_text(text)
                done = self.check("--placement-file", str(rows))
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)
        self.assertEqual(self.check("--placement-file", str(self.folder / "none.toml")).returncode, 2)
        self.assertEqual(self.check("--placement-file", str(self.folder)).returncode, 2)
        pipe = self.folder / "pipe.toml"
        os.mkfifo(pipe)
        self.assertIn("pipe.toml: is not a regular file", self.check("--placement-file", str(pipe)).stderr)

    def test_a_row_that_matches_nothing_is_a_warning(self) -> None:
        rows = self.folder / "place.toml"
        rows.write_text('[[place]]\nnodes = "layer.*"\ndevice = "cuda:0"\n')
        done = self.check("--placement-file", str(rows))
        findings = json.loads(done.stdout)["findings"]
        self.assertEqual([(f["rule"], f["severity"]) for f in findings], [("invalid-device-configuration", "warning")])
        self.assertIn("`layer.*`", findings[0]["message"])

    def test_devices_on_the_command_line(self) -> None:
        for text in ["cuda:x", "x=", "=cpu", "x=cuda:99999999999", ""]:
            with self.subTest(text):
                self.assertEqual(self.check("--device", text).returncode, 2)
        self.assertEqual(self.check("--device", "nothing=cpu").returncode, 2)

    def test_providers(self) -> None:
        table = self.folder / "npu.txt"
        table.write_text("provider npu\ndevice npu:0\nAdd 7-\n")
        for name, said in [("gpu", "there is no provider `gpu`"), (str(table), "npu.txt:3: after `Add` comes a range of opsets"), (str(self.folder), "not a regular file")]:
            with self.subTest(name):
                done = self.check("--placement", "runtime", "--provider", name)
                self.assertEqual(done.returncode, 2)
                self.assertIn(said, done.stderr)
        self.assertIn("goes with --placement runtime", self.check("--provider", "cuda").stderr)
        table.write_text("provider npu\ndevice npu:0\nAdd 7-99\n")
        done = self.check("--placement", "runtime", "--provider", str(table))
        cost = json.loads(done.stdout)["inputs"][0]["cost"]
        self.assertEqual((cost["copies"], cost["bytes"]), (2, 2 * 6 * 4 * 4))

    # ---- configuration and device_configurations

    def configured(self, change: str, **spec: Any) -> list[str]:
        """The messages about a model whose node has one sharding spec."""
        model = onnx.parser.parse_model(MODEL)
        configuration = model.configuration.add(name="two", num_devices=2)
        configuration.device.extend(["cuda:0", "cuda:1"])
        if change == "count":
            configuration.num_devices = 3
        if change == "twice":
            model.configuration.add(name="two", num_devices=1)
        used = model.graph.node[0].device_configurations.add(configuration_id="three" if change == "name" else "two")
        sharding = used.sharding_spec.add(tensor_name=str(spec.get("tensor", "x")))
        sharding.device.extend(spec.get("devices", [0]))
        for key, group in spec.get("groups", {}).items():
            entry = sharding.index_to_device_group_map.add(key=key)
            entry.value.extend(group)
        for axis, shards in spec.get("axes", []):
            sharding.sharded_dim.add(axis=axis).simple_sharding.add(num_shards=shards)
        onnx.save(model, self.model)
        done = self.check()
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return [f["message"] for f in json.loads(done.stdout)["findings"] if f["rule"] == "invalid-device-configuration"]

    def test_sound_configurations(self) -> None:
        sound: list[dict[str, Any]] = [{}, {"axes": [(0, 2)], "devices": [0, 1]}, {"axes": [(-1, 2)], "devices": [0, 1]}, {"devices": [-5], "groups": {-5: [0, 1]}}]
        for spec in sound:
            with self.subTest(spec):
                self.assertEqual(self.configured("", **spec), [])

    def test_broken_configurations(self) -> None:
        broken: list[tuple[str, dict[str, Any], str]] = [
            ("name", {}, "refers to the device configuration `three`"),
            ("count", {}, "says that it has 3 devices and names 2"),
            ("twice", {}, "`two` is defined twice"),
            ("", {"tensor": "z"}, "names `z`, which is neither an operand nor a result"),
            ("", {"devices": [2]}, "has device 2, `two` has 2"),
            ("", {"devices": [-1]}, "has device -1, `two` has 2"),
            ("", {"devices": [-5], "groups": {-5: [0, 7]}}, "group -5 of the sharding of `x` has device 7"),
            ("", {"devices": [-5], "groups": {-5: [1, 1]}}, "has a device twice"),
            ("", {"axes": [(2, 2)]}, "sharded along axis 2, its rank is 2"),
            ("", {"axes": [(-3, 2)]}, "sharded along axis -3, its rank is 2"),
            ("", {"axes": [(0, 4)]}, "axis 0 of `x` has extent 6, which 4 shards do not divide"),
            ("", {"axes": [(0, 0)]}, "is cut into 0 shards"),
        ]
        for change, spec, said in broken:
            with self.subTest(said):
                messages = self.configured(change, **spec)
                self.assertEqual(len(messages), 1, messages)
                self.assertIn(said, messages[0])

    def test_configured_devices_place_nodes(self) -> None:
        """A node whose tensors are all on one device runs there; the operand comes from the cpu."""
        self.configured("", devices=[1])
        findings = json.loads(self.check().stdout)["findings"]
        self.assertEqual([f["rule"] for f in findings], ["operands-on-different-devices"])
        self.assertIn("cuda:1", findings[0]["message"])


if __name__ == "__main__":
    unittest.main()
