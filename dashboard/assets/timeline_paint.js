// Drawing of the timeline: numbers to pixels and nothing else. timeline.js holds the state.
(function () {
  "use strict";

  const ROW = 20;
  const RULER = 30;
  const GUTTER = 176;
  const STRIP_HEIGHT = 44;
  const MINIMUM = 0.75; // pixels: what is narrower is still seen
  const NO_LABEL = 0xffff;

  /** Read a colour token from the style sheet. */
  function colour(element, token) {
    return getComputedStyle(element).getPropertyValue("--" + token).trim() || "#888888";
  }

  /** Tell whether black or white text stands out on a colour. */
  function inkOn(fill) {
    const parts = fill.match(/^#(..)(..)(..)$/);
    if (!parts) return "#1d232b";
    const [r, g, b] = parts.slice(1).map((part) => parseInt(part, 16));
    return 0.299 * r + 0.587 * g + 0.114 * b > 125 ? "#1d232b" : "#ffffff";
  }

  function palette(element, colours) {
    const fills = colours.map((entry) => colour(element, entry.token));
    const names = ["text", "quiet", "line", "grid", "surface", "accent", "accent-soft", "idle", "raised"];
    const tokens = Object.fromEntries(names.map((name) => [name, colour(element, name)]));
    return { fills, inks: fills.map(inkOn), tokens, font: colour(element, "font") };
  }

  /** Make the canvas fit its box in device pixels; give a context in CSS pixels. */
  function prepare(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    const wide = Math.round(width * ratio);
    const high = Math.round(height * ratio);
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
      canvas.style.height = height + "px";
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
  }

  const widths = new Map();

  function measured(context, text) {
    const key = context.font + "\u0000" + text;
    if (widths.size > 20000) widths.clear();
    if (!widths.has(key)) widths.set(key, context.measureText(text).width);
    return widths.get(key);
  }

  /** Fit a label: whole, or the part after the last slash, or without its middle; else "". */
  function elided(context, whole, room) {
    if (measured(context, whole) <= room) return shortened(context, whole, room);
    return shortened(context, whole.slice(whole.lastIndexOf("/") + 1), room);
  }

  /** Fit a text: whole, or without its middle; else "". */
  function shortened(context, text, room) {
    if (room < 16) return "";
    const full = measured(context, text);
    if (full <= room) return text;
    const letters = Math.floor((text.length * (room - measured(context, "…"))) / full) - 1;
    if (letters < 2) return "";
    const head = Math.ceil(letters / 2);
    return text.slice(0, head) + "…" + text.slice(text.length - (letters - head));
  }

  function niceStep(span, ticks) {
    const rough = Math.max(span / ticks, 1e-9);
    const power = Math.pow(10, Math.floor(Math.log10(rough)));
    const nice = [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
    return Math.max(nice * power, 1);
  }

  const STEPS = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]];

  /** Write seconds in the unit that suits `scale`, with the digits that `step` needs. */
  function seconds(value, scale, step) {
    const [size, unit] = STEPS.find((pair) => Math.abs(scale) >= pair[0]) || STEPS[3];
    const digits = step ? Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9)) : 3;
    return (value / size).toLocaleString("en-US", {
      minimumFractionDigits: step ? Math.min(digits, 9) : 0,
      maximumFractionDigits: Math.min(digits, 9),
    }) + " " + unit;
  }

  /** Write a place or a length of the timeline in its unit. */
  function amount(value, data) {
    if (!data.clock) return Math.round(value).toLocaleString("en-US") + " cycles"; // of several clocks
    const time = seconds(value / data.clock, value / data.clock);
    if (data.unit === "ns") return time;
    return Math.round(value).toLocaleString("en-US") + " cycles (" + time + ")";
  }

  /** Give unit and clock of the lane that a rectangle stands in. */
  function clocked({ layout, data }, i) {
    if (layout.clock) return layout;
    const [row] = [...data.places].find(([, [first, stop]]) => first <= i && i < stop);
    const lane = layout.lanes.find((each) => each.first <= row && row < each.stop);
    return { unit: layout.unit, clock: lane.clock };
  }

  /** Write a moment of the wall clock, with the digits that `step` seconds need. */
  function wallClock(nanoseconds, layout, step) {
    const milliseconds = layout.wall_ms + nanoseconds / 1e6;
    const date = new Date(Math.floor(milliseconds / 1000) * 1000);
    const fraction = milliseconds / 1000 - Math.floor(milliseconds / 1000);
    const digits = Math.min(Math.max(0, Math.ceil(-Math.log10(step) - 1e-9)), 7);
    return date.toISOString().slice(11, 19) + (digits ? fraction.toFixed(digits).slice(1) : "");
  }

  function tickText(tick, timeline, step) {
    const { layout, state, view } = timeline;
    if (layout.unit === "cycles") return Math.round(tick).toLocaleString("en-US");
    if (state.absolute && layout.wall_ms) return wallClock(tick, layout, step / layout.clock);
    return seconds(tick / layout.clock, Math.max(view.end, step) / layout.clock, step / layout.clock);
  }

  function drawRuler(context, timeline, box, top) {
    const { view, layout, colours } = timeline;
    const span = view.end - view.begin;
    const step = niceStep(span, Math.max(2, box.width / 120));
    context.font = "11px " + colours.font;
    context.textBaseline = "alphabetic";
    context.textAlign = "left";
    for (let tick = Math.ceil(view.begin / step) * step; tick <= view.end; tick += step) {
      const x = Math.round(box.left + ((tick - view.begin) / span) * box.width) + 0.5;
      context.fillStyle = colours.tokens.grid;
      context.fillRect(x, top ? 16 : RULER, 1, box.height - (top ? 16 : RULER));
      if (!top) continue;
      const text = tickText(tick, timeline, step);
      if (x + 4 + context.measureText(text).width > box.left + box.width) continue;
      context.fillStyle = colours.tokens.quiet;
      context.fillText(text, x + 4, 13);
      if (layout.unit === "cycles" && layout.clock) context.fillText(seconds(tick / layout.clock, view.end / layout.clock), x + 4, 26);
    }
  }

  const fold = (entry) => (entry.folded ? "▸" : "▾");

  /** Draw names at the left: lanes, rows, and heads of files and processes, which have all the width. */
  function drawName(context, entry, y, colours, width) {
    const middle = y + (entry.kind === "head" ? entry.height : Math.min(entry.height, ROW)) / 2;
    context.textBaseline = "middle";
    context.textAlign = "left";
    const indent = 10 * (entry.level || 0);
    if (entry.kind === "head" || entry.first) {
      const strong = entry.kind === "head" || !entry.name;
      context.font = (strong ? "600 " : "") + (entry.strip ? 10 : 12) + "px " + colours.font;
      context.fillStyle = entry.kind === "head" ? colours.tokens.quiet : colours.tokens.text;
      const sign = entry.plain || (entry.kind === "row" && !entry.foldable) ? "" : fold(entry) + " ";
      const name = entry.kind === "row" ? entry.laneName : entry.name;
      const room = (entry.kind === "head" ? width : GUTTER) - indent - 34 - (entry.kind === "row" && entry.name ? 46 : 0);
      context.fillText(sign + (shortened(context, name, room - 12) || name.slice(0, 3)), indent, middle);
    }
    if (entry.kind !== "row") return;
    context.textAlign = "right";
    context.font = "11px " + colours.font;
    context.fillStyle = colours.tokens.quiet;
    if (entry.name && !entry.strip) context.fillText(elided(context, entry.name, 92), GUTTER - 20, middle);
    if (entry.first) {
      context.fillStyle = entry.pinned ? colours.tokens.accent : colours.tokens.line;
      context.beginPath();
      context.arc(GUTTER - 10, middle, entry.pinned ? 4 : 3, 0, 7);
      context.fill();
    }
    context.textAlign = "left";
  }

  /** Draw the rectangles of a row; many together are the paler the more time lies between them. */
  function drawRow(context, timeline, entry, y, box) {
    const { data, view, colours, state } = timeline;
    const place = data.places.get(entry.row);
    const high = entry.height - 2;
    if (entry.rowKind === "flag") return drawFlags(context, timeline, place, y, box);
    if (entry.overview || entry.strip) {
      context.fillStyle = colours.tokens.idle;
      context.fillRect(box.left, y, box.width, high);
    }
    if (!place) return;
    const scale = box.width / (view.end - view.begin);
    const right = box.left + box.width;
    context.font = "11px " + colours.font;
    context.textBaseline = "middle";
    for (let i = place[0]; i < place[1]; i += 1) {
      let x = box.left + (data.begin[i] - view.begin) * scale;
      let end = x + data.length[i] * scale;
      if (end < box.left || x > right) continue;
      const kind = data.colour[i];
      if (state.hidden.has(timeline.layout.colours[kind].words)) continue;
      x = Math.max(x, box.left - 2);
      end = Math.min(end, right + 2);
      const width = Math.max(end - x - (end - x > 3 ? 1 : 0), MINIMUM);
      context.fillStyle = colours.fills[kind];
      const thin = data.count[i] > 1 && data.length[i] > 0;
      if (thin) context.globalAlpha = 0.35 + 0.65 * Math.min(data.time[i] / data.length[i], 1);
      context.fillRect(x, y, width, high);
      if (thin) context.globalAlpha = 1;
      if (width > 24 && !entry.strip && data.count[i] === 1 && data.label[i] !== NO_LABEL) {
        const begin = Math.max(x, box.left);
        context.fillStyle = colours.inks[kind];
        const text = elided(context, data.labels[data.label[i]], Math.min(end, right) - begin - 8);
        if (text) context.fillText(text, begin + 4, y + high / 2 + 0.5);
      }
      if (data.item[i] === timeline.selected && timeline.selected >= 0) outline(context, x, y, width, high, colours.tokens.text);
    }
  }

  function outline(context, x, y, width, high, colour_) {
    context.lineWidth = 2;
    context.strokeStyle = colour_;
    context.strokeRect(x + 1, y - 1, Math.max(width - 2, 2), high + 2);
    context.lineWidth = 1;
  }

  /** Draw events without a duration as flags. */
  function drawFlags(context, timeline, place, y, box) {
    const { data, view, colours } = timeline;
    if (!place) return;
    const scale = box.width / (view.end - view.begin);
    for (let i = place[0]; i < place[1]; i += 1) {
      const x = box.left + (data.begin[i] - view.begin) * scale;
      if (x < box.left - 6 || x > box.left + box.width + 6) continue;
      context.fillStyle = data.item[i] === timeline.selected && timeline.selected >= 0 ? colours.tokens.accent : colours.fills[data.colour[i]];
      context.fillRect(x - 0.5, y + 6, 1, ROW - 6);
      context.beginPath();
      context.arc(x, y + 6, data.count[i] > 1 ? 6 : 5, 0, 7);
      context.fill();
    }
  }

  const UNSEARCHED = new Set(["run", "layer", "derived"]);

  /** Work out once an answer which of its labels hold the text, and which matches it does not show alone. */
  function matched({ data, hits, searched }) {
    if (data.hits === hits) return data;
    const text = searched.toLowerCase();
    const alone = new Set(data.item.filter((item, i) => item >= 0 && data.count[i] === 1));
    const others = Array.from(hits.row, (_, i) => i).filter((i) => !alone.has(hits.item[i]));
    return Object.assign(data, { hits, others, matching: data.labels.map((label) => label.toLowerCase().includes(text)) });
  }

  /** Frame what was found by a search, never thinner than a few pixels. */
  function drawHits(context, timeline, tops, box) {
    const { hits, data, view, colours, layout, state } = timeline;
    if (!hits || !data) return 0;
    const scale = box.width / (view.end - view.begin);
    let drawn = 0;
    context.strokeStyle = colours.tokens.accent;
    context.lineWidth = 1.5;
    const frame = (place, begin, length) => {
      const x = box.left + (begin - view.begin) * scale;
      const width = Math.max(length * scale, 4);
      if (x + width < box.left || x > box.left + box.width) return;
      context.strokeRect(x, place.y - 0.5, width, place.high);
      drawn += 1;
    };
    // Of very many the server tells some, spread over all; those that stand alone here are known.
    const { matching, others } = matched(timeline);
    for (const [row, place] of tops) {
      const [first, stop] = (!UNSEARCHED.has(place.kind) && data.places.get(row)) || [0, 0];
      for (let i = first; i < stop; i += 1) {
        if (data.count[i] > 1 || !matching[data.label[i]] || state.hidden.has(layout.colours[data.colour[i]].words)) continue;
        frame(place, data.begin[i], data.length[i]);
      }
    }
    for (const i of others) {
      const place = tops.get(hits.row[i]);
      if (place) frame(place, hits.begin[i], hits.length[i]);
    }
    context.lineWidth = 1;
    return drawn;
  }

  /** Draw the chosen range and the marks over all rows. */
  function drawOver(context, timeline, box) {
    const { state, view, colours } = timeline;
    const scale = box.width / (view.end - view.begin);
    const at = (value) => box.left + (value - view.begin) * scale;
    const chosen = timeline.choosing || state.chosen;
    if (chosen) {
      context.fillStyle = colours.tokens.accent;
      context.globalAlpha = 0.13;
      context.fillRect(at(chosen.begin), 0, at(chosen.end) - at(chosen.begin), box.height);
      context.globalAlpha = 1;
      for (const edge of [chosen.begin, chosen.end]) context.fillRect(at(edge) - 0.5, 0, 1, box.height);
    }
    state.marks.forEach((mark, index) => {
      const x = at(mark);
      context.fillStyle = colours.tokens.accent;
      context.fillRect(x - 0.5, 0, 1.5, box.height);
      context.font = "600 10px " + colours.font;
      context.textBaseline = "alphabetic";
      context.fillText(String(index + 1), x + 3, RULER - 1);
    });
  }

  /** Draw ruler, rows and names into a context. */
  function drawInto(context, timeline, width, height, from) {
    const { colours } = timeline;
    const box = { left: GUTTER, width: width - GUTTER, height };
    const seen = window.tilescope.rows.between(timeline.placed.entries, from, from + height - RULER);
    const entries = timeline.placed.entries.slice(...seen);
    const tops = new Map();
    drawRuler(context, timeline, box, false);
    context.save();
    context.beginPath();
    context.rect(box.left, RULER, box.width, height - RULER);
    context.clip();
    for (const entry of entries) {
      const y = RULER + entry.top - from;
      if (entry.kind === "row" && timeline.data) drawRow(context, timeline, entry, y, box);
      if (entry.kind === "row") tops.set(entry.row, { y, high: entry.height - 1, kind: entry.rowKind });
      if (entry.kind === "chart") window.tilescope.drawChart(context, timeline, entry, y, box);
    }
    window.tilescope.drawArrows(context, timeline, from, box);
    const framed = drawHits(context, timeline, tops, box);
    context.restore();
    context.save();
    context.beginPath();
    context.rect(box.left, 0, box.width, height);
    context.clip();
    drawOver(context, timeline, box);
    context.restore();
    context.save();
    context.beginPath();
    context.rect(0, RULER, width, height - RULER);
    context.clip();
    for (const entry of entries) {
      const y = RULER + entry.top - from;
      drawName(context, entry, y, colours, width);
      if (entry.kind === "chart") window.tilescope.nameChart(context, timeline, entry, y);
    }
    context.restore();
    context.fillStyle = colours.tokens.surface;
    context.fillRect(0, 0, width, 15);
    drawRuler(context, timeline, { ...box, height: RULER }, true);
    return framed;
  }

  function drawMain(timeline) {
    const { width, tall } = { width: timeline.width(), tall: timeline.tall };
    const context = prepare(timeline.canvas, width, tall);
    timeline.framed = drawInto(context, timeline, width, tall, timeline.scroller.scrollTop);
  }

  /** Draw the strip above: the whole timeline, with the part in view left clear. */
  function drawOverview(timeline) {
    const { view, colours, layout, strip_ } = timeline;
    const width = timeline.width();
    const context = prepare(timeline.strip, width, STRIP_HEIGHT);
    const [begin, end] = layout.extent;
    const scale = (width - GUTTER) / (end - begin);
    const inner = STRIP_HEIGHT - 8;
    context.fillStyle = colours.tokens.idle;
    context.fillRect(GUTTER, 4, width - GUTTER, inner);
    if (strip_) drawStrip(context, timeline, scale, inner);
    const from = GUTTER + (Math.max(view.begin, begin) - begin) * scale;
    const to = GUTTER + (Math.min(view.end, end) - begin) * scale;
    context.fillStyle = colours.tokens.surface;
    context.globalAlpha = 0.68;
    context.fillRect(GUTTER, 4, Math.max(from - GUTTER, 0), inner);
    context.fillRect(to, 4, Math.max(width - to, 0), inner);
    context.globalAlpha = 1;
    context.fillStyle = colours.tokens.accent;
    for (const mark of timeline.state.marks) context.fillRect(GUTTER + (mark - begin) * scale, 2, 1.5, STRIP_HEIGHT - 4);
    const hits = timeline.hits ? timeline.hits.begin : [];
    for (let i = 0; i < hits.length; i += 1) context.fillRect(GUTTER + (hits[i] - begin) * scale, STRIP_HEIGHT - 4, 1, 4);
    context.strokeStyle = colours.tokens.accent;
    context.lineWidth = 1.5;
    context.strokeRect(from + 0.75, 3.5, Math.max(to - from - 1.5, 2), inner + 1);
    context.lineWidth = 1;
    for (const x of [from, to]) context.fillRect(x - 2.5, STRIP_HEIGHT / 2 - 8, 5, 16);
  }

  function drawStrip(context, timeline, scale, inner) {
    const { strip_, colours, layout } = timeline;
    const high = inner / Math.max(strip_.rows.length, 1);
    strip_.rows.forEach((row, at) => {
      const [first, stop] = strip_.places.get(row);
      for (let i = first; i < stop; i += 1) {
        context.fillStyle = colours.fills[strip_.colour[i]];
        const x = GUTTER + (strip_.begin[i] - layout.extent[0]) * scale;
        context.fillRect(x, 4 + at * high, Math.max(strip_.length[i] * scale, MINIMUM), Math.max(high - (high > 3 ? 1 : 0), 1));
      }
    });
  }

  window.tilescope = Object.assign(window.tilescope || {}, {
    paint: { GUTTER, ROW, RULER, NO_LABEL, palette, elided, seconds, niceStep, drawMain, drawInto, drawOverview, amount, clocked, wallClock },
  });
})();
