"""`fix --copy-data` and `place --copy-data`: a model with weights in other files moves to another folder, or nothing is written."""

import os
import resource
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

TOOL = os.environ["TENSORLINT_BINARY"]
FIRST, SECOND = "a.bin", "deep/er/b.bin"


def external(name: str, location: str, offset: int | None = None, extents: tuple[int, ...] = (4, 4)) -> TensorProto:
    """A float32 tensor whose data is in another file."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=extents, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    if offset is not None:
        tensor.external_data.add(key="offset", value=str(offset))
        tensor.external_data.add(key="length", value=str(4 * int(np.prod(extents))))
    return tensor


def model(weights: list[TensorProto], attribute: TensorProto | None = None) -> onnx.ModelProto:
    """Adds up weights and multiplies by an int64, which a safe fix casts; with an initializer that nothing uses and a fix removes."""
    nodes, last = [], "x"
    for index, weight in enumerate(weights):
        nodes.append(helper.make_node("MatMul", [last, weight.name], [f"h{index}"]))
        last = f"h{index}"
    if attribute is not None:
        nodes.append(helper.make_node("Constant", [], ["c"], value=attribute))
        nodes.append(helper.make_node("MatMul", [last, "c"], ["hc"]))
        last = "hc"
    nodes.append(helper.make_node("Mul", [last, "k"], ["y"]))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [*weights, external("unused", "unused.bin"), helper.make_tensor("k", TensorProto.INT64, [], [2])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


class CopyDataTest(unittest.TestCase):
    def setUp(self) -> None:
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        self.source, self.out = self.folder / "source", self.folder / "out"
        (self.source / "deep/er").mkdir(parents=True)
        self.out.mkdir()
        (self.source / FIRST).write_bytes(np.arange(32, dtype=np.float32).tobytes())
        (self.source / SECOND).write_bytes(np.ones(16, np.float32).tobytes())
        self.save(model([external("a", FIRST, 0), external("b", "./" + FIRST, 64), external("c", SECOND)]))

    def save(self, made: onnx.ModelProto) -> None:
        (self.source / "m.onnx").write_bytes(made.SerializeToString())

    def fix(self, *arguments: str, expect: int = 0, before: Callable[[], object] | None = None) -> str:
        done = subprocess.run([TOOL, "fix", str(self.source / "m.onnx"), *arguments], capture_output=True, text=True, timeout=60, check=False, preexec_fn=before)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        if expect == 2:
            self.assertEqual(done.stdout, "")
        return done.stdout + done.stderr

    def copy(self, expect: int = 0, before: Callable[[], object] | None = None) -> str:
        return self.fix("-o", str(self.out / "m.onnx"), "--copy-data", expect=expect, before=before)

    def written(self) -> list[str]:
        return sorted(str(each.relative_to(self.out)) for each in self.out.rglob("*") if not each.is_dir())

    def test_the_copy_runs_and_computes_the_same(self) -> None:
        said = self.copy()
        self.assertIn(f"copied {self.out / FIRST}, 128 bytes\n", said)
        self.assertEqual(self.written(), [FIRST, SECOND, "m.onnx"])  # not what only the removed initializer referred to
        for each in (FIRST, SECOND):
            self.assertEqual((self.out / each).read_bytes(), (self.source / each).read_bytes())
        shutil.rmtree(self.source)
        rows = np.ones((2, 4), np.float32)
        a, b = np.arange(32, dtype=np.float32).reshape(2, 4, 4)
        session = onnxruntime.InferenceSession(str(self.out / "m.onnx"), providers=["CPUExecutionProvider"])
        np.testing.assert_allclose(session.run(None, {"x": rows})[0], rows @ a @ b @ np.ones((4, 4)) * 2)

    def test_without_the_option_nothing_is_written_unless_the_data_is_there(self) -> None:
        said = self.fix("-o", str(self.out / "m.onnx"), expect=2)
        self.assertIn("weights in `a.bin` and `deep/er/b.bin` beside it", said)
        self.assertIn("add --copy-data to copy 192 bytes", said)
        self.assertEqual(self.written(), [])
        shutil.copy(self.source / FIRST, self.out)
        self.assertIn("`deep/er/b.bin` beside it", self.fix("-o", str(self.out / "m.onnx"), expect=2))
        shutil.copytree(self.source / "deep", self.out / "deep")
        self.assertNotIn("copied", self.fix("-o", str(self.out / "m.onnx")))
        self.assertIn("wrote", self.copy())

    def test_files_of_others_are_left_alone(self) -> None:
        other = self.out / SECOND
        other.parent.mkdir(parents=True)
        for content in (b"theirs", np.zeros(16, np.float32).tobytes()):
            other.write_bytes(content)
            for arguments in ([], ["--copy-data"]):
                said = self.fix("-o", str(self.out / "m.onnx"), *arguments, expect=2)
                self.assertIn(f"`{other}` already exists and differs", said)
            self.assertEqual(other.read_bytes(), content)
            self.assertEqual(self.written(), [SECOND])

    def test_links_and_files_in_the_way_are_refused(self) -> None:
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        (self.out / "deep").symlink_to(elsewhere)
        self.assertIn("`deep` is not a folder", self.copy(expect=2))
        (self.out / "deep").unlink()
        (self.out / "deep").write_text("a file")
        self.copy(expect=2)
        (self.out / "deep").unlink()
        (self.out / FIRST).symlink_to(self.source / FIRST)
        self.assertIn("leads out", self.copy(expect=2))
        (self.out / FIRST).unlink()
        (self.out / FIRST).mkdir()
        self.copy(expect=2)
        self.assertEqual((self.written(), list(elsewhere.iterdir())), ([], []))

    def test_the_model_is_never_written_over_its_weights(self) -> None:
        before = (self.source / FIRST).read_bytes()
        (self.source / "link").symlink_to(FIRST)
        for target in (self.source / FIRST, self.source / "link", self.out / FIRST):
            self.assertIn("weights in", self.fix("-o", str(target), "--copy-data", expect=2))
        self.assertEqual((self.source / FIRST).read_bytes(), before)
        self.assertEqual(self.written(), [])

    def test_data_that_cannot_be_read(self) -> None:
        for location, said in [("../m.onnx", "leads out"), ("none.bin", "No such file"), ("/etc/hostname", "absolute"), ("deep", "not a regular file")]:
            self.save(model([external("a", FIRST, 0), external("b", location)]))
            self.assertIn(said, self.copy(expect=2))
            self.assertIn(said, self.fix("-o", str(self.out / "m.onnx"), expect=2))
            self.assertEqual(list(self.out.iterdir()), [])

    def test_data_of_attributes_counts(self) -> None:
        self.save(model([external("a", FIRST, 0)], attribute=external("", SECOND)))
        self.assertIn("`a.bin` and `deep/er/b.bin`", self.fix("-o", str(self.out / "m.onnx"), expect=2))
        self.copy()
        self.assertEqual(self.written(), [FIRST, SECOND, "m.onnx"])

    def test_a_models_hub_keeps_its_files_behind_links(self) -> None:
        hub = self.folder / "hub"
        (hub / "blobs").mkdir(parents=True)
        (hub / "snapshots/1").mkdir(parents=True)
        (self.source / FIRST).rename(hub / "blobs/beef")
        (hub / "snapshots/1" / FIRST).symlink_to("../../blobs/beef")
        shutil.copytree(self.source / "deep", hub / "snapshots/1/deep")
        shutil.copy(self.source / "m.onnx", hub / "snapshots/1")
        self.source = hub / "snapshots/1"
        self.copy()
        self.assertFalse((self.out / FIRST).is_symlink())
        self.assertEqual((self.out / FIRST).stat().st_size, 128)

    def test_a_copy_that_fails_half_way_leaves_nothing(self) -> None:
        (self.source / SECOND).write_bytes(bytes(1 << 16))

        def small_files() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

        self.assertIn("cannot copy `deep/er/b.bin`", self.copy(expect=2, before=small_files))
        self.assertEqual(list(self.out.iterdir()), [])
        # All data fits, the model does not.
        self.save(model([external("a" * 8000, FIRST, 0), external("b", SECOND)]))
        (self.source / SECOND).write_bytes(np.ones(16, np.float32).tobytes())
        self.assertIn("File too large", self.copy(expect=2, before=small_files))
        self.assertEqual(list(self.out.iterdir()), [])

    def test_an_interrupted_copy_leaves_nothing(self) -> None:
        size = 1 << 30
        with open(self.source / SECOND, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, size // 8)
            file.truncate(size)
        started = subprocess.Popen([TOOL, "fix", str(self.source / "m.onnx"), "-o", str(self.out / "m.onnx"), "--copy-data"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while started.poll() is None and not any(self.out.iterdir()):
            time.sleep(0.0005)
        started.send_signal(signal.SIGTERM)
        started.communicate(timeout=60)
        if started.returncode != 0:  # else it was done before the signal came
            self.assertEqual(started.returncode, -signal.SIGTERM)
            self.assertIn(self.written(), ([], [FIRST, SECOND, "m.onnx"]))

    def test_models_that_share_weights_may_move_at_the_same_time(self) -> None:
        (self.source / FIRST).write_bytes(os.urandom(1 << 24))
        commands = [[TOOL, "fix", str(self.source / "m.onnx"), "-o", str(self.out / f"m{index}.onnx"), "--copy-data"] for index in range(6)]
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for command in commands]
        for each in started:
            _, said = each.communicate(timeout=60)
            self.assertEqual((each.returncode, said), (0, ""))
        self.assertEqual(self.written(), [FIRST, SECOND, *(f"m{index}.onnx" for index in range(6))])

    def test_holes_stay_holes(self) -> None:
        size = 1 << 40
        with open(self.source / SECOND, "r+b") as file:
            file.truncate(size)
            file.seek(size // 2)
            file.write(b"middle")
        started = time.monotonic()
        self.assertIn(f"copied {self.out / SECOND}, 1.1 TB\n", self.copy())
        self.assertIn("wrote", self.copy())  # again: the bytes are the same
        self.assertLess(time.monotonic() - started, 20)
        copied = self.out / SECOND
        self.assertEqual(copied.stat().st_size, size)
        self.assertLess(copied.stat().st_blocks * 512, 1 << 24)
        with open(copied, "rb") as file:
            file.seek(size // 2)
            self.assertEqual(file.read(6), b"middle")

    def test_more_files_than_may_be_open(self) -> None:
        names = [f"w{index}.bin" for index in range(80)]
        for name in names:
            shutil.copy(self.source / SECOND, self.source / name)
        self.save(model([external(name, name) for name in names]))
        self.copy(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32)))
        self.assertEqual(len(self.written()), 81)

    def test_permissions_do_not_widen(self) -> None:
        (self.source / FIRST).chmod(0o600)
        self.copy()
        self.assertEqual((self.out / FIRST).stat().st_mode & 0o777, 0o600)

    def test_data_is_no_program(self) -> None:
        (self.source / FIRST).chmod(0o755)
        self.copy()
        self.assertEqual((self.out / FIRST).stat().st_mode & 0o111, 0)

    def test_models_in_text(self) -> None:
        text = (
            '<ir_version: 9, opset_import: ["": 17]>\ng (float[N, 4] x) => (float[N, 4] y)\n'
            '<float[4, 4] a = ["location": "a.bin", "offset": "0", "length": "64"], int64 k = {2}>\n{ h = MatMul (x, a) y = Mul (h, k) }\n'
        )
        path = self.source / "m.onnxtxt"
        path.write_text(text)
        command = [TOOL, "fix", str(path), "-o", str(self.out / "m.onnxtxt")]
        self.assertEqual(subprocess.run(command, capture_output=True, timeout=60, check=False).returncode, 2)
        self.assertEqual(subprocess.run([*command, "--copy-data"], capture_output=True, timeout=60, check=False).returncode, 0)
        self.assertEqual(self.written(), [FIRST, "m.onnxtxt"])

    def test_place_moves_data_too(self) -> None:
        fixed = self.source / "fixed.onnx"
        self.fix("-o", str(fixed))
        command = [TOOL, "place", str(fixed), "-o", str(self.out / "placed.onnx")]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("--copy-data", refused.stderr)
        done = subprocess.run([*command, "--copy-data"], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.written(), [FIRST, SECOND, "placed.onnx"])
        onnx.load(self.out / "placed.onnx")


if __name__ == "__main__":
    unittest.main()
