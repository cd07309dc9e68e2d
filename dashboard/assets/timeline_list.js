// What is in view as a table, which a screen reader reads; it follows the view while it is open.
(function () {
  "use strict";

  const MOST_LISTED = 300;
  const SOON = 300; // milliseconds after the last change of the view until the table follows it
  const HEADINGS = ["Lane", "Name", "Kind", "Begin", "Length", "Events"];

  function line(table, tag, texts) {
    const row = table.insertRow();
    texts.forEach((text) => {
      const cell = document.createElement(tag);
      cell.append(text);
      row.appendChild(cell);
    });
  }

  /** Make the button that chooses a rectangle, or zooms to it, with its name. */
  function named(timeline, i) {
    const { data } = timeline;
    const name = document.createElement("button");
    name.type = "button";
    name.textContent = data.label[i] === window.tilescope.paint.NO_LABEL ? "(zoom in)" : data.labels[data.label[i]];
    const end = data.begin[i] + data.length[i];
    name.addEventListener("click", () => (data.item[i] < 0 ? timeline.fit(data.begin[i], end) : timeline.select(i)));
    return name;
  }

  /** Give the cells of the rectangles of a row in view. */
  function* rectangles(timeline, entry) {
    const { data, view, layout, state } = timeline;
    const { amount, clocked } = window.tilescope.paint;
    const [first, stop] = data.places.get(entry.row) || [0, 0];
    const by = first < stop ? clocked(timeline, first) : layout;
    for (let i = first; i < stop; i += 1) {
      const kind = layout.colours[data.colour[i]].words;
      if (data.begin[i] >= view.end || data.begin[i] + data.length[i] < view.begin || state.hidden.has(kind)) continue;
      yield [`${entry.laneName} ${entry.name}`, named(timeline, i), kind, amount(data.begin[i], by), amount(data.length[i], by), String(data.count[i])];
    }
  }

  function* lines(timeline) {
    for (const entry of timeline.placed.entries) {
      if (entry.kind === "row") yield* rectangles(timeline, entry);
      if (entry.kind === "chart") yield* window.tilescope.chartLines(timeline, entry);
    }
  }

  /** Write the table anew; what had the focus in it gives it to the table. */
  function fill(timeline) {
    const { list, data, view, placed } = timeline;
    if (!list || !data || !placed) return;
    Object.assign(list, { view, data });
    const table = document.createElement("table");
    line(table, "th", HEADINGS);
    let listed = 0;
    for (const cells of lines(timeline)) {
      line(table, "td", cells);
      if ((listed += 1) === MOST_LISTED) break;
    }
    const caption = table.createCaption();
    const filter = window.tilescope.filterWords(timeline.layout);
    caption.textContent = (listed < MOST_LISTED ? `${listed} in view` : `The first ${MOST_LISTED} in view; zoom in for the others`) + (filter ? `; the filter leaves ${filter} steps and blocks` : "");
    const focused = list.contains(document.activeElement);
    list.replaceChildren(table);
    if (focused) list.focus();
  }

  /** Show the table below the canvas, or take it away. */
  function listView(timeline) {
    if (timeline.list) {
      timeline.list.remove();
      timeline.list = null;
      return;
    }
    timeline.list = document.createElement("div");
    timeline.list.className = "timeline-list";
    timeline.list.tabIndex = 0;
    timeline.place.appendChild(timeline.list);
    fill(timeline);
    timeline.list.focus();
  }

  /** Have the table follow what was just painted. */
  function relist(timeline) {
    const { list, view, data } = timeline;
    if (!list || (list.view === view && list.data === data)) return;
    Object.assign(list, { view, data });
    window.clearTimeout(list.timer);
    list.timer = window.setTimeout(() => fill(timeline), SOON);
  }

  window.tilescope = Object.assign(window.tilescope || {}, { listView, relist });
})();
