// What is selected in a timeline, and what the rows did in the chosen range or in view, worked out of
// the events in the page.
(function () {
  "use strict";

  const TOP = 10; // names of a range
  const WORKING = ["step", "io", "event"];
  const AROUND = ["layer", "event", "run"];
  const SOON = 250; // milliseconds without a move until a range is summed up

  const made = (tag, name, ...inside) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    element.append(...inside);
    return element;
  };

  /** Write rows of names and values. */
  function facts(pairs) {
    const table = made("table", "facts");
    for (const [name, value] of pairs) {
      const row = table.insertRow();
      const head = row.appendChild(made("th", "", name));
      head.scope = "row";
      row.insertCell().append(value);
    }
    return table;
  }

  const laneAt = ({ layout }, row) => layout.lanes.find((lane) => lane.first <= row && row < lane.stop);
  const share = (part, whole) => `${((100 * part) / Math.max(whole, 1)).toFixed(1)} %`;
  const count = (value) => value.toLocaleString("en-US");

  /** Give unit and clock of a lane, as paint.amount takes them. */
  const unitOf = ({ layout }, lane) => ({ unit: layout.unit, clock: layout.clock || lane.clock });

  /** Name what an event lies in, outermost first: layers or events above it in its lane. */
  function around(tracks, row, i) {
    const lane = laneAt(tracks, row);
    const names = [];
    for (let above = lane.first; above < row; above += 1) {
      if (!AROUND.includes(lane.kinds[above - lane.first])) continue;
      const [first, stop] = window.tilescope.tracks.touched(tracks, above, tracks.begin[i], tracks.begin[i] + Math.max(tracks.length[i], 1));
      if (stop > first) names.push(tracks.labels[tracks.label[first]]);
    }
    return names;
  }

  /** Describe the selected event: what, where, how long, and how often that is. */
  function selected(tracks, item) {
    const { rowsOf, rowAt, countOf } = window.tilescope.tracks;
    const rows = new Set(rowsOf(tracks, ["step", "io", "event", "block", "flag"]).map((one) => one.row));
    let i = tracks.item.indexOf(item);
    while (i >= 0 && (countOf(tracks, i) > 1 || !rows.has(rowAt(tracks, i)))) i = tracks.item.indexOf(item, i + 1);
    if (i < 0) return null;
    const row = rowAt(tracks, i);
    const lane = laneAt(tracks, row);
    const label = tracks.label[i];
    let [times, spent] = [0, 0];
    for (let other = tracks.offset[row]; other < tracks.offset[row + 1]; other += 1) {
      if (tracks.label[other] !== label) continue;
      times += countOf(tracks, other);
      spent += window.tilescope.tracks.timeOf(tracks, other);
    }
    const write = (value) => window.tilescope.paint.amount(value, unitOf(tracks, lane));
    const [begin, end] = tracks.layout.extent;
    const inside = around(tracks, row, i);
    return {
      name: tracks.labels[label],
      pairs: [["Kind", tracks.layout.colours[tracks.kinds[label]].words], ["In", [...lane.path, lane.name].join(" / ")],
        ...(inside.length ? [["Inside", inside.join(" › ")]] : []), ["Begins at", write(tracks.begin[i])],
        ["Length", tracks.length[i] ? write(tracks.length[i]) : "an instant"],
        ["Of this name in this row", `${count(times)}, ${write(spent)}, ${share(spent, end - begin)} of all the time`]],
    };
  }

  /** Sum up the time in a range by lane and kind, and by name. */
  function summed(tracks, from, to) {
    const lanes = new Map();
    const names = new Map();
    const outermost = new Map();
    for (const { lane, row, kind } of window.tilescope.tracks.rowsOf(tracks, WORKING)) {
      if (kind === "event" && outermost.has(lane)) continue; // what is inside counts with it
      outermost.set(lane, row);
      const [first, stop] = window.tilescope.tracks.touched(tracks, row, from, to);
      const kinds = lanes.get(lane) || new Map();
      lanes.set(lane, kinds);
      for (let i = first; i < stop; i += 1) {
        const long = tracks.length[i];
        const inside = Math.min(tracks.begin[i] + long, to) - Math.max(tracks.begin[i], from);
        const time = long > 0 ? (inside * window.tilescope.tracks.timeOf(tracks, i)) / long : 0;
        const of = tracks.kinds[tracks.label[i]];
        kinds.set(of, (kinds.get(of) || 0) + time);
        const known = names.get(tracks.label[i]) || { times: 0, time: 0, kind: of };
        known.times += window.tilescope.tracks.countOf(tracks, i);
        known.time += time;
        names.set(tracks.label[i], known);
      }
    }
    return { lanes, names };
  }

  const cell = (value, text) => [value, text];
  const heading = (title, right, part) => ({ title, note: "", right, share: Boolean(part) });

  /** Make the tables of a range: a row a lane, and the names that take most. */
  function ranged(tracks, from, to) {
    const { lanes, names } = summed(tracks, from, to);
    const kinds = [...new Set([...lanes.values()].flatMap((one) => [...one.keys()]))].sort((a, b) => a - b);
    const words = kinds.map((kind) => tracks.layout.colours[kind].words);
    const span = to - from;
    const part = (value) => cell(value / span, share(value, span));
    const byLane = [...lanes].map(([lane, own]) => [[...lane.path, lane.name].join(" / "), ...kinds.map((kind) => part(own.get(kind) || 0))]);
    const first = lanes.keys().next().value;
    const write = (value) => window.tilescope.paint.amount(value, unitOf(tracks, first));
    const top = [...names].sort((a, b) => b[1].time - a[1].time).slice(0, TOP)
      .map(([label, one]) => [tracks.labels[label], tracks.layout.colours[one.kind].words, cell(one.times, count(one.times)), cell(one.time, write(one.time))]);
    const table = (columns, rows) => window.tilescope.tableOf({ columns, rows, pinned: [], extra: {}, count: rows.length });
    return [table([heading("Row", false), ...words.map((word) => heading(word, true, true))], byLane),
      made("h3", "", "What took most"), table([heading("Name", false), heading("Kind", false), heading("Times", true), heading("Time", true)], top)];
  }

  /** The panels below a timeline, which follow the address. */
  class Chosen {
    constructor(source) {
      this.source = source;
      this.place = made("div", "exported-chosen");
      this.one = this.place.appendChild(made("section", "section exported-selected"));
      this.range = this.place.appendChild(made("section", "section exported-range"));
    }

    async follow() {
      const { read } = window.tilescope;
      try {
        const { whole } = await window.tilescope.opened(read("report"), this.source);
        this.showSelected(whole, read(this.source === "device" ? "step" : "event"));
        window.clearTimeout(this.timer);
        this.timer = window.setTimeout(() => this.showRange(whole), SOON);
      } catch (problem) {
        this.one.replaceChildren(made("p", "note", problem.message));
      }
    }

    showSelected(tracks, text) {
      const thing = this.source === "device" ? "step" : "event";
      const found = /^\d+$/.test(text || "") ? selected(tracks, Number(text)) : null;
      const head = made("div", "section-head", made("h2", "", text ? `Selected ${thing} ${text}` : `No ${thing} is selected`));
      if (!text) head.append(made("span", "note", "click one in the timeline, or press N for the next"));
      const parts = found ? [made("p", "subject", found.name), facts(found.pairs)] : text ? [made("p", "note", "It does not stand alone in this file.")] : [];
      this.one.replaceChildren(head, ...parts);
    }

    showRange(tracks) {
      const { asked, read } = window.tilescope;
      const chosen = asked.range(read("selection")) || asked.range(read("range"));
      const [from, to] = chosen ? [chosen.begin, chosen.end] : tracks.layout.extent;
      const key = [from, to].join();
      if (this.shown === key) return;
      this.shown = key;
      const words = asked.range(read("selection")) ? "Chosen range" : chosen ? "In view" : "All of it";
      const first = tracks.layout.lanes[0];
      const note = window.tilescope.paint.amount(to - from, unitOf(tracks, first));
      const head = made("div", "section-head", made("h2", "", words), made("span", "note", `${note}; Shift and drag choose a range`));
      this.range.replaceChildren(head, ...ranged(tracks, from, to));
    }
  }

  window.tilescope = Object.assign(window.tilescope || {}, { chosenOf: (source) => new Chosen(source) });
})();
