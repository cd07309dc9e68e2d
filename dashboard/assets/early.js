// Runs before anything is drawn: the theme, so that no page flashes, and what takes longest to load.
(function () {
  "use strict";
  var found = document.cookie.match(/(?:^|; )tilescope-theme=(light|dark)/);
  var dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  var theme = found ? found[1] : dark ? "dark" : "light";
  document.cookie = "tilescope-theme=" + theme + "; path=/; max-age=31536000; samesite=strict";
  document.documentElement.setAttribute("data-mantine-color-scheme", theme);

  // Dash's plots wait for what stands in `window.Plotly`, which may be a promise.
  function plotly() {
    window.Plotly = window.Plotly || new Promise(function (resolve, reject) {
      var script = document.createElement("script");
      script.src = "/_dash-component-suites/plotly/package_data/plotly.min.js";
      script.onload = function () { resolve(); };
      script.onerror = reject;
      document.head.append(script);
    });
  }

  if (/^\/(memory|liveness|insights|graph)$/.test(window.location.pathname)) plotly();
  window.tilescope = { plotly: plotly };
})();
