"""What `make mutants` counts as a gap, and the record that it keeps."""

from __future__ import annotations

import json

from tools.mutants import EQUIVALENT, MAX_GAPS, RECORD, ROOT, change_of, counts, equivalent

DIFF = """--- a.py
+++ a.py
@@ -1,3 +1,3 @@
 def f(x):
-    return -(-x // 4)
+    return -(-x / 4)
"""
CHANGE = ("m.a", "return -(-x // 4)", "return -(-x / 4)")


def test_a_change_is_the_lines_before_and_after() -> None:
    assert change_of("m.a", DIFF) == CHANGE


def test_a_change_is_explained_in_its_module_and_line_alone() -> None:
    text = "[[mutant]]\nmodule = 'm.a'\nbefore = 'x'\nafter = 'y'\nwhy = 'z'\n"
    assert equivalent(text) == {("m.a", "x", "y"): "z"}
    codes = {"m.a.f_1": 0, "m.a.f_2": 1, "m.a.f_3": 0, "m.b.g_1": 0}
    survivors = {"m.a.f_1": ("m.a", "x", "y"), "m.a.f_3": CHANGE, "m.b.g_1": ("m.b", "x", "y")}
    assert counts(codes, survivors, equivalent(text)) == {
        "m.a": {"changes": 3, "killed": 1, "equivalent": 1, "survived": 1},
        "m.b": {"changes": 1, "killed": 0, "equivalent": 0, "survived": 1},
    }


def test_the_record_is_of_modules_that_there_are_with_few_gaps() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    for module, numbers in record.items():
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module
        assert numbers["changes"] == sum(numbers[n] for n in ("killed", "equivalent", "survived"))
    gaps, changes = (sum(n[name] for n in record.values()) for name in ("survived", "changes"))
    assert gaps < MAX_GAPS * changes


def test_each_explained_change_has_a_reason_and_a_line_that_is_there() -> None:
    for (module, before, _), why in equivalent(EQUIVALENT.read_text(encoding="utf-8")).items():
        source = (ROOT / f"{module.replace('.', '/')}.py").read_text(encoding="utf-8")
        assert before in " ".join(line.strip() for line in source.splitlines()), before
        assert why
