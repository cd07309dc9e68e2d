"""SQL over a report: the same answers from DuckDB and SQLite, and no file read or written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pva import query, schema
from pva.data.dataset import Dataset
from pva.errors import MissingPackageError, NotRecordedError, QueryError
from pva.frames import NAMES, Frames
from pva.report import Report, openReport
from tests.builders import small_report
from tests.strategies import datasets

pytest.importorskip("duckdb")

SAMPLES = sorted((Path(__file__).parents[2] / "sample_reports").glob("*/profile.pop"))
DATA = small_report()
ENGINES = (query.by_duckdb, query.by_sqlite)
Engine = Callable[[Dataset, str], pd.DataFrame]

QUERIES = (
    "select tile, cycles, bytes from exchange_cycles join exchange_bytes_received"
    " using (exchange, tile) order by exchange, tile",
    "select r.name, t.num_ipus from runs r cross join main.target t order by 1",
    "select p.row, p.name, count(*) as n, sum(s.cycles) as cycles from steps s"
    " join programs p on p.row = s.program group by p.row, p.name order by p.row",
    "select name, bytes from variables where always_live order by bytes desc, name",
    "select always_live, count(*) as n, sum(bytes) as bytes, avg(bytes) as mean"
    " from variables group by always_live order by 1",
    "select category, sum(bytes) as bytes from memory_by_category"
    " where overlap = 'nonOverlapped' group by category order by bytes desc, category",
    "select type, cycles, cycles / 7 as whole, cycles / 7.0 as part from steps",
    "select bytes / (bytes - 8) as some, 1.5 / 0 as none from variables",
    "select thread_balance, total_data from steps order by thread_balance, total_data, cycles",
    "select max(thread_balance) as most, min(type) as first from steps",
    "with worst as (select exchange, max(cycles) as c from exchange_cycles group by exchange)"
    " select e.exchange, e.tile from exchange_cycles e join worst w"
    " on e.exchange = w.exchange and e.cycles = w.c order by 1, 2",
    "select name from variables where name like 'P%' or name like 'p%'",
    "select a.name, b.name from variables a, variables b where a.bytes < b.bytes order by 1, 2;",
    "select name, bytes, always_live from variables where name = 'nothing of this name'",
    "select lowered_from, nullif(lowered_from, -1) as origin from variables -- all",
    "select nullif(bytes, 8) as bytes, name from variables order by 1, 2",
    "SELECT Type, COUNT FROM Programs WHERE count > 0 ORDER BY 2",
    "select name from programs where name <> '' union select name from variables order by name",
    "select 1 as a, 'b' as b, 2.5 as c union all select 2, null, 3 order by a",
)  # fmt: skip


def agree(data: Dataset, text: str) -> pd.DataFrame:
    """Ask both engines, which must agree in columns, dtypes and rows."""
    left, right = (ask(data, text) for ask in ENGINES)
    pd.testing.assert_frame_equal(left, right)
    return left


@pytest.mark.parametrize("text", QUERIES)
def test_both_engines_give_the_same_dataframe(text: str) -> None:
    agree(DATA, text)


@pytest.mark.parametrize("name", NAMES)
def test_a_whole_table_is_the_frame_of_its_name(name: str) -> None:
    frame = getattr(Frames(DATA), name)()
    if name in schema.TABLE:
        frame = frame.reset_index(names="row")
    texts = {column: "str" for column in frame.columns if frame[column].dtype == "category"}
    answer = agree(DATA, f"select * from {name}")
    pd.testing.assert_frame_equal(answer, frame.astype(texts), check_names=False)


@settings(max_examples=15, deadline=None)
@given(data=datasets(), chosen=st.randoms())
def test_both_engines_agree_on_any_report_empty_tables_too(data: Dataset, chosen: Any) -> None:
    for name in chosen.choices([*data.tables, *data.arrays], k=2):
        agree(data, f"select * from {name}")


@st.composite
def questions(draw: st.DrawFn) -> str:
    """Draw a SELECT over one table: some columns, a condition, plain or by groups, in order."""
    table = draw(st.sampled_from(schema.TABLES))
    columns = st.sampled_from(table.columns)
    whole = [c.name for c in table.columns if c.kind == "int"] or ["row"]
    number, group = draw(st.sampled_from(whole)), draw(columns).name
    where = f'"{number}" {draw(st.sampled_from(["<", ">=", "<>"]))} {draw(st.integers(-1, 40))}'
    if draw(st.booleans()):
        names = [f'"{c.name}"' for c in draw(st.lists(columns, min_size=1, max_size=3))]
        head = ", ".join(f"{name} as c{place}" for place, name in enumerate(names))
        tail = f"order by {', '.join(names)}, row limit {draw(st.integers(0, 9))}"
        return f"select {head} from {table.name} where {where} {tail}"
    sums = f'count(*) as n, sum("{number}") as s, min("{number}") as a, avg("{number}") as m'
    tail = f'group by "{group}" having count(*) > {draw(st.integers(0, 2))} order by g'
    return f'select "{group}" as g, {sums} from {table.name} where {where} {tail}'


@settings(max_examples=60, deadline=None)
@given(text=questions())
def test_both_engines_agree_on_any_question(text: str) -> None:
    left, right = (ask(DATA, text) for ask in ENGINES)
    # SQLite cannot tell the type of an expression without a value.
    valued = [name for name in left if left[name].notna().any()]
    assert list(left) == list(right) and len(left) == len(right)
    pd.testing.assert_frame_equal(left[valued], right[valued])


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda file: file.parent.name)
def test_sql_finds_the_worst_tile_that_numpy_finds(sample: Path) -> None:
    data = openReport(sample).dataset
    needs = data.column("memory_by_tile", "total_including_gaps")
    frame = agree(data, "select max(total_including_gaps) as worst from memory_by_tile")
    assert frame["worst"].tolist() == [needs.max()]


def test_rows_are_what_other_tables_refer_to() -> None:
    text = "select distinct p.name from steps s join programs p on p.row = s.program"
    names = agree(DATA, f"{text} where s.type = 'OnTileExecute' order by 1")["name"]
    assert names.tolist() == ["add", "multiply", "reduce"]


@pytest.mark.parametrize("ask", ENGINES)
def test_whole_numbers_divide_to_whole_numbers(ask: Engine) -> None:
    frame = ask(DATA, "select 7 / 2 as a, -7 / 2 as b, 7 / 2.0 as c, 7 / 0 as d from target")
    assert frame[["a", "b", "c"]].values.tolist() == [[3, -3, 3.5]]
    assert frame["d"].isna().all()


@pytest.mark.parametrize("ask", ENGINES)
def test_a_sum_of_whole_numbers_is_exact(ask: Engine) -> None:
    variables = DATA.table("variables")
    large = small_report(variables=variables | {"bytes": [2**53 + 1, 2, *[0] * 5]})
    assert ask(large, "select sum(bytes) as b from variables")["b"].tolist() == [2**53 + 3]


@pytest.mark.parametrize("ask", ENGINES)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("select * from stepz", "no table stepz; did you mean steps"),
        ("select * from qwertzuiop", r"no table qwertzuiop; frames.schema\(\) lists"),
        ("select * from other.steps", "other|the name alone"),
        ("select cycels from steps", "no column cycels; did you mean cycles"),
        ('select "cycels" from steps', "no column cycels; did you mean cycles"),
        ('select name from runs order by "xyzzy z"', "no column xyzzy z; there are row, name"),
        ("select r.xyzzy from runs r", "no column xyzzy; there are row, name, program, first_step"),
        ("select cycles frm steps where", "the query is wrong"),
        ("select nofunction(cycles) from steps", "nofunction"),
        ("delete from steps", "DELETE|delete"),
        ("select 1; select 2", "SELECT, then SELECT|one statement"),
        ("copy (select 1) to 'out.csv'", "COPY|copy"),
        ("attach 'x.db' as x", "ATTACH|attach"),
        ("", "nothing|incomplete"),
    ],
)
def test_a_wrong_query_is_told_in_one_line(ask: Engine, text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        ask(DATA, text)
    assert "\n" not in str(caught.value) and str(caught.value).startswith("report: ")


@pytest.mark.parametrize("ask", ENGINES)
def test_an_answer_that_would_fill_the_memory_is_refused(
    ask: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for engine in ("MAX_VALUES", "SQLITE_VALUES"):
        monkeypatch.setattr(query, engine, 96)
    text = "select s.type, r.name from steps s, runs r"  # 24 steps, 2 runs
    assert len(ask(DATA, text)) == 48
    with pytest.raises(QueryError, match="more than 48 rows of 2 columns; join by a condition"):
        ask(DATA, f"{text}, runs q")


@pytest.mark.parametrize("ask", [query.by_duckdb, query.by_sqlite])
def test_a_query_ends_when_its_time_is_over(ask: Callable[..., pd.DataFrame]) -> None:
    endless = "with recursive n(i) as (select 0 union all select i from n) select max(i) from n"
    with pytest.raises(QueryError, match=r"the query took longer than 0\.2 s; "):
        ask(DATA, endless, seconds=0.2)
    assert ask(DATA, "select count(*) as n from runs", seconds=60)["n"].tolist() == [2]


@pytest.mark.parametrize(
    "source", ["read_csv('{0}')", "read_text('{0}')", "'{0}'", "glob('{0}*')", "sniff_csv('{0}')"]
)
def test_a_query_reads_no_file(source: str, tmp_path: Path) -> None:
    file = tmp_path / "secret.csv"
    file.write_text("a,b\n1,2\n")
    for ask in ENGINES:
        with pytest.raises(QueryError):
            ask(DATA, f"select * from {source.format(file)}")


@pytest.mark.parametrize("ask", ENGINES)
@pytest.mark.parametrize(
    "text",
    ["set threads = 1", "load json", "install httpfs",
     "select load_extension('x')", "select writefile('x', 'y')", "create table x (a int)",
     "select * from duckdb_secrets() where set_config('threads', 1)"],
)  # fmt: skip
def test_a_query_changes_and_loads_nothing(ask: Engine, text: str) -> None:
    with pytest.raises(QueryError):
        ask(DATA, text)


def test_a_query_sees_no_variable_of_its_caller() -> None:
    secret = pd.DataFrame({"a": [1]})
    with pytest.raises(QueryError, match="no table secret"):
        query.by_duckdb(DATA, "select * from secret")
    assert len(secret) == 1


@pytest.mark.parametrize("ask", ENGINES)
def test_a_query_leaves_no_file(
    ask: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ask(DATA, "select * from steps order by cycles")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ask", ENGINES)
def test_a_table_that_was_not_recorded_names_its_option(ask: Engine) -> None:
    with pytest.raises(NotRecordedError, match="autoReport.outputExecutionProfile"):
        ask(DATA.select("graph"), "select * from steps")


@pytest.mark.parametrize("ask", ENGINES)
def test_only_tables_that_the_query_names_are_read(ask: Engine) -> None:
    class Watched(Dataset):
        def stored(self, table: str, column: str) -> Any:
            read.add(table)
            return super().stored(table, column)

    read: set[str] = set()
    data = Watched(DATA.source)
    ask(data, "with runs as (select count(*) as n from compute_sets) select n from runs")
    assert read == {"compute_sets"}


def test_names_of_the_report_are_data_and_never_sql() -> None:
    names = ["'; drop table steps; --", '"', "x\x00y", *"abcd"]
    data = small_report(variables=DATA.table("variables") | {"name": names})
    assert agree(data, "select name from variables")["name"].tolist() == names


def test_without_duckdb_small_tables_are_answered_and_large_ones_name_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    report = Report.of(DATA)
    assert report.sql("select count(*) as n from steps")["n"].tolist() == [24]
    monkeypatch.setattr(query, "SQLITE_ROWS", 23)
    with pytest.raises(MissingPackageError, match=r"steps has 24 rows.*tilescope\[sql\]"):
        report.sql("select count(*) from steps")


def test_duckdb_reads_a_large_array_without_its_long_form() -> None:
    rows = 30_000  # times ten: more than DuckDB reads at once, in one thread
    cycles = np.arange(rows * 10).reshape(rows, 10)
    columns = {c.name: np.zeros(rows, dtype=object) for c in schema.TABLE["compute_sets"].columns}
    tables = {"target": DATA.table("target"), "compute_sets": columns}
    data = Dataset.of(tables, {"measured_compute_set_cycles_by_tile": cycles})
    text = "select compute_set, sum(cycles) as c from measured_compute_set_cycles_by_tile"
    frame = query.by_duckdb(data, f"{text} where tile < 5 group by compute_set order by 1")
    assert frame["c"].tolist() == cycles[:, :5].sum(axis=1).tolist()


def test_rows_of_a_large_table_are_numbered_in_order() -> None:
    columns = {c.name: np.arange(300_000) for c in schema.TABLE["memory_by_tile"].columns}
    data = Dataset.of({"memory_by_tile": columns})
    frame = query.by_duckdb(data, "select count(*) as n from memory_by_tile where row <> total")
    assert frame["n"].tolist() == [0]


@pytest.mark.parametrize("asked", ["show tables", " SHOW ALL TABLES ;\n"])
def test_tables_of_the_report_are_named(asked: str) -> None:
    report = Report.of(DATA)
    assert report.sql(asked)["name"].tolist() == [name for name in NAMES if DATA.has(name)]
    assert report.sql("select 1 as show").shape == (1, 1)


def test_a_query_that_is_no_text_is_refused_in_one_line() -> None:
    with pytest.raises(QueryError, match="the query is None; give one SELECT, as a text"):
        Report.of(DATA).sql(None)  # type: ignore[arg-type]
