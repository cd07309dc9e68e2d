// The object that the drawer shows: what chooses one, its marks in all tables, and Escape closes it.
(function () {
  "use strict";

  const KEYS = ["object", "variable"]; // of the address, that open the drawer
  const POINT = "point"; // of the address: the points of an exploration, by the keys of their rows

  /** The place of the drawer, which says what the page declares: it is looked for often, in a large document. */
  function placeOfDrawer() {
    const aside = document.getElementById("page-aside");
    return aside && aside.querySelector("[data-objects]");
  }

  /** The key of the address that opens the drawer of this page by itself, and its kind of object. */
  function docked() {
    const place = placeOfDrawer();
    if (!place || !place.dataset.docked) return [null, ""];
    return [place.dataset.docked, declared()[place.dataset.docked][""]];
  }

  /** Tell whether the object is what a key of the page itself chooses, which its plots mark by themselves. */
  function isOwn(asked) {
    const own = Object.entries(declared()).map(([key, of]) => `${of[""]}:${last(asked.get(key))}`);
    return own.includes(asked.get("object"));
  }

  const last = (text) => String(text ?? "").split(",").pop();

  /** The object that the address chooses, as dashboard/details/objects.py reads it. */
  function chosenObject() {
    const [object, variable] = KEYS.map((key) => window.tilescope.read(key));
    if (object || variable) return object || `variable:${last(variable)}`;
    const [key, kind] = docked();
    const value = key && window.tilescope.read(key);
    return value ? `${kind}:${last(value)}` : "";
  }

  /** What the page declares: by key of the address, kinds of objects by how the value begins. */
  function declared() {
    const place = placeOfDrawer();
    return place ? JSON.parse(place.dataset.objects) : {};
  }

  /** Add to changes of the address the object that they choose; where they clear it, it goes. */
  function withObject(changes) {
    if ("object" in changes) return changes;
    if (changes.variable) return { ...changes, object: null };
    const of = declared();
    for (const key of Object.keys(of).filter((one) => one in changes)) {
      const [, begin, number] = last(changes[key]).match(/^([a-z]*)([0-9]+)$/) || [];
      if (of[key][begin]) return { ...changes, object: `${of[key][begin]}:${number}`, variable: null };
      const was = (window.tilescope.read("object") || "").split(":")[0];
      if (!changes[key] && Object.values(of[key]).includes(was)) return { ...changes, object: null };
    }
    return changes;
  }

  /** The chosen object, and others as which the drawer says that it is marked. */
  function chosenObjects() {
    const object = chosenObject();
    const drawer = document.querySelector(".drawer[data-shows]");
    const shown = drawer ? drawer.dataset.shows.split("\n") : [];
    return shown[0] === object ? shown : [object];
  }

  /** Tell whether a row of a table is the object that is chosen. */
  function isChosen({ data }) {
    if (!data) return false;
    const points = window.tilescope.read(POINT);
    if (points && data.key !== undefined) return points.split(",").slice(-2).includes(data.key);
    const own = data.object || (data.variable >= 0 ? `variable:${data.variable}` : "");
    return Boolean(own) && chosenObjects().includes(own);
  }

  window.dashAgGridFunctions = Object.assign(window.dashAgGridFunctions || {}, { isChosen });

  const NOTHING = "\u0000";
  const shown = () => [...chosenObjects(), window.tilescope.read(POINT) || ""].join("\u0000");
  const marked = new WeakMap(); // table -> what it marks

  /** Have the tables mark their rows anew, where another object is chosen; the focus stays. */
  function mark() {
    const now = shown();
    for (const grid of document.querySelectorAll(".table[id]")) {
      if ((marked.get(grid) ?? NOTHING) === now) continue;
      marked.set(grid, now);
      const api = window.dash_ag_grid && window.dash_ag_grid.getApi(grid.id);
      if (api) api.getRenderedNodes().forEach((node) => remark(grid, node));
    }
  }

  /** Have the rules for the classes of a row looked at again, where its mark is wrong. */
  function remark(grid, node) {
    const row = grid.querySelector(`.ag-row[row-index="${node.rowIndex}"]`);
    if (!row || !node.data || row.classList.contains("chosen") === isChosen(node)) return;
    node.setData(node.data);
  }

  Object.assign(window.tilescope, { chosenObject, isOwn, withObject });
  window.addEventListener("popstate", mark);
  window.tilescope.onArrival(mark);

  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest && event.target.closest("input, textarea, [role=listbox], details[open], dialog");
    if (event.key !== "Escape" || typing || event.defaultPrevented) return;
    if (!document.querySelector(".drawer")) return;
    const [key] = docked();
    window.tilescope.go({ object: null, variable: null, ...(key ? { [key]: null } : {}) });
  });
})();
