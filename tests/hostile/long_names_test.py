"""Names that say what a value holds, and are searched at each place where it is read; elements that are worked out from many operands; probes of
models with thousands of inputs."""

import itertools
import string
import unittest

from promise import LARGEST, PromiseTest

COMMANDS = ("check", "contract", "fix --unsafe --diff")


def names(count: int) -> list[str]:
    """Of three letters each, none of them a word of the syntax."""
    return ["_" + "".join(each) for each in itertools.islice(itertools.product(string.ascii_letters, repeat=2), count)]


def text(inputs: list[str], constants: str, nodes: list[str], output: str) -> bytes:
    return f'<ir_version: 10, opset_import: ["" : 21]>\ng ({",".join(inputs)}) => ({output})\n<{constants}> {{\n{chr(10).join(nodes)}\n}}\n'.encode()


def filled(inputs: list[str], constants: str, nodes: list[str], output: str, repeated: str) -> bytes:
    """With as many nodes of one kind, each with a result of its own, as 64 KiB take."""
    room = LARGEST - len(text(inputs, constants, nodes, output))
    more = [f"{name}={repeated}" for name in names(min(2700, room // (len(repeated) + 6)))]
    return text(inputs, constants, [*nodes, *more], output)


class LongNamesTest(PromiseTest):
    def kept(self, content: bytes) -> None:
        self.run_within_promise(content, *COMMANDS, name="m.onnxtxt")

    def test_a_mask_with_a_number_of_thousands_of_digits(self) -> None:
        """It is asked for in a tree of products, for each mask of a chain and each softmax."""
        for name in ("p_mask" + "1" * 12000, "p" * 12000 + "_mask", "mask_" + "a_" * 6000):
            squares = ["m0=Mul(i,i)", *(f"m{n + 1}=Mul(m{n},m{n})" for n in range(5)), "M=Mul(m5,k)"]
            sums = ["s0=Add(x,M)", *(f"s{n + 1}=Add(s{n},M)" for n in range(7))]
            self.kept(filled(["float[N,4] x", f"float[N,4] {name}"], "float k = {-1e9}", [f"i=Identity({name})", *squares, *sums, "y=Abs(s7)"], "float[N,4] y", "Softmax(s7)"))

    def test_a_long_name_beside_each_softmax(self) -> None:
        for name in ("c" * 16000, "c" * 15990 + "_center"):
            sums = [f"i=Identity({name})", "a=Add(i,i)", "b=Add(a,i)", "c=Add(a,b)", "d=Add(c,i)", "s=Add(d,d)", "h=Mul(s,k)", "p=Softmax(h)", "y=ReduceMean<keepdims=0>(p)"]
            self.kept(filled([f"float[N,4] {name}"], "float k = {25}", sums, "float y", "Softmax(h)"))

    def test_indices_worked_out_from_operands_of_each_other(self) -> None:
        for operator in ("Max", "Sum"):
            last, nodes = "a", []
            for name in names(50):
                operands = ",".join("abcd"[i % 4] for i in range(15))
                nodes.append(f"{name}_={operator}({operands},{last})")
                last = f"{name}_"
            inputs = [f"float[8] {letter}" for letter in "abcd"]
            self.kept(filled([*inputs, "float[100] t"], "int64 k = {1}", [*nodes, f"i=Cast<to=7>({last})", "y=Abs(a)"], "float[8] y", "Gather(t,i)"))

    def test_probes_of_thousands_of_inputs(self) -> None:
        inputs = [name[1:] for name in names(2100) if name.lower() != "_if"]
        self.kept(text([f"float[{name}]{name}" for name in inputs], "int64[2] k = {-1,7}", [f"_{name}=Reshape({name},k)" for name in inputs], f"_{inputs[0]}"))


if __name__ == "__main__":
    unittest.main()
