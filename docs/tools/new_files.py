"""Writes the files of a new rule, operator entry, report or command: `./dev new`.

What is written builds and passes its own tests; a test tries it in a copy of the tree (tests/docs/adding_test.py). Rules, reports
and commands begin as the examples of docs/adding under another name, operators as an entry for the operator's schema.
"""

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import symptoms

ROOT = Path(__file__).resolve().parents[2]
USAGE = """usage: ./dev new rule GROUP/NAME        groups: {groups}
       ./dev new op [DOMAIN.]NAME       as in ONNX text: ReduceMean, com.microsoft.UnfoldTensor
       ./dev new report NAME            a format of `check --format`
       ./dev new command NAME"""
LETTERS = {"dtype": "D", "shape": "S", "loss": "L", "placement": "P", "value": "V", "graph": "G"}

Files = dict[str, str]  # path within the tree, text


class Refusal(Exception):
    """Why nothing is written."""


# ---- the examples of docs/adding


def example(page: str) -> Files:
    """The files that a page of docs/adding shows: blocks of code after a line that begins with a path and ends with a colon."""
    text = (ROOT / "docs" / "adding" / f"{page}.md").read_text()
    blocks = re.finditer(r"^`([\w./-]+/[\w./-]+)`[^\n]*:\n\n(?P<fence>`{3,})\w*\n(.*?)^(?P=fence)$", text, re.MULTILINE | re.DOTALL)
    return {block[1]: block[3] for block in blocks}


def renamed(files: Files, names: list[tuple[str, str]]) -> Files:
    def replaced(text: str) -> str:
        for old, new in names:
            text = text.replace(old, new)
        return text

    return {replaced(path): replaced(text) for path, text in files.items()}


def pascal(name: str) -> str:
    return "".join(part.capitalize() for part in re.split("[-_]", name))


def next_code(group: str) -> str:
    letter = LETTERS[group]
    sources = [*(ROOT / "analyzer" / "rules").rglob("*.cc"), *(ROOT / "docs" / "rules").glob("*.md")]
    used = [int(code) for path in sources for code in re.findall(rf"TL-{letter}(\d+)", path.read_text())]
    return f"TL-{letter}{max(used, default=100) + 1}"


def new_rule(argument: str) -> Files:
    group, _, name = argument.partition("/")
    if group not in LETTERS:
        raise Refusal(f"no group `{group}` of rules; there are {', '.join(LETTERS)}")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise Refusal(f"a rule is named like `axis-out-of-range`, not `{name}`")
    if existing := list((ROOT / "docs" / "rules").glob(f"{name}.md")):
        raise Refusal(f"there is a rule of that name: {existing[0].relative_to(ROOT)}")
    return renamed(
        example("rule"),
        [
            ("rules/shape/", f"rules/{group}/"),
            ('"shape"', f'"{group}"'),
            ("TL-S299", next_code(group)),
            ("reduction-of-scalar", name),
            ("reduction_of_scalar", name.replace("-", "_")),
            ("ReductionOfScalar", pascal(name)),
        ],
    )


def plain_name(name: str, what: str) -> str:
    if not re.fullmatch(r"[a-z][a-z0-9]*", name):
        raise Refusal(f"a {what} is named by one word in lower case, not `{name}`")
    return name


def new_report(name: str) -> Files:
    return renamed(example("report"), [("csv", plain_name(name, "report")), ("Csv", pascal(name))])


def new_command(name: str) -> Files:
    return renamed(example("command"), [("census", plain_name(name, "command")), ("Census", pascal(name))])


# ---- operators


class Formal(NamedTuple):
    variable: str
    dtypes: list[str]  # allowed of a tensor; empty: not a tensor
    required: bool


class Schema(NamedTuple):
    version: int  # newest
    versions: list[int]
    source: str
    inputs: list[Formal]
    outputs: list[Formal]
    attributes: dict[str, str]  # required ones: name and kind, a letter as in the table of contrib operators


DTYPES = {"float": "float32", "double": "float64"}  # ONNX's names where ours are numpy's


def onnx_schema(domain: str, name: str) -> Schema | None:
    import onnx.defs  # only here: the other kinds of files need no package

    history = [each for each in onnx.defs.get_all_schemas_with_history() if each.domain == domain and each.name == name]
    if not history:
        return None
    newest = max(history, key=lambda each: each.since_version)

    def formals(parameters: Sequence[onnx.defs.OpSchema.FormalParameter]) -> list[Formal]:
        allowed = {constraint.type_param_str: constraint.allowed_type_strs for constraint in newest.type_constraints}
        result: list[Formal] = []
        for each in parameters:
            types = allowed.get(each.type_str, [each.type_str])
            tensors = [match[1] for text in types if (match := re.fullmatch(r"tensor\((\w+)\)", text))]
            result.append(Formal(each.type_str, [DTYPES.get(dtype, dtype) for dtype in tensors], not str(each.option).endswith("Optional")))
        return result

    letters = {"FLOAT": "f", "INT": "i", "STRING": "s", "FLOATS": "F", "INTS": "I", "STRINGS": "S"}
    required = {key: letters.get(str(each.type).rpartition(".")[2], "?") for key, each in newest.attributes.items() if each.required}
    versions = sorted(each.since_version for each in history)
    return Schema(newest.since_version, versions, f"ONNX {name}", formals(newest.inputs), formals(newest.outputs), required)


def contrib_schema(domain: str, name: str) -> Schema | None:
    (table,) = ROOT.glob("ir/*/generated/contrib_schemas.cc")
    row = re.search(rf'^    {{"{re.escape(domain)}", "{name}", (\d+),((?:\s+"[^"\n]*",?)+)}},$', table.read_text(), re.MULTILINE)
    if row is None:
        return None
    joined = re.sub(r'"\s*\n\s*"', "", row[2])
    types, inputs, outputs, attributes = re.findall(r'"([^"]*)"', joined)
    allowed = {variable: dtypes.split(",") for variable, _, dtypes in (word.partition("=") for word in types.split())}

    def formals(words: str) -> list[Formal]:
        result: list[Formal] = []
        for word in words.split():
            variable = word.partition(":")[2].rstrip("?*")
            result.append(Formal(variable, [DTYPES.get(dtype, dtype) for dtype in allowed.get(variable, [])], not word.endswith("?")))
        return result

    required = dict(word.rstrip("!").split(":") for word in attributes.split() if word.endswith("!"))
    return Schema(int(row[1]), [int(row[1])], f"onnxruntime {domain}.{name}", formals(inputs), formals(outputs), required)


def spelled_alike(argument: str) -> list[str]:
    """Operators of that name in another domain or another case, as `./dev new op` takes them."""
    import onnx.defs

    (table,) = ROOT.glob("ir/*/generated/contrib_schemas.cc")
    known = set(re.findall(r'^    {"([\w.]*)", "(\w+)"', table.read_text(), re.MULTILINE))
    known |= {(each.domain, each.name) for each in onnx.defs.get_all_schemas()}
    name = argument.rpartition(".")[2].lower()
    return sorted(".".join(filter(None, each)) for each in known if each[1].lower() == name)


VALUES = {"i": '.with("{}", 1)', "f": '.with("{}", 1.0)', "s": '.with("{}", "")', "I": '.ints("{}", {{1}})', "F": '.float_list("{}", {{1}})', "S": '.strings("{}", {{""}})'}


def preferred(formal: Formal) -> str:
    return next((dtype for dtype in ("float32", "int64") if dtype in formal.dtypes), formal.dtypes[0])


def new_op(argument: str) -> Files:
    domain, _, name = argument.rpartition(".")
    if domain == "ai.onnx":
        domain = ""
    if not re.fullmatch(r"[A-Za-z]\w*", name):
        raise Refusal(f"an operator is named like `ReduceMean` or `com.microsoft.FusedMatMul`, not `{argument}`")
    schema = contrib_schema(domain, name) or onnx_schema(domain, name)
    if schema is None and (alike := spelled_alike(argument)):
        raise Refusal(f"no schema of `{argument}`; is {' or '.join(f'`{each}`' for each in alike)} meant?")
    if schema is None:
        raise Refusal(f"no schema of `{argument}` in the onnx package or the table of contrib operators; names are written as there, `ReduceMean`")
    for existing in sorted((ROOT / "ir" / "ops" / "entries").rglob("*.cc")):
        text = existing.read_text()
        is_of_domain = not domain or f'"{domain}"' in text or existing.name.startswith("contrib")
        if f'"{name}"' in text and is_of_domain:  # ONNX may have one of that name
            raise Refusal(f"`{name}` has an entry in {existing.relative_to(ROOT)}")
    operands = [formal for formal in schema.inputs if formal.required]
    if not operands or not all(formal.dtypes for formal in [*operands, schema.outputs[0]]):
        raise Refusal(f"`{name}` does not map tensors to a tensor: write its entry by hand, after the model of ir/ops/entries/sequence.cc")
    if "?" in schema.attributes.values() or "t" in schema.attributes.values():
        raise Refusal(f"`{name}` needs a tensor, graph or type as attribute: write its entry by hand, after the model of ir/ops/entries/constant.cc")

    file = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    out = schema.outputs[0]
    bound = {formal.variable: preferred(formal) for formal in operands}
    dtype = bound.get(out.variable) or (out.dtypes[0] if len(out.dtypes) == 1 else None)
    call = f'Op("{name}", {schema.version}' + (f', "{domain}")' if domain else ")")
    call += "".join(f'.in("{preferred(formal)}[N, 3]")' for formal in operands)
    call += "".join(VALUES[kind].format(attribute) for attribute, kind in schema.attributes.items())
    call += ".infer().result()"
    expectation = f'EXPECT_EQ({call}, "{dtype}[N, 3]");' if dtype else f'EXPECT_TRUE({call}.ends_with("[N, 3]"));'
    versions = ", ".join(map(str, schema.versions))
    entry = f"""// Source: {schema.source}, opset{"s" if len(schema.versions) > 1 else ""} {versions}.
#include "ir/ops/inference.h"

namespace tensorlint::ops {{
namespace {{

void infer_{file}(Inference& in) {{
  // Dtypes are set already, from the schema. The shape is right only if it is that of the first operand.
  if (const auto shape = in.shape(0)) in.set_shape(0, *shape);
}}

const RegisterOps kRegister{name}{{OpEntry("{name}"{f', "{domain}"' if domain else ""}).infer(infer_{file})}};

}}  // namespace
}}  // namespace tensorlint::ops
"""
    test = f"""#include "tests/ops/op_test.h"

namespace tensorlint::ops {{
namespace {{

TEST({name}, Shape) {{
  {expectation}
}}

}}  // namespace
}}  // namespace tensorlint::ops
"""
    return {f"ir/ops/entries/{file}.cc": entry, f"tests/ops/{file}_test.cc": test}


# ---- writing

KINDS = {"rule": new_rule, "op": new_op, "report": new_report, "command": new_command}
NEXT = {
    "rule": "now write the rule, its page and its fixtures; `./dev update {name}` writes what they report",
    "op": "now write what it infers and tests of it; for an operator of ONNX `./dev ops --write` and `./dev update Version` follow",
    "report": "now write the report and its test, and add it to docs/check.md",
    "command": "now write the command and its test, and add it to README.md",
}


def main() -> int:
    arguments = sys.argv[1:]
    if len(arguments) != 2 or arguments[0] not in KINDS:
        print(USAGE.format(groups=", ".join(LETTERS)), file=sys.stderr)
        return 2
    try:
        files = KINDS[arguments[0]](arguments[1])
        for path in files:
            if (ROOT / path).exists():
                raise Refusal(f"{path} exists already")
    except Refusal as refusal:
        print(f"dev: {refusal}", file=sys.stderr)
        return 2
    for path, text in files.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(text)
        print(path)
    formatter = Path(sys.executable).parent / "clang-format"
    if sources := [str(ROOT / path) for path in files if path.endswith((".cc", ".h")) and formatter.exists()]:
        subprocess.run([str(formatter), "-i", *sources], check=True)
    if arguments[0] == "rule":
        symptoms.INDEX.write_text(symptoms.index())
    print(NEXT[arguments[0]].format(name=arguments[1].rpartition("/")[2].replace("-", "_")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
