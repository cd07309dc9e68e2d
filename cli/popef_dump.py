"""`popef_dump FILE`: the blobs of a PopEF file, as the log of Graphcore's tool lists them."""

from __future__ import annotations

import click

from cli.shared.faults import Command
from cli.shared.output import printable, write

EXAMPLES = """
\b
Examples:
  popef_dump executable.popef             heads, executables, metadata, tensors
  popef_dump -m executable.popef          the metadata alone, as JSON
  popef_dump --all executable.popef       reads every content, too, and checks it
"""


@click.command(cls=Command, name="popef_dump", epilog=EXAMPLES)
@click.argument("file", metavar="FILE", type=click.Path())
@click.option("-m", "--metadata", is_flag=True, help="Print the metadata alone.")
@click.option("--all", "everything", is_flag=True, help="Read and check every content, too.")
def popef_dump(file: str, metadata: bool, everything: bool) -> None:
    """Print the blobs of a PopEF file that tilescope wrote: type, place, size, structure.

    The lines have the form of the log of Graphcore's tool, so that what reads them still does; the
    sizes are those of tilescope's own layout.
    """
    from simulator.popef import Reader
    from simulator.popef.dump import lines_of, metadata_lines

    reader = Reader()
    reader.parseFile(file)
    lines = metadata_lines(reader) if metadata else lines_of(reader, everything=everything)
    write("\n".join(map(printable, line.split("\n"))) for line in lines)


def main() -> object:
    """Run the command `popef_dump`."""
    return popef_dump(prog_name="popef_dump")
