"""The declaration of the report is consistent in itself."""

from pva import schema
from pva.model.programs import ProgramType


def test_names_are_unique() -> None:
    names = [table.name for table in schema.TABLES] + [array.name for array in schema.ARRAYS]
    assert len(names) == len(set(names))


def test_no_two_columns_or_arrays_have_one_place() -> None:
    places = [
        (table.document, table.place, column.document_key)
        for table in schema.TABLES
        for column in table.columns
    ]
    places += [(array.document, array.place, "") for array in schema.ARRAYS]
    assert len(places) == len(set(places))


def test_every_code_has_its_values_and_nothing_else_has() -> None:
    columns = [column for table in schema.TABLES for column in table.columns]
    assert [c.name for c in columns if (c.kind == "code") != bool(c.values)] == []


def test_wide_tables_hold_no_texts() -> None:
    kinds = {c.kind for table in schema.TABLES if table.wide for c in table.columns}
    assert "text" not in kinds


def test_a_meaning_that_is_a_row_names_the_table() -> None:
    table = schema.TABLE["program_children"]
    assert [column.range.rows for column in table.columns] == ["programs", "programs"]
    assert schema.TABLE["programs"].column("exchange").range.rows == ""


def test_every_number_of_a_report_has_its_range() -> None:
    items = [column for table in schema.TABLES for column in table.columns] + list(schema.ARRAYS)
    numbers = [item for item in items if item.kind not in ("text", "bool")]
    assert all(-1 <= item.range.least < item.range.most for item in numbers if item.unit == "bytes")
    assert {item.range.rows for item in numbers} - {""} <= {table.name for table in schema.TABLES}
    machine = schema.TABLE["target"]
    counts = ("num_ipus", "tiles_per_ipu", "num_tiles", "bytes_per_tile", "num_replicas")
    assert {machine.column(name).range.least for name in counts} == {1}


def test_keys_and_names_follow_from_each_other() -> None:
    assert schema.camel("cycles_by_tile") == "cyclesByTile"
    assert [schema.snake(key) for key in ("receiveMux", "total")] == ["receive_mux", "total"]


def test_every_program_tag_has_its_type() -> None:
    # The tag StreamCopy is libpva's StreamCopyMid; Copy and Execute are compiled to others.
    tags, types = set(schema.PROGRAM_TYPES), set(ProgramType.__members__)
    assert tags - types == {"StreamCopy"}
    assert types - tags == {"StreamCopyMid", "Copy", "Execute"}


def test_steps_are_of_types_that_programs_have() -> None:
    assert set(schema.STEP_TYPES) <= set(schema.PROGRAM_TYPES)
