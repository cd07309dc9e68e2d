#!/bin/bash
# The work of action.yml: simulate by COMMAND here and at the revision BASE, then compare.
# Writes to OUT: head/ and base/ (reports), summary.md, junit.xml, findings.sarif; and kept=true or
# kept=false to GITHUB_OUTPUT. Ends with an error only where there is no report of the checkout.
set -euo pipefail
tilescope=${TILESCOPE:-tilescope}
mkdir -p "$OUT"
out=$(cd "$OUT" && pwd)

# Run COMMAND in a directory, with its report in another one.
simulate() {
    TILESCOPE_REPORT=$2 \
        POPLAR_ENGINE_OPTIONS="{\"autoReport.all\": \"true\", \"autoReport.directory\": \"$2\"}" \
        bash -c "cd \"\$0\" && $COMMAND" "$1"
}

simulate . "$out/head"
compared=()
if [ -n "${BASE:-}" ] && git rev-parse --quiet --verify "$BASE^{commit}" > /dev/null; then
    worktree=$(mktemp -d)/base
    git worktree add --quiet --detach "$worktree" "$BASE"
    trap 'git worktree remove --force "$worktree"' EXIT
    if simulate "$worktree" "$out/base"; then compared=(--baseline "$out/base"); fi
fi
budget=()
if [ -n "${BUDGET:-}" ]; then budget=(--budget "$BUDGET"); fi

if [ ${#compared[@]} -gt 0 ]; then
    "$tilescope" compare "$out/base" "$out/head" --format markdown "${budget[@]}" \
        --dashboard "${DASHBOARD:-}" > "$out/summary.md"
else
    printf '### No report of the base to compare with\n' > "$out/summary.md"
    if [ -n "${BUDGET:-}" ]; then grep -v '"[+-][0-9. ]*%"' "$BUDGET" > "$out/limits.toml" || true; fi
    budget=()
    if [ -s "$out/limits.toml" ]; then budget=(--budget "$out/limits.toml"); fi
fi
check() { "$tilescope" check "$out/head" "${compared[@]}" "${budget[@]}" "$@"; }
kept=true
check > "$out/check.txt" || kept=false
check --format junit > "$out/junit.xml" || true
check --format sarif > "$out/findings.sarif" || true
printf '\n<details><summary>tilescope check</summary>\n\n' >> "$out/summary.md"
sed 's/^/    /' "$out/check.txt" >> "$out/summary.md"
printf '\n</details>\n' >> "$out/summary.md"
cat "$out/summary.md" >> "${GITHUB_STEP_SUMMARY:-/dev/stdout}"
echo "kept=$kept" >> "${GITHUB_OUTPUT:-/dev/stdout}"
