"""Lower a compute set once for all that are alike: the layers of a network, the steps of a loop.

Two compute sets are alike when their vertices are on the same tiles and their fields take in the
same parts of variables that are mapped in the same way, in the same order of the arena. What one
becomes is then what the other became, under its own names and with its own variables. Hashes
tell most apart; what is taken for alike has been compared whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from simulator.compiler.executable import CompilerVariable, LoweredProgram
from simulator.compiler.lowering.execute import FORMS, lower_compute_set
from simulator.compiler.lowering.state import Building, Part
from simulator.graph.geometry.intervals import present
from simulator.graph.mapping import Mapping
from simulator.graph.types import IntArray
from simulator.graph.vertices.vertex import Field, VertexGroup

_LISTS = ("exchanges", "global_exchanges", "variables", "compute_sets", "groups")


@dataclass(frozen=True, slots=True, eq=False)
class _Use:
    """A field, and the variable of all its intervals, or of each."""

    item: Field
    variable: int | IntArray


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """A compute set, its vertices, the variables that its fields take in, and what it became.

    `grown` is by list of the building how long it was before and after.
    """

    number: int
    groups: Sequence[VertexGroup]
    uses: Sequence[_Use]
    variables: IntArray
    parts: Sequence[Part] = ()
    grown: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Reuse:
    """The compute sets that have been lowered, by what tells most of them apart."""

    building: Building
    _cases: dict[Hashable, list[_Case]] = field(default_factory=dict)
    _kinds: dict[int, int] = field(default_factory=dict)
    _first_of_kind: dict[Hashable, list[int]] = field(default_factory=dict)

    def lower(self, compute_set: int) -> list[Part]:
        """Return the programs of one execution of a compute set, in order."""
        case = self._case(compute_set)
        if case is None:
            return lower_compute_set(self.building, compute_set)
        alike = self._cases.setdefault(self._summary(case), [])
        for candidate in alike:
            if self._are_alike(case, candidate):
                return _again(self.building, case, candidate)
        before = _lengths(self.building)
        parts = lower_compute_set(self.building, compute_set)
        after = _lengths(self.building)
        grown = {name: (before[name], after[name]) for name in _LISTS}
        alike.append(replace(case, parts=parts, grown=grown))
        return parts

    def _case(self, number: int) -> _Case | None:
        """Return the variables that vertices use; None where an interval is in two of them."""
        groups = self.building.graph.groups_of(number)
        uses, variables = [], [np.zeros(0, dtype=np.int64)]
        for group in groups:
            for item in group.fields.values():
                use = self._use(item)
                if use is None:
                    return None
                uses.append(use)
                variables.append(np.atleast_1d(use.variable))
        return _Case(number, groups, uses, present(np.concatenate(variables)))

    def _use(self, item: Field) -> _Use | None:
        if not len(item.begins):
            return _Use(item, np.zeros(0, dtype=np.int64))
        size, (bounds, ends) = item.dtype.size, self.building.graph.variable_bounds()
        last = (item.begins + item.lengths) * size
        extremes = [int(item.begins.min()) * size, int(item.begins.max()) * size]
        low, high = (bounds.searchsorted(extremes, side="right") - 1).tolist()
        if low == high:
            return _Use(item, low) if last.max() <= ends[low] else None
        variable = np.searchsorted(bounds, item.begins * size, side="right") - 1
        return _Use(item, variable) if (last <= ends[variable]).all() else None

    def _summary(self, case: _Case) -> Hashable:
        """Return what like compute sets have in common and others mostly do not."""
        tiles = tuple(hash(group.tile.tobytes()) for group in case.groups)
        fields = tuple(
            (item.direction, item.dtype.size, len(item.begins), len(item.starts))
            + tuple((item.begins[[0, -1]] - item.begins.min()).tolist() if len(item.begins) else ())
            for item in (use.item for use in case.uses)
        )
        return tiles, fields, tuple(map(self._kind, case.variables.tolist()))

    def _kind(self, variable: int) -> int:
        """Return the first variable that is as large and mapped in the same way."""
        if variable not in self._kinds:
            mapping, (bounds, ends) = self.building.layout.mapping, self._bounds()
            rows = _rows(mapping, variable)
            size, tiles = int(ends[variable] - bounds[variable]), mapping.tile[rows]
            first = self._first_of_kind.setdefault((size, hash(tiles.tobytes())), [])
            for candidate in first:
                if _same_mapping(
                    mapping, rows, _rows(mapping, candidate), bounds[variable] - bounds[candidate]
                ):
                    self._kinds[variable] = candidate
                    break
            else:
                first.append(variable)
                self._kinds[variable] = variable
        return self._kinds[variable]

    def _bounds(self) -> tuple[IntArray, IntArray]:
        return self.building.graph.variable_bounds()

    def _are_alike(self, one: _Case, peer: _Case) -> bool:
        """Compare the tiles of all vertices and what all fields take in."""
        tiles = zip(one.groups, peer.groups, strict=True)
        if not all(np.array_equal(mine.tile, its.tile) for mine, its in tiles):
            return False
        uses = zip(one.uses, peer.uses, strict=True)
        return all(self._take_alike(one, mine, peer, its) for mine, its in uses)

    def _take_alike(self, one: _Case, mine: _Use, peer: _Case, its: _Use) -> bool:
        a, b = mine.item, its.item
        if (a.rows is None) != (b.rows is None) or a.apart != b.apart:
            return False
        of_rank = np.searchsorted(one.variables, mine.variable)
        if not np.array_equal(of_rank, np.searchsorted(peer.variables, its.variable)):
            return False
        bounds, _ = self._bounds()
        shift = (bounds[mine.variable] - bounds[its.variable]) // a.dtype.size
        return (
            np.array_equal(a.lengths, b.lengths)
            and np.array_equal(a.starts, b.starts)
            and np.array_equal(a.begins - shift, b.begins)
            and (a.rows is None or b.rows is None or np.array_equal(a.rows, b.rows))
            and not (a.apart and not np.array_equal(a.edges, b.edges))
        )


def _rows(mapping: Mapping, variable: int) -> slice:
    """Return the rows of a mapping that are of a variable."""
    low, high = np.searchsorted(mapping.variable, [variable, variable + 1]).tolist()
    return slice(low, high)


def _same_mapping(mapping: Mapping, one: slice, peer: slice, shift: int) -> bool:
    return (
        np.array_equal(mapping.tile[one], mapping.tile[peer])
        and np.array_equal(mapping.begin[one] - shift, mapping.begin[peer])
        and np.array_equal(mapping.end[one] - shift, mapping.end[peer])
    )


def _lengths(building: Building) -> dict[str, int]:
    return {name: len(getattr(building, name)) for name in _LISTS}


def _again(building: Building, case: _Case, earlier: _Case) -> list[Part]:
    """Add what a compute set becomes that is like another one which has been lowered."""
    graph_variables = len(building.graph.variables)
    shift = {name: len(getattr(building, name)) - earlier.grown[name][0] for name in _LISTS}
    old_name, new_name = (building.compute_sets[c.number] for c in (earlier, case))

    def added(name: str) -> list:  # type: ignore[type-arg]
        return list(getattr(building, name)[slice(*earlier.grown[name])])

    def instead(variable: IntArray) -> IntArray:
        """Return the variables of this compute set for those of the other one."""
        result = variable + shift["variables"]
        graphs = variable < graph_variables
        result[graphs] = case.variables[np.searchsorted(earlier.variables, variable[graphs])]
        return result

    def renamed(name: str) -> str:
        return new_name + name[len(old_name) :]

    def number(compute_set: int) -> int:
        if compute_set == earlier.number:
            return case.number
        return compute_set + shift["compute_sets"] if compute_set >= 0 else compute_set

    def like(variable: CompilerVariable) -> CompilerVariable:
        source = int(instead(np.array([variable.source]))[0])
        form = FORMS[variable.category]
        name = form.format(building.graph.variables[source].name.strip("<>"))
        return replace(variable, name=name, source=source)

    def program(row: LoweredProgram) -> LoweredProgram:
        if row.type == "Sync":
            return row
        kind = "global_exchanges" if row.type == "GlobalExchange" else "exchanges"
        exchange = row.exchange + shift[kind] if row.exchange >= 0 else row.exchange
        return replace(
            row, name=renamed(row.name), exchange=exchange, compute_set=number(row.compute_set)
        )

    building.exchanges += added("exchanges")
    building.global_exchanges += added("global_exchanges")
    building.variables += map(like, added("variables"))
    building.groups += [
        replace(group, compute_set=number(group.compute_set)) for group in added("groups")
    ]
    building.compute_sets += map(renamed, added("compute_sets"))
    return [
        Part(program(p.program), instead(p.reads), instead(p.writes), p.whole)
        for p in earlier.parts
    ]
