"""The tools of `tilescope mcp`: each is a question about reports, and answers in few bytes."""

from __future__ import annotations

import dataclasses
import inspect
import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from cli.agent.answers import (
    LEAST_BYTES,
    MAX_BYTES,
    answer,
    clipped,
    marked,
    plain_rows,
    proof,
)
from cli.agent.figures import COLUMNS, MEANINGS
from cli.agent.links import Links
from cli.change_summary import verdict
from cli.compare import TABLES as COMPARED
from cli.shared.output import Result, of_frame, of_record
from cli.shared.selection import Selection, selected
from cli.show import entries
from pva.errors import NotFoundError, NotRecordedError, PvaError, nearest

if TYPE_CHECKING:
    from dashboard.store import Report, Store


def _one_of(names: Iterable[str], text: str) -> object:
    return Field(description=text, json_schema_extra={"enum": list(names)})


Key = Annotated[str, Field(description="Key of a report, as `open` lists them.")]
First = Annotated[int, Field(ge=0, description="Leave out so many rows: how to go on.")]
Bytes = Annotated[
    int, Field(ge=LEAST_BYTES, le=MAX_BYTES, description="Longest answer, in bytes of UTF-8.")
]
Place = Annotated[
    str,
    Field(
        description="Path of a report, of a host trace or of a directory of some, below the paths"
        " that the server was started with; empty lists all that are known."
    ),
]
About = Annotated[Literal["all", "memory", "time"], Field(description="Findings on this.")]
Name = Annotated[str, Field(description="Analysis or table; empty lists those that there are.")]
Words = Annotated[str, Field(description="Words of the name or meaning, for the list.")]
Where = Annotated[list[str] | None, Field(description="Filters: 'share > 5 %', 'name ~ conv'.")]
Sort = Annotated[str, Field(description="Column, largest first; -COLUMN the other way round.")]
Options = Annotated[
    dict[str, int | str] | None, Field(description="Of the analysis, as tile or step.")
]
Query = Annotated[str, Field(description="One SELECT; `show tables` names the tables.")]
By = Annotated[str, _one_of(("figures", *COMPARED), "Figures, or what the change is made of.")]
Figure = Annotated[str, _one_of(MEANINGS, "Name of a figure, as in `overview`.")]
Model = Annotated[str, Field(description="Path of an ONNX model below the given paths.")]
Target = Annotated[str, Field(description="Machine: mk1, mk2, bow or tiny.")]
Ipus = Annotated[int, Field(ge=1, le=64, description="IPUs.")]
Batch = Annotated[int, Field(ge=0, description="First size of all inputs; 0 for the model's.")]
Repeat = Annotated[int, Field(ge=1, le=4096, description="Batches, one after another.")]
Train = Annotated[bool, Field(description="One batch of training, not inference.")]
Precision = Annotated[Literal["float", "half"], Field(description="Of the model's floats.")]
Rows = list[dict[str, Any]]
MODEL, LISTED = ".onnx", "tables(words=...)"
LONGEST_ARGUMENT = 120  # bytes
DEFAULTS: tuple[Any, ...] = ("", [], {}, MAX_BYTES)
FINDING = ("rule", "severity", "what", "where", "advice", "saving", "unit", "of", "saving_share",
           "try_it", "measured_saving")  # fmt: skip
OURS = ("rule", "severity", "advice", "unit", "of", "figure", "quality", "name_of_table", "in")


class Tools:
    """Reports below the paths given at start, links to their dashboard, and where to simulate."""

    def __init__(self, store: Store, links: Links, out: Path, time_limit: float) -> None:
        self._store, self._links, self._out, self._limit = store, links, out, time_limit

    def open(self, path: Place = "", offset: First = 0, max_bytes: Bytes = MAX_BYTES) -> str:
        """List the reports and host traces that there are, or find one at a path; gives their keys.

        Begin here: the other tools take the key of a report.
        """
        self._store.scan()
        keys = [self._store.find(path)] if path else self._store.keys
        rows = [
            {"report": key, "path": str(self._store.path(key)), "bytes": self._store.size(key),
             "kind": "report" if self._store.has_report(key) else "host trace",
             "link": self._links.page("", key)}
            for key in keys[offset:]
        ]  # fmt: skip
        places = " ".join(shlex.quote(str(self._store.path(key))) for key in keys[:1])
        head = {"proof": proof(f"tilescope info {places} --json", self._links.page("", ""))}
        return answer(head, rows, count=len(keys), first=offset, max_bytes=max_bytes,
                      more=_more("open", path=path, max_bytes=max_bytes))  # fmt: skip

    def overview(self, report: Key, max_bytes: Bytes = MAX_BYTES) -> str:
        """Return whether a program fits, how long it takes, and its other figures, each with proof.

        `quality` says how far to trust a figure: exact, estimate or measured. In queries REPORT is
        the path of the report.
        """
        opened = self._store.report(report)
        rows = list(self._figures(report, opened))
        shown = self._proof("info", report, "summary")
        path = clipped(str(self._store.path(report)))
        head = {"report": report, "path": path, "fits": _fits(rows),
                "target": marked(_target(opened)), "proof": shown}  # fmt: skip
        return answer(head, rows, count=len(rows), max_bytes=max_bytes,
                      more=lambda _: f"overview(max_bytes={MAX_BYTES})")  # fmt: skip

    def insights(
        self, report: Key, about: About = "all", offset: First = 0, max_bytes: Bytes = MAX_BYTES
    ) -> str:  # fmt: skip
        """List what stands out in a report: problems first, then what could save most.

        `saving` is the most that following `advice` alone could save, of what `of` names; savings
        do not add up. `try_it` is the command that tries it, `measured_saving` what that saved:
        null before it ran. Begin here for "why does it not fit?" and "why is it slow?".
        """
        from pva.analysis import insights

        findings = insights(self._store.report(report)).frame()
        findings = findings if about == "all" else findings[findings["about"] == about]
        records = findings.iloc[offset:].to_dict("records")
        rows = [
            {**{name: row[name] for name in FINDING}, "link": self._links.finding(report, row)}
            for row in records
        ]
        head = {"report": report, "proof": self._proof("show insights", report, "insights")}
        return answer(head, plain_rows(rows, (*OURS, "link")), count=len(findings), first=offset,
                      max_bytes=max_bytes,
                      more=_more("insights", report=report, about=about, max_bytes=max_bytes),
                      )  # fmt: skip

    def tables(
        self, report: str = "", name: Name = "", words: Words = "", where: Where = None,
        sort: Sort = "", options: Options = None, offset: First = 0,
        max_bytes: Bytes = MAX_BYTES,
    ) -> str:  # fmt: skip
        """List the analyses and tables that there are, or give the rows of one.

        There are more than 200: name some words to find the one that answers a question.
        """
        where, options = where or [], options or {}
        continuation = _more(
            "tables", report=report, name=name, words=words, where=where, sort=sort,
            options=options, max_bytes=max_bytes,
        )  # fmt: skip
        if not name:
            listed = [row for row in _listed() if _has(row, words)]
            shown = proof("tilescope show --json", self._links.page("", report))
            return answer({"proof": shown}, listed[offset:], count=len(listed), first=offset,
                          max_bytes=max_bytes, more=continuation)  # fmt: skip
        rows = _selected(self._result(report, name, options), where, sort)
        flags = [f"--{key.replace('_', '-')} {value}" for key, value in options.items()]
        flags += [f"--where {shlex.quote(one)}" for one in where]
        flags += [f"--sort {shlex.quote(sort)}"] if sort else []
        units = next((units for entry, _, _, units in entries() if entry == name), {})
        shown = self._proof(" ".join([f"show {name}", *flags]), report, name)
        head = {
            "report": report,
            "units": {n: u for n, u in units.items() if u},
            "proof": shown,
        }
        return answer(head, plain_rows(rows[offset:]), count=len(rows), first=offset,
                      max_bytes=max_bytes, more=continuation)  # fmt: skip

    def sql(
        self, report: Key, query: Query, offset: First = 0, max_bytes: Bytes = MAX_BYTES
    ) -> str:  # fmt: skip
        """Answer any question that SQL can ask of a report's tables; nothing can be changed.

        A table has a column row that others refer to: steps.program = programs.row. Bytes and
        cycles are whole numbers. Aggregate in the query rather than read many rows.
        """
        table = of_frame(self._store.report(report).sql(query, seconds=self._limit))
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        line = f"tilescope sql {shlex.quote(str(self._store.path(report)))} {shlex.quote(query)}"
        head = {"report": report, "proof": proof(line, self._links.page("", report))}
        return answer(head, plain_rows(rows[offset:]), count=len(rows), first=offset,
                      max_bytes=max_bytes,
                      more=_more("sql", report=report, query=query, max_bytes=max_bytes),
                      )  # fmt: skip

    def compare(
        self, before: Key, after: Key, by: By = "figures", offset: First = 0,
        max_bytes: Bytes = MAX_BYTES,
    ) -> str:  # fmt: skip
        """Return what changed between two reports: the verdict, then rows with signed changes.

        Of a table the largest changes come first, and all rows add up to `total`. Begin with
        figures, then ask by operations (cycles) or by categories and variables (bytes).
        """
        from pva.analysis import COMPARISONS
        from pva.analysis.whole_report.comparison import total_of

        _check("by", by, ("figures", *COMPARED))
        reports = self._store.report(before), self._store.report(after)
        name = "compare_figures" if by == "figures" else COMPARED[by][0]
        frame = COMPARISONS[name](*reports)
        changed = frame[frame["change"] != 0]
        paths = " ".join(shlex.quote(str(self._store.path(key))) for key in (before, after))
        choice = "" if by == "figures" else f" --by {by}"
        link = self._links.page("compare", after, against=before)
        head = {"before": before, "after": after, "verdict": verdict(reports),
                "proof": proof(f"tilescope compare {paths}{choice} --json", link)}  # fmt: skip
        if by != "figures":
            totals = zip(("before", "after", "change"), total_of(frame), strict=True)
            head |= {"unit": COMPARED[by][1], "total": dict(totals)}
        rows = changed.iloc[offset:].to_dict("records")
        return answer(head, plain_rows(rows, OURS), count=len(changed), first=offset,
                      max_bytes=max_bytes,
                      more=_more("compare", before=before, after=after, by=by,
                                 max_bytes=max_bytes))  # fmt: skip

    def explain(self, report: Key, figure: Figure, max_bytes: Bytes = MAX_BYTES) -> str:
        """Explain a figure: its meaning and value, how far to trust it, what it is made of."""
        _check("figure", figure, MEANINGS)
        opened = self._store.report(report)
        meaning = MEANINGS[figure]
        value = next(
            (row for row in self._figures(report, opened) if row["figure"] == figure), None
        )
        if value is None:
            raise NotRecordedError(opened.path, f"no {figure} in this report")
        result = self._result(report, meaning.parts, meaning.options)
        frame = result[list(COLUMNS.get(meaning.parts, result.columns))]
        rows = plain_rows(frame.to_dict("records"))
        head = {**value, "meaning": meaning.text, "why_so_trusted": _reason(opened, figure),
                "rows_are": meaning.parts,
                "proof": self._proof(f"show {meaning.parts}", report, figure)}  # fmt: skip
        continuation = f"tables(report={report!r}, name={meaning.parts!r}, offset="
        return answer(head, rows, count=len(rows), max_bytes=max_bytes,
                      more=lambda at: f"{continuation}{at})")  # fmt: skip

    def simulate(
        self, model: Model, target: Target = "mk2", ipus: Ipus = 1, batch: Batch = 0,
        repeat: Repeat = 1, train: Train = False, precision: Precision = "float",
        max_bytes: Bytes = MAX_BYTES,
    ) -> str:  # fmt: skip
        """Simulate an ONNX model, and keep its report: does it fit, how long would it take?

        Memory and cycles are found without values. The answer is the overview of the report.
        """
        file = self._model(model)
        words = ["--target", target, "--ipus", str(ipus), "--repeat", str(repeat)]
        words += ["--precision", precision, "--no-values"]
        words += ["--batch", str(batch)] if batch else []
        words += ["--train"] if train else []
        folder = self._free(file.stem)
        command = [sys.executable, "-P", "-m", "cli.main", "simulate", str(file), *words,
                   "--out", str(folder)]  # fmt: skip
        try:
            process = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                errors="replace", timeout=self._limit,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            remedy = "start the server with a larger --time-limit"
            raise PvaError(file, f"took longer than {self._limit:g} s", remedy) from None
        if not (folder / "profile.pop").is_file():
            last = (process.stderr.strip().splitlines() or [f"ended with {process.returncode}"])[-1]
            raise PvaError(file, last)
        report = self._store.give(folder)
        query = shlex.join(["tilescope", "simulate", str(file), *words, "--out", str(folder)])
        shown = json.loads(self.overview(report, max_bytes=max_bytes - len(query.encode()) - 64))
        shown["proof"]["simulated_by"] = query
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))

    def _model(self, path: str) -> Path:
        """Look up a model below the paths given at start; raises NotFoundError."""
        file = Path(path)
        if file.suffix == MODEL and file.is_file() and self._store.holds(file):
            return file
        remedy = "give the path of an .onnx file below the paths that the server was started with"
        raise NotFoundError(path, "no such model", remedy)

    def _free(self, name: str) -> Path:
        numbers = range(1, 1 << 20)
        return next(folder for n in numbers if not (folder := self._out / f"{name}-{n}").exists())

    def _proof(self, query: str, report: str, page: str) -> dict[str, str]:
        path = shlex.quote(str(self._store.path(report)))
        first, _, comment = query.partition(" --")
        line = f"tilescope {first} {path}{' --' + comment if comment else ''} --json"
        return proof(line, self._links.page(page, report))

    def _figures(self, key: str, report: Report) -> Iterator[dict[str, object]]:
        from pva.analysis.whole_report.key_figures import FIGURES

        for name, figure in FIGURES.items():
            try:
                value = figure.of(report)
            except NotRecordedError:
                continue
            yield {
                "figure": name, "value": value, "unit": figure.unit,
                "quality": _provenance(report).get(MEANINGS[name].rests_on, ("", ""))[0],
                "query": f"tilescope show {figure.analysis.__name__} REPORT --json: {figure.field}",
                "link": self._links.page(name, key),
            }  # fmt: skip

    def _result(self, key: str, name: str, options: Mapping[str, object]) -> Any:
        """Return what an analysis gives, or a table; raises PvaError."""
        from pva.analysis import CATALOGUE
        from pva.frames import NAMES, frame_of

        table = name.removeprefix("table.")
        if name not in CATALOGUE and table in NAMES:
            frame = frame_of(self._store.report(key).dataset, table, copy=False)
            return frame.assign(row=range(len(frame)))
        if name not in CATALOGUE:
            raise NotFoundError(
                name, "no analysis or table", nearest(name, [*CATALOGUE, *NAMES], LISTED)
            )
        analysis = CATALOGUE[name]
        subject, *keywords = inspect.signature(analysis).parameters
        if unknown := set(options) - set(keywords):
            hint = nearest(min(unknown), keywords) if keywords else "it has none"
            raise NotFoundError(f"{name}: {min(unknown)}", "no such option", hint)
        try:
            return analysis(self._subject(key, subject), **options)
        except TypeError as error:
            raise PvaError(name, str(error), f"its options are {', '.join(keywords)}") from None

    def _subject(self, key: str, subject: str) -> object:
        if subject == "trace":
            if (trace := self._store.trace(key)) is not None:
                return trace
            raise NotFoundError(key, "has no host trace", "run it with PVTI_OPTIONS")
        if subject == "run":
            raise NotFoundError(key, "is one report", "tilescope show answers of whole runs")
        return self._store.report(key)


def _check(option: str, value: str, names: Iterable[str]) -> None:
    if value not in names:
        raise NotFoundError(f"{option}={value}", "not there", nearest(value, names))


def _more(tool: str, **arguments: object) -> Callable[[int], str]:
    """Return how a call goes on from a row, with its arguments as they were."""
    changed = {
        name: value for name, value in arguments.items() if value not in ("", [], {}, MAX_BYTES)
    }
    words = ", ".join(f"{name}={_again(value)}" for name, value in changed.items())

    def call(first: int) -> str:
        return f"{tool}({words}{', ' if words else ''}offset={first}), or a larger max_bytes"

    return call


def _again(value: object) -> str:
    text = repr(value)
    return text if len(text.encode()) <= LONGEST_ARGUMENT else "<as before>"


def _fits(rows: Rows) -> bool | None:
    return next((not row["value"] for row in rows if row["figure"] == "tiles_out_of_memory"), None)


def _target(report: Report) -> str:
    if not report.dataset.has("target"):
        return ""
    from pva.analysis.machine import target

    machine = target(report)
    return f"{machine.machine or machine.architecture}, {machine.num_tiles} tiles"


def _provenance(report: Report) -> dict[str, tuple[str, str]]:
    from pva.analysis.whole_report.provenance import figure_quality

    return {row.item: (row.quality, row.reason) for row in figure_quality(report)}


def _reason(report: Report, figure: str) -> object:
    return marked(_provenance(report).get(MEANINGS[figure].rests_on, ("", ""))[1])


def _listed() -> Rows:
    return [{"name": name, "of": subject, "meaning": meaning}
            for name, subject, meaning, _ in entries() if subject != "run"]  # fmt: skip


def _has(row: Mapping[str, object], words: str) -> bool:
    text = f"{row['name']} {row['meaning']}".lower()
    return all(word in text for word in words.lower().split())


def _selected(result: Result, where: list[str], sort: str) -> Rows:
    """Return the rows of an analysis that filters let through, in the order of a column."""
    if dataclasses.is_dataclass(result):
        table = of_record(result)
    else:
        table = of_frame(selected(result, Selection(tuple(where), sort or None, None, "table")))
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]
