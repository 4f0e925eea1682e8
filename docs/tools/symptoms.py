"""The index of rules by symptom, docs/symptoms.md, made of the sections "Symptoms" of the rules' pages.

    python3 docs/tools/symptoms.py            write it
    python3 docs/tools/symptoms.py --check    exit code 1 when it is out of date

A section "Symptoms" has blocks of messages, one a line, each after a line such as "ONNX Runtime, when the model is loaded:",
and paragraphs "No error: what one sees instead".
"""

import re
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "rules"
INDEX = ROOT / "docs" / "symptoms.md"

# Who prints a message, in the order of the index.
SOURCES = ["PyTorch", "CUDA", "NumPy", "ONNX Runtime", "`onnx.checker`"]
NO_ERROR = "No error: "

INTRODUCTION = """# Rules by symptom

Which rule explains an error message of another program, or a model that misbehaves without one. Names, shapes, dtypes and
numbers differ from case to case. `./dev docs` writes this page from the rules' pages, and a test compares it with them.
"""


class PageError(Exception):
    """A section that is missing, or not of the form above."""


class Symptom(NamedTuple):
    source: str  # one of SOURCES, or "" where there is no error
    when: str  # "when the model is loaded", or ""
    text: str
    rule: str


def symptoms_of(rule: str, page: str) -> list[Symptom]:
    section = re.search(r"^## Symptoms\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    if section is None:
        raise PageError(f"{rule}: the page has no section `## Symptoms`")
    found: list[Symptom] = []
    rest = section[1]
    for block in re.finditer(r"^(?P<who>[^\n]+):\n\n```\n(?P<messages>.*?)\n```$", section[1], re.MULTILINE | re.DOTALL):
        source, _, when = block["who"].partition(", ")
        if source not in SOURCES:
            raise PageError(f"{rule}: messages of `{source}`; the index knows {', '.join(SOURCES)}")
        found += [Symptom(source, when, message, rule) for message in block["messages"].splitlines()]
        rest = rest.replace(block[0], "")
    for paragraph in filter(None, (part.strip() for part in rest.split("\n\n"))):
        if not paragraph.startswith(NO_ERROR):
            raise PageError(f"{rule}: neither messages nor `{NO_ERROR}`: {paragraph}")
        found.append(Symptom("", "", " ".join(paragraph.removeprefix(NO_ERROR).split()), rule))
    if not found:
        raise PageError(f"{rule}: the section `## Symptoms` is empty")
    return found


def all_symptoms() -> list[Symptom]:
    pages = sorted(PAGES.glob("*.md"))
    return [symptom for page in pages for symptom in symptoms_of(page.stem, page.read_text())]


def code(text: str) -> str:
    """A code span in a table, also of text with backticks and bars."""
    text = text.replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def table(symptoms: list[Symptom], heading: str, cell: str) -> str:
    rules: dict[tuple[str, str], list[str]] = {}
    for symptom in symptoms:
        rules.setdefault((symptom.text, symptom.when), []).append(f"[{symptom.rule}](rules/{symptom.rule}.md)")
    lines = [f"\n## {heading}\n", f"| {cell} | rule |", "|---|---|"]
    for (text, when), links in sorted(rules.items(), key=lambda row: re.sub(r"^\W+", "", row[0][0]).lower()):
        shown = code(text) if symptoms[0].source else text
        lines.append(f"| {shown}{f' ({when})' if when else ''} | {', '.join(links)} |")
    return "\n".join(lines) + "\n"


def index() -> str:
    symptoms = all_symptoms()
    text = INTRODUCTION
    for source in SOURCES:
        text += table([symptom for symptom in symptoms if symptom.source == source], source, "message")
    return text + table([symptom for symptom in symptoms if not symptom.source], "No error message", "symptom")


def main() -> int:
    try:
        text = index()
    except PageError as error:
        print(f"docs/rules: {error}", file=sys.stderr)
        return 1
    if sys.argv[1:] == ["--check"]:
        if INDEX.exists() and INDEX.read_text() == text:
            return 0
        print(f"{INDEX.relative_to(ROOT)} is out of date: run `./dev docs`", file=sys.stderr)
        return 1
    if sys.argv[1:]:
        print("usage: symptoms.py [--check]", file=sys.stderr)
        return 2
    INDEX.write_text(text)
    print(INDEX.relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
