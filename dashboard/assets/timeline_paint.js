// Drawing of the timeline: numbers to pixels and nothing else. timeline.js holds the state.
(function () {
  "use strict";

  const ROW = 22;
  const GAP = 10; // between lanes
  const RULER = 30;
  const GUTTER = 132;
  const MERGED_MINIMUM = 0.75; // pixels: what is narrower is still seen

  /** Where each row stands below the ruler: its top, and the heading of its lane. */
  function layoutRows(rows) {
    const placed = [];
    let top = RULER + 4;
    rows.forEach((row, index) => {
      const first = index === 0 || rows[index - 1].lane !== row.lane;
      if (first && index) top += GAP;
      placed.push({ top, first, lane: row.lane, name: row.name, overview: row.overview });
      top += ROW;
    });
    return { rows: placed, height: top + 6 };
  }

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
    const names = ["text", "quiet", "line", "grid", "surface", "accent", "idle", "raised"];
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
    if (room < 16) return "";
    if (measured(context, whole) <= room) return whole;
    const text = whole.slice(whole.lastIndexOf("/") + 1);
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
    const time = seconds(value / data.clock, value / data.clock);
    if (data.unit === "ns") return time;
    return Math.round(value).toLocaleString("en-US") + " cycles (" + time + ")";
  }

  function drawRuler(context, view, data, box, colours) {
    const span = view.end - view.begin;
    const step = niceStep(span, Math.max(2, box.width / 110));
    context.font = "11px " + colours.font;
    context.textBaseline = "alphabetic";
    context.textAlign = "left";
    const first = Math.ceil(view.begin / step) * step;
    for (let tick = first; tick <= view.end; tick += step) {
      const x = Math.round(box.left + ((tick - view.begin) / span) * box.width) + 0.5;
      context.strokeStyle = colours.tokens.grid;
      context.beginPath();
      context.moveTo(x, 16);
      context.lineTo(x, box.height);
      context.stroke();
      const text = data.unit === "cycles" ? Math.round(tick).toLocaleString("en-US")
        : seconds(tick / data.clock, Math.max(view.end, step) / data.clock, step / data.clock);
      const room = context.measureText(text).width;
      if (x + 4 + room > box.left + box.width) continue;
      context.fillStyle = colours.tokens.quiet;
      context.fillText(text, x + 4, 13);
      if (data.unit !== "cycles") continue;
      context.globalAlpha = 0.75;
      context.fillText(
        seconds(tick / data.clock, view.end / data.clock), x + 4, 26);
      context.globalAlpha = 1;
    }
  }

  function drawNames(context, placed, box, colours) {
    context.fillStyle = colours.tokens.surface;
    context.fillRect(0, 0, box.left - 1, box.height);
    context.textBaseline = "middle";
    for (const row of placed.rows) {
      const middle = row.top + ROW / 2;
      if (row.first) {
        context.textAlign = "left";
        context.font = "600 12px " + colours.font;
        context.fillStyle = colours.tokens.text;
        const room = row.name ? box.left - 60 : box.left - 12;
        context.fillText(elided(context, row.lane, room), 0, middle);
      }
      context.textAlign = "right";
      context.font = "11px " + colours.font;
      context.fillStyle = colours.tokens.quiet;
      context.fillText(row.name, box.left - 8, middle);
    }
    context.textAlign = "left";
  }

  function drawRows(context, view, data, placed, box, colours, selected) {
    const scale = box.width / (view.end - view.begin);
    const right = box.left + box.width;
    context.fillStyle = colours.tokens.idle;
    for (const row of placed.rows) {
      if (row.overview) context.fillRect(box.left, row.top, box.width, ROW - 2);
    }
    context.font = "11px " + colours.font;
    context.textBaseline = "middle";
    for (let i = 0; i < data.n; i += 1) {
      let x = box.left + (data.begin[i] - view.begin) * scale;
      let end = box.left + (data.end[i] - view.begin) * scale;
      if (end < box.left || x > right) continue;
      x = Math.max(x, box.left - 2);
      end = Math.min(end, right + 2);
      const width = Math.max(end - x - (end - x > 3 ? 1 : 0), MERGED_MINIMUM);
      const top = placed.rows[data.row[i]].top;
      const kind = data.colour[i];
      context.fillStyle = colours.fills[kind];
      context.fillRect(x, top, width, ROW - 2);
      if (width > 24 && data.label[i] !== 0xffff) {
        const begin = Math.max(x, box.left);
        context.fillStyle = colours.inks[kind];
        const text = elided(context, data.labels[data.label[i]], Math.min(end, right) - begin - 8);
        if (text) context.fillText(text, begin + 4, top + (ROW - 2) / 2 + 0.5);
      }
      if (data.item[i] === selected && selected >= 0) {
        context.lineWidth = 2;
        context.strokeStyle = colours.tokens.text;
        context.strokeRect(x + 1, top - 1, Math.max(width - 2, 2), ROW);
        context.lineWidth = 1;
      }
    }
  }

  /** Draw ruler, rows and names; `data` is the last answer, `view` what is to be seen of it. */
  function drawMain(canvas, size, view, data, placed, colours, selected) {
    const context = prepare(canvas, size.width, placed.height);
    const box = { left: GUTTER, width: size.width - GUTTER, height: placed.height };
    drawRuler(context, view, data, box, colours);
    context.save();
    context.beginPath();
    context.rect(box.left, 0, box.width, box.height);
    context.clip();
    drawRows(context, view, data, placed, box, colours, selected);
    context.restore();
    drawNames(context, placed, box, colours);
  }

  /** Draw the strip above: the whole timeline, with the part in view left clear. */
  function drawOverview(canvas, size, view, data, colours) {
    const height = 44;
    const context = prepare(canvas, size.width, height);
    const [begin, end] = data.extent;
    const scale = (size.width - GUTTER) / (end - begin);
    const rows = data.rows.map((row, index) => (row.overview ? index : -1)).filter((i) => i >= 0);
    const shown = rows.slice(0, 12);
    const high = (height - 8) / Math.max(shown.length, 1);
    context.fillStyle = colours.tokens.idle;
    context.fillRect(GUTTER, 4, size.width - GUTTER, height - 8);
    for (let i = 0; i < data.n; i += 1) {
      const place = shown.indexOf(data.row[i]);
      if (place < 0) continue;
      const x = GUTTER + (data.begin[i] - begin) * scale;
      const width = Math.max((data.end[i] - data.begin[i]) * scale, MERGED_MINIMUM);
      context.fillStyle = colours.fills[data.colour[i]];
      context.fillRect(x, 4 + place * high, width, Math.max(high - 1, 1));
    }
    const from = GUTTER + (Math.max(view.begin, begin) - begin) * scale;
    const to = GUTTER + (Math.min(view.end, end) - begin) * scale;
    context.fillStyle = colours.tokens.surface;
    context.globalAlpha = 0.68;
    context.fillRect(GUTTER, 4, Math.max(from - GUTTER, 0), height - 8);
    context.fillRect(to, 4, Math.max(size.width - to, 0), height - 8);
    context.globalAlpha = 1;
    context.strokeStyle = colours.tokens.accent;
    context.lineWidth = 1.5;
    context.strokeRect(from + 0.75, 3.5, Math.max(to - from - 1.5, 2), height - 7);
    context.lineWidth = 1;
    context.fillStyle = colours.tokens.quiet;
    context.font = "11px " + colours.font;
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillText("Overview", 0, height / 2);
  }

  window.tilescope = Object.assign(window.tilescope || {}, {
    paint: { GUTTER, ROW, layoutRows, palette, drawMain, drawOverview, amount },
  });
})();
