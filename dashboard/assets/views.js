// What a view shows follows its part of the address; what is picked on a plot goes into the address.
(function () {
  "use strict";

  const { go, read, searchAfter, onArrival, onReturn, shownBy } = window.tilescope;
  const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

  /** Which page of which reports the address asks for: what the router follows. */
  function place(pathname, search, theme, shown, now) {
    const asked = new URLSearchParams(search || "");
    const next = placeOf(pathname, asked);
    linkTiles();
    keepView(pathname, asked);
    if (!same(next, now)) return next;
    tell(pathname, asked, theme, shown);
    return window.dash_clientside.no_update;
  }

  /** The part of the address on which a view depends, once the page that holds it is shown. */
  function viewOf(view, pathname, asked, theme, shown) {
    // Dash leaves out what waits for `follow` and has nothing new from it: this is new once.
    if (view && view.fixed) return view.told ? view : Object.assign({}, view, { told: true });
    const ready = shown && shown.path === pathname && shown.asked === (asked.get("report") || "");
    if (!ready || !view || view.path !== pathname) return view;
    const part = new URLSearchParams();
    for (const key of view.keys) {
      const name = key.replace("!", "");
      if (key !== name && window.tilescope.isOwn(asked)) continue;
      if (asked.get(name)) part.set(name, asked.get(name));
    }
    const next = Object.assign({}, view, { search: part.toString(), stamp: shown.stamp });
    if (view.themed) next.theme = theme;
    return next;
  }

  /** Chosen tiles and the object go along to every page; links in the menu stay when they change. */
  function linkTiles() {
    for (const link of document.querySelectorAll(".nav-link")) {
      const [path, search] = link.getAttribute("href").split("?");
      const kept = new URLSearchParams(search || "");
      for (const [key, value] of [["tile", read("tile")], ["object", window.tilescope.chosenObject()]]) {
        if (value) kept.set(key, value);
        else kept.delete(key);
      }
      const text = kept.toString().replace(/%2C/g, ",");
      link.setAttribute("href", text ? `${path}?${text}` : path);
    }
  }

  // What was chosen on a page comes back with it: as long as the window is open, for its report.

  const EVERYWHERE = ["report", "against", "tile", "object"]; // keys that go along to every page
  const viewName = (path) => `tilescope-view ${path}`;

  function keepView(path, asked) {
    const own = new URLSearchParams(asked);
    EVERYWHERE.forEach((key) => own.delete(key));
    const kept = { report: asked.get("report"), search: own.toString() };
    sessionStorage.setItem(viewName(path), JSON.stringify(kept));
  }

  /** The link of the menu leads to its page as it was left; that of the page shown, to it anew. */
  function restoreView(link) {
    const [path, search] = link.getAttribute("href").split("?");
    const now = new URLSearchParams(search || "");
    for (const key of [...now.keys()]) if (!EVERYWHERE.includes(key)) now.delete(key);
    const kept = JSON.parse(sessionStorage.getItem(viewName(path)) || "null");
    if (kept && path !== window.location.pathname && kept.report === now.get("report")) {
      new URLSearchParams(kept.search).forEach((value, key) => now.set(key, value));
    }
    const text = now.toString().replace(/%2C/g, ",");
    link.setAttribute("href", text ? `${path}?${text}` : path);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest && event.target.closest(".nav-link");
    if (link) restoreView(link);
  }, true);

  /** Show what went wrong once, where several parts of the page say the same. */
  function once() {
    const said = new Set();
    for (const fault of document.querySelectorAll(".fault")) {
      fault.classList.toggle("again", said.has(fault.textContent));
      said.add(fault.textContent);
    }
  }

  onArrival(once);

  // A table whose rows alone follow a key of the address stays, and asks for its rows again.

  const fetched = new WeakMap();

  const followed = (table) => table.dataset.follows.split(",").map(read).join("\u0000");

  function noteTables() {
    for (const table of document.querySelectorAll("[data-follows]")) {
      if (!fetched.has(table)) fetched.set(table, followed(table));
    }
  }

  function askAgain() {
    noteTables();
    for (const table of document.querySelectorAll("[data-follows]")) {
      const now = followed(table);
      if (fetched.get(table) === now) continue;
      fetched.set(table, now);
      const grid = window.dash_ag_grid.getApi && window.dash_ag_grid.getApi(table.dataset.grid);
      if (!grid) continue;
      if (grid.getDisplayedRowCount()) grid.ensureIndexVisible(0, "top");
      grid.refreshInfiniteCache(); // what is there stays until the answer comes: empty rows cost 30 ms
    }
  }

  onArrival(noteTables);

  const news = (next, now) => (same(next, now) ? window.dash_clientside.no_update : next);

  // What is on the page by what it is; Dash tells when more of it comes. A new address goes from here
  // to what follows it: by a callback of Dash for each kind that takes some times as long.

  const VALUE = { choice: "value", switch: "checked", box: "value" };
  const known = { view: [], choice: [], switch: [], box: [] };

  /** A part of the page as it is now, or null when it is gone. */
  function partOf(id) {
    const { getLayout, stringifyId } = window.dash_component_api;
    try {
      const part = getLayout(id);
      return part && part.props.id && stringifyId(part.props.id) === stringifyId(id) ? part : null;
    } catch {
      return null; // Dash fails on an id of which nothing is left
    }
  }

  const propertiesOf = (id) => (partOf(id) || {}).props;

  /** What the panel of a view has now; nothing where the view is that of a plot. */
  function panelOf(view) {
    const { type, props } = partOf(view) || {};
    return type === "Div" && props;
  }

  /** The views to which an address is new: what each shows then, and what Dash knows of it. */
  function newViews(pathname, asked, theme, shown) {
    const inner = innerPanels().map(({ dataset }) => ({ view: dataset.inner }));
    return [...known.view, ...inner].flatMap((id) => {
      const properties = isHere(id, pathname) && propertiesOf(id);
      if (!properties) return [];
      const { data: dash } = properties;
      const now = window.tilescope.viewNow(id.view, dash);
      const next = viewOf(now, pathname, asked, theme, shown);
      return same(next, now) ? [] : [{ id, next, dash, panel: panelOf(id.view) }];
    });
  }

  const isHere = (id, pathname) => !id.page || id.page === pathname; // not of a page that is kept

  /** Tell views and controls what the address says, where that is new. */
  function tell(pathname, asked, theme, shown) {
    const views = newViews(pathname, asked, theme, shown);
    const panels = views.filter(({ panel }) => panel); // the server has to do while the rest is told
    panels.forEach(({ id, next, panel, dash }) => window.tilescope.showView(id.view, next, panel, dash));
    for (const { id, next, panel } of views) if (!panel) window.dash_clientside.set_props(id, { data: next });
    for (const kind of ["choice", "switch", "box"]) {
      for (const id of known[kind].filter((each) => isHere(each, pathname))) {
        const properties = propertiesOf(id);
        if (!properties) continue;
        const next = shownBy[kind](id);
        if (!same(next, properties[VALUE[kind]])) window.dash_clientside.set_props(id, { [VALUE[kind]]: next });
      }
    }
    askAgain();
  }

  const placeOf = (path, asked) => ({ path, report: asked.get("report"), against: asked.get("against") });
  const dataOf = (id) => (propertiesOf(id) || {}).data;

  /** Tell all that is on the page what the address says, if it is the page of the address. */
  function tellNow() {
    const { pathname, search } = window.location;
    const asked = new URLSearchParams(search);
    if (!same(placeOf(pathname, asked), dataOf("place"))) return;
    tell(pathname, asked, dataOf("theme"), dataOf("shown"));
  }

  // A panel in a panel: Dash does not call `follow` for what `follow` itself led to.

  const met = new WeakSet();
  const innerPanels = () => [...document.querySelectorAll("[data-inner]")];

  onArrival(() => {
    const fresh = innerPanels().filter((panel) => !met.has(panel));
    fresh.forEach((panel) => met.add(panel));
    if (fresh.length) tellNow();
  });

  // At once, before Dash hears of the new address: what it has to do then waits for no answer.
  window.addEventListener("popstate", tellNow);

  /** Tell the views that came what the address says; all of them, when the theme is another. */
  function follow(theme, stamped, pathname, search, shown, views, ids) {
    const asked = new URLSearchParams(search || "");
    known.view = ids;
    noteTables();
    const now = views.map((view, n) => window.tilescope.viewNow(ids[n].view, view));
    return now.map((view) => news(viewOf(view, pathname, asked, theme, shown), view));
  }

  /** Have the controls that came show what the address says. */
  const showing = (kind) => (_address, values, ids) => {
    known[kind] = ids;
    const told = (now, id) => (id.page === window.location.pathname ? shownBy[kind](id) : now);
    return values.map((now, n) => news(told(now, ids[n]), now));
  };

  // Picking: numbers chosen by click, Shift-click, dragging and arrow keys.

  function ranges(key) {
    return (read(key) || "")
      .split(",")
      .map((part) => part.trim().match(/^(\d+)(?:-(\d+))?$/))
      .filter(Boolean)
      .map((found) => [Number(found[1]), Number(found[2] === undefined ? found[1] : found[2])])
      .filter(([first, last]) => first <= last);
  }

  /** Tell whether a plot picks objects of a kind, as in `tile:`, or of any, `:`, and no key. */
  const isKind = (key) => key.endsWith(":");

  function numberAt(plot, point, key) {
    if (key === ":") return (point.id || "").replace(/^\d+ /, "") || null; // pva.plot.axes.point_ids
    const order = plot.layout.meta && plot.layout.meta.picks;
    if (point.data && point.data.meta === "numbers") return point.customdata;
    const x = Math.round(point.x);
    return order ? order[x] : x;
  }

  /** The point of a click: of several curves at one x, that of the nearest curve. */
  function nearest(plot, { points, event }) {
    if (points.length < 2 || !event) return points[0];
    const top = plot.getBoundingClientRect().top;
    const apart = ({ yaxis, y }) => Math.abs(top + yaxis._offset + yaxis.d2p(y) - event.clientY);
    return points.reduce((one, other) => (apart(other) < apart(one) ? other : one));
  }

  /** Of which report of two the objects of a curve are, as dashboard/details/drawer.py reads it. */
  const sideOf = (point) => (point.data && point.data.meta === "after" ? "after:" : "");

  /** The changes of the address by which a number is chosen, or null. */
  function choiceOf(key, number, add) {
    if (number === undefined || number === null) return null;
    const text = String(number);
    if (isKind(key)) return { object: key === ":" ? text : key + text };
    const now = (read(key) || "").split(",").filter(Boolean);
    if (!add) return { [key]: text };
    return { [key]: (now.includes(text) ? now.filter((one) => one !== text) : [...now, text]).join(",") };
  }

  function picked(plot, key, number, add) {
    const changes = choiceOf(key, number, add);
    if (changes) go(changes);
  }

  /** The changes of the address that a click on a point of a plot makes, or null. */
  function choiceAt(plot, key, event) {
    const point = nearest(plot, event);
    const of = isKind(key) && key !== ":" ? sideOf(point) + key : key;
    return choiceOf(of, numberAt(plot, point, key), event.event && event.event.shiftKey);
  }

  // Where the pointer rests over a point, a click on it is expected: what its panels show is asked for.

  const REST = 100; // milliseconds
  let resting = null;

  function expectClick(plot, key, event) {
    clearTimeout(resting);
    resting = setTimeout(() => {
      const changes = choiceAt(plot, key, event);
      if (changes) askAhead(changes);
    }, REST);
  }

  function askAhead(changes) {
    const { pathname } = window.location;
    const asked = new URLSearchParams(searchAfter(changes));
    const views = newViews(pathname, asked, dataOf("theme"), dataOf("shown")).filter(({ panel }) => panel);
    window.tilescope.askAhead(views.map(({ id, next }) => [id.view, next]));
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
    const trace = plot._fullData.find((one) => one.meta === "numbers" && one.type === "heatmap");
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
    if (isKind(key) || !plot.layout || !plot.data || !plot._fullData || (plot.layout.meta && plot.layout.meta.marks === false)) return;
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
    const { _rehover: again } = plot._fullLayout;
    plot._fullLayout._rehover = null; // what is said beside the pointer stays: drawn anew it takes longer than the marks
    window.Plotly.relayout(plot, { shapes }).then(() => (plot._fullLayout._rehover = again));
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

  // At a click Plotly looks again for what is under the pointer, and draws its words anew, which takes as long as
  // all else that a click does. They stay where the pointer rests.

  const hovered = new WeakMap(); // where the pointer was over a plot as its words were drawn

  /** Tell whether Plotly is to look for what is under the pointer. */
  function isNew(plot, { type, clientX, clientY }) {
    const place = `${clientX} ${clientY}`;
    if (type === "mousedown" && plot._hoverdata && hovered.get(plot) === place) return false;
    hovered.set(plot, place);
    return true;
  }

  const bound = new WeakMap(); // what is done here at an event of a plot
  const quiet = new WeakSet();
  const TOLD = ["plotly_click", "plotly_hover", "plotly_unhover", "plotly_relayout", "plotly_selected"];

  function bind(place) {
    const plot = place.querySelector(".js-plotly-plot");
    if (!plot || !plot.on || bound.has(plot)) return;
    const key = place.dataset.picks;
    const acts = {
      plotly_click: (event) => {
        const changes = choiceAt(plot, key, event);
        if (changes) go(changes);
      },
      plotly_hover: (event) => expectClick(plot, key, event),
      plotly_unhover: () => clearTimeout(resting),
      plotly_selected: (event) => {
        if (isKind(key) || !event || !event.range || !event.range.x) return;
        dragged(plot, key, event.range.x, shift);
        window.Plotly.relayout(plot, { selections: [] });
      },
      plotly_afterplot: () => (hovered.delete(plot), mark(plot, key), window.tilescope.fitNames(plot)),
      plotly_beforehover: (event) => isNew(plot, event),
    };
    const zooms = place.dataset.zooms !== undefined;
    acts.plotly_relayout = zooms ? zoomed : (changes) => window.tilescope.moved(plot, changes);
    bound.set(plot, acts);
    for (const [kind, act] of Object.entries(acts)) plot.on(kind, act);
    acts.plotly_afterplot();
  }

  /** Dash draws a plot again whenever it is told of a click or the pointer, which no page needs. */
  function silence(plot) {
    if (!plot.removeAllListeners || !plot._fullLayout || quiet.has(plot)) return;
    quiet.add(plot);
    const acts = bound.get(plot) || {};
    for (const kind of TOLD) {
      plot.removeAllListeners(kind);
      if (acts[kind]) plot.on(kind, acts[kind]);
    }
    plot.on("plotly_relayout", (changes) => noteZoom(plot, changes));
  }

  /** Note that a plot shows a part of it that the address does not tell: its page is not kept so. */
  function noteZoom(plot, changes) {
    const zoomed = Object.keys(changes).some((name) => /axis\d*\.(range|autorange)/.test(name));
    if (zoomed && !plot.closest("[data-zooms]")) plot.dataset.zoomed = "";
  }

  Object.assign(window.tilescope, { propertiesOf, silence });
  document.addEventListener("pointerover", (event) => {
    const plot = event.target.closest && event.target.closest(".js-plotly-plot");
    if (plot) silence(plot);
  }, true);

  let shift = false;
  const all = () => document.querySelectorAll(".plot[data-picks]");
  const bindAll = () => all().forEach(bind);

  window.addEventListener("keydown", (event) => (shift = event.shiftKey), true);
  window.addEventListener("keyup", (event) => (shift = event.shiftKey), true);

  function markAll() {
    all().forEach((place) => {
      const plot = place.querySelector(".js-plotly-plot");
      if (plot) mark(plot, place.dataset.picks);
    });
  }

  window.addEventListener("popstate", markAll);
  onReturn(tellNow);
  onReturn(markAll);
  onArrival(bindAll);

  window.tilescope.picking = { cells, picked, ranges };

  /** Open the rows of an equal name, or close them; names may have commas in them. */
  function opened(name) {
    const now = (read("open") || "").split(",").filter(Boolean);
    const text = encodeURIComponent(name);
    go({ open: (now.includes(text) ? now.filter((one) => one !== text) : [...now, text]).join(",") }, true);
  }

  /** A clicked row of a table sets the key of the address that it picks, and the object that it is. */
  function pickRow(table, index) {
    const grid = window.dash_ag_grid && window.dash_ag_grid.getApi(table.id);
    const row = grid && grid.getDisplayedRowAtIndex(index);
    if (!row || !row.data) return;
    if (row.data.opens) return opened(row.data.opens);
    const place = table.closest("[data-picks-key]");
    const { picksKey: key, picksField: field, picksMany: many } = place ? place.dataset : {};
    const value = key && row.data[field];
    const drawer = row.data.object && key !== "variable" ? { object: row.data.object, variable: null } : {};
    if (value === undefined || value === null) return go(drawer);
    if (many === undefined) return go({ ...drawer, [key]: value });
    const now = (read(key) || "").split(",").filter(Boolean);
    const text = String(value);
    go({ ...drawer, [key]: (now.includes(text) ? now.filter((one) => one !== text) : [...now, text]).join(",") }, true);
  }

  document.addEventListener("click", (event) => {
    const cell = event.target.closest(".table[id] .ag-row .ag-cell");
    const index = cell && cell.closest("[row-index]").getAttribute("row-index");
    if (index && !/^[tb]-/.test(index)) pickRow(cell.closest(".table[id]"), Number(index)); // a total is no row
    const pick = event.target.closest(".pick[data-key]");
    if (pick) go({ [pick.dataset.key]: pick.dataset.value });
    const clear = event.target.closest("[data-clear]");
    if (clear) go({ [clear.dataset.clear]: null });
    const fold = event.target.closest("[data-fold]");
    if (!fold) return;
    const now = (read("folded") || "").split(",").filter(Boolean);
    const path = fold.dataset.fold;
    const next = now.includes(path) ? now.filter((one) => one !== path) : [...now, path];
    go({ folded: next.join(",") || null }, true);
  });

  Object.assign(window.dash_clientside.tilescope, {
    follow, place,
    showChoices: showing("choice"), showSwitches: showing("switch"), showBoxes: showing("box"),
  });
})();
