"""What `make mutants` counts as a gap, and the record that it keeps."""

from __future__ import annotations

import json

from tools.mutants import (
    ANY,
    EQUIVALENT,
    MAX_GAPS,
    RECORD,
    ROOT,
    change_of,
    counts,
    equivalent,
    file_of,
    forget_survivors,
    is_explained,
    selection,
)

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
    text = "[[unseen]]\nmodule = 'm.a'\nwhy = 'z'\nchanges = [['x', 'y']]\n"
    assert equivalent(text) == {("m.a", "x", "y"): "z"}
    codes = {"m.a.f_1": 0, "m.a.f_2": 1, "m.a.f_3": 0, "m.b.g_1": 0}
    survivors = {"m.a.f_1": ("m.a", "x", "y"), "m.a.f_3": CHANGE, "m.b.g_1": ("m.b", "x", "y")}
    assert counts(codes, survivors, equivalent(text)) == {
        "m.a": {"changes": 3, "killed": 1, "equivalent": 1, "survived": 1},
        "m.b": {"changes": 1, "killed": 0, "equivalent": 0, "survived": 1},
    }


def test_a_change_of_a_part_of_a_line_is_explained_in_any_module() -> None:
    explained = {("*", "strict=True", "strict=None"): "never fails"}
    line = "zip(a, b, strict=True), zip(c, strict=True)"
    once = "zip(a, b, strict=True), zip(c, strict=None)"
    assert is_explained(("m.b", line, once), explained)
    for other in (line, once.replace("c", "d"), line.replace("True", "None")):
        assert not is_explained(("m.b", line, other), explained)


def test_what_survived_is_run_again_and_what_was_noticed_is_not() -> None:
    meta = json.dumps({"exit_code_by_key": {"a": 0, "b": 1, "c": 33}, "durations_by_key": {"a": 2}})
    assert json.loads(forget_survivors(meta)) == {
        "exit_code_by_key": {"a": None, "b": 1, "c": None}, "durations_by_key": {"a": 2},
    }  # fmt: skip


def test_each_module_has_tests_that_are_there() -> None:
    tests = selection()
    assert len(tests) == 12
    files = {file_of(module) for module in tests} | {file for name in tests for file in tests[name]}
    assert [file for file in sorted(files) if not (ROOT / file).is_file()] == []


def test_the_record_is_of_modules_that_there_are_with_few_gaps() -> None:
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    for module, numbers in record.items():
        assert (ROOT / file_of(module)).exists(), module
        assert numbers["changes"] == sum(numbers[n] for n in ("killed", "equivalent", "survived"))
        assert len(numbers.get("gaps", ())) in (0, numbers["survived"])
    gaps, changes = (sum(n[name] for n in record.values()) for name in ("survived", "changes"))
    assert gaps < MAX_GAPS * changes


def test_each_explained_change_has_a_reason_and_a_line_that_is_there() -> None:
    for (module, before, _), why in equivalent(EQUIVALENT.read_text(encoding="utf-8")).items():
        modules = selection() if module == ANY else [module]
        sources = [(ROOT / file_of(name)).read_text(encoding="utf-8") for name in modules]
        lines = (" ".join(map(str.strip, source.splitlines())) for source in sources)
        assert any(before in line for line in lines), before
        assert why
