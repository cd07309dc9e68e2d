"""Every figure of a report says how far it can be trusted."""

from pathlib import Path

from pva.formats import registry

SAMPLE = Path(__file__).parents[2] / "sample_reports" / "matmul_chain_tiny"
# Who wrote the report and how: nothing to trust or doubt.
WITHOUT = {"report", "engine_options", "provenance", "debug_contexts"}


def test_every_table_and_array_of_a_report_has_its_provenance():
    data = registry.read(SAMPLE)
    told = set(data.column("provenance", "item"))
    assert (set(data.tables) | set(data.arrays)) - WITHOUT == told


def test_qualities_are_the_three_that_the_schema_names():
    qualities = set(registry.read(SAMPLE).column("provenance", "quality"))
    assert qualities == {"exact", "estimate", "measured"}
