// Runs before anything is drawn: the theme that was chosen, or else the system's, so that no page flashes.
(function () {
  "use strict";
  var found = document.cookie.match(/(?:^|; )tilescope-theme=(light|dark)/);
  var dark = window.matchMedia("(prefers-color-scheme: dark)").matches;
  var theme = found ? found[1] : dark ? "dark" : "light";
  document.cookie = "tilescope-theme=" + theme + "; path=/; max-age=31536000; samesite=strict";
  document.documentElement.setAttribute("data-mantine-color-scheme", theme);
})();
