// The filter of a device's timeline: which steps are drawn at all. The table of programs below has
// the same one; it stands in the address, and the server answers with levels of detail of its own.
(function () {
  "use strict";

  const COLUMN = "name";
  const OPERATOR = /^(!~|!=|=)/; // typed before a name; without one the name contains the text

  /** Give what of the address the timeline is filtered by: an operator and a text, or "". */
  function chosen() {
    const text = window.tilescope.read("filter") || "";
    const rest = text.startsWith(COLUMN) ? text.slice(COLUMN.length) : "";
    return rest.startsWith("~") || OPERATOR.test(rest) ? rest : "";
  }

  const shown = () => chosen().replace(/^~/, "");

  function take(timeline) {
    const typed = timeline.only.value.trim();
    if (typed === shown()) return;
    const rest = OPERATOR.test(typed) ? typed : "~" + typed;
    window.tilescope.go({ filter: typed ? COLUMN + rest : null }, true);
  }

  /** Listen to the field and to what clears it. */
  function listenFilter(timeline) {
    for (const kind of ["change", "search"]) timeline.only.addEventListener(kind, () => take(timeline));
    timeline.only.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      timeline.only.value = "";
      take(timeline);
      timeline.canvas.focus();
    });
  }

  /** Show in the field what the address says. */
  function showFilter(timeline) {
    if (timeline.only && document.activeElement !== timeline.only) timeline.only.value = shown();
  }

  /** Say how many steps there are, of those that the filter lets through. */
  function filterWords(layout) {
    if (!layout.found) return "";
    const [some, all] = layout.found.map((count) => count.toLocaleString("en-US"));
    return layout.found[0] ? `${some} of ${all}` : `none of ${all}`;
  }

  window.tilescope = Object.assign(window.tilescope || {}, { listenFilter, showFilter, filterWords, filteredBy: shown });
})();
