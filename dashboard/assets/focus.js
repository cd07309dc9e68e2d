// For the keyboard alone: Enter in tables, the focus where parts of the page are made again, menus
// that close, and which panel belongs to a tab. Tab passes a table by in one step (GRID in
// dashboard/elements/components.py), as some have thousands of cells.
(function () {
  "use strict";

  const { onArrival, read } = window.tilescope;
  const MENU = "details.exports, details.preferences";

  document.addEventListener("keydown", (event) => {
    const cell = event.target.closest && event.target.closest(".table .ag-cell");
    if (!cell || (event.key !== "Enter" && event.key !== " ")) return;
    if (event.altKey || event.ctrlKey || event.metaKey || event.isComposing) return;
    event.preventDefault();
    cell.click();
  });

  // Plots: the arrow keys move what is chosen, on a map also up and down; Shift adds.

  const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  /** The cell of a map that lies beside the one with this number; without one the first of all. */
  function beside(plot, now, [across, down]) {
    const rows = window.tilescope.picking.cells(plot);
    const [bottom, top] = plot._fullLayout.yaxis.range;
    const lines = bottom > top ? rows : [...rows].reverse();
    const isTile = (number) => number !== undefined && number !== null && number >= 0;
    if (now === undefined) return lines[0].find(isTile);
    const y = lines.findIndex((line) => line.includes(now));
    const x = y < 0 ? -1 : lines[y].indexOf(now);
    for (let step = 1; y >= 0; step++) {
      const line = lines[y + step * down];
      if (!line || x + step * across < 0 || x + step * across >= line.length) return now;
      if (isTile(line[x + step * across])) return line[x + step * across];
    }
    return now;
  }

  /** The next or the previous of what stands in a row. */
  function following(plot, key, now, by) {
    const order = plot.layout.meta && plot.layout.meta.picks;
    const last = order ? order.length - 1 : Math.floor(plot.layout.xaxis.maxallowed);
    const named = order && typeof order[0] === "string"; // keys of nodes, not numbers
    const from = named ? (read(key) || order[0]).split(",").pop() : now;
    const x = from === undefined ? (by > 0 ? -1 : last + 1) : order ? order.indexOf(from) : from;
    const next = Math.min(Math.max(x + by, 0), last);
    return order ? order[next] : next;
  }

  document.addEventListener("keydown", (event) => {
    const place = event.target.closest && event.target.closest(".plot[data-picks]");
    const move = MOVES[event.key];
    const plot = place && move && place.querySelector(".js-plotly-plot");
    if (!plot || !plot.layout || event.altKey || event.ctrlKey || event.metaKey) return;
    const { cells, picked, ranges } = window.tilescope.picking; // of a script that comes later
    const isMap = Boolean(cells(plot));
    if (!isMap && !move[0]) return;
    const key = place.dataset.picks;
    const object = window.tilescope.chosenObject();
    const now = !key.endsWith(":") ? ranges(key).flat().pop()
      : object.startsWith(key) ? Number(object.slice(key.length)) : undefined;
    event.preventDefault();
    picked(plot, key, isMap ? beside(plot, now, move) : following(plot, key, now, move[0]), event.shiftKey);
  });

  // A control that has its part of the page made anew is gone then: the focus goes to its successor.

  let held = null; // the element that has the focus, and how to find what takes its place

  /** Give what finds an element again after it was made anew; nothing where that cannot be told. */
  function successorOf(element) {
    const named = (one) => `[id="${CSS.escape(one.id)}"]`;
    const group = element.type === "radio" && element.closest(`[id^='{"address":']`);
    if (group) return `${named(group)} input:checked`;
    const cell = element.closest(".ag-cell");
    const grid = cell && cell.closest(".table[id]");
    const row = cell && cell.closest("[row-index]");
    if (grid) return `${named(grid)} [row-index="${row.getAttribute("row-index")}"] [col-id="${cell.getAttribute("col-id")}"]`;
    if (element.dataset.fold) return `[data-fold="${CSS.escape(element.dataset.fold)}"]`;
    return element.id && !element.id.startsWith("mantine-") ? named(element) : null;
  }

  document.addEventListener("focusin", ({ target }) => {
    const successor = successorOf(target);
    held = successor && { element: target, successor };
  });
  document.addEventListener("pointerdown", () => (held = null), true);

  onArrival(() => {
    if (!held || held.element.isConnected || document.activeElement !== document.body) return;
    const next = document.querySelector(held.successor);
    if (next) next.focus({ preventScroll: true });
  });

  // A menu closes by Escape, and when the focus leaves it.

  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && event.target.closest && event.target.closest(MENU);
    if (!menu || !menu.open) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });
  document.addEventListener("focusout", ({ target, relatedTarget }) => {
    const menu = target.closest && target.closest(MENU);
    if (menu && relatedTarget && !menu.contains(relatedTarget)) menu.open = false;
  });

  // What a tab shows stands beside the tabs: the last part of what holds both.

  onArrival(() => {
    document.querySelectorAll("#page .tabs").forEach((tabs, number) => {
      const active = tabs.querySelector("[role=tab][aria-selected=true]");
      const panel = active && (tabs.closest(".tabs-row") || tabs).parentElement.lastElementChild;
      if (!panel || panel.contains(tabs)) return;
      panel.id = panel.id || `tab-panel-${number}`;
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", active.id);
      tabs.querySelectorAll("[role=tab]").forEach((tab) => tab.setAttribute("aria-controls", panel.id));
    });
  });
})();
