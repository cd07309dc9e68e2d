// Runs before anything is drawn: the theme and the menu, so that no page flashes or moves, and what
// takes longest to load.
(function () {
  "use strict";
  var found = document.cookie.match(/(?:^|; )tilescope-theme=(light|dark)/);
  var dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  var theme = found ? found[1] : dark ? "dark" : "light";
  document.cookie = "tilescope-theme=" + theme + "; path=/; max-age=31536000; samesite=strict";
  document.documentElement.setAttribute("data-mantine-color-scheme", theme);
  if (/(?:^|; )tilescope-menu=folded/.test(document.cookie)) document.documentElement.dataset.menu = "folded";

  // Which runs count is in the address, so that a copied link opens the same view; requests bring it
  // in a cookie, of the tab that is looked at.
  function tellRuns() {
    var all = /[?&]runs=all(&|$)/.test(window.location.search);
    document.cookie = "tilescope-runs=" + (all ? "all" : "steady") + "; path=/; samesite=strict";
  }
  tellRuns();
  document.addEventListener("visibilitychange", function () { if (!document.hidden) tellRuns(); });

  // What Dash asks for when its scripts have run; asked for now, it is there by then. The window comes
  // with the page of this address (dashboard/app.py).
  var asked = {};
  var fetched = window.fetch;
  var at = encodeURIComponent(window.location.pathname + window.location.search);
  [["/_dash-layout", "?at=" + at], ["/_dash-dependencies", ""]].forEach(function (address) {
    asked[address[0]] = fetched(address.join(""), { credentials: "same-origin" });
  });
  window.fetch = function (address) {
    var answer = asked[address];
    delete asked[address];
    return answer || fetched.apply(window, arguments);
  };

  // What a plot is made by. Dash would load it when the first one is laid out, and go on with its
  // callbacks before it draws.
  function fetchPlots() {
    var script = document.createElement("script");
    script.src = "/_dash-component-suites/dash/dcc/async-graph.js";
    document.head.append(script);
  }

  // Dash's plots wait for what stands in `window.Plotly`, which may be a promise.
  function plotly() {
    window.Plotly = window.Plotly || new Promise(function (resolve, reject) {
      var script = document.createElement("script");
      script.fetchPriority = "high";
      script.src = "/_dash-component-suites/plotly/package_data/plotly.min.js";
      script.onload = function () { resolve(); };
      script.onerror = reject;
      document.head.append(script);
    });
  }

  if (document.querySelector("link[rel=preload]")) { // a page that begins with a plot: dashboard/scripts.py
    plotly();
    fetchPlots();
  }
  window.tilescope = { plotly: plotly };
})();
