// Asks for the layout of a timeline and its first window as soon as the scripts run: until the page
// has a place for it, Dash is busy for longer than the answers take.
(function () {
  "use strict";

  const SOURCES = { "/execution": "device", "/trace": "host", "/together": "together" };
  const WIDTH = 0.75; // of the window, about; only how fine the first answer is depends on it
  const KEPT = 10_000; // milliseconds
  const begun = new Map();
  const keyOf = (link) => link.replace(/pixels=\d+&/, "");

  /** Read an answer to its end, so that its connection is free though nobody may ask for it. */
  async function complete(response) {
    const body = await response.arrayBuffer();
    return response.status === 200 ? new Response(body, { headers: response.headers }) : null;
  }

  /** Fetch what will be asked for; what is not there is told to those who ask. */
  function begin(link) {
    const answer = fetch(link + "&ahead=on").then(complete).catch(() => null);
    begun.set(keyOf(link), answer);
    window.setTimeout(() => begun.delete(keyOf(link)), KEPT);
    return answer;
  }

  /** Give the answer to a link, the one that was asked for before if there is one. */
  async function ask(link) {
    const key = keyOf(link);
    const answer = begun.get(key);
    begun.delete(key);
    return (answer && (await answer)) || fetch(link);
  }

  async function start(source) {
    const { asked, paint, read, rows } = window.tilescope;
    const answer = await begin(asked.link(source, "/layout", asked.sketch(source === "host")));
    if (!answer) return;
    const layout = await answer.clone().json();
    const placed = rows.place(layout, asked.state());
    const chosen = asked.range(read("range")) || { begin: layout.extent[0], end: layout.extent[1] };
    const view = asked.inside(layout, chosen.begin, chosen.end);
    const seen = rows.between(placed.entries, 0, asked.tall(placed.height) - paint.RULER);
    const wanted = asked.wanted(layout, placed, view, seen);
    const pixels = Math.round((WIDTH * window.innerWidth * (wanted.end - wanted.begin)) / (view.end - view.begin));
    const { begin: from, end, rows: asks } = wanted;
    begin(asked.link(source, "", { begin: from, end, pixels, rows: asks, ...asked.sketch(layout.sketch) }));
  }

  window.tilescope = Object.assign(window.tilescope || {}, { ask });
  if (SOURCES[window.location.pathname]) start(SOURCES[window.location.pathname]);
})();
