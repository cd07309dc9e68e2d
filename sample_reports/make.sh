#!/bin/sh
# Make the sample reports again: sh sample_reports/make.sh [TILESCOPE] [DIRECTORY]
# The time stands still, so that the documents come out the same to the byte.
set -e
tilescope=${1:-tilescope}
out=${2:-$(dirname "$0")}
new=$(mktemp -d)
trap 'rm -rf "$new"' EXIT
export SOURCE_DATE_EPOCH=1767225600 # 2026-01-01

"$tilescope" simulate matmul_chain 24x20 20x16 16x8 --target tiny --no-code --out "$new/matmul_chain_tiny"
"$tilescope" simulate mlp_digits --target tiny --epochs 1 --out "$new/mlp_digits_tiny"
"$tilescope" simulate matmul_chain 800x500 500x400 400x200 --target mk2 --no-code --out "$new/matmul_chain_mk2"
"$tilescope" simulate newton_pipeline --tiles 16 --replicas 2 --no-code --out "$new/newton_pipeline_replicas"
for document in graph.json execution.json; do
    "$tilescope" convert "$new/matmul_chain_tiny" "$new/matmul_chain_tiny/$document"
done
# One host trace is enough; its name holds a date and a process number.
mv "$new"/mlp_digits_tiny/*.pvti "$new/mlp_digits_tiny/host.pvti"
rm "$new"/matmul_chain_*/*.pvti "$new"/newton_pipeline_*/*.pvti
for sample in matmul_chain_tiny mlp_digits_tiny matmul_chain_mk2 newton_pipeline_replicas; do
    mkdir -p "$out/$sample"
    cp "$new/$sample"/* "$out/$sample"
done
