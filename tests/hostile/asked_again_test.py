"""What is asked of an operator's name and of a call's attributes, at each of many visits."""

import unittest

import wire
from promise import PromiseTest
from visits_and_probes_test import loops, some_names


class AskedAgainTest(PromiseTest):
    def test_a_condition_of_an_operator_with_a_long_name(self):
        """Branches of two extents: each If asks whether the node of the condition reads a shape."""
        then, other = wire.graph([], [], [wire.data(1, "P")], name="t"), wire.graph([], [], [wire.data(1, "Q")], name="e")
        asked = [wire.node("If", ["k"], [name], then_branch=("g", then), else_branch=("g", other)) for name in some_names(61, without=("P", "Q", "k"))]
        inputs = [wire.value("P", wire.FLOAT, [2]), wire.value("Q", wire.FLOAT, [3])]
        self.run_within_promise(loops(asked, inputs=inputs, before=[wire.node("L" * 56_500, ["Z"], ["k"], domain="local")]), "check", "show")

    def test_calls_whose_attributes_are_never_equal(self):
        """All texts of a list agree; the tensor behind them is compared with nothing."""
        texts = wire.data(5, wire.data(1, "a") + wire.data(9, "x") * 3000 + wire.number(20, 8))
        tensor = wire.data(5, wire.data(1, "z") + wire.data(5, wire.tensor("t", wire.INT64, [], bytes(8))) + wire.number(20, 4))
        call = wire.data(1, "s.") + wire.data(2, "q.") + wire.data(4, "f") + wire.data(7, "local") + texts + tensor
        model = loops([call], fill=11_000) + wire.data(25, wire.function("f", ["a"], ["b"], [], opsets=(("", 21),)))
        self.run_within_promise(model, "check", "show", "check --placement runtime")


if __name__ == "__main__":
    unittest.main()
