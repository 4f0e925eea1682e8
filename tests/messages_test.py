"""What a violation is about is asked of its fields: no code searches in a label, in a message or in a printed value.

`python3 tests/messages_test.py --list` lists what it finds. The patterns are few and plain, so they can be evaded; they are
there for whoever reaches for the text because it is at hand."""

import re
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ["analyzer", "base", "ir", "passes"]

SEARCH = r"\.(?:find|rfind|find_first_of|find_last_of|substr|starts_with|ends_with|contains|compare)\("
PRINTERS = r"\b(?:to_text|violation_text|witness_text|shape_text|bound_text)\("
PATTERNS: list[tuple[str, str]] = [
    (rf"(?:constraint->|\.)label{SEARCH}", "searches in a label"),
    (r"(?:constraint->|\.)label\)? *[!=]= *\"|\" *[!=]= *\w[\w.>()-]*(?:constraint->|\.)label\b", "compares a label"),
    (rf"\b(?:message|witness|wording)(?:\(\))?{SEARCH}", "searches in a message"),
    (r"\b(?:message|witness|wording)(?:\(\))? *[!=]= *\"", "compares a message"),
    (rf"{PRINTERS}[^;{{}}]*?\){SEARCH}", "searches in a printed value"),
]
# A variable that holds a text, and a search in it further down in the same function.
HOLDS_TEXT = re.compile(rf"\bstd::string(?:_view)? (\w+) = [^;]*?(?:{PRINTERS}|[.>]message\b)[^;]*;")

ALLOWED = {
    ("analyzer/cli/inputs.cc", "searches in a message"): "of the readers' errors, which are texts only",
}


def without_comments(text: str) -> str:
    return re.sub(r"//[^\n]*", "", text)


def faults_in(text: str) -> Iterator[tuple[int, str]]:
    code = without_comments(text)
    for pattern, fault in PATTERNS:
        for match in re.finditer(pattern, code):
            yield code.count("\n", 0, match.start()) + 1, fault
    for match in HOLDS_TEXT.finditer(code):
        end = re.search(r"^}", code[match.end() :], re.MULTILINE)
        rest = code[match.end() : match.end() + end.start()] if end else code[match.end() :]
        for search in re.finditer(rf"\b{match.group(1)}{SEARCH}", rest):
            yield code.count("\n", 0, match.end() + search.start()) + 1, "searches in a printed value"


def found() -> tuple[int, list[str], set[tuple[str, str]]]:
    files, bad, used = 0, [], set()
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cc", ".h") or "generated" in path.parts:
                continue
            files += 1
            name = str(path.relative_to(ROOT))
            for number, fault in faults_in(path.read_text()):
                if (name, fault) in ALLOWED:
                    used.add((name, fault))
                else:
                    bad.append(f"{name}:{number}: {fault}: ask for a field of the violation")
    return files, bad, used


class MessagesTest(unittest.TestCase):
    def test_no_code_reads_texts_back(self) -> None:
        files, bad, used = found()
        self.assertEqual(bad, [])
        self.assertGreater(files, 200)
        self.assertEqual(used, set(ALLOWED), "an exception that nothing needs")

    def test_each_pattern_finds_what_it_is_for(self) -> None:
        cases = [
            'const bool rank = failure.constraint->label.find("rank") != npos;',
            'return failure.failure.constraint->label == "noted_shape";',
            'return std::string_view(x.constraint->label) == "known_attribute";',
            "return message.find(quoted(name)) != npos;",
            'return finding.message.starts_with("axis");',
            "return violation.message().substr(4);",
            'if (at.witness == "with N = 2") return;',
            "return range.to_text().substr(1, 3);",
            "const std::string text = fact.range.to_text();\n  return text.substr(1, text.find(','));\n}",
        ]
        for case in cases:
            with self.subTest(case):
                self.assertTrue(list(faults_in(case)))
        good = ["out += dims.to_text(dim);", 'text.find(\'{\')', "label == kNone", "std::string text = read();\n  text.substr(1);\n}"]
        for case in good:
            with self.subTest(case):
                self.assertEqual(list(faults_in(case)), [])


if __name__ == "__main__":
    if len(sys.argv) > 1 and sys.argv[1] == "--list":
        faults = found()[1]
        print("\n".join(faults))
        sys.exit(1 if faults else 0)
    unittest.main()
