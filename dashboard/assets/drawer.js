// The object that the drawer shows: its rows are marked in all tables, and Escape closes it.
(function () {
  "use strict";

  const KEYS = ["object", "variable"]; // of the address, that open the drawer
  const POINT = "point"; // of the address: the points of an exploration, by the keys of their rows

  /** Tell whether a row of a table is the object that is chosen. */
  function isChosen({ data }) {
    if (!data) return false;
    const { read } = window.tilescope;
    const points = read(POINT);
    if (points && data.key !== undefined) return points.split(",").slice(-2).includes(data.key);
    const [object, variable] = KEYS.map(read);
    if (object) return data.object === object || `variable:${data.variable}` === object;
    return variable !== null && String(data.variable) === variable.split(",").pop();
  }

  window.dashAgGridFunctions = Object.assign(window.dashAgGridFunctions || {}, { isChosen });

  const shown = () => [...KEYS, POINT].map((key) => window.tilescope.read(key) || "").join("\u0000");
  let marked = "\u0000\u0000"; // nothing is chosen

  /** Have the tables whose rows choose objects draw them anew, where another one is chosen. */
  function mark() {
    if (shown() === marked) return;
    marked = shown();
    for (const place of document.querySelectorAll("[data-picks-key]")) {
      const grid = place.querySelector(".table[id]");
      const api = grid && window.dash_ag_grid && window.dash_ag_grid.getApi(grid.id);
      if (!api) continue;
      const cell = grid.contains(document.activeElement) && api.getFocusedCell();
      api.redrawRows();
      if (cell) api.setFocusedCell(cell.rowIndex, cell.column); // its element is another one now
    }
  }

  window.addEventListener("popstate", mark);

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest("input, textarea, [role=listbox], details[open], dialog");
    if (event.key !== "Escape" || typing || event.defaultPrevented) return;
    if (document.querySelector(".drawer")) window.tilescope.go({ object: null, variable: null });
  });
})();
