"""`tilescope serve-model`: a model repository, served or replayed without a clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, cast

import click

from cli.shared.declared import Declaration
from cli.shared.faults import Command, Group
from cli.shared.output import (
    OBJECT,
    counted,
    object_option,
    of_frame,
    printable,
    write_object,
    write_rows,
)
from cli.shared.progress import steps_shown
from pva import units
from pva.errors import MissingPackageError, OverwriteError, PvaError
from pva.lazy import pandas as pd

if TYPE_CHECKING:
    from pva.queueing.replay import Arrivals, Device, Outcome
    from simulator.serving.live import Listening
    from simulator.serving.model_config import Settings
    from simulator.serving.program import BatchFacts

Function = TypeVar("Function", bound=Callable[..., Any])

EXAMPLES = """
\b
Examples:
  tilescope serve-model replay models/ --arrivals poisson:2000 --what-if delay=0,500us,5ms
  tilescope serve-model live models/                       HTTP on 8000, gRPC on 8001
"""
REPLAY_EXAMPLES = """
\b
Examples:
  tilescope serve-model replay models/ --arrivals poisson:2000
  tilescope serve-model replay models/ --arrivals trace.json --what-if delay=0,500us,5ms
  tilescope serve-model replay models/ --arrivals load.json --what-if preferred=none,8,32
  tilescope serve-model replay models/ --arrivals intervals.txt --batch-time 400us
"""
LEVERS = ("delay_ns", "preferred", "instances")
SHOWN = {"rows_per_batch": "batch", "fill": "fill_share", "device_share": "busy_share",
         "queue_mean_ns": "queue_ns", "latency_p50_ns": "p50_ns", "latency_p99_ns": "p99_ns"
}  # fmt: skip
LIVE_EXAMPLES = """
\b
Examples:
  tilescope serve-model live models/
  tilescope serve-model live models/ --http 0 --grpc off --metrics off
  tilescope serve-model live models/ --model-control-mode explicit --load-model digits
  tilescope serve-model live models/ --trace-file trace.json --trace-count 10000
  tilescope serve-model live models/ --report run/    then: tilescope serve run/
"""
OFF = "off"
LATE = 1.01  # as much longer as the arrivals take the answers where devices do not keep up
SPANS = 1_000
LONG = 3_000_000  # requests, of all variants, whose replay shows its steps


@click.group("serve-model", cls=Group, epilog=EXAMPLES, no_args_is_help=True)
def serve_model() -> None:
    """Serve a model repository on the simulator, or replay its queue without a clock."""


def check_packages() -> None:
    """Raise MissingPackageError where configurations cannot be read."""
    from importlib.util import find_spec

    if find_spec("google") is None or find_spec("google.protobuf") is None:
        remedy = "pip install 'tilescope[serving]'"
        raise MissingPackageError("serve-model", "needs the package protobuf", remedy)


def batch_time(_context: click.Context, _: click.Parameter, text: str | None) -> int:
    """Read a time such as 400us, 0 for none; raises click.BadParameter."""
    from pva.queueing.what_if import nanoseconds

    try:
        time = nanoseconds(text) if text is not None else 0
    except ValueError:
        time = -1
    if time < 0 or (text is not None and not time):
        raise click.BadParameter(f"{text}: write a time, as 400us")
    return time


@serve_model.command("replay", cls=Command, epilog=REPLAY_EXAMPLES)
@click.argument("repository", type=click.Path(path_type=Path))
@click.option("--arrivals", "source", required=True, metavar="FILE|poisson:RATE",
              help="Trace of Triton, export of perf_analyzer, intervals, or requests a second."
)  # fmt: skip
@click.option("--model", help="Model.  [default: the only one]")
@click.option("--what-if", "changes", multiple=True, metavar="LEVER=V,V",
              help="Other values: delay=0,500us, preferred=none,8,8+32, instances=1,2."
)  # fmt: skip
@click.option("--requests", type=click.IntRange(min=1), metavar="N",
              help="Requests at most.  [default: all; 100,000 of poisson]")  # fmt: skip
@click.option("--rows", type=click.IntRange(min=1), default=1, show_default=True,
              help="Rows of a request, where the arrivals do not tell.")  # fmt: skip
@click.option("--experiment", type=click.IntRange(min=1), metavar="N",
              help="Experiment of a perf_analyzer export that holds several.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Seed of poisson.")  # fmt: skip
@click.option("--batch-time", "batch_ns", callback=batch_time, metavar="TIME",
              help="Time of a compiled batch, as 400us.  [default: the executable's cycles]"
)  # fmt: skip
@click.option("--compiled-batch", type=click.IntRange(min=1), metavar="ROWS",
              help="Rows of it, with --batch-time.  [default: max_batch_size]")  # fmt: skip
@click.option("--spans", type=click.Path(path_type=Path), metavar="FILE",
              help="Write each request's spans: .json as Triton traces them, or .csv.")  # fmt: skip
@click.option("--limit", type=click.IntRange(min=0), default=SPANS, show_default=True,
              help="Requests in --json; 0 for all.")  # fmt: skip
@object_option
def replay(
    repository: Path, source: str, model: str | None, changes: tuple[str, ...],
    requests: int | None, rows: int, experiment: int | None, seed: int, batch_ns: int,
    compiled_batch: int | None, spans: Path | None, limit: int, form: str | None,
) -> None:  # fmt: skip
    """Replay arrivals against the batcher and the cycles of a model: which delay, which batch?

    By discrete events, exact and the same each time: no clock, no load test that never settles.
    The rules are those of Triton's dynamic batcher as config.pbtxt sets them, with which `live`
    serves, too. A compiled batch takes as long on the device whether its rows are requests or
    padding.

    The first row is the model as configured. `batch` is rows a batch, `fill_share` the share of
    rows on the device that are not padding, `busy_share` the share of time in which devices run.
    """
    from pva.queueing.arrivals import read_arrivals
    from pva.queueing.what_if import read_choices, replayed, table, variants

    check_packages()
    if spans is not None:
        _check_spans(spans)
    choices = read_choices(changes)
    settings, version, device, facts = _served(repository, model, batch_ns, compiled_batch)
    arrivals = read_arrivals(source, requests=requests or 0, seed=seed, rows=rows,
                             experiment=experiment)  # fmt: skip
    models = list(variants(settings.rules, device, choices))
    long = len(arrivals.at_ns) * len(models) > LONG
    results, outcome = replayed(arrivals, models, steps_shown("replaying", 10) if long else None)
    frame = table(models, results)
    if spans is not None:
        _write_spans(spans, outcome, settings.name, version)
    if form == OBJECT:
        _write_object(repository, source, settings, version, facts, frame, outcome, limit)
    else:
        _write_table(settings, facts, arrivals, frame)


def _served(
    repository: Path, model: str | None, batch_ns: int, rows: int | None
) -> tuple[Settings, str, Device, BatchFacts]:
    """Return the model, its version, what runs its batches and its figures; raises PvaError."""
    from pva.queueing.replay import Device
    from simulator.serving import model_config
    from simulator.serving import repository as files

    name = model or _only(repository, files.model_names(repository))
    if batch_ns:
        if name not in files.model_names(repository):
            files.read_model(repository, name)
        settings, version = model_config.read_settings(repository / name), ""
        most = settings.rules.most_rows
        facts: BatchFacts = {
            "batch_ns": batch_ns,
            "rows": rows or max(most, 1),
            "cycles": None,
            "clock": None,
        }
    else:
        if rows:
            raise click.UsageError("--compiled-batch needs --batch-time: an executable has its own")
        from simulator.serving.program import batch_facts

        served = files.read_model(repository, name)
        settings, version = served.settings, str(served.newest.number)
        facts = batch_facts(served.settings, served.newest)
    device = Device(
        facts["batch_ns"], facts["rows"], settings.instances, settings.timeout_ns,
        settings.synchronous, settings.wait_ns,
    )  # fmt: skip
    return settings, version, device, facts


def _only(repository: Path, names: list[str]) -> str:
    if len(names) != 1:
        content = f"models {', '.join(names)}" if names else "no model"
        raise PvaError(
            repository, content, "choose one with --model" if names else "a folder a model"
        )
    return names[0]


def _check_spans(path: Path) -> None:
    if path.suffix.lower() not in (".json", ".csv"):
        raise click.UsageError(f"--spans {path}: a name that ends in .json or .csv")
    if path.exists():
        raise OverwriteError(path, "already there", "give another name to --spans")


def _write_spans(path: Path, outcome: Outcome, model: str, version: str) -> None:
    from pva.formats.files import replaced, replacing
    from pva.formats.traces import triton_trace
    from pva.queueing.spans import as_triton, request_spans

    if path.suffix.lower() == ".csv":
        text = request_spans(outcome).to_csv(index_label="request", lineterminator="\n")
        replaced(path, text.encode(), "spans")
        return
    with replacing(path, "spans") as stream:
        triton_trace.write(as_triton(outcome, model, version or "1"), stream)


def _write_object(
    repository: Path, source: str, settings: Settings, version: str, facts: BatchFacts,
    frame: pd.DataFrame, outcome: Outcome, limit: int,
) -> None:  # fmt: skip
    from pva.queueing.spans import request_spans

    spans = request_spans(outcome)
    shown = spans.head(limit) if limit else spans
    write_object(
        "serve-model replay", str(repository), model=settings.name, version=version,
        arrivals=source, device=facts, variants=frame.to_dict("records"), count=len(spans),
        requests=shown.to_dict("records"),
    )  # fmt: skip


def _write_table(
    settings: Settings, facts: BatchFacts, arrivals: Arrivals, frame: pd.DataFrame
) -> None:
    at = arrivals.at_ns
    length = (int(at[-1]) - int(at[0])) / 1e9
    of_device = units.duration(facts["batch_ns"] / 1e9)
    if facts["cycles"]:
        of_device = f"{facts['cycles']:,} cycles ({of_device})"
    click.echo(printable(
        f"{settings.name}: {counted(len(at), 'request')} in {units.duration(length)};"
        f" a compiled batch of {counted(facts['rows'], 'row')} takes {of_device}"
    ))  # fmt: skip
    levers = [name for name in LEVERS if name == "delay_ns" or frame[name].nunique() > 1]
    shown = frame[[*levers, *SHOWN]].round({"rows_per_batch": 2}).rename(columns=SHOWN)
    write_rows(of_frame(shown))
    click.echo()
    for line in _answer(_records(frame), length):
        click.echo(printable(line))


class Variant(TypedDict):
    """The row of one choice of levers."""

    configured: bool
    delay_ns: int
    preferred: str
    instances: int
    latency_p99_ns: float
    device_ns: float
    device_share: float
    span_ns: float
    rejected: int
    refused: int


def _records(frame: pd.DataFrame) -> list[Variant]:
    return cast("list[Variant]", frame.to_dict("records"))


def _answer(variants: Sequence[Variant], length: float) -> list[str]:
    """Return the lines on which choice is best, for whom, and where devices do not keep up."""
    best = min(variants, key=lambda one: (one["latency_p99_ns"], not one["configured"]))
    lines = [f"lowest 99th percentile: {_choice(best)}, {_time(best['latency_p99_ns'])}"]
    if len(variants) > 1:
        least = min(variants, key=lambda one: (one["device_ns"], not one["configured"]))
        lines.append(f"least device time: {_choice(least)}, {_time(least['device_ns'])}")
    for one in variants:
        if failed := one["rejected"] + one["refused"]:
            lines.append(f"{_choice(one)}: {counted(failed, 'request')} turned away")
        if one["span_ns"] > LATE * length * 1e9 and one["device_share"] > 1 / LATE**2:
            lines.append(f"{_choice(one)}: devices do not keep up, the queue grows")
    return lines


def _choice(one: Variant) -> str:
    if one["configured"]:
        return "as configured"
    preferred = f", preferred {one['preferred']}" if one["preferred"] else ""
    return f"delay {_time(one['delay_ns'])}{preferred}, {counted(one['instances'], 'instance')}"


def _time(nanoseconds: float) -> str:
    return units.duration(nanoseconds / 1e9) if nanoseconds else "0"


def port(_context: click.Context, parameter: click.Parameter, text: str) -> int:
    """Read a port, or `off`; raises click.BadParameter."""
    if text == OFF:
        return -1
    if text.isascii() and text.isdigit() and len(text) < 6 and int(text) <= 65535:
        return int(text)
    raise click.BadParameter(f"{text}: a port, 0 for any free one, or off")


def _port_option(name: str, default: int, meaning: str) -> Callable[[Function], Function]:
    return click.option(
        f"--{name}", callback=port, default=str(default), show_default=True, metavar="PORT|off",
        help=f"Port of {meaning}; 0 for any free one.",
    )  # fmt: skip


@serve_model.command("live", cls=Command, epilog=LIVE_EXAMPLES)
@click.argument("repository", type=click.Path(path_type=Path))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@_port_option("http", 8000, "KServe v2 over HTTP")
@_port_option("grpc", 8001, "KServe v2 over gRPC")
@_port_option("metrics", 8002, "Prometheus's /metrics")
@click.option("--model-control-mode", "mode", default="none", show_default=True,
              type=click.Choice(("none", "poll", "explicit")), help="Who loads models."
)  # fmt: skip
@click.option("--load-model", "models", multiple=True, metavar="NAME",
              help="Model to load at the start, in mode explicit.")  # fmt: skip
@click.option("--repository-poll-secs", "poll_seconds", type=click.FloatRange(0.1, 86400),
              default=15.0, show_default=True, help="Seconds between looks, in mode poll."
)  # fmt: skip
@click.option("--trace-file", type=click.Path(path_type=Path), metavar="FILE.json",
              help="Write when which request reached which stage, as Triton does.")  # fmt: skip
@click.option("--trace-rate", type=click.IntRange(min=1), default=1, show_default=True,
              help="Trace one of so many requests.")  # fmt: skip
@click.option("--trace-count", type=click.IntRange(min=-1), default=-1, show_default=True,
              help="Requests traced at most; -1: a million.")  # fmt: skip
@click.option("--report", type=click.Path(path_type=Path), metavar="DIRECTORY",
              help="Write what the model's device does, and the host trace beside it.")  # fmt: skip
@click.option("--max-body", type=click.IntRange(1, 4096), default=256, show_default=True,
              metavar="MB", help="Size of a request, at most.")  # fmt: skip
def live(
    repository: Path, host: str, http: int, grpc: int, metrics: int, mode: str,
    models: tuple[str, ...], poll_seconds: float, trace_file: Path | None, trace_rate: int,
    trace_count: int, report: Path | None, max_body: int,
) -> None:  # fmt: skip
    """Serve a model repository as Triton Inference Server does, on the simulator.

    Values come from the simulated device. The parameters of each answer have the device's cycles
    beside the host's time: the first is what the real device would take, the second what this
    simulation takes. Listens on this machine alone unless --host names another address: nobody is
    asked for a password.
    """
    check_packages()
    from simulator.serving.live import Options, serve

    if trace_file is not None and trace_file.exists():
        raise OverwriteError(trace_file, "already there", "give another name to --trace-file")
    if models and mode != "explicit":
        raise click.UsageError("--load-model needs --model-control-mode explicit")
    options = Options(repository, host, http, grpc, metrics, mode, models, poll_seconds,
                      trace_file, trace_rate, trace_count, max_body << 20, report=report
    )  # fmt: skip
    serve(options, _announce)


def _announce(listening: Listening) -> None:
    for served in listening.server.all_served():
        ignored = ", ".join(served.settings.ignored)
        note = f" (ignored: {ignored})" if ignored else ""
        click.echo(printable(f"model {served.name}, version {served.number}{note}"))
    for name, number in listening.ports.items():
        click.echo(f"{name}: {number}")
    click.echo("ready (Ctrl-C ends it)")


COMMAND = Declaration(
    command=serve_model,
    order=190,
    usage={
        "`tilescope serve-model live\\|replay`": (
            "A model repository served to Triton's clients, or its queue replayed without a"
            " clock ([docs/serving.md](docs/serving.md))"
        ),
    },
    calls=(
        (
            "serve-model replay models --arrivals intervals.txt --batch-time 400us"
            " --compiled-batch 4 --what-if delay=0,1ms --what-if instances=1,2"
        ),
        (
            "serve-model replay models --arrivals intervals.txt --batch-time 400us --requests 2"
            " --json"
        ),
        "serve-model replay models --arrivals intervals.txt --what-if speed=2",
        "serve-model replay models --arrivals intervals.txt",
        "serve-model live nowhere",
        "serve-model live models --http 99999",
    ),
    reports=(),
)
