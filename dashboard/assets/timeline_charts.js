// Line graphs and heat maps of a host trace, as rows of the timeline.
(function () {
  "use strict";

  const PAD = 8; // pixels above and below the values
  const HUES = 26; // series colours of the style sheet

  const open = (timeline) => (timeline.layout.charts || []).some((chart) => !timeline.state.folded.has(chart.key));

  /** Fetch the charts of the window, when there are any and the last answer does not hold it. */
  async function fetchCharts(timeline) {
    if (!open(timeline)) return;
    const { view, charts } = timeline;
    const span = view.end - view.begin;
    const has = charts && charts.begin <= view.begin && view.end <= charts.end && charts.end - charts.begin <= 2.5 * span;
    if (has && charts.layout === timeline.layout) return;
    const begin = view.begin - span / 2;
    const end = view.end + span / 2;
    const data = await (await timeline.get("/charts", { begin: String(Math.floor(begin)), end: String(Math.ceil(end)) })).json();
    timeline.charts = { begin, end, data, layout: timeline.layout };
  }

  function hue(timeline, number) {
    return getComputedStyle(timeline.place).getPropertyValue(`--series-${number % HUES}`).trim() || "#888888";
  }

  /** Give the lowest and highest value of some series in view; without any the first is higher. */
  function reach(series, view) {
    let low = Infinity;
    let high = -Infinity;
    for (const line of series) line.value.forEach((value, i) => {
      const until = i + 1 === line.time.length ? line.end : line.time[i + 1];
      const seen = line.time[i] < view.end && until > view.begin;
      if (value === null || !seen) return;
      low = Math.min(low, value);
      high = Math.max(high, value);
    });
    return [low, high];
  }

  /** Give the values at the lower and the upper edge of a graph. */
  function extremes(series, view) {
    const [low, high] = reach(series, view);
    return low < high ? [low, high] : low === high ? [low - 1, high + 1] : [0, 1];
  }

  const text = (value) => value.toLocaleString("en-US", { maximumSignificantDigits: 4 });

  /** Write a value at the edge of a graph, where there is room for few digits. */
  const LARGE = [[1e18, ""], [1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"]];
  function brief(value) {
    const [unit, letter] = LARGE.find(([least]) => Math.abs(value) >= least) || [1, ""];
    return unit === 1e18 ? value.toExponential(2) : text(value / unit) + letter;
  }

  function drawChart(context, timeline, entry, y, box) {
    const found = timeline.charts && timeline.charts.data[entry.key];
    if (!found || entry.folded) return;
    if (entry.chart.kind === "heat") return drawHeat(context, timeline, entry, found, y, box);
    const [low, high] = extremes(found, timeline.view);
    const { view, colours } = timeline;
    const top = y + above(entry);
    const inner = y + entry.height - PAD - top;
    const at = (value) => top + inner * (1 - (value - low) / (high - low));
    const x = (time) => box.left + ((time - view.begin) / (view.end - view.begin)) * box.width;
    context.fillStyle = colours.tokens.grid;
    for (const share of [0, 0.5, 1]) context.fillRect(box.left, Math.round(top + inner * share), box.width, 1);
    const area = window.tilescope.read("lines") === "area";
    found.forEach((line, number) => drawLine(context, line, hue(timeline, number), { x, at, right: Math.min(box.left + box.width, x(line.end)), bottom: top + inner, area }));
    if (timeline.pointer !== undefined) {
      context.fillStyle = colours.tokens.quiet;
      context.fillRect(Math.round(x(timeline.pointer)), top, 1, inner);
    }
    if (entry.legend) drawLegend(context, timeline, entry, found, y, box);
  }

  /** Name the series of a graph above it, with colour, unit and the value at the pointer. */
  function drawLegend(context, timeline, entry, found, y, box) {
    const { colours, pointer } = timeline;
    const { rows, paint } = window.tilescope;
    const [across, unit] = [rows.across(), entry.chart.unit];
    const each = box.width / across;
    const room = across * entry.legend;
    const named = found.length > room ? found.slice(0, room - 1) : found;
    context.textBaseline = "middle";
    context.font = "11px " + colours.font;
    const at = (number) => [box.left + (number % across) * each, y + 6 + rows.LEGEND * (Math.floor(number / across) + 0.5)];
    named.forEach((line, number) => {
      const [x, middle] = at(number);
      context.fillStyle = hue(timeline, number);
      context.fillRect(x + 4, middle - 5, 9, 9);
      const last = valueAt(line, pointer);
      const told = pointer === undefined ? unit : last === null ? "–" : `${text(last)} ${unit}`;
      const name = paint.elided(context, line.name, each - 30 - context.measureText(told).width);
      context.fillStyle = colours.tokens.text;
      context.fillText(name, x + 18, middle);
      context.fillStyle = colours.tokens.quiet;
      context.fillText(told, x + 18 + context.measureText(name).width + 6, middle);
    });
    if (named.length === found.length) return;
    context.fillStyle = colours.tokens.quiet;
    context.fillText(`and ${found.length - named.length} more`, at(named.length)[0] + 4, at(named.length)[1]);
  }

  /** Give what a series was last at a time; null before its first value and after its file. */
  function valueAt(line, time) {
    if (time >= line.end) return null;
    let last = -1;
    for (let i = 0; i < line.time.length && line.time[i] <= time; i += 1) last = i;
    return last < 0 ? null : line.value[last];
  }

  /** Tell whether a graph with a legend is shown. */
  const hasLegend = ({ layout, placed }) => Boolean(layout && placed && (layout.charts || []).length && placed.entries.some((entry) => entry.legend));

  /** Give where the values of a chart begin, below its legend. */
  const above = (entry) => PAD + (entry.legend || 0) * window.tilescope.rows.LEGEND;

  /** Draw a line in steps: a value holds until the next. */
  function drawLine(context, line, colour, { x, at, right, bottom, area }) {
    const points = line.time.map((time, i) => [x(time), line.value[i]]).filter((point) => point[1] !== null);
    if (!points.length) return;
    const path = () => {
      context.beginPath();
      context.moveTo(points[0][0], at(points[0][1]));
      points.forEach(([place, value], i) => {
        if (i) context.lineTo(place, at(points[i - 1][1]));
        context.lineTo(place, at(value));
      });
      context.lineTo(Math.max(right, points[points.length - 1][0]), at(points[points.length - 1][1]));
    };
    path();
    context.strokeStyle = colour;
    context.lineWidth = 1.5;
    context.stroke();
    context.lineWidth = 1;
    if (!area) return;
    path();
    context.lineTo(Math.max(right, points[points.length - 1][0]), bottom);
    context.lineTo(points[0][0], bottom);
    context.closePath();
    context.fillStyle = colour;
    context.globalAlpha = 0.22;
    context.fill();
    context.globalAlpha = 1;
  }

  /** Draw a histogram over time: the stronger the larger the share, by powers of ten. */
  function drawHeat(context, timeline, entry, found, y, box) {
    const { view, colours, layout } = timeline;
    const number = layout.charts.filter((chart) => chart.kind === "heat").findIndex((chart) => chart.key === entry.key);
    const fill = hue(timeline, number);
    const x = (time) => box.left + ((time - view.begin) / (view.end - view.begin)) * box.width;
    const bins = entry.chart.edges.length - 1;
    const high = (entry.height - 2 * PAD) / bins;
    found.begin.forEach((begin, column) => {
      const left = x(begin);
      const width = Math.max(x(found.end[column]) - left, 1);
      context.fillStyle = colours.tokens.raised;
      context.fillRect(left, y + PAD, width, high * bins);
      context.fillStyle = fill;
      found.level[column].forEach((level, bin) => {
        if (!level) return;
        context.globalAlpha = level / 255;
        context.fillRect(left, y + PAD + (bins - 1 - bin) * high, width, high + 0.4);
      });
      context.globalAlpha = 1;
    });
  }

  const RAISED = { "-": "⁻", ".": "·", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };

  /** Write an edge of a bin; of a unit such as 2^x as the power that it is. */
  function edge(value, unit) {
    if (value === null) return "∞";
    const base = unit.match(/^(.+)\^x$/);
    return base ? base[1] + [...String(value)].map((letter) => RAISED[letter] || letter).join("") : text(value);
  }

  /** Write the scale of a chart beside its name. */
  function nameChart(context, timeline, entry, y) {
    const found = timeline.charts && timeline.charts.data[entry.key];
    if (!found || entry.folded) return;
    const { GUTTER } = window.tilescope.paint;
    const heat = entry.chart.kind === "heat";
    const [low, high] = (heat ? [entry.chart.edges[0], entry.chart.edges[entry.chart.edges.length - 1]] : extremes(found, timeline.view))
      .map((value) => (heat ? edge(value, entry.chart.unit) : brief(value)));
    context.font = "11px " + timeline.colours.font;
    context.fillStyle = timeline.colours.tokens.quiet;
    context.textBaseline = "middle";
    context.textAlign = "right";
    context.fillText(high, GUTTER - 8, y + above(entry) + (entry.legend ? 4 : 16)); // not on its name
    context.fillText(low, GUTTER - 8, y + entry.height - PAD - 4);
    context.textAlign = "left";
    context.fillText(heat ? "share 10⁻⁴ to 1" : entry.chart.unit, 12, y + 30);
  }

  /** Say which share of the samples a bin of a heat map has at a place. */
  function heatValues(entry, found, value, down) {
    const { edges, unit, name } = entry.chart;
    const bins = edges.length - 1;
    const bin = Math.min(Math.max(Math.floor((1 - (down - PAD) / (entry.height - 2 * PAD)) * bins), 0), bins - 1);
    const column = found.begin.findIndex((begin, at) => begin <= value && value < found.end[at]);
    const level = column < 0 ? 0 : found.level[column][bin];
    const share = level ? 100 * Math.pow(10, (level - 16) / 59.75 - 4) : 0;
    const words = column < 0 ? "nothing was recorded" : level ? `${text(Number(share.toPrecision(2)))} % of the samples` : "no sample";
    return [name, `${edge(edges[bin], unit)} to ${edge(edges[bin + 1], unit)}: ${words}`];
  }

  /** Give the lines of the tool-tip over a chart, `down` pixels below its top. */
  function chartValues(timeline, entry, value, down) {
    const found = timeline.charts && timeline.charts.data[entry.key];
    if (!found || entry.folded) return [];
    if (entry.chart.kind === "heat") return heatValues(entry, found, value, down);
    const lines = found.map((line) => {
      const last = valueAt(line, value);
      return last === null ? `${line.name}: –` : `${line.name}: ${text(last)} ${entry.chart.unit}`;
    });
    return [entry.name, ...lines];
  }

  /** Give the lines of a graph in the table of what is in view. */
  function chartLines(timeline, entry) {
    const found = timeline.charts && timeline.charts.data[entry.key];
    if (!found || entry.folded || entry.chart.kind === "heat") return [];
    return found.map((line) => {
      const [low, high] = reach([line], timeline.view);
      const words = low <= high ? `${text(low)} to ${text(high)} ${entry.chart.unit}` : "no value";
      return [entry.name, line.name, "Line graph", "", "", words];
    });
  }

  window.tilescope = Object.assign(window.tilescope || {}, { fetchCharts, drawChart, nameChart, chartValues, chartLines, hasLegend });
})();
