"""What a tile holds beside variables: code, stack, the state of vertices.

Sizes of code are estimates. They follow the user guide's profile sample (chapter "Profiling"), as
far as it tells; without code for the IPU (`compileIPUCode`) there is neither code nor stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from simulator.codelets.costs import ceil_div
from simulator.compiler.control_code import control_code
from simulator.compiler.executable import Exchange, Lowered
from simulator.compiler.instrument import result_bytes
from simulator.compiler.instrumentation import NO_INSTRUMENTATION, Instrumentation
from simulator.graph.geometry.intervals import as_int64
from simulator.graph.graph import Graph
from simulator.graph.types import Array, IntArray
from simulator.graph.vertices.vertex import Codelet, Field, VertexGroup

CODE_CATEGORIES = (
    "vertexCode", "controlCode", "internalExchangeCode", "hostExchangeCode", "globalExchangeCode",
)  # fmt: skip
POINTER_BYTES = 4
DESCRIPTOR_BYTES = 8  # of a vector list, and of a copy: 16,161 B for 2,000 copies in the sample
# The sample has 3,168 B a tile: six workers of 512 B (PopART's option of 2019 as well) and these.
SUPERVISOR_STACK = 96
# Guess. Since March 2020 stacks are computed from what vertices declare: of PopLibs' vertices in
# assembly most declare 0 (DEF_STACK_USAGE), some up to 200 B; what those in C++ need is not public.
WORKER_STACK = 32
HOST_CODE_BYTES = 170  # of a tile in the sample
PACKET_HEADER_BYTES = 8


@dataclass(frozen=True, slots=True)
class Stacks:
    """The bytes of the stacks on a tile: of the supervisor, and of each worker."""

    supervisor: int = SUPERVISOR_STACK
    worker: int = WORKER_STACK


COMPUTED_STACKS = Stacks()


@dataclass(frozen=True, slots=True, eq=False)
class VertexBytes:
    """Bytes of each vertex of a group: its parts, and where the profile files them.

    Parts: vertex_data, edge_pointers, copy_pointers, padding, descriptors. Of them `field_data` are
    tables of pointers outside the vertex, `list_descriptors` and `copy_descriptors` descriptors;
    the rest is the vertex's own state.
    """

    vertex_data: IntArray
    edge_pointers: IntArray
    copy_pointers: IntArray
    padding: IntArray
    descriptors: IntArray
    field_data: IntArray
    list_descriptors: IntArray
    copy_descriptors: IntArray

    def total(self) -> IntArray:
        """Add up the parts."""
        state = self.vertex_data + self.edge_pointers + self.copy_pointers
        return state + self.padding + self.descriptors

    def instance(self) -> IntArray:
        """Return the vertex's own state."""
        return self.total() - self.field_data - self.list_descriptors - self.copy_descriptors


def vertex_bytes(group: VertexGroup, scaled_bytes: int = POINTER_BYTES) -> VertexBytes:
    """Measure the vertices of a group, on a machine whose scaled pointers have so many bytes."""
    count, state = len(group), group.codelet.state_bytes
    none = np.zeros(count, dtype=np.int64)
    if group.codelet.kind == "copy":
        pointers = min(state, 2 * POINTER_BYTES)
        descriptors = none + DESCRIPTOR_BYTES
        data, copies = none + state - pointers, none + pointers
        edges = tables = vectors = lists = none
    else:
        fields = list(group.fields.values())
        inline = POINTER_BYTES * len(fields)
        tables = sum((_table_bytes(field) for field in fields), none)
        vector_columns = (column for column in group.parameters.values() if column.dtype == object)
        vectors = sum((_vector_bytes(column) for column in vector_columns), none)
        lists = none + DESCRIPTOR_BYTES * sum(field.rows is not None for field in fields)
        data, copies, descriptors = max(state - inline, 0) + vectors, none, lists
        edges = none + inline - group.codelet.scaled * (POINTER_BYTES - scaled_bytes) + tables
    padding = -(data + copies + edges - tables) % POINTER_BYTES
    return VertexBytes(
        vertex_data=data,
        edge_pointers=edges,
        copy_pointers=copies,
        padding=padding,
        descriptors=descriptors,
        field_data=tables + vectors,
        list_descriptors=lists,
        copy_descriptors=descriptors - lists,
    )


def _vector_bytes(vectors: Array) -> IntArray:
    """Count the bytes of a vector of initial values of each vertex."""
    return as_int64([vector.nbytes for vector in vectors])


def _table_bytes(field: Field) -> IntArray:
    """Count the pointers that do not fit into the vertex: of fields with several edges."""
    return np.where(field.edges > 1, POINTER_BYTES * field.edges, 0)


def fixed_data(
    graph: Graph,
    lowered: Lowered,
    vertex_types: Sequence[Codelet],
    type_of_group: IntArray,
    instrumentation: Instrumentation = NO_INSTRUMENTATION,
    stacks: Stacks = COMPUTED_STACKS,
) -> dict[str, IntArray]:
    """Return the bytes of each category (pva.schema.CATEGORIES) by tile; all are always live."""
    tiles = graph.target.num_tiles
    result = {
        "vertexInstanceState": np.zeros(tiles, dtype=np.int64),
        "vertexFieldData": np.zeros(tiles, dtype=np.int64),
        "vectorListDescriptor": np.zeros(tiles, dtype=np.int64),
        "copyDescriptor": np.zeros(tiles, dtype=np.int64),
        "globalExchangePacketHeader": _global_headers(graph, lowered),
        "hostExchangePacketHeader": _packet_headers(graph, lowered),
        "instrumentationResults": result_bytes(instrumentation, graph.target, lowered),
    }
    for group in lowered.groups:
        sizes = vertex_bytes(group, graph.target.scaled_pointer_bytes)
        for category, of_vertices in (
            ("vertexInstanceState", sizes.instance()),
            ("vertexFieldData", sizes.field_data),
            ("vectorListDescriptor", sizes.list_descriptors),
            ("copyDescriptor", sizes.copy_descriptors),
        ):
            if of_vertices.any():
                by_tile = np.bincount(group.tile, weights=of_vertices, minlength=tiles)
                result[category] += by_tile.astype(np.int64)
    if graph.target.compile_ipu_code:
        used = types_on_tiles(tiles, lowered.groups, len(vertex_types), type_of_group)
        sizes_of_types = np.array([codelet.code_bytes for codelet in vertex_types], dtype=np.int64)
        result["vertexCode"] = sizes_of_types @ used if len(vertex_types) else _no(tiles)
        stack = stacks.supervisor + graph.target.workers * stacks.worker
        result["stack"] = np.full(tiles, stack, dtype=np.int64)
        result["controlCode"] = _no(tiles)
        for code in control_code(graph.target, lowered, instrumentation):
            result["controlCode"] += code
        result["internalExchangeCode"] = _exchange_code(lowered.exchanges, tiles)
        result["globalExchangeCode"] = _exchange_code(lowered.global_exchanges, tiles)
        result["hostExchangeCode"] = HOST_CODE_BYTES + _exchange_code(lowered.host_exchanges, tiles)
    return result


def types_on_tiles(
    tiles: int, groups: Sequence[VertexGroup], types: int, type_of_group: IntArray
) -> IntArray:
    """Return as 0 or 1, by [vertex type][tile], whether a tile has a vertex of the type."""
    used = np.zeros((types, tiles), dtype=np.int64)
    for group, vertex_type in zip(groups, type_of_group.tolist(), strict=True):
        used[vertex_type, group.tile] = 1
    return used


def _no(tiles: int) -> IntArray:
    return np.zeros(tiles, dtype=np.int64)


def _exchange_code(exchanges: Sequence[Exchange], tiles: int) -> IntArray:
    codes = (exchange.code for exchange in exchanges if exchange.code is not None)
    return sum(codes, _no(tiles))


def _packet_headers(graph: Graph, lowered: Lowered) -> IntArray:
    """Count a header for every packet between a tile and the host."""
    packet = graph.target.host_packet_bytes
    packets = (ceil_div(e.sent + e.received, packet) for e in lowered.host_exchanges)
    return PACKET_HEADER_BYTES * sum(packets, _no(graph.target.num_tiles))


def _global_headers(graph: Graph, lowered: Lowered) -> IntArray:
    """Count a header for every packet that a tile sends to another IPU."""
    packet = graph.target.host_packet_bytes
    packets = (ceil_div(exchange.sent, packet) for exchange in lowered.global_exchanges)
    return PACKET_HEADER_BYTES * sum(packets, _no(graph.target.num_tiles))
