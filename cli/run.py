"""`tilescope run` and `poprun`: start the instances of a program, each with a report of its own."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, cast

import click

from cli.shared.declared import Declaration
from cli.shared.faults import Command
from pva.errors import PvaError
from pva.version import VERSION

if TYPE_CHECKING:
    from pva.formats.run_file import Topology
    from simulator.popdist.launch import Launcher

EXAMPLES = """
\b
Examples:
  poprun --num-instances 2 --num-replicas 4 python3 train.py --epochs 3
  poprun --num-instances 4 --print-topology yes --out run/ python3 train.py
  poprun --host h[0-3] --num-instances 16 --mpi-local-args="-x A=b" ./train.sh
  tilescope info run/                       who did what, and which report is whose
"""

Option = Callable[[Callable[..., Any]], Callable[..., Any]]
YES, NO = ("yes", "1", "true", "on"), ("no", "0", "false", "off")
TAG = "--tag-output"
VERSION_FORMATS = ("text", "full-json", "full-text")
# PopRun's options that mean something to hardware alone, and what of it there is here.
_NO_VIPU = "there is no V-IPU: every instance has a model of its own"
_BY_HAND = "hosts are used as they are"
HARDWARE = {
    "--vipu-server-host": _NO_VIPU, "--vipu-server-port": _NO_VIPU,
    "--vipu-server-timeout": _NO_VIPU, "--vipu-partition": _NO_VIPU,
    "--vipu-partition-attempts": _NO_VIPU, "--vipu-cluster": _NO_VIPU,
    "--vipu-allocation": _NO_VIPU, "--update-partition": _NO_VIPU,
    "--reset-partition": _NO_VIPU, "--remove-partition": _NO_VIPU,
    "--sync-type": "replicas of the model sync in one way", "--host-subnet": _BY_HAND,
    "--synchronise-python-venv": _BY_HAND, "--synchronise-poplar-sdk": _BY_HAND,
    "--distribute-ssh-key": _BY_HAND,
    "--executable-cache-path": "every instance compiles: nothing is cached",
}  # fmt: skip
SWITCHES = ("--print-topology", "--offline-mode", "--numa-aware", "--overwrite-config",
            "--update-partition", "--reset-partition", "--remove-partition",
            "--synchronise-python-venv", "--synchronise-poplar-sdk",
            "--distribute-ssh-key")  # fmt: skip
FLAGS = ("--help", "--version", "-v", "--vv", TAG)
REPEATED = ("mpi_global_args", "mpi_local_args", "instance_mpi_local_args")


class Options(TypedDict):
    """The options of the command, as click reads them; those of HARDWARE are texts."""

    num_instances: int | None
    num_replicas: int | None
    ipus_per_replica: int | None
    num_ilds: int | None
    host: str | None
    out: Path | None
    launcher: Launcher | None
    print_topology: bool
    only_output_from_instance: int | None
    tag_output: bool
    timeout: float
    offline_mode: bool
    numa_aware: bool
    mpi_global_args: tuple[str, ...]
    mpi_local_args: tuple[str, ...]
    instance_mpi_local_args: tuple[str, ...]
    import_config: Path | None
    export_config: Path | None
    overwrite_config: bool
    verbose: bool


class RunCommand(Command):
    """A command whose switches take yes or no, or stand alone, before the program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return switches that stand alone their value."""
        return super().parse_args(ctx, _with_values(args))


def _with_values(args: Sequence[str]) -> list[str]:
    words, at = [], 0
    while at < len(args) and args[at].startswith("-") and args[at] != "--":
        word, following = args[at], args[at + 1 : at + 2]
        alone = word in FLAGS or "=" in word
        if word in SWITCHES and (not following or following[0].lower() not in (*YES, *NO)):
            following = ["yes"]
            at -= 1
        words += [word] if alone else [word, *following]
        at += 1 if alone else 2
    return [*words, *args[at:]]


def _switch(name: str, text: str) -> Option:
    return click.option(name, type=click.BOOL, default="no", metavar="yes|no", help=text)


def _count(name: str, text: str) -> Option:
    return click.option(name, type=click.IntRange(min=1), help=text)


def _words(name: str, text: str) -> Option:
    return click.option(name, multiple=True, metavar="ARGS", help=text)


def _hardware(command: click.Command) -> click.Command:
    for name in HARDWARE:
        command.params.append(click.Option([name], hidden=True))
    return command


@click.command(
    "run", cls=RunCommand, epilog=EXAMPLES, no_args_is_help=True,
    context_settings={"allow_interspersed_args": False},
)  # fmt: skip
@click.argument("program", nargs=-1, type=click.UNPROCESSED, metavar="PROGRAM [ARGS]...")
@click.option("--num-instances", type=click.IntRange(min=1), help="Processes.  [default: 1]")
@_count("--num-replicas", "Replicas of all instances.  [default: one an instance]")
@_count("--ipus-per-replica", "IPUs of each replica.  [default: 1]")
@_count("--num-ilds", "IPU-Link domains.  [default: one a host]")
@click.option("-H", "--host", metavar="HOSTS", help="h0,h1 or h[0-2,4], or a file of hosts.")
@click.option("--out", type=click.Path(path_type=Path),
              help="Where they write.  [default: autoReport.directory, else here]")  # fmt: skip
@click.option("--launcher", type=click.Choice(["mpi", "processes"]),
              help="How they are started.  [default: mpi where it is installed]")  # fmt: skip
@_switch("--print-topology", "Draw which instances and replicas are where.")
@click.option("--only-output-from-instance", type=click.IntRange(min=0), metavar="N",
              help="Show its output, and of the others what they write to stderr.")  # fmt: skip
@click.option(TAG, "tag_output", is_flag=True, help="Begin lines with [1,INSTANCE]<stdout>: .")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), default=300.0,
              show_default=True, metavar="SECONDS",
              help="How long an instance waits for another to come to a collective.")  # fmt: skip
@_switch("--offline-mode", "Compile only: what would run is an error.")
@_switch("--numa-aware", "Bind instances to NUMA nodes in turn, by MPI.")
@_words("--mpi-global-args", "Arguments for mpirun.")
@_words("--mpi-local-args", "The same; -x NAME=VALUE sets a variable of every instance.")
@_words("--instance-mpi-local-args", 'IDX:"..." for one instance: -x NAME=VALUE alone.')
@click.option("--import-config", type=click.Path(path_type=Path), help="Read options of a file.")
@click.option("--export-config", type=click.Path(path_type=Path), help="Write options to a file.")
@_switch("--overwrite-config", "Let --export-config replace a file.")
@click.option("-v", "--vv", "verbose", is_flag=True, help="Print what is started.")
@click.option("--version", is_flag=True, help="Show the version and exit.")
@click.option("--version-format", type=click.Choice(VERSION_FORMATS), default="text")
@click.pass_context
def run(ctx: click.Context, /, program: tuple[str, ...], **arguments: Any) -> int:
    """Start instances of a program, each with its replicas, its report and its host trace.

    As Graphcore's PopRun; `poprun` and `tilescope run` are the same command. PROGRAM is any
    command, or a Python file. It learns its place from simulator.popdist. Options stand before it.

    Each instance writes into a directory of its own: OUT/instance_0003 has its report
    (autoReport.directory), its host trace (PVTI_OPTIONS) and instance.json; OUT/run.json says who
    ran where. Reports and traces of an earlier run there are replaced.

    Instances are started by MPI where tilescope[distributed] is installed, else as processes of
    this host. When one fails, or on Ctrl-C, all end within 5 seconds; the exit code is that of the
    first that failed, whose last lines are printed last. What PopRun has for V-IPU hardware
    (--vipu-partition, --sync-type, ...) is taken, and one line each says what it means here.
    """
    if arguments.pop("version"):
        _print_version(arguments["version_format"])
        return 0
    options = _imported(ctx, arguments)
    _export(options, program)
    for name, text in HARDWARE.items():
        if options.get(name.removeprefix("--").replace("-", "_")) is not None:
            click.echo(f"poprun: {name}: {text}", err=True)
    if not program:
        raise click.UsageError("no program to run")
    return _launch(options, program)


def _launch(options: Options, program: Sequence[str]) -> int:
    from simulator.popdist.hosts import table
    from simulator.popdist.launch import Order, launch
    from simulator.popdist.relay import Relay

    topology = _topology(options)
    if options["print_topology"]:
        click.echo(table(topology))
    tag, variables, arguments = _mpi_words(options)
    instance_variables = _own_variables(options["instance_mpi_local_args"])
    only = options["only_output_from_instance"]
    if only is not None and only >= topology.instances:
        raise click.UsageError(f"--only-output-from-instance {only}: there are"
                               f" {topology.instances} instances, from 0")  # fmt: skip
    order = Order(
        command=_command(program), directory=_directory(options["out"]), topology=topology,
        launcher=_launcher(options, topology), offline=options["offline_mode"],
        timeout=options["timeout"],
        variables=variables, own_variables=instance_variables, mpi_arguments=arguments,
    )  # fmt: skip
    if options["verbose"]:
        click.echo(f"poprun: {topology.instances} instances by {order.launcher}:"
                   f" {shlex.join(order.command)}", err=True)  # fmt: skip
    return launch(order, Relay(tag=tag or options["tag_output"], only=only))


def _topology(options: Options) -> Topology:
    import socket

    from pva.formats.run_file import Topology
    from simulator.popdist.hosts import divided, hosts

    names = hosts(options["host"]) if options["host"] else (socket.gethostname(),)
    instances = options["num_instances"] or len(names)
    return divided(Topology(
        hosts=names, instances=instances, replicas=options["num_replicas"] or instances,
        ipus_per_replica=options["ipus_per_replica"] or 1,
        ilds=options["num_ilds"] or len(names),
    ))  # fmt: skip


def _launcher(options: Options, topology: Topology) -> Launcher:
    """Choose MPI where it is there; say so where it is not."""
    from simulator.popdist.hosts import is_local
    from simulator.popdist.starters import INSTALL, mpirun_path

    launcher, has_mpi = options["launcher"], mpirun_path() is not None
    if launcher == "mpi" and not has_mpi:
        raise PvaError("--launcher mpi", "no mpirun with mpi4py", INSTALL)
    if has_mpi and launcher != "processes":
        return "mpi"
    remote = [host for host in topology.hosts if not is_local(host)]
    if remote:
        raise PvaError(f"--host {remote[0]}", "other hosts are reached by MPI alone", INSTALL)
    if launcher is None:
        click.echo(f"poprun: instances are plain processes of this host; {INSTALL} brings MPI",
                   err=True)  # fmt: skip
    if options["numa_aware"]:
        click.echo("poprun: --numa-aware: plain processes are not bound", err=True)
    return "processes"


def _mpi_words(options: Options) -> tuple[bool, dict[str, str], tuple[str, ...]]:
    """Return whether lines are tagged, the variables of -x NAME=VALUE, and what is left."""
    from simulator.popdist.starters import NUMA

    texts = (*options["mpi_global_args"], *options["mpi_local_args"])
    words = [word for text in texts for word in shlex.split(text)]
    variables: dict[str, str] = {}
    arguments: list[str] = list(NUMA) if options["numa_aware"] else ["--bind-to", "none"]
    position = 0
    while position < len(words):
        word = words[position]
        if word == "-x" and "=" in "".join(words[position + 1 : position + 2]):
            name, _, value = words[position + 1].partition("=")
            variables[name] = value
            position += 2
            continue
        arguments += [] if word == TAG else [word]
        position += 1
    return TAG in words, variables, tuple(arguments)


def _own_variables(texts: Sequence[str]) -> dict[int, dict[str, str]]:
    """Read IDX:"-x NAME=VALUE ..." for each instance; raises click.UsageError."""
    variables: dict[int, dict[str, str]] = {}
    for text in texts:
        index, _, words = text.partition(":")
        parts = shlex.split(words)
        pairs = [part.partition("=") for part in parts[1::2]]
        if not index.isdigit() or set(parts[::2]) - {"-x"} or not all(pair[1] for pair in pairs):
            raise click.UsageError(
                f'--instance-mpi-local-args {text!r}: IDX:"-x NAME=VALUE ..." is needed'
            )
        variables.setdefault(int(index), {}).update({name: value for name, _, value in pairs})
    return variables


def _command(program: Sequence[str]) -> tuple[str, ...]:
    """Return the command, a Python file run by this Python; raises PvaError for none."""
    import shutil

    first = program[0]
    if first.endswith(".py") and not shutil.which(first):
        if not Path(first).is_file():
            raise PvaError(first, "no such file", "give the path of a program")
        return (sys.executable, *program)
    if shutil.which(first) is None:
        raise PvaError(first, "no such program", "give a command, as python3 train.py")
    return tuple(program)


def _directory(out: Path | None) -> Path:
    from simulator.popdist.instance import ENGINE, options

    directory = out or Path(str(options(os.environ, ENGINE).get("autoReport.directory", ".")))
    return directory.absolute()


def _imported(ctx: click.Context, options: dict[str, Any]) -> Options:
    """Return the options, those of --import-config under those of the command line."""
    path = options["import_config"]
    if path is None:
        return cast("Options", options)
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        values = None
    names = {name.replace("_", "-"): name for name in options}
    if not isinstance(values, dict) or (set(values) - set(names)):
        unknown = sorted(set(values) - set(names)) if isinstance(values, dict) else []
        raise PvaError(path, f"no option {unknown[0]}" if unknown else "no JSON object",
                       "what --export-config writes")  # fmt: skip
    words = [word for name, value in values.items() for one in _listed(value)
             for word in (f"--{name}={one}",)]  # fmt: skip
    imported = run.make_context("poprun", [*words, "program"], ignore_unknown_options=True).params
    source = click.core.ParameterSource.COMMANDLINE
    explicit = {name for name in options if ctx.get_parameter_source(name) == source}
    merged = {name: options[name] if name in explicit else imported.get(name) for name in options}
    return cast("Options", merged)


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list) else [value]


def _export(options: Options, program: Sequence[str]) -> None:
    path = options["export_config"]
    if path is None:
        return
    if path.exists() and not options["overwrite_config"]:
        from pva.errors import OverwriteError

        raise OverwriteError(path, "is there already", "--overwrite-config yes replaces it")
    skipped = ("import_config", "export_config", "overwrite_config")
    values = {
        name.replace("_", "-"): str(value) if isinstance(value, Path) else value
        for name, value in options.items()
        if name not in skipped and value not in (None, False, ())
    }
    path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _print_version(form: str) -> None:
    full = {"name": "poprun", "version": VERSION, "distribution": "tilescope"}
    texts = {"text": f"poprun {VERSION}", "full-json": json.dumps(full),
             "full-text": "\n".join(f"{key}: {value}" for key, value in full.items())}  # fmt: skip
    click.echo(texts[form])


_hardware(run)


def poprun() -> object:
    """Run the command `poprun`."""
    return run(prog_name="poprun")


COMMAND = Declaration(
    command=run,
    order=160,
    usage={
        "`tilescope run PROGRAM`, `poprun PROGRAM`": (
            "A program in many instances, which share its replicas and gradients, each with"
            " a report of its own ([docs/instances.md](docs/instances.md))"
        ),
    },
    calls=(
        (
            "run --launcher processes --host localhost --num-instances 2 --num-replicas 4 --out"
            " launched --print-topology --tag-output --only-output-from-instance 1"
            " --vipu-partition p echo hello"
        ),
        "run --num-instances 2 --num-replicas 3 true",
    ),
    reports=(),
)
