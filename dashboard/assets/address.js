// The view's state lives in the address: what a user picks becomes a link, and Dash follows the link.
(function () {
  "use strict";

  /** Set keys of the address (null drops one); `replace` leaves no entry in the history. */
  function go(changes, replace) {
    const search = new URLSearchParams(window.location.search);
    for (const [key, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === "") search.delete(key);
      else search.set(key, String(value));
    }
    const text = search.toString().replace(/%2C/g, ",");
    const next = text ? "?" + text : "";
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

  /** Open the same page of another report; what was chosen in this one means nothing there. */
  function openReport(key) {
    const kept = new URLSearchParams(window.location.search);
    const chosen = new Set([
      "tile", "step", "event", "range", "filter", "ipu", "program", "turned", "part", "operation", "layer",
    ]);
    const changes = { report: key };
    for (const name of kept.keys()) if (chosen.has(name)) changes[name] = null;
    go(changes);
  }

  const MOST_RECENT = 12;

  /** Keep the names of the reports opened last, in this browser. */
  function remember(shown, recent) {
    const none = window.dash_clientside.no_update;
    if (!shown || !shown.report) return none;
    const last = (recent || []).filter((key) => key !== shown.report);
    if (recent && recent[0] === shown.report) return none;
    return [shown.report, ...last].slice(0, MOST_RECENT);
  }

  // The choice of reports follows the page, which Dash reports as a change, too.
  let shownReport = null;

  function setTheme(theme) {
    document.cookie = "tilescope-theme=" + theme + "; path=/; max-age=31536000; samesite=strict";
    document.documentElement.setAttribute("data-mantine-color-scheme", theme);
    return [theme, theme];
  }

  window.tilescope = Object.assign(window.tilescope || {}, { go, read });
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
      return (shownReport = shown.report);
    },
  });
})();
