// The events of a timeline in the page, and what a window, a search or a filter shows of them: what
// the server answers (pva/analysis/timeline/viewport.py, dashboard/timeline/search.py and filtered.py).
(function () {
  "use strict";

  const MOST = 6000; // rectangles of a window
  const MOST_HITS = 1000;
  const SEARCHED = ["step", "io", "block", "event", "flag"];
  const FILTERED = ["step", "io", "block"];

  /** Make begin, length and the rest of each rectangle out of packed columns. */
  function tracksOf({ head, columns }) {
    const { signed } = window.tilescope.unpacked;
    const size = head.rectangles;
    const { length, label } = columns;
    const [begin, item] = [new Float64Array(size), new Int32Array(size)];
    for (let row = 0; row + 1 < head.offset.length; row += 1) {
      let end = 0;
      for (let i = head.offset[row]; i < head.offset[row + 1]; i += 1) {
        begin[i] = end + signed(columns.gap[i]);
        end = begin[i] + length[i];
      }
    }
    let last = 0;
    for (let i = 0; i < size; i += 1) item[i] = last += signed(columns.item[i]);
    const tracks = { begin, length, label, item, offset: head.offset, labels: head.labels, kinds: head.kinds, layout: head.layout };
    if (!columns.more) return tracks;
    const count = columns.more.map((more) => more + 1);
    return Object.assign(tracks, { count, time: length.map((long, i) => long - columns.idle[i]), share: columns.share });
  }

  const countOf = (tracks, i) => (tracks.count ? tracks.count[i] : 1);
  const timeOf = (tracks, i) => (tracks.time ? tracks.time[i] : tracks.length[i]);
  const ofLabel = (tracks, i) => (tracks.share ? (tracks.time[i] * tracks.share[i]) / 255 : tracks.length[i]);

  /** Find the first of a row, from `low` to before `high`, that begins at `value` or later. */
  function firstFrom(begin, low, high, value) {
    while (low < high) {
      const middle = (low + high) >> 1;
      if (begin[middle] < value) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** Give the first rectangle of a row that touches a window, and one behind the last. */
  function touched({ begin, length, offset }, row, from, to) {
    const [low, high] = [offset[row], offset[row + 1]];
    let first = firstFrom(begin, low, high, from);
    if (first > low && begin[first - 1] + length[first - 1] > from) first -= 1;
    return [first, Math.max(firstFrom(begin, first, high, to), first)];
  }

  /** Give where groups begin, and the end: short ones that begin in one cell stand together. */
  function grouped({ begin, length }, [first, stop], cell) {
    const starts = [];
    let before = NaN; // the cell of the group, none for one that stands alone
    for (let i = first; i < stop; i += 1) {
      const own = length[i] >= cell ? NaN : Math.floor(begin[i] / cell);
      if (own !== before) starts.push(i); // NaN is unlike all
      before = own;
    }
    starts.push(stop);
    return starts;
  }

  /** Put groups together at a level above: each but a long one alone lies in one cell. */
  function joined({ begin, length }, starts, cell) {
    const found = [];
    let before = NaN;
    for (let at = 0; at + 1 < starts.length; at += 1) {
      const i = starts[at];
      const own = starts[at + 1] - i === 1 && length[i] >= cell ? NaN : Math.floor(begin[i] / cell);
      if (own !== before) found.push(i);
      before = own;
    }
    found.push(starts[starts.length - 1]);
    return found;
  }

  /** Give the groups of some rows in a window, those with the most at wider cells. */
  function groupsOf(tracks, rows, from, to, pixels) {
    const cell = Math.pow(2, Math.max(Math.floor(Math.log2(Math.max((to - from) / pixels, 1))), 0));
    const found = rows.map((row) => ({ row, cell, starts: grouped(tracks, touched(tracks, row, from, to), cell) }));
    const size = () => found.reduce((sum, one) => sum + one.starts.length - 1, 0);
    while (size() > MOST) {
      const most = MOST / found.length;
      const wide = found.filter((one) => one.starts.length - 1 > most);
      for (const one of wide) {
        one.cell *= 2;
        one.starts = joined(tracks, one.starts, one.cell);
      }
      if (!wide.length) break;
    }
    return found;
  }

  /** Sum up a group: count, time, and the label and kind that take most of it. */
  function summed(tracks, first, stop, sums) {
    const { label, kinds } = tracks;
    if (stop - first === 1) return { count: countOf(tracks, first), time: timeOf(tracks, first), label: label[first], kind: kinds[label[first]], share: tracks.share ? tracks.share[first] : 255 };
    let [count, time] = [0, 0];
    const seen = [];
    for (let i = first; i < stop; i += 1) {
      if (sums[label[i]] < 0) { sums[label[i]] = 0; seen.push(label[i]); }
      sums[label[i]] += ofLabel(tracks, i);
      count += countOf(tracks, i);
      time += timeOf(tracks, i);
    }
    const byKind = new Map();
    let best = seen[0];
    for (const each of seen) {
      if (sums[each] > sums[best] || (sums[each] === sums[best] && each < best)) best = each;
      byKind.set(kinds[each], (byKind.get(kinds[each]) || 0) + sums[each]);
    }
    const kind = [...byKind].reduce((most, each) => (each[1] > most[1] ? each : most))[0];
    const share = time > 0 ? Math.round((255 * sums[best]) / time) : 255;
    for (const each of seen) sums[each] = -1;
    return { count, time, label: best, kind, share };
  }

  /** Answer a window as the server does (dashboard/timeline/packing.py). */
  function windowOf(tracks, rows, from, to, pixels) {
    const groups = groupsOf(tracks, rows, from, to, pixels).filter((one) => one.starts.length > 1);
    const size = groups.reduce((sum, one) => sum + one.starts.length - 1, 0);
    const columns = { begin: new Float64Array(size), length: new Float32Array(size), time: new Float32Array(size), item: new Int32Array(size), count: new Uint32Array(size), label: new Uint16Array(size), colour: new Uint8Array(size), share: new Uint8Array(size) };
    const sums = new Float64Array(tracks.labels.length).fill(-1);
    const sent = new Map();
    let at = 0;
    for (const { starts } of groups) {
      for (let group = 0; group + 1 < starts.length; group += 1, at += 1) {
        const [first, stop] = [starts[group], starts[group + 1]];
        const found = summed(tracks, first, stop, sums);
        if (!sent.has(found.label)) sent.set(found.label, sent.size);
        columns.begin[at] = tracks.begin[first];
        columns.length[at] = tracks.begin[stop - 1] + tracks.length[stop - 1] - tracks.begin[first];
        columns.time[at] = found.time;
        columns.item[at] = found.count === 1 ? tracks.item[first] : -1;
        columns.count[at] = found.count;
        columns.label[at] = sent.get(found.label);
        columns.colour[at] = Math.min(found.kind, 255);
        columns.share[at] = found.share;
      }
    }
    const head = { n: size, window: [from, to], rows: groups.map((one) => one.row), counts: groups.map((one) => one.starts.length - 1), labels: [...sent.keys()].map((number) => tracks.labels[number]) };
    return written(head, Object.values(columns));
  }

  function written(head, columns) {
    let text = new TextEncoder().encode(JSON.stringify(head));
    const padded = new Uint8Array(Math.ceil(text.length / 8) * 8).fill(32);
    padded.set(text);
    text = padded;
    const bytes = new Uint8Array(8 + text.length + columns.reduce((sum, one) => sum + one.byteLength, 0));
    bytes.set(new TextEncoder().encode("TSV2"));
    new DataView(bytes.buffer).setUint32(4, text.length, true);
    bytes.set(text, 8);
    let at = 8 + text.length;
    for (const column of columns) {
      bytes.set(new Uint8Array(column.buffer), at);
      at += column.byteLength;
    }
    return bytes.buffer;
  }

  /** List the rows of some kinds, with the lane of each. */
  function rowsOf({ layout }, kinds) {
    return layout.lanes.flatMap((lane) => lane.kinds.map((kind, down) => ({ lane, kind, row: lane.first + down })).filter((one) => kinds.includes(one.kind)));
  }

  /** Find the rectangles whose label holds a text, in the order of rows. */
  function matches(tracks, text) {
    if (tracks.found && tracks.found.text === text) return tracks.found.places;
    const wanted = text.toLowerCase();
    const holds = tracks.labels.map((label) => label.toLowerCase().includes(wanted));
    const places = [];
    for (const { row } of rowsOf(tracks, SEARCHED)) {
      for (let i = tracks.offset[row]; i < tracks.offset[row + 1]; i += 1) if (holds[tracks.label[i]]) places.push(i);
    }
    places.sort((a, b) => a - b);
    tracks.found = { text, places };
    return places;
  }

  const rowAt = (tracks, i) => {
    let row = tracks.offset.length - 2;
    while (tracks.offset[row] > i) row -= 1;
    return row;
  };

  /** Answer a search: how many there are, some of them, or the one of a rank by begin. */
  function search(tracks, text, rank) {
    const places = matches(tracks, text);
    const total = places.length;
    const answer = { total };
    let shown = [];
    if (rank !== null && total) {
      answer.rank = Math.min(Math.max(rank, 0), total - 1);
      const begins = Float64Array.from(places, (i) => tracks.begin[i]).sort();
      const value = begins[answer.rank];
      const before = firstFrom(begins, 0, total, value);
      shown = [places.filter((i) => tracks.begin[i] === value)[answer.rank - before]];
    } else if (rank === null) {
      const many = Math.min(total, MOST_HITS);
      shown = Array.from({ length: many }, (_, k) => places[many > 1 ? Math.floor((k * (total - 1)) / (many - 1)) : 0]);
    }
    const of = (take) => shown.map(take);
    return Object.assign(answer, { row: of((i) => rowAt(tracks, i)), begin: of((i) => tracks.begin[i]), length: of((i) => tracks.length[i]), item: of((i) => (countOf(tracks, i) === 1 ? tracks.item[i] : -1)) });
  }

  const OPERATORS = [["!~", (label, text) => !label.toLowerCase().includes(text.toLowerCase())], ["~", (label, text) => label.toLowerCase().includes(text.toLowerCase())],
    ["!=", (label, text) => label !== text], ["==", (label, text) => label === text], ["=", (label, text) => label === text]];

  /** Leave out the steps and blocks whose name a filter (`~conv`) does not let through. */
  function filtered(tracks, text) {
    const found = OPERATORS.find(([operator]) => text.startsWith(operator));
    if (!found) return tracks;
    const wanted = text.slice(found[0].length);
    const holds = tracks.labels.map((label) => found[1](label, wanted));
    const kept = tracks.offset.slice(0, -1).map((first, row) => Array.from({ length: tracks.offset[row + 1] - first }, (_, i) => first + i));
    const numbers = [new Set(), new Set()];
    for (const { row } of rowsOf(tracks, FILTERED)) {
      const all = kept[row];
      kept[row] = all.filter((i) => holds[tracks.label[i]]);
      [kept[row], all].forEach((places, at) => places.forEach((i) => numbers[at].add(tracks.item[i] < 0 ? "-" + i : tracks.item[i])));
    }
    leaveLayers(tracks, kept);
    return chosen(tracks, kept, numbers.map((set) => set.size));
  }

  /** Keep the layers in which a step begins that is kept. */
  function leaveLayers(tracks, kept) {
    for (const lane of tracks.layout.lanes) {
      const steps = lane.kinds.flatMap((kind, down) => (kind === "step" ? kept[lane.first + down] : []));
      const begins = Float64Array.from(steps, (i) => tracks.begin[i]).sort();
      lane.kinds.forEach((kind, down) => {
        if (kind !== "layer") return;
        const row = lane.first + down;
        kept[row] = kept[row].filter((i) => {
          const at = firstFrom(begins, 0, begins.length, tracks.begin[i]);
          return at < begins.length && begins[at] < tracks.begin[i] + Math.max(tracks.length[i], 1);
        });
      });
    }
  }

  /** Make tracks of some rectangles of each row. */
  function chosen(tracks, kept, found) {
    const places = kept.flat();
    const offset = [0];
    for (const row of kept) offset.push(offset[offset.length - 1] + row.length);
    const made = Object.assign({}, tracks, { offset, found: null, layout: Object.assign({}, tracks.layout, { found }) });
    for (const name of ["begin", "length", "label", "item", "count", "time", "share"]) {
      if (tracks[name]) made[name] = tracks[name].constructor.from(places, (i) => tracks[name][i]);
    }
    return made;
  }

  window.tilescope = Object.assign(window.tilescope || {}, {
    tracks: { tracksOf, touched, windowOf, search, filtered, rowsOf, rowAt, countOf, timeOf },
  });
})();
