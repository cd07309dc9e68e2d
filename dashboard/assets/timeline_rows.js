// Where lanes and rows of a timeline stand below each other: folded, pinned, hidden. Numbers only.
(function () {
  "use strict";

  const ROW = 20;
  const STRIP = 10; // a folded lane
  const HEAD = 22;
  const GAP = 8; // between lanes
  const CHART = 96;
  const LEGEND = 15; // a line of the series of a graph
  const MOST_LEGEND = 3; // lines
  const SERIES = 190; // pixels that one takes there
  const AROUND = 12; // rows fetched above and below those in view

  const keyOf = (layout, index) => [...layout.lanes[index].path, layout.lanes[index].name].join("/");

  /** List what stands below each other: {kind: head, row or chart, top, height, ...}. */
  function place(layout, state) {
    const entries = [];
    let top = 4;
    const add = (height, entry) => {
      entries.push(Object.assign(entry, { top, height }));
      top += height;
    };
    const lane = (index, pinned) => {
      const { first, stop, names, kinds, overview, name } = layout.lanes[index];
      const key = keyOf(layout, index);
      const folded = state.folded.has(key) && stop - first > 1;
      const head = { lane: index, laneName: name, key, pinned, foldable: stop - first > 1, folded };
      if (entries.length) top += GAP;
      if (folded) return add(STRIP, { kind: "row", row: overview, strip: true, name: "", ...head, first: true });
      let isFirst = true;
      for (let row = first; row < stop; row += 1) {
        const rowKind = kinds[row - first];
        if (state.flat && rowKind === "layer") continue;
        add(ROW, { kind: "row", row, rowKind, name: names[row - first] || "", ...head, first: isFirst, overview: row === overview });
        isFirst = false;
      }
    };
    const pinned = layout.lanes.map((_, index) => index).filter((index) => state.pinned.has(keyOf(layout, index)));
    if (pinned.length) {
      add(HEAD, { kind: "head", name: "Pinned", key: "pinned", level: 0, plain: true });
      pinned.forEach((index) => lane(index, true));
    }
    charts(layout, state, add);
    let path = [];
    layout.lanes.forEach((each, index) => {
      if (!ofChosen(each, state)) return;
      const same = each.path.findIndex((part, level) => part !== path[level]);
      for (let level = same < 0 ? each.path.length : same; level < each.path.length; level += 1) {
        const above = each.path.slice(0, level).some((_, at) => state.folded.has(each.path.slice(0, at + 1).join("/")));
        const key = each.path.slice(0, level + 1).join("/");
        if (!above) add(HEAD, { kind: "head", name: each.path[level], key, level, folded: state.folded.has(key) });
      }
      path = each.path;
      const shut = path.some((_, at) => state.folded.has(path.slice(0, at + 1).join("/")));
      if (!shut && !state.pinned.has(keyOf(layout, index))) lane(index, false);
    });
    return { entries, height: top + 6 };
  }

  /** Tell whether a lane is shown: those of other IPUs than the chosen one are not. */
  const ofChosen = (lane, state) => !state.ipu || !/^IPU \d+$/.test(lane.name) || lane.name === "IPU " + state.ipu;

  /** Put line graphs and heat maps above the threads. */
  function charts(layout, state, add) {
    for (const chart of layout.charts || []) {
      const folded = state.folded.has(chart.key);
      const legend = folded ? 0 : legendOf(chart);
      add(folded ? HEAD : CHART + legend * LEGEND, { kind: "chart", chart, name: chart.name, key: chart.key, folded, legend, first: true });
    }
  }

  /** Give how many series stand beside each other in a legend. */
  const across = () => Math.max(Math.floor((0.75 * window.innerWidth) / SERIES) - 1, 1);

  /** Count the lines of the legend of a graph: none of a single series, which the name tells. */
  function legendOf({ series }) {
    return series && series.length > 1 ? Math.min(Math.ceil(series.length / across()), MOST_LEGEND) : 0;
  }

  /** Give the entries between two heights; entries ascend. */
  function between(entries, from, to) {
    let low = 0;
    let high = entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (entries[middle].top + entries[middle].height < from) low = middle + 1;
      else high = middle;
    }
    let stop = low;
    while (stop < entries.length && entries[stop].top < to) stop += 1;
    return [low, stop];
  }

  /** Write the rows of entries, and of some around them, as `0-5,9-12`. */
  function needed(entries, [from, to], around) {
    const rows = entries
      .slice(Math.max(from - around, 0), to + around)
      .filter((entry) => entry.kind === "row")
      .map((entry) => entry.row)
      .sort((a, b) => a - b);
    return written(rows);
  }

  function written(rows) {
    const parts = [];
    for (const row of rows) {
      const last = parts[parts.length - 1];
      if (last && row <= last[1]) last[1] = Math.max(last[1], row + 1);
      else parts.push([row, row + 1]);
    }
    return parts.map((part) => part.join("-")).join(",");
  }

  window.tilescope = Object.assign(window.tilescope || {}, {
    rows: { place, between, needed, written, keyOf, across, AROUND, LEGEND },
  });
})();
