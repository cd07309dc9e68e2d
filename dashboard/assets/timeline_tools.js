// What stands above a timeline: what is in view, zoom, search, folding, export. Built once a view.
(function () {
  "use strict";

  const MOST_FOLDED = 60; // keys in the address
  const SHORTEST = 7; // letters of the box of the magnification
  const TYPED = 200; // milliseconds after the last letter until the search is asked for

  function button(parent, text, title, action, name) {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "button " + (name || "");
    made.textContent = text;
    made.title = title;
    if (!/[a-z]/i.test(text)) made.setAttribute("aria-label", title); // words are their own name
    made.addEventListener("click", action);
    parent.appendChild(made);
    return made;
  }

  function input(parent, name, label, placeholder) {
    const made = document.createElement("input");
    made.className = name;
    made.setAttribute("aria-label", label);
    made.placeholder = placeholder;
    parent.appendChild(made);
    return made;
  }

  function group(parent, name) {
    const made = document.createElement("div");
    made.className = name;
    parent.appendChild(made);
    return made;
  }

  function toolbar(timeline) {
    const { bar } = timeline;
    timeline.summary = group(bar, "timeline-summary");
    const zoom = group(bar, "timeline-group");
    button(zoom, "−", "Zoom out", () => timeline.zoom(1 / 0.6));
    timeline.percent = input(zoom, "timeline-percent", "Magnification in percent; 100 shows all", "");
    timeline.percent.addEventListener("change", () => typedZoom(timeline));
    button(zoom, "+", "Zoom in", () => timeline.zoom(0.6));
    button(zoom, "«", "Earlier", () => timeline.pan(-0.8));
    button(zoom, "»", "Later", () => timeline.pan(0.8));
    button(zoom, "All", "Show all", () => timeline.layout && timeline.show(...timeline.layout.extent));
    const search = group(bar, "timeline-group");
    timeline.search = input(search, "timeline-search", "Search names", "Search names");
    timeline.search.type = "search";
    timeline.found = group(search, "timeline-found");
    timeline.found.setAttribute("aria-live", "polite");
    button(search, "‹", "Previous match", () => nextHit(timeline, -1));
    button(search, "›", "Next match", () => nextHit(timeline, 1));
    listenSearch(timeline);
    if (timeline.place.dataset.source === "device") {
      const only = group(bar, "timeline-group");
      timeline.only = input(only, "timeline-only", "Show only steps whose name contains", "Only steps named");
      timeline.only.type = "search";
      timeline.kept = group(only, "timeline-found");
      timeline.kept.setAttribute("aria-live", "polite");
      window.tilescope.listenFilter(timeline);
    }
    const more = group(bar, "timeline-group");
    button(more, "Fold", "Fold or open all lanes", () => foldAll(timeline));
    if (timeline.place.dataset.source === "host") {
      button(more, "Clock", "Time since the begin, or of the day", () => toggleKey("time", "absolute"));
    }
    saveMenu(timeline, more);
  }

  function toggleKey(key, value) {
    window.tilescope.go({ [key]: window.tilescope.read(key) === value ? null : value }, true);
  }

  /** Switch between the axis of the device and that of the simulation; places differ on them. */
  function switchAxis() {
    const next = window.tilescope.read("axis") === "simulated" ? null : "simulated";
    window.tilescope.go({ axis: next, range: null, selection: null, marks: null });
  }

  function foldAll(timeline) {
    if (!timeline.layout) return;
    const { lanes } = timeline.layout;
    const heads = lanes.length > MOST_FOLDED && lanes.every((lane) => lane.path.length); // processes, then
    const keys = heads ? [...new Set(lanes.map((lane) => lane.path.join("/")))] : lanes.map((_, index) => window.tilescope.rows.keyOf(timeline.layout, index));
    const open = timeline.state.folded.size === 0;
    const text = open ? keys.slice(0, MOST_FOLDED).map((key) => encodeURIComponent(key)).join(",") : null;
    window.tilescope.go({ closed: text }, true);
  }

  /** Take a typed magnification (150) or window (2.5 ms, 1000 cycles). */
  function typedZoom(timeline) {
    const found = timeline.percent.value.replace(/,/g, "").match(/^\s*([\d.]+)\s*(%|x|ns|µs|us|ms|s|cycles)?\s*$/);
    if (!found || !timeline.layout || !(Number(found[1]) > 0)) return;
    const [begin, end] = timeline.layout.extent;
    const { clock } = timeline.layout;
    const units = { ns: 1e-9 * clock, "µs": 1e-6 * clock, us: 1e-6 * clock, ms: 1e-3 * clock, s: clock, cycles: 1 };
    const unit = units[found[2]];
    if (unit === 0) return; // lanes of several clocks: no time is one window
    const span = unit ? Number(found[1]) * unit : (end - begin) / (Number(found[1]) / (found[2] === "x" ? 1 : 100));
    timeline.zoom(span / (timeline.view.end - timeline.view.begin));
  }

  /** Count the events in view of the rows in view: more rows than these were fetched. */
  function eventsInView(timeline) {
    const { view, data, placed } = timeline;
    const seen = placed.entries.slice(...timeline.inView()).filter((entry) => entry.kind === "row");
    let events = 0;
    for (const row of new Set(seen.map((entry) => entry.row))) {
      const [first, stop] = data.places.get(row) || [0, 0];
      for (let i = first; i < stop; i += 1) {
        if (data.begin[i] < view.end && data.begin[i] + data.length[i] >= view.begin) events += data.count[i];
      }
    }
    return events;
  }

  /** Say what is in view. */
  function showBar(timeline) {
    const { amount } = window.tilescope.paint;
    const { view, layout, data } = timeline;
    const [begin, end] = layout.extent;
    const percent = (100 * (end - begin)) / (view.end - view.begin);
    if (document.activeElement !== timeline.percent) {
      timeline.percent.value = percent.toLocaleString("en-US", { maximumSignificantDigits: 3 }) + " %";
      timeline.percent.size = Math.max(timeline.percent.value.length, SHORTEST);
    }
    const events = data ? eventsInView(timeline) : 0;
    const kept = window.tilescope.filterWords(layout);
    if (timeline.kept && timeline.kept.textContent !== kept) timeline.kept.textContent = kept;
    const words = timeline.place.dataset.events || "events";
    const count = layout.sketch ? "" : `, ${events.toLocaleString("en-US")} ${words} in these rows`;
    timeline.summary.textContent = `${amount(view.end - view.begin, layout)} in view${count}`;
  }

  // Search

  function listenSearch(timeline) {
    let timer = 0;
    timeline.search.addEventListener("input", () => {
      window.clearTimeout(timer);
      timer = window.setTimeout(() => find(timeline), TYPED);
    });
    timeline.search.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        nextHit(timeline, event.shiftKey ? -1 : 1);
      }
      if (event.key === "Escape") {
        timeline.search.value = "";
        find(timeline);
        timeline.canvas.focus();
      }
    });
  }

  /** Find what holds the text; `again`, where the layout is a new one, the same match stays. */
  function find(timeline, again) {
    timeline.finding = asked(timeline, again);
  }

  async function asked(timeline, again) {
    const text = timeline.search.value.trim();
    if (!again) {
      timeline.hit = -1;
      timeline.hits = null;
      timeline.found.textContent = "";
    }
    timeline.searched = text;
    if (text) {
      try {
        const hits = await (await timeline.get("/search", { q: text })).json();
        if (timeline.searched !== text) return;
        timeline.hits = hits;
        if (!again || timeline.hit < 0) timeline.found.textContent = hits.total ? hits.total.toLocaleString("en-US") : "none";
      } catch (problem) {
        timeline.found.textContent = problem.message;
      }
    }
    timeline.draw();
  }

  function findAgain(timeline) {
    if (timeline.search.value.trim()) find(timeline, true);
  }

  /** Zoom to the next (1) or previous (-1) match of the search, round and round. */
  async function nextHit(timeline, by) {
    if (timeline.searched !== timeline.search.value.trim()) find(timeline);
    await timeline.finding;
    const { hits } = timeline;
    if (!hits || !hits.total) return;
    const answer = await (await timeline.get("/search", { q: timeline.searched, rank: String(timeline.hit < 0 && by < 0 ? hits.total - 1 : (timeline.hit + by + hits.total) % hits.total) })).json();
    timeline.hit = answer.rank;
    timeline.found.textContent = `${(answer.rank + 1).toLocaleString("en-US")} of ${answer.total.toLocaleString("en-US")}`;
    const span = timeline.view.end - timeline.view.begin;
    const [begin, length] = [answer.begin[0], answer.length[0]];
    const room = Math.min(Math.max(length * 3, 8), span);
    timeline.show(begin + length / 2 - room / 2, begin + length / 2 + room / 2);
    reveal(timeline, answer.row[0]);
    if (answer.item[0] >= 0) timeline.choose(answer.item[0]);
  }

  /** Scroll to a row, and open the lane that holds it. */
  function reveal(timeline, row) {
    timeline.locate();
    const { entries } = timeline.placed;
    const entry = entries.find((one) => one.row === row) || entries.find((one) => {
      const lane = one.kind === "row" ? timeline.layout.lanes[one.lane] : null;
      return lane && lane.first <= row && row < lane.stop;
    });
    if (!entry) return;
    if (entry.strip) timeline.toggle("closed", entry.key);
    const { scroller, tall } = timeline;
    if (entry.top < scroller.scrollTop || entry.top + entry.height > scroller.scrollTop + tall - 50) scroller.scrollTop = Math.max(entry.top - tall / 2, 0);
  }

  // Saving

  function saveMenu(timeline, parent) {
    const details = document.createElement("details");
    details.className = "exports";
    const summary = document.createElement("summary");
    summary.textContent = "Save";
    summary.title = "Save what is chosen or in view";
    details.appendChild(summary);
    const menu = group(details, "menu");
    parent.appendChild(details);
    button(menu, "View as PNG", "Save the view as an image", () => window.tilescope.saveImage(timeline, "png"));
    button(menu, "View as SVG", "Save the view as a drawing", () => window.tilescope.saveImage(timeline, "svg"));
    for (const [kind, words] of [["csv", "Events as CSV"], ["json", "Events as Chrome JSON"], ["pftrace", "Events as Perfetto trace"]]) {
      button(menu, words, "Save the events of what is chosen, or of what is in view", () => {
        window.tilescope.saveEvents(timeline, kind);
        details.open = false;
      });
    }
    button(menu, "Table of what is in view", "List what is in view as a table", () => {
      details.open = false;
      window.tilescope.listView(timeline);
    });
  }

  // A button with data-toggles puts its name into a list of the address, or takes it out.
  document.addEventListener("click", (event) => {
    const button = event.target.closest && event.target.closest("[data-toggles]");
    const place = button && document.querySelector(".timeline");
    if (place && place.timeline) place.timeline.toggle(button.dataset.toggles, button.dataset.name);
  });

  window.tilescope = Object.assign(window.tilescope || {}, { toolbar, showBar, nextHit, findAgain, reveal, switchAxis });
})();
