// The view's state lives in the address: what a user picks becomes a link, and Dash follows the link.
(function () {
  "use strict";

  // Keys that say how to look, not at what of this report: they mean the same in every report.
  const KEPT = new Set([
    "report", "against", "before", "after", "find", "chapter", "section", "tab", "graph", "breakdown", "order",
    "gaps", "limit", "scale", "lies", "show", "bsp", "level", "syncs", "columns", "by", "same", "merged",
    "lines", "align", "axis", "time", "path",
    "arrows", "runs",
  ]);
  const DRAWN_BY = ["report", "node", "ipu", "tile"]; // what the window `seen` of a graph belongs to

  /** The search of the address once keys of it are set (null drops one). */
  function searchAfter(changes) {
    const search = new URLSearchParams(window.location.search);
    if (DRAWN_BY.some((key) => key in changes)) search.delete("seen");
    for (const [key, value] of Object.entries(window.tilescope.withObject(changes))) {
      if (value === null || value === undefined || value === "") search.delete(key);
      else search.set(key, String(value));
    }
    const text = search.toString().replace(/%2C/g, ",");
    return text ? "?" + text : "";
  }

  /** Set keys of the address; `replace` leaves no entry in the history. */
  function go(changes, replace) {
    const next = searchAfter(changes);
    if (next === window.location.search) return;
    const link = window.location.pathname + next;
    if (replace) window.history.replaceState(null, "", link);
    else window.history.pushState(null, "", link);
    window.dispatchEvent(new PopStateEvent("popstate"));
  }

  /** Read a key of the address as text, or null. */
  function read(key) {
    return new URLSearchParams(window.location.search).get(key);
  }

  /** Open the same page of another report, with what means the same there. */
  function openReport(key) {
    const now = [...new URLSearchParams(window.location.search)];
    const dropped = now.filter(([name, value]) => !KEPT.has(name) || (name === "against" && value === key));
    go({ ...Object.fromEntries(dropped.map(([name]) => [name, null])), report: key });
  }

  /** Name a file after the reports that it is of, as dashboard/downloads.py does. */
  function fileName(name) {
    const reports = [read("report"), read("against")].filter(Boolean);
    const parts = reports.map((key) => key.replace(/[^A-Za-z0-9._-]+/g, "_").slice(0, 60).replace(/^[._]+|[._]+$/g, ""));
    return [...parts, name].join("-");
  }

  let runs = read("runs"); // which runs all pages count: null for those of the steady state

  /** Have all pages count some runs, those of the steady state or all of them. */
  function countRuns(chosen) {
    runs = chosen === "all" ? chosen : null;
    keepRuns();
  }

  /** Put the runs that count into the address, which links to other pages do not have. */
  function keepRuns() {
    if (read("runs") === runs) return;
    const search = new URLSearchParams(window.location.search);
    if (runs) search.set("runs", runs);
    else search.delete("runs");
    const text = search.toString().replace(/%2C/g, ",");
    window.history.replaceState(window.history.state, "", window.location.pathname + (text ? "?" + text : ""));
  }

  const arrived = [keepRuns];

  /** Have something done whenever elements came to the page, once a frame. */
  function onArrival(act) {
    arrived.push(act);
  }

  const returned = [];

  /** Have something done whenever a page is shown: one that was kept is as it was when it was left. */
  function onReturn(act) {
    returned.push(act);
  }

  let waiting = false;
  new MutationObserver(() => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      arrived.forEach((act) => act());
    });
  }).observe(document.documentElement, { childList: true, subtree: true });

  const MOST_RECENT = 12;

  /** Keep the reports opened last, and the pairs that were compared, in this browser. */
  function remember(shown, recent) {
    kept = recent || [];
    if (!shown || !shown.report || shown.path === "/") return window.dash_clientside.no_update;
    const pair = shown.path === "/compare" && shown.against;
    const opened = pair ? [shown.report, shown.against] : shown.report;
    const other = (each) => JSON.stringify(each) !== JSON.stringify(opened);
    if (kept.length && !other(kept[0])) return window.dash_clientside.no_update;
    return (kept = [opened, ...kept.filter(other)].slice(0, MOST_RECENT));
  }

  let kept = [];

  document.addEventListener("click", (event) => {
    const { copy, forget } = (event.target.closest("[data-copy], [data-forget]") || { dataset: {} }).dataset;
    if (copy) navigator.clipboard.writeText(window.location.origin + copy);
    if (forget === undefined) return;
    kept = kept.filter((_, place) => place !== Number(forget));
    window.dash_clientside.set_props("recent", { data: kept });
  });

  // The choice of reports follows the page, which Dash reports as a change, too.
  let shownReport = null;

  function setTheme(theme) {
    document.cookie = "tilescope-theme=" + theme + "; path=/; max-age=31536000; samesite=strict";
    document.documentElement.setAttribute("data-mantine-color-scheme", theme);
    return [theme, theme];
  }

  window.tilescope = Object.assign(window.tilescope || {}, { countRuns, fileName, go, read, searchAfter, onArrival, onReturn });
  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.tilescope = Object.assign(window.dash_clientside.tilescope || {}, {
    remember,
    switchTheme: (clicks) => {
      const now = document.documentElement.getAttribute("data-mantine-color-scheme");
      return setTheme(now === "dark" ? "light" : "dark");
    },
    openReport: (key) => {
      if (!key || key === shownReport) return;
      shownReport = key;
      openReport(key);
    },
    showReport: (shown) => {
      if (!shown) return window.dash_clientside.no_update;
      document.title = shown.report + " – tilescope";
      returned.forEach((act) => act());
      return (shownReport = shown.report);
    },
  });
})();
