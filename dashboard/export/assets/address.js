// The state of a view, in the fragment of the file's own address: #/execution?report=a&range=0-100.
// The keys are those of the dashboard's links.
(function () {
  "use strict";

  /** Take the fragment apart: the page, and what is chosen there. */
  function now() {
    const [path, ...rest] = window.location.hash.slice(1).split("?");
    return { path: path || "", search: new URLSearchParams(rest.join("?")) };
  }

  const read = (key) => now().search.get(key);

  /** Set keys of the address (null drops one); `replace` leaves no entry in the history. */
  function go(changes, replace) {
    const { path, search } = now();
    for (const [key, value] of Object.entries(changes)) {
      if (value === null || value === undefined || value === "") search.delete(key);
      else search.set(key, String(value));
    }
    const text = search.toString().replace(/%2C/g, ",");
    const link = "#" + path + (text ? "?" + text : "");
    if (link === window.location.hash) return;
    if (replace) window.history.replaceState(null, "", link);
    else window.history.pushState(null, "", link);
    window.dispatchEvent(new PopStateEvent("popstate"));
  }

  const arrived = [];

  /** Have something done when elements came to the page. */
  const onArrival = (act) => arrived.push(act);
  const haveArrived = () => arrived.forEach((act) => act());

  /** Name a file after the report that it is of. */
  function fileName(name) {
    const report = (read("report") || "").replace(/[^A-Za-z0-9._-]+/g, "_").slice(0, 60);
    return [report, name].filter(Boolean).join("-");
  }

  /** Give what stands above a saved picture: the heading of its section, and the report. */
  function pictureTitle(place) {
    const heading = place.closest(".section") && place.closest(".section").querySelector("h2");
    return [heading && heading.textContent, read("report")].filter(Boolean);
  }

  window.tilescope = Object.assign(window.tilescope || {}, { now, read, go, onArrival, haveArrived, fileName, pictureTitle });
})();
