"""Rules, and the passes about losses, go through a model only by what charges its meter: `Walk` and `Visited` of base/walk.h, which
`Analysis`, `NodeCall` and `Expressions` hand out. The model's own lists are as long as a stranger makes them, and charge nothing.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("analyzer/rules", "passes/losses")

COMMENT = re.compile(r"//[^\n]*")
# Names that the model has in a file, besides `model()`.
NAMED = re.compile(r"\bModel& (\w+)")
LISTS = r"(?:operands|results|attributes|attribute|operand_list|result_list|attribute_list)\b"
FAULTS = {
    r"MODEL\.(?:nodes|values)\b(?!\.(?:size|empty)\(\))": "walks over all nodes or values: ask Analysis for `nodes()`, `values()`, or each_node (analyzer/rules/value/sources.h)",
    r"MODEL\." + LISTS: "reads a list of the model: ask Analysis, NodeCall or Expressions for it",
    r"\bids_below<(?:NodeId|ValueId)>": "walks over all nodes or values: ask Analysis for `nodes()`, `values()`",
    r"(?<!value_at\(model\.)\bgraph\((?:[^()]|\([^()]*\))*\)\.(?:inputs|outputs)\)? ?(?:\{|,|\))": "walks over a graph's list: ask Analysis for `inputs(graph)`, `outputs(graph)`",
    r"facts(?:_|\(\))?\.content\(": "looks at the elements of a constant: ask Analysis for `content(value)`",
    r"\b(?:losses::)?(?:Parameters|LossAxes|GradientWays)(?: \w+)?\(\w+(?:\.analysis\(\))?\)": "walks over the model again for each that asks: ask Reporter for `shared<...>()`",
    r"std::(?:unordered_)?set<(?:ValueId|NodeId)> (?:seen|visited);": "keeps where a walk has been: `Visited` charges for it",
}
# What may: a reason each.
ALLOWED = {
    ("analyzer/rules/graph/undefined_value.cc", "walks over all nodes"): "compares names with a bounded number of others, for four findings",
    ("analyzer/rules/graph/undefined_value.cc", "walks over a graph's list"): "copies what is unused once, before it is walked with a charge",
    ("analyzer/rules/graph/dead_node.cc", "walks over a graph's list"): "once for each graph",
    ("analyzer/rules/loss/logits_into_probability_loss.cc", "keeps where a walk has been"): "logarithms that are told once",
    ("analyzer/rules/value/invalid_domain.cc", "keeps where a walk has been"): "logarithms that are told once",
    ("passes/losses/loss_cone.cc", "walks over all nodes"): "its size",
}


def faults(name: str, text: str) -> list[str]:
    text = COMMENT.sub("", text)
    names = "|".join(sorted({"model", "model_", *NAMED.findall(text)}))
    found = []
    for pattern, why in FAULTS.items():
        if any(name == path and why.startswith(begin) for path, begin in ALLOWED):
            continue
        for at in re.finditer(pattern.replace("MODEL", rf"(?:\b(?:{names})|\bmodel\(\))"), text):
            found.append(f"{name}:{text.count(chr(10), 0, at.start()) + 1}: `{at[0].strip()}` {why}")
    return found


EXAMPLES = (
    "for (const NodeId id : model.nodes.ids()) visit(id);",
    "for (const ValueId value : call.model().operands(call.node())) visit(value);",
    "const Model& known = analysis.model();\nfor (const ValueId value : known.results(node)) visit(value);",
    "if (model_.attribute(node, \"axis\") != nullptr) return;",
    "for (const ValueId value : view.model().graph(GraphId::kMain).outputs) visit(value);",
    "const Content* content = call.facts().content(operand.fact().content);",
    "losses::Parameters parameters(analysis);",
    "std::set<ValueId> seen;",
)


def main() -> int:
    missed = [example for example in EXAMPLES if not faults("example.cc", example)]
    if missed or faults("example.cc", "for (const ValueId value : analysis.operands(node)) visit(value);"):
        print(f"the check does not tell what charges from what does not: {missed}")
        return 1
    problems = [fault for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".h", ".cc")
                for fault in faults(path.relative_to(ROOT).as_posix(), path.read_text())]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
