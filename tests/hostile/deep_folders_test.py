"""Folders two thousand levels deep, and files that many folders share through links: a path that is long costs no more than
its length, and what several names lead to is read once."""

import itertools
import os
import pathlib
import string
import subprocess
import unittest
from collections.abc import Callable

import hostile_test
import wire
from promise import PromiseTest

UINT8 = 2
RELU = wire.node("Relu", ["x"], ["y"])
SMALL = wire.model(wire.graph([RELU], [wire.value("x", dims=["N"])], [wire.value("y", dims=["N"])]))
HALF = 0.5  # seconds: what a case takes at most where a second is promised


def some(count: int) -> list[str]:
    return ["".join(each) for each in itertools.islice(itertools.product(string.ascii_letters, repeat=2), count)]


def model(nodes: list[bytes], results: list[str], weights: list[bytes] | None = None, rounds: bool = False) -> bytes:
    """`rounds`: with sixteen fixes that wait for each other; what is in `results` stays in all of them."""
    inputs, outputs = [wire.value("x", dims=[3]), wire.value("i", wire.INT64, [4])], [wire.data(1, name) for name in ("y", *results)]
    nodes = [RELU, *nodes]
    if rounds:
        nodes += [wire.node("Add", [f"k{i}", "small"], [f"k{i + 1}"]) for i in range(17)]
        inputs += [wire.value("k0", dims=["N"]), wire.value("small", UINT8, ["N"])]
        outputs.append(wire.data(1, "k17"))
    return wire.model(wire.graph(nodes, inputs, outputs, weights or []))


def external(locations: list[str], rounds: bool = False) -> bytes:
    weights = [wire.tensor(f"w{i}", wire.FLOAT, [1], external={"location": location}) for i, location in enumerate(locations)]
    used = wire.node("Max", ["x", *(f"w{i}" for i in range(len(weights)))], ["largest"])
    return model([used], ["largest"], weights, rounds)


def traced(files: list[str], rounds: bool = False) -> bytes:
    """An error at each node, whose trace names a program."""
    traces = [wire.data(9, wire.data(1, "pkg.torch.onnx.stack_trace") + wire.data(2, f'File "{file}", line 1, in f')) for file in files]
    results = [f"e{i}" for i in range(len(files))]
    return model([wire.node("Add", ["x", "i"], [result]) + trace for result, trace in zip(results, traces)], results, rounds=rounds)


class DeepFoldersTest(PromiseTest):
    in_memory = True

    def deepen(self, length: int, name: str = "a", make: Callable[[int], None] = lambda _: None) -> pathlib.Path:
        """Folders in each other until the path has so many bytes; `make` gets the innermost one, open."""
        levels = (length - len(str(self.folder))) // (len(name) + 1)
        here = os.open(self.folder, os.O_RDONLY)
        for _ in range(levels):
            os.mkdir(name, dir_fd=here)
            inside = os.open(name, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = inside
        make(here)
        os.close(here)
        # What a temporary folder removes itself it removes by recursion.
        self.addCleanup(subprocess.run, ["rm", "-rf", self.folder / name], check=True)
        return pathlib.Path(str(self.folder) + f"/{name}" * levels)

    def put(self, content: bytes, *names: str) -> Callable[[int], None]:
        def write(folder: int) -> None:
            for name in names or ("m.onnx",):
                file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=folder)
                os.write(file, content)
                os.close(file)
        return write

    def assert_quick(self, *arguments: object, size: int = 0, codes: tuple[int, ...] = (0, 1)) -> hostile_test.Result:
        result = hostile_test.run([*arguments])
        self.assert_kept(result, size, codes=codes, seconds=HALF)
        return result

    def test_models_in_a_deep_folder(self) -> None:
        path = self.deepen(3900, make=self.put(SMALL, *(f"{name}.onnx" for name in some(60))))
        self.assert_quick("check", "-q", self.folder)
        for command in ("check", "show", "place"):
            self.assert_quick(command, path / "aa.onnx")

    def test_paths_of_a_thousand_inputs(self) -> None:
        """Memory only: the system itself takes its time for so many long paths."""
        self.deepen(3900, make=self.put(b"", *(f"{name}.onnx" for name in some(1000))))
        result = hostile_test.run(["check", "-q", self.folder])
        self.assertLess(result.memory, 48 << 20)
        self.assertLess(result.cpu, 1.5)

    def test_rounds_of_fixes_in_a_deep_folder(self) -> None:
        path = self.deepen(3900, make=self.put(model([], [], rounds=True)))
        self.assert_quick("fix", "--diff", path / "m.onnx")

    def test_external_data_through_absolute_links_of_a_deep_folder(self) -> None:
        names = some(300)

        def make(folder: int) -> None:
            for name in names:
                os.symlink("/x", name, dir_fd=folder)
            self.put(external(names))(folder)

        result = self.assert_quick("check", self.deepen(3900, make=make) / "m.onnx", size=20_000)
        self.assertIn(b"leads out of the model's folder", result.output)

    def test_external_data_through_long_links_in_each_round_of_fixes(self) -> None:
        (self.folder / "q").mkdir()
        for i in range(15):
            (self.folder / f"l{i}").symlink_to(f"l{i + 1}" + "/q" * 2000)
        names = some(400)
        for name in names:
            (self.folder / name).symlink_to("l0" + "/q" * 2000)
        self.path.write_bytes(external(names, rounds=True))
        for command in (["check"], ["fix", "--unsafe", "--diff"]):
            self.assert_quick(*command, self.path, size=20_000)

    def test_programs_behind_links_of_a_deep_folder(self) -> None:
        names = [f"l/{name}.py" for name in some(400)]

        def make(folder: int) -> None:
            os.mkdir("q", dir_fd=folder)
            os.symlink("q/../" * 120 + "q", "l", dir_fd=folder)
            self.put(traced(names))(folder)

        self.assert_quick("check", self.deepen(3900, make=make) / "m.onnx", size=40_000)

    def test_large_programs_in_each_round_of_fixes(self) -> None:
        for name in "abcd":
            (self.folder / f"{name}.py").write_bytes(b"\n" * ((4 << 20) - 1))
        self.path.write_bytes(traced([f"{name}.py" for name in "abcd"], rounds=True))
        self.assert_quick("fix", "--unsafe", "--diff", self.path)

    def test_programs_of_one_long_line(self) -> None:
        (self.folder / "a.py").write_bytes(b" " * ((4 << 20) - 1))
        self.path.write_bytes(traced(["a.py"] * 300))
        self.assert_quick("check", self.path)

    def test_patterns_of_paths(self) -> None:
        path = self.deepen(3700, "x" * 240, self.put(SMALL))
        row = '[[suppress]]\nrule = "TL-G612"\nreason = "x"\npath = "' + "?**" * 3600 + '/"\n'
        (self.folder / "tensorlint.toml").write_text(row * ((500 << 10) // len(row)))
        result = self.assert_quick("check", path / "m.onnx", codes=(2,))
        self.assertIn(b"globs of `path` are too long", result.errors + result.output)


class LinkedFilesTest(PromiseTest):
    def folders(self, count: int, *links: tuple[str, str], content: bytes = SMALL) -> None:
        """Each with a model, and links to files of the folder above."""
        for i in range(count):
            (self.folder / f"f{i}").mkdir()
            (self.folder / f"f{i}/m.onnx").write_bytes(content)
            for name, target in links:
                (self.folder / f"f{i}" / name).symlink_to(f"../{target}")

    def check_all(self, *options: str, size: int = 0, codes: tuple[int, ...] = (0, 1)) -> hostile_test.Result:
        result = hostile_test.run(["check", "--jobs", "2", *options, self.folder])
        self.assert_kept(result, size, codes=codes, seconds=HALF)
        return result

    def test_configurations(self) -> None:
        row = '[[suppress]]\nrule = "TL-G612"\nreason = "x"\n'
        self.folders(30, ("tensorlint.toml", "t.toml"))
        (self.folder / "t.toml").write_text(row * ((500 << 10) // len(row)))
        self.check_all("-q")

    def test_a_suppression_that_is_not_used_is_reported_in_the_folder_of_the_link(self) -> None:
        self.folders(2, ("tensorlint.toml", "t.toml"))
        (self.folder / "t.toml").write_text('[[suppress]]\nrule = "dead-node"\nreason = "x"\n')
        output = self.check_all().output.decode()
        self.assertIn("f0/tensorlint.toml:1", output)
        self.assertIn("f1/tensorlint.toml:1", output)

    def test_placement_files(self) -> None:
        row = '[[place]]\nvalues = "a"\ndevice = "cpu"\n'
        self.folders(30, ("p.toml", "p.toml"))
        (self.folder / "p.toml").write_text(row * ((500 << 10) // len(row)))
        for i in range(30):
            (self.folder / f"f{i}/tensorlint.toml").write_text('placement-file = "p.toml"\n')
        self.check_all("-q")

    def baseline(self, rows: int, path: str = "m.onnx") -> None:
        # A program starts with the memory of the one that starts it.
        with (self.folder / "b.json").open("w") as file:
            file.write('{"schema":1,"findings":[')
            for i in range(rows):
                file.write(f'{{"path":"{path}","fingerprint":"{i:x}","count":1}},')
            file.write(f'{{"path":"{path}","fingerprint":"last","count":1}}]}}')

    def test_baselines(self) -> None:
        self.folders(100, ("b.json", "b.json"))
        self.baseline(23_000)
        for i in range(100):
            (self.folder / f"f{i}/tensorlint.toml").write_text('baseline = "b.json"\n')
        result = self.check_all()
        self.assertIn(b"2300100 of the baseline gone", result.output)

    def test_a_large_baseline_that_nobody_named(self) -> None:
        self.path.write_bytes(SMALL)
        (self.folder / "tensorlint.toml").write_text('baseline = "b.json"\n')
        self.baseline(90_000, "a")
        self.assert_kept(hostile_test.run(["check", self.path]), 0, seconds=HALF)
        os.truncate(self.folder / "b.json", 64 << 20)
        result = hostile_test.run(["check", self.path])
        self.assert_kept(result, 0, codes=(2,), seconds=HALF)
        self.assertIn(b"is larger than 4 MiB: a larger one is given with --baseline", result.errors)


if __name__ == "__main__":
    unittest.main()
