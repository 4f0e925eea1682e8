"""Passes, rules, fixes and reports go through a model only by what charges its meter: `Walk` and `Visited` of base/walk.h, which
`Analysis`, `NodeCall` and `Expressions` hand out. The model's own lists are as long as a stranger makes them, and charge nothing.

A file that reads them all the same is listed with what bounds that: a charge that it makes itself, or that it does so once for each
model, node or value, which costs no more than reading the file did.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("passes", "analyzer/rules", "analyzer/findings", "analyzer/fixes", "analyzer/pipeline", "analyzer/reports")

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
    r"->element\(\)(?! [!=]= nullptr)": "evaluates an operator with whatever attributes a node has: ask dataflow::element_function",
    r"(?:binary_search|lower_bound)\([^;]*\bsources?\b": "compares where axes come from: ask AxisOrigins",
    r"(?:->|\.)(?:notes|fixes|causes)\.(?:push|emplace)_back": "keeps text in a finding: FindingBuilder cuts it, and charges for it",
    r"fmt::format\((?:[^;{]|\{\w*\})*?(?<![\w.)>-])(?<!quoted_for_people\()(?<!escape_for_display\()(?<!kept\()(?:\w+(?:\(\))?(?:\.|->))+name_of\(": "writes a whole name: ask Operand for `name()`",
}
# What may: a reason each.
ALLOWED = {
    ("analyzer/rules/graph/undefined_value.cc", "walks over a graph's list"): "copies what is unused once, before it is walked with a charge",
    ("analyzer/pipeline/filter.cc", "keeps text in a finding"): "two words",
    ("analyzer/rules/casts.cc", "writes a whole name"): "the name of a value that a fix makes: FindingBuilder charges it",
    ("analyzer/rules/graph/dead_node.cc", "walks over a graph's list"): "once for each graph",
    ("analyzer/rules/loss/class_axis_position.cc", "writes a whole name"): "the name of a value that a fix makes: FindingBuilder charges it",
    ("analyzer/rules/placement/transfers.cc", "writes a whole name"): "a key that a fix makes: FindingBuilder charges it",
    ("analyzer/rules/rule.cc", "keeps text in a finding"): "FindingBuilder itself",
    ("analyzer/rules/loss/logits_into_probability_loss.cc", "keeps where a walk has been"): "logarithms that are told once",
    ("analyzer/rules/value/invalid_domain.cc", "keeps where a walk has been"): "logarithms that are told once",
    ("passes/contract/candidates.cc", "reads a list of the model"): "charges each operand and attribute",
    ("passes/contract/candidates.cc", "looks at the elements"): "its size is all that is read of a long one",
    ("passes/contract/contract.cc", "walks over all nodes"): "once, and for each range that is found: 256 probes find few",
    ("passes/contract/contract.cc", "reads a list of the model"): "charges the operands of a node; attributes as above",
    ("passes/contract/contract.cc", "walks over a graph's list"): "once",
    ("passes/contract/contract.cc", "looks at the elements"): "of one element",
    ("passes/contract/demanding_calls.cc", "walks over all nodes"): "once",
    ("passes/contract/demanding_calls.cc", "reads a list of the model"): "once for each node",
    ("passes/contract/demanding_calls.cc", "looks at the elements"): "charges what it compares them with, by `keeps` and Prober::evaluate",
    ("passes/contract/dim_text.cc", "writes a whole name"): "once for each input",
    ("passes/contract/dim_text.cc", "walks over a graph's list"): "charges each input and its dims",
    ("passes/contract/probing.cc", "walks over a graph's list"): "once",
    ("passes/dataflow/abstract_value.cc", "looks at the elements"): "the pool charges for the symbols of each element",
    ("passes/dataflow/analysis.cc", "reads a list of the model"): "a node's application, made once for each that asks for it; users of all values, made once",
    ("passes/dataflow/analysis.h", "walks over a graph's list"): "makes the walks",
    ("passes/dataflow/body_cache.cc", "reads a list of the model"): "once for each body",
    ("passes/dataflow/unrun_bodies.cc", "reads a list of the model"): "a Walk",
    ("passes/dataflow/unrun_bodies.cc", "walks over a graph's list"): "once for each body",
    ("passes/dataflow/branches.cc", "reads a list of the model"): "a Walk; the first operand of an If",
    ("passes/dataflow/declarations.cc", "reads a list of the model"): "a visit of a node: Solver::weight_of",
    ("passes/dataflow/element_function.cc", "evaluates an operator"): "looks at how many attributes there are",
    ("passes/dataflow/equality_scope.cc", "looks at the elements"): "takes each element from what is left of its allowance",
    ("passes/dataflow/functions.cc", "reads a list of the model"): "a visit of a node: Solver::weight_of; whether two lists are one",
    ("passes/dataflow/growing_analysis.cc", "reads a list of the model"): "a program of our own user",
    ("passes/dataflow/growth.cc", "walks over all nodes"): "a program of our own user",
    ("passes/dataflow/growth.cc", "reads a list of the model"): "a program of our own user",
    ("passes/dataflow/loops.cc", "reads a list of the model"): "once for each body",
    ("passes/dataflow/loops.cc", "walks over a graph's list"): "one of its inputs",
    ("passes/dataflow/node_memo.h", "reads a list of the model"): "same_attributes, after a hash of them all, which the visit charges",
    ("passes/dataflow/nodes.cc", "reads a list of the model"): "a visit of a node: weight_of charges all that it has; `forget` once for each graph",
    ("passes/dataflow/nodes.cc", "walks over a graph's list"): "once for each graph",
    ("passes/dataflow/nodes.cc", "looks at the elements"): "its size",
    ("passes/dataflow/order.cc", "reads a list of the model"): "once for each graph",
    ("passes/dataflow/origins.cc", "reads a list of the model"): "a Walk",
    ("passes/dataflow/reached_values.cc", "reads a list of the model"): "one of them; the sources charge their operands",
    ("passes/dataflow/reached_values.cc", "looks at the elements"): "of one or two elements for each axis",
    ("passes/dataflow/reached_values.cc", "keeps where a walk has been"): "256 values, which it charges",
    ("passes/dataflow/solver.cc", "reads a list of the model"): "a visit of a body: the visits of its nodes charge their results",
    ("passes/dataflow/solver.h", "reads a list of the model"): "a visit of a node: weight_of",
    ("passes/dataflow/summaries.cc", "reads a list of the model"): "same_attributes, of a call whose visit charged them",
    ("passes/placement/call_attributes.cc", "reads a list of the model"): "charges them",
    ("passes/placement/explicit_transfers.cc", "reads a list of the model"): "once for each node",
    ("passes/losses/axis_origins.cc", "compares where axes come from"): "charges each source",
    ("passes/losses/crossed_axes.cc", "compares where axes come from"): "charges each source",
    ("passes/losses/sequence_axes.cc", "compares where axes come from"): "one of them",
    ("passes/placement/explicit_transfers.cc", "writes a whole name"): "one message for a model",
    ("passes/placement/explicit_transfers.cc", "walks over all nodes"): "once",
    ("passes/placement/explicit_transfers.cc", "walks over a graph's list"): "once",
    ("passes/placement/graph_visits.cc", "walks over all nodes"): "once",
    ("passes/placement/graph_visits.cc", "reads a list of the model"): "one of them",
    ("passes/placement/growing_devices.cc", "reads a list of the model"): "a program of our own user",
    ("passes/placement/nominal_work.cc", "reads a list of the model"): "one of them; attributes of a matrix product, once for each node",
    ("passes/placement/placement.cc", "reads a list of the model"): "one of them",
    ("passes/placement/placer.cc", "reads a list of the model"): "`read` and `set` charge each value",
    ("passes/placement/placer.cc", "walks over a graph's list"): "`set` charges each value",
    ("passes/placement/placer.cc", "looks at the elements"): "its size",
    ("passes/placement/placer_bodies.cc", "reads a list of the model"): "`read` and `set` charge each value; whether there are attributes",
    ("passes/placement/placer_bodies.cc", "walks over a graph's list"): "`read` charges each value",
    ("passes/placement/placer_loops.cc", "reads a list of the model"): "`read` and `set` charge each value",
    ("passes/placement/placer_loops.cc", "walks over a graph's list"): "one of its outputs",
    ("passes/placement/provider.cc", "reads a list of the model"): "once for each node and provider",
    ("passes/placement/records.cc", "reads a list of the model"): "once for each node that fails",
    ("passes/placement/runtime_cost.cc", "reads a list of the model"): "what a run's budget and meter are charged for in `visit`",
    ("passes/placement/runtime_cost.cc", "walks over a graph's list"): "`make` charges each value",
    ("passes/placement/sources.cc", "walks over all nodes"): "once; `matches` charges each comparison",
    ("passes/placement/sources.cc", "reads a list of the model"): "once for each node and row, which `matches` charges",
    ("passes/placement/tensor_facts.cc", "looks at the elements"): "of one element",
    ("passes/structure/cycles.cc", "walks over all nodes"): "once",
    ("passes/structure/liveness.cc", "reads a list of the model"): "once for each node",
    ("passes/structure/opset_needs.cc", "walks over all nodes"): "once",
    ("passes/structure/opset_needs.cc", "reads a list of the model"): "for each violation those up to the first that its schema lacks",
    ("passes/structure/sorted_order.cc", "walks over all nodes"): "once",
    ("passes/structure/sorted_order.cc", "reads a list of the model"): "once for each node",
    ("analyzer/findings/violation_text.cc", "reads a list of the model"): "one of them",
    ("analyzer/fixes/fixer.cc", "reads a list of the model"): "eight declared types of a node are contradicted at most",
    ("analyzer/reports/contract.cc", "walks over a graph's list"): "sorts by place, of requirements that 256 probes found",
    ("analyzer/reports/show.cc", "reads a list of the model"): "once for each node that is printed",
    ("analyzer/reports/show.cc", "looks at the elements"): "of eight elements at most",
    ("analyzer/reports/show.cc", "keeps where a walk has been"): "once for each node that is printed",
    ("analyzer/reports/show_json.cc", "walks over all nodes"): "once",
    ("analyzer/reports/show_json.cc", "reads a list of the model"): "once for each node",
    ("analyzer/reports/show_json.cc", "looks at the elements"): "takes each element from the bytes that contents may have",
    ("analyzer/reports/unknowns.cc", "looks at the elements"): "once for each fact; has_dim charges",
    ("analyzer/reports/why.cc", "looks at the elements"): "of a value that is printed, of which there are few",
}


def faults(name: str, text: str, allowed=frozenset(ALLOWED)) -> list[str]:
    text = COMMENT.sub("", text)
    names = "|".join(sorted({"model", "model_", *NAMED.findall(text)}))
    found = []
    for pattern, why in FAULTS.items():
        if any(name == path and why.startswith(begin) for path, begin in allowed):
            continue
        for at in re.finditer(pattern.replace("MODEL", rf"(?:\b(?:{names})|\bmodel\(\))"), text):
            found.append(f"{name}:{text.count(chr(10), 0, at.start()) + 1}: `{at[0].strip()}` {why}")
    return found


def is_needed(name: str, begin: str) -> bool:
    return any(begin in fault for fault in faults(name, (ROOT / name).read_text(), frozenset()))


EXAMPLES = (
    "for (const NodeId id : model.nodes.ids()) visit(id);",
    "for (const ValueId value : call.model().operands(call.node())) visit(value);",
    "const Model& known = analysis.model();\nfor (const ValueId value : known.results(node)) visit(value);",
    "if (model_.attribute(node, \"axis\") != nullptr) return;",
    "for (const ValueId value : view.model().graph(GraphId::kMain).outputs) visit(value);",
    "const Content* content = call.facts().content(operand.fact().content);",
    "losses::Parameters parameters(analysis);",
    "std::set<ValueId> seen;",
    "if (entry->element() != nullptr) evaluate(entry->element());",
    "return std::ranges::any_of(a, [&](const AxisSource& source) { return std::ranges::binary_search(b, source); });",
    "finding->notes.push_back({.message = text, .node = {}, .place = {}});",
    "out.report(id, text).fix(fmt::format(\"at {} - 1\", analysis.model().name_of(lengths)));",
)


def main() -> int:
    missed = [example for example in EXAMPLES if not faults("example.cc", example)]
    if missed or faults("example.cc", "for (const ValueId value : analysis.operands(node)) visit(value);"):
        print(f"the check does not tell what charges from what does not: {missed}")
        return 1
    problems = [f"{path}: nothing here {begin}: leave it out of the list" for path, begin in sorted(ALLOWED) if not is_needed(path, begin)]
    problems += [fault for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".h", ".cc")
                for fault in faults(path.relative_to(ROOT).as_posix(), path.read_text())]
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
