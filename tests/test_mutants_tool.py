"""What `make mutants` counts as a gap."""

from __future__ import annotations

from tools.mutants import changed_lines, reason

DIFF = """--- a.py
+++ a.py
@@ -1,3 +1,3 @@
 def f(x):
-    return -(-x // 4)
+    return -(-x / 4)
"""


def test_a_changed_line_is_one_that_a_diff_takes_away_or_adds() -> None:
    assert changed_lines(DIFF) == ["-    return -(-x // 4)", "+    return -(-x / 4)"]
    assert reason(changed_lines(DIFF)) == ""


def test_a_type_that_numbers_have_already_is_no_gap() -> None:
    assert reason(["-    x = np.zeros(3, dtype=np.int64)", "+    x = np.zeros(3, )"])
