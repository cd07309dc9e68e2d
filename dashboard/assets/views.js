// What a view shows follows its part of the address; what is picked on a plot goes into the address.
(function () {
  "use strict";

  const { go, read } = window.tilescope;
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

  /** Tell each view its part of the address, once the page that holds it is the one shown. */
  function follow(pathname, search, theme, stamped, shown, views) {
    const none = window.dash_clientside.no_update;
    const asked = new URLSearchParams(search || "");
    const ready = shown && shown.path === pathname && shown.asked === (asked.get("report") || "");
    return views.map((view) => {
      if (!ready || !view || view.fixed || view.path !== pathname) return none;
      const part = new URLSearchParams();
      for (const key of view.keys) if (asked.get(key)) part.set(key, asked.get(key));
      const next = Object.assign({}, view, { search: part.toString(), stamp: shown.stamp });
      if (view.themed) next.theme = theme;
      return same(next, view) ? none : next;
    });
  }

  // Picking: numbers chosen by click, Shift-click, dragging and arrow keys.

  function ranges(key) {
    return (read(key) || "")
      .split(",")
      .map((part) => part.trim().match(/^(\d+)(?:-(\d+))?$/))
      .filter(Boolean)
      .map((found) => [Number(found[1]), Number(found[2] === undefined ? found[1] : found[2])]);
  }

  function numberAt(plot, point) {
    const order = plot.layout.meta && plot.layout.meta.picks;
    if (point.data && point.data.meta === "numbers") return point.customdata;
    const x = Math.round(point.x);
    return order ? order[x] : x;
  }

  function picked(plot, key, number, add) {
    if (number === undefined || number === null) return;
    const text = String(number);
    const now = (read(key) || "").split(",").filter(Boolean);
    if (!add) return go({ [key]: text });
    go({ [key]: (now.includes(text) ? now.filter((one) => one !== text) : [...now, text]).join(",") });
  }

  function dragged(plot, key, range, add) {
    const last = Math.floor(plot.layout.xaxis.maxallowed ?? Infinity);
    const [low, high] = range.map(Number).sort((a, b) => a - b);
    const begin = Math.max(Math.ceil(low), 0);
    const end = Math.min(Math.floor(high), last);
    if (begin > end) return;
    const order = plot.layout.meta && plot.layout.meta.picks;
    const text = order ? order.slice(begin, end + 1).join(",") : begin === end ? `${begin}` : `${begin}-${end}`;
    go({ [key]: add && read(key) ? `${read(key)},${text}` : text });
  }

  const MOST_MARKED = 400;

  /** Where along x the chosen numbers are drawn. */
  function placesOf(order, key) {
    const box = (a, b) => ({ x0: a - 0.5, x1: b + 0.5 });
    if (!order) return ranges(key).map(([a, b]) => box(a, b));
    const texts = new Set((read(key) || "").split(","));
    if (typeof order[0] === "string") {
      return order.flatMap((text, x) => (texts.has(text) ? [box(x, x)] : []));
    }
    const place = new Map(order.map((number, x) => [number, x]));
    return numbers(key).map((number) => place.get(number)).filter((x) => x !== undefined).map((x) => box(x, x));
  }

  const numbers = (key) =>
    ranges(key).flatMap(([a, b]) => Array.from({ length: Math.min(b - a + 1, 6000) }, (_, i) => a + i));

  /** A map whose cells hold numbers: its rows of numbers, or null. */
  function cells(plot) {
    const trace = plot._fullData.find((one) => one.meta === "numbers");
    return trace ? trace.customdata : null;
  }

  function cellsOf(plot, key) {
    const rows = cells(plot);
    const wanted = new Set(numbers(key));
    const found = [];
    for (let y = 0; wanted.size && y < rows.length; y++) {
      for (let x = 0; x < rows[y].length; x++) {
        if (!wanted.has(rows[y][x])) continue;
        found.push({ x0: x - 0.5, x1: x + 0.5, y0: y - 0.5, y1: y + 0.5, yref: "y", opacity: 1,
          fillcolor: "rgba(0,0,0,0)", line: { color: "#d6006e", width: 2.5 } });
      }
    }
    return found;
  }

  /** Mark what is chosen; shapes of the figure itself stay. */
  function mark(plot, key) {
    if (!plot.layout || !plot.data || !plot._fullData || (plot.layout.meta && plot.layout.meta.marks === false)) return;
    const order = plot.layout.meta && plot.layout.meta.picks;
    const kept = (plot.layout.shapes || []).filter((shape) => shape.name !== "picked");
    const colour = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
    const places = cells(plot) ? cellsOf(plot, key) : placesOf(order, key);
    const drawn = places.slice(0, MOST_MARKED).map((place) => Object.assign({
      name: "picked", type: "rect", xref: "x", yref: "paper", y0: 0, y1: 1, fillcolor: colour,
      opacity: 0.28, line: { color: colour, width: 1.5 }, layer: "above",
    }, place));
    const shapes = kept.concat(drawn);
    if (same(drawn, (plot.layout.shapes || []).filter((shape) => shape.name === "picked"))) return;
    window.Plotly.relayout(plot, { shapes });
  }

  /** Put the window of x that a reader zoomed to into the address. */
  function zoomed(changes) {
    if (changes["xaxis.autorange"] || changes["xaxis.showspikes"] === false) {
      return changes["xaxis.autorange"] ? go({ range: null }, true) : undefined;
    }
    const low = changes["xaxis.range[0]"] ?? (changes["xaxis.range"] || [])[0];
    const high = changes["xaxis.range[1]"] ?? (changes["xaxis.range"] || [])[1];
    if (low === undefined || high === undefined) return;
    const begin = Math.max(Math.ceil(low - 0.25), 0);
    const end = Math.max(Math.floor(high + 0.25) + 1, begin + 1);
    go({ range: `${begin}-${end}` }, true);
  }

  const bound = new WeakSet();

  function bind(place) {
    const plot = place.querySelector(".js-plotly-plot");
    if (!plot || !plot.on || bound.has(plot)) return;
    bound.add(plot);
    const key = place.dataset.picks;
    plot.on("plotly_click", (event) => {
      picked(plot, key, numberAt(plot, event.points[0]), event.event && event.event.shiftKey);
    });
    plot.on("plotly_selected", (event) => {
      if (!event || !event.range || !event.range.x) return;
      dragged(plot, key, event.range.x, shift);
      window.Plotly.relayout(plot, { selections: [] });
    });
    if (place.dataset.zooms !== undefined) plot.on("plotly_relayout", (changes) => zoomed(changes));
    plot.on("plotly_afterplot", () => mark(plot, key));
    mark(plot, key);
  }

  let shift = false;
  const all = () => document.querySelectorAll(".plot[data-picks]");
  const bindAll = () => all().forEach(bind);

  window.addEventListener("keydown", (event) => (shift = event.shiftKey), true);
  window.addEventListener("keyup", (event) => (shift = event.shiftKey), true);
  window.addEventListener("popstate", () => {
    all().forEach((place) => {
      const plot = place.querySelector(".js-plotly-plot");
      if (plot) mark(plot, place.dataset.picks);
    });
  });
  let waiting = false;
  new MutationObserver(() => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      bindAll();
    });
  }).observe(document.documentElement, { childList: true, subtree: true });

  /** Move what is chosen by one with the arrow keys; Shift adds. */
  document.addEventListener("keydown", (event) => {
    const place = event.target.closest && event.target.closest(".plot[data-picks]");
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!place || !by || event.altKey || event.ctrlKey || event.metaKey) return;
    const plot = place.querySelector(".js-plotly-plot");
    if (!plot || !plot.layout) return;
    const key = place.dataset.picks;
    const order = plot.layout.meta && plot.layout.meta.picks;
    const last = order ? order.length - 1 : Math.floor(plot.layout.xaxis.maxallowed);
    const named = order && typeof order[0] === "string"; // keys of nodes, not numbers
    const now = named ? (read(key) || order[0]).split(",").pop() : ranges(key).flat().pop();
    const x = now === undefined ? (by > 0 ? -1 : last + 1) : order ? order.indexOf(now) : now;
    const next = Math.min(Math.max(x + by, 0), last);
    event.preventDefault();
    picked(plot, key, order ? order[next] : next, event.shiftKey);
  });

  /** A clicked row of a table sets a key of the address; the row's other fields come with it. */
  function pickRow(cell, id) {
    const place = cell && document.getElementById(id) && document.getElementById(id).closest("[data-picks-key]");
    if (!place || /^[tb]-/.test(cell.rowId)) return; // a total is no row to choose
    const grid = window.dash_ag_grid && window.dash_ag_grid.getApi(id);
    const row = grid && grid.getDisplayedRowAtIndex(cell.rowIndex);
    const value = row && row.data && row.data[place.dataset.picksField];
    if (value === undefined || value === null) return;
    const key = place.dataset.picksKey;
    if (place.dataset.picksMany === undefined) return go({ [key]: value });
    const now = (read(key) || "").split(",").filter(Boolean);
    const text = String(value);
    go({ [key]: (now.includes(text) ? now.filter((one) => one !== text) : [...now, text]).join(",") }, true);
  }

  document.addEventListener("click", (event) => {
    const clear = event.target.closest("[data-clear]");
    if (clear) go({ [clear.dataset.clear]: null });
    const fold = event.target.closest("[data-fold]");
    if (!fold) return;
    const now = (read("folded") || "").split(",").filter(Boolean);
    const path = fold.dataset.fold;
    const next = now.includes(path) ? now.filter((one) => one !== path) : [...now, path];
    go({ folded: next.join(",") || null }, true);
  });

  Object.assign(window.dash_clientside.tilescope, { follow, pickRow });
})();
