// Arrows of a device timeline: from the steps of an IPU that waits to those of the one that arrives last.
(function () {
  "use strict";

  const HEAD = 5; // pixels of the point of an arrow
  const SHORTEST = 3; // pixels of a wait that has an arrow

  /** Tell whether the chosen step is a sync. */
  function choosesSync({ data, layout, selected }) {
    const i = data && selected >= 0 ? data.item.indexOf(selected) : -1;
    return i >= 0 && layout.colours[data.colour[i]].words === "Sync";
  }

  const wanted = (timeline) => timeline.place.dataset.source === "device" && timeline.layout.lanes.length > 1 &&
    (window.tilescope.read("arrows") === "on" || choosesSync(timeline));

  /** Fetch the waits of the window and of the chosen sync, unless the last answer has them. */
  async function fetchWaits(timeline) {
    if (timeline.asksWaits || !timeline.layout || !wanted(timeline)) return;
    const { view, selected } = timeline;
    const asked = { begin: String(Math.floor(view.begin)), end: String(Math.ceil(view.end)), step: String(selected) };
    const key = timeline.link("/waits", asked);
    if (timeline.waits && timeline.waits.key === key && timeline.waits.layout === timeline.layout) return;
    const { layout } = timeline;
    timeline.asksWaits = true;
    try {
      const response = await window.tilescope.ask(key);
      const data = response.ok ? await response.json() : { step: [] }; // without clocks there are none
      timeline.waits = { key, data, layout };
    } catch {
      return; // the timeline itself says that the server is gone
    } finally {
      timeline.asksWaits = false;
    }
    timeline.draw();
    fetchWaits(timeline); // what is in view may be another by now
  }

  /** Give the row of the steps of each IPU of the first report. */
  function rowsOfIpus({ lanes }) {
    const first = lanes.find((lane) => /^IPU \d+$/.test(lane.name));
    const own = lanes.filter((lane) => /^IPU \d+$/.test(lane.name) && lane.path.join("/") === first.path.join("/"));
    return new Map(own.map((lane) => [Number(lane.name.slice(4)), lane.overview]));
  }

  /** Draw a wait from where the IPU arrives, along its row, to where the last one does. */
  function arrow(context, from, to) {
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

  function drawWaits(context, timeline, tops, box) {
    const { waits, view, colours, layout } = timeline;
    if (!waits || waits.layout !== layout || !wanted(timeline)) return;
    const { data } = waits;
    const all = window.tilescope.read("arrows") === "on";
    const rows = rowsOfIpus(layout);
    const scale = box.width / (view.end - view.begin);
    const at = (value) => box.left + (value - view.begin) * scale;
    context.lineWidth = 1.5;
    context.strokeStyle = context.fillStyle = colours.tokens.text;
    data.step.forEach((step, i) => {
      const mine = step === timeline.selected && step >= 0;
      const [from, to] = [tops.get(rows.get(data.ipu[i])), tops.get(rows.get(data.for_ipu[i]))];
      const long = (data.cycles_to[i] - data.cycles_from[i]) * scale >= SHORTEST;
      if (!from || !to || !(mine || (all && long))) return;
      context.globalAlpha = mine || timeline.selected < 0 ? 0.9 : 0.3;
      arrow(context, { ...from, x: Math.max(at(data.cycles_from[i]), box.left) }, { ...to, x: at(data.cycles_to[i]) });
    });
    context.globalAlpha = 1;
    context.lineWidth = 1;
  }

  window.tilescope = Object.assign(window.tilescope || {}, { fetchWaits, drawWaits });
})();
