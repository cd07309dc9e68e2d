// Arrows of a timeline. Of a device: from the steps of an IPU that waits to those of the one that
// arrives last. Of the host: from events to those that they led to, such as a launch to its kernel.
(function () {
  "use strict";

  const HEAD = 5; // pixels of the point of an arrow
  const SHORTEST = 3; // pixels of a wait that has an arrow

  /** Tell whether the chosen step is a sync. */
  function choosesSync({ data, layout, selected }) {
    const i = data && selected >= 0 ? data.item.indexOf(selected) : -1;
    return i >= 0 && layout.colours[data.colour[i]].words === "Sync";
  }

  const isOn = () => window.tilescope.read("arrows") === "on";
  // Of flows all are drawn unless the address says otherwise, of waits those of the chosen sync.
  const SOURCES = {
    device: {
      path: "/waits",
      chosen: "step",
      wanted: (timeline) => timeline.layout.lanes.length > 1 && (isOn() || choosesSync(timeline)),
      list: waits,
      draw: wait,
    },
    host: {
      path: "/flows",
      chosen: "event",
      wanted: ({ layout, selected }) => layout.flows > 0 && (window.tilescope.read("arrows") !== "off" || selected >= 0),
      list: flows,
      draw: flow,
    },
  };

  const sourceOf = (timeline) => SOURCES[timeline.place.dataset.source];

  /** Fetch the arrows of the window and of what is chosen, unless the last answer has them. */
  async function fetchArrows(timeline) {
    const source = sourceOf(timeline);
    if (!source || timeline.asksArrows || !timeline.layout || !source.wanted(timeline)) return;
    const { view, selected } = timeline;
    const asked = { begin: String(Math.floor(view.begin)), end: String(Math.ceil(view.end)), [source.chosen]: String(selected) };
    const key = timeline.link(source.path, asked);
    if (timeline.arrows && timeline.arrows.key === key && timeline.arrows.layout === timeline.layout) return;
    const { layout } = timeline;
    timeline.asksArrows = true;
    try {
      const response = await window.tilescope.ask(key);
      timeline.arrows = { key, data: response.ok ? await response.json() : null, layout }; // without clocks there are none
    } catch {
      return; // the timeline itself says that the server is gone
    } finally {
      timeline.asksArrows = false;
    }
    timeline.draw();
    fetchArrows(timeline); // what is in view may be another by now
  }

  /** Give the row of the steps of each IPU of the first report. */
  function rowsOfIpus({ lanes }) {
    const first = lanes.find((lane) => /^IPU \d+$/.test(lane.name));
    const own = lanes.filter((lane) => /^IPU \d+$/.test(lane.name) && lane.path.join("/") === first.path.join("/"));
    return new Map(own.map((lane) => [Number(lane.name.slice(4)), lane.overview]));
  }

  /** List the waits that are drawn: rows, times, and whether they are those of the chosen step. */
  function waits(data, { layout, selected }) {
    const rows = rowsOfIpus(layout);
    return data.step.map((step, i) => ({
      row: rows.get(data.ipu[i]), toRow: rows.get(data.for_ipu[i]), begin: data.cycles_from[i], end: data.cycles_to[i],
      chosen: step === selected && step >= 0, shown: isOn(), shortest: SHORTEST,
    }));
  }

  function flows(data) {
    const shown = window.tilescope.read("arrows") !== "off";
    return data.row.map((row, i) => ({
      row, toRow: data.to_row[i], begin: data.begin[i], end: data.end[i], chosen: data.chosen[i] === 1, shown, shortest: 0,
    }));
  }

  /** Draw a wait from where the IPU arrives, along its row, to where the last one does. */
  function wait(context, from, to) {
    const down = Math.sign(to.y - from.y);
    const start = from.y + (down > 0 ? from.high : 0);
    const end = to.y + (down > 0 ? -1 : to.high + 1);
    context.beginPath();
    const low = from.y + from.high - 3; // below the name of the step
    context.moveTo(from.x, low);
    context.lineTo(to.x - 12 > from.x ? to.x - 12 : from.x, low);
    context.bezierCurveTo(to.x, low, to.x, start, to.x, end - down * HEAD);
    context.stroke();
    context.beginPath();
    context.moveTo(to.x, end);
    context.lineTo(to.x - HEAD, end - down * (HEAD + 2));
    context.lineTo(to.x + HEAD, end - down * (HEAD + 2));
    context.fill();
  }

  /** Draw a flow from the lower edge of an event to the begin of the one that it led to. */
  function flow(context, from, to) {
    const down = Math.sign(to.y - from.y) || 1;
    const start = from.y + (down > 0 ? from.high : 0);
    const end = to.y + to.high / 2;
    const bend = Math.min(Math.max(Math.abs(to.x - from.x) / 2, 14), 60);
    context.beginPath();
    context.moveTo(from.x, start);
    context.bezierCurveTo(from.x, start + down * bend, to.x - bend, end, to.x - HEAD, end);
    context.stroke();
    context.beginPath();
    context.moveTo(to.x, end);
    context.lineTo(to.x - HEAD - 2, end - HEAD + 1);
    context.lineTo(to.x - HEAD - 2, end + HEAD - 1);
    context.fill();
  }

  /** Give where each row is shown: of a folded lane its one row stands for all. */
  function shownRows({ placed, layout }) {
    if (placed.shownRows) return placed.shownRows;
    const rows = new Map();
    for (const entry of placed.entries) {
      if (entry.kind !== "row") continue;
      const { first, stop } = layout.lanes[entry.lane];
      if (entry.strip) for (let row = first; row < stop; row += 1) rows.set(row, entry);
      else rows.set(entry.row, entry);
    }
    return (placed.shownRows = rows);
  }

  function drawArrows(context, timeline, from, box) {
    const { arrows, view, colours, layout, selected } = timeline;
    const source = sourceOf(timeline);
    if (!arrows || !arrows.data || arrows.layout !== layout || !source.wanted(timeline)) return;
    const scale = box.width / (view.end - view.begin);
    const rows = shownRows(timeline);
    const at = (row, value) => {
      const entry = rows.get(row);
      return entry && { y: window.tilescope.paint.RULER + entry.top - from, high: entry.height - 1, x: box.left + (value - view.begin) * scale };
    };
    const all = source.list(arrows.data, timeline);
    const anyChosen = all.some((arrow) => arrow.chosen) || (source.chosen === "step" && selected >= 0);
    context.lineWidth = 1.5;
    context.strokeStyle = context.fillStyle = colours.tokens.text;
    for (const arrow of all) {
      const [one, other] = [at(arrow.row, arrow.begin), at(arrow.toRow, arrow.end)];
      const long = (arrow.end - arrow.begin) * scale >= arrow.shortest || !arrow.shortest;
      if (!one || !other || !(arrow.chosen || (arrow.shown && long))) continue;
      if (Math.max(one.y, other.y) < 0 || Math.min(one.y, other.y) > box.height) continue;
      context.globalAlpha = arrow.chosen || !anyChosen ? 0.9 : 0.3;
      source.draw(context, source.chosen === "step" ? { ...one, x: Math.max(one.x, box.left) } : one, other);
    }
    context.globalAlpha = 1;
    context.lineWidth = 1;
  }

  window.tilescope = Object.assign(window.tilescope || {}, { fetchArrows, drawArrows });
})();
