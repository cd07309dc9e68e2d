// What a timeline reads of the address, and what it asks the server for. Holds no state of a view.
(function () {
  "use strict";

  const MARGIN = 0.35; // of the window, fetched on each side so that a pan has something to show
  const SMALLEST = 8; // units in view
  const MOST_OF_DEVICE = 4000; // pixels of all rows of a device; sixteen IPUs with their layers
  const OPTIONS = ["report", "against", "axis", "merged", "align"];

  /** Give the keys on which the answers of a source depend. */
  const optionsOf = (source) => (source === "device" ? [...OPTIONS, "filter", "path", "show"] : OPTIONS);

  /** Give the value of such a key: rows of layers are hidden here, but made anew by module. */
  function option(key) {
    const value = window.tilescope.read(key) || "";
    return key === "show" && value !== "modules" ? "" : value;
  }

  /** Read a name of a list; of a link that was cut or typed, as it stands. */
  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  const list = (text) => new Set((text || "").split(",").filter(Boolean).map(decoded));

  function range(text) {
    const found = (text || "").match(/^(\d+)-(\d+)$/);
    return found && Number(found[1]) < Number(found[2]) ? { begin: Number(found[1]), end: Number(found[2]) } : null;
  }

  /** Read what the address says of rows, marks and the chosen range. */
  function state() {
    const { read } = window.tilescope;
    return {
      folded: list(read("closed")), pinned: list(read("pinned")), hidden: list(read("hidden")),
      flat: read("show") === "flat", absolute: read("time") === "absolute",
      marks: (read("marks") || "").split(",").filter((text) => /^\d+$/.test(text)).map(Number),
      chosen: range(read("selection")), axis: read("axis") || "", ipu: read("ipu") || "",
    };
  }

  function link(source, path, more) {
    const search = new URLSearchParams(more || {});
    for (const key of optionsOf(source)) if (option(key)) search.set(key, option(key));
    return "/timeline/" + source + path + "?" + search;
  }

  /** Give what asks for a sketch until all is read. */
  const sketch = (wanted) => (wanted ? { sketch: "on" } : {});

  /** Give a window no smaller than a few units and inside the whole. */
  function inside(layout, begin, end) {
    const [first, last] = layout.extent;
    const whole = Math.max(last - first, SMALLEST);
    const span = Math.min(Math.max(end - begin, SMALLEST), whole);
    const from = Math.max(Math.min(begin, last - span), first);
    return { begin: from, end: from + span };
  }

  /** Give how high the view of rows so high together is: of IPUs none is below an inner edge. */
  function tall(height, source) {
    const most = source === "device" ? MOST_OF_DEVICE : Math.max(window.innerHeight * 0.62, 160);
    return Math.min(window.tilescope.paint.RULER + height, most);
  }

  /** Give begin, end and rows to ask for, so that `view` and the entries `seen` have some around. */
  function wanted(layout, placed, view, seen) {
    const { rows } = window.tilescope;
    const span = view.end - view.begin;
    const [first, last] = layout.extent;
    return {
      begin: Math.floor(Math.max(view.begin - MARGIN * span, Math.min(first, view.begin))),
      end: Math.ceil(Math.min(view.end + MARGIN * span, Math.max(last, view.end))),
      rows: rows.needed(placed.entries, seen, rows.AROUND),
    };
  }

  window.tilescope = Object.assign(window.tilescope || {}, {
    asked: { optionsOf, option, SMALLEST, list, range, state, link, sketch, inside, tall, wanted },
  });
})();
