"""What is kept of each of 256 runs of a model, counted in each round of drawing inputs, and walked for each file beside it."""

import itertools
import os
import string
import unittest

import hostile_test
from promise import LARGEST, PromiseTest

HEAD = '<ir_version:8,opset_import:["":13,"m":1]'


def letters(count: int) -> list[str]:
    return ["".join(pair) for pair in itertools.islice(itertools.product(string.ascii_letters, string.ascii_letters), count)]


class KeptForEachCaseTest(PromiseTest):
    def test_copies_between_each_two_of_many_devices(self):
        """61 of them with long names, and 256 answers of eight conditions."""
        tags = ",".join(f'"tensorlint.device:{letter}{i}":"{"a" * 30}{i:02}:200"' for i in range(61) for letter in "xn")
        inputs = [*(f"float[1] x{i}" for i in range(61)), *(f"bool c{i}" for i in range(8))]
        all_inputs = ",".join(f"x{i}" for i in range(61))
        nodes = [f"[n{i}] y{i}=Concat<axis=0>({all_inputs})" for i in range(61)]
        branch = "(float a){a=Constant<value_float=1.0>()}"
        nodes += [f"z{i}=If<then_branch=t()=>{branch},else_branch=e()=>{branch}>(c{i})" for i in range(8)]
        text = f"{HEAD},metadata_props:[{tags}]>\ng ({','.join(inputs)})=>(float[n] y0)\n{{\n" + "\n".join(nodes) + "\n}\n"
        self.run_within_promise(text.encode(), "check --placement runtime", name="m.onnxtxt")

    def test_indices_that_many_nodes_read_while_inputs_are_drawn(self):
        inputs = "".join(f"int64[1] a{i}," for i in range(5))
        names = letters(1600)
        nodes = ["d=m.Foo(x)", f"i=Concat<axis=0>({','.join('a' * 16_000)})", *(f"{name}=GatherND(d,i)" for name in names), f"y=Identity({names[0]})"]
        text = f"{HEAD}>\ng (int64[1] a,{inputs}float[3,3] x)=>(float[q] y)\n{{\n" + "\n".join(nodes) + "\n}\n"
        path = self.folder / "m.onnxtxt"
        path.write_text(text)
        result = hostile_test.run(["run", "--seed", "1", path])
        self.assert_kept(result, len(text), codes=(2,))

    def test_thousands_of_files_behind_deep_links(self):
        """Each name is a link 61 folders up and into a hub's blobs, behind a link 60 folders down."""
        folder = self.folder / "s"
        deep = folder.joinpath(*["d"] * 60)
        deep.mkdir(parents=True)
        for beside in ("blobs", "snapshots"):
            (self.folder / beside).mkdir()
        (self.folder / "blobs" / "x").touch()
        (folder / "l").symlink_to("/".join(["d"] * 60))
        names = letters(1800)
        (deep / names[0]).symlink_to("../" * 61 + "blobs/x")
        for name in names[1:]:
            os.link(deep / names[0], deep / name, follow_symlinks=False)
        tensors = ",".join(f'float[0] {name}=["location":"l/{name}"]' for name in names)
        text = f'<ir_version:8,opset_import:["":13]>\ng (float[1] x)=>(float[1] y)<{tensors}>{{y=Concat<axis=0>(x,{",".join(names)})}}\n'
        self.assertLess(len(text), LARGEST)
        model, output = folder / "m.onnxtxt", self.folder / "o"
        model.write_text(text)
        output.mkdir()
        self.assert_kept(hostile_test.run(["fix", model, "-o", output / "m.onnxtxt", "--copy-data"]), len(text), codes=(2,))
        result = hostile_test.run(["check", model])
        self.assert_kept(result, len(text))
        self.assertIn(b"behind too many folders and links", result.output)

    def test_hundreds_of_files_of_a_hub_are_read(self):
        """As a hub's cache has them: a link beside the model for each."""
        folder = self.folder / "snapshots" / "main"
        folder.mkdir(parents=True)
        (self.folder / "blobs").mkdir()
        names = letters(900)
        for name in names:
            (self.folder / "blobs" / name).write_bytes(bytes(4))
            (folder / name).symlink_to(f"../../blobs/{name}")
        tensors = ",".join(f'float[1] {name}=["location":"{name}"]' for name in names)
        model = folder / "m.onnxtxt"
        model.write_text(f'<ir_version:8,opset_import:["":13]>\ng (float[1] x)=>(float[n] y)<{tensors}>{{y=Concat<axis=0>(x,{",".join(names)})}}\n')
        self.assertEqual(hostile_test.run(["check", model]).code, 0)


if __name__ == "__main__":
    unittest.main()
