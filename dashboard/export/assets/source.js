// What the timelines ask for, answered from the page in place of a server: `ask` takes the same
// addresses (dashboard/timeline/endpoint.py) and gives what a response has.
(function () {
  "use strict";

  const opening = new Map();
  let timelines = new Map();

  /** Say which part of the file has which timeline: by `report` and `source`. */
  function holdTimelines(sources) {
    timelines = new Map(sources.flatMap(({ key, timelines: own }) => Object.entries(own).map(([source, number]) => [key + "\u0000" + source, number])));
    firstKey = sources[0].key;
  }

  let firstKey = "";

  /** Give the tracks of a timeline, unpacked once. */
  function opened(report, source) {
    const number = timelines.get((report || firstKey) + "\u0000" + source);
    if (number === undefined) return Promise.reject(new Error("this file has no such timeline"));
    if (!opening.has(number)) opening.set(number, unpack(number));
    return opening.get(number);
  }

  async function unpack(number) {
    const { unpacked, tracks } = window.tilescope;
    const found = unpacked.columnsOf(await unpacked.bytesOf("timeline-" + number));
    return { head: found.head, whole: tracks.tracksOf(found), filtered: new Map() };
  }

  /** Give the tracks as the filter of the address leaves them. */
  function seen(one, asked) {
    const text = asked.get("filter") || "";
    if (!text.startsWith("name")) return one.whole;
    if (!one.filtered.has(text)) one.filtered = new Map([[text, window.tilescope.tracks.filtered(one.whole, text.slice(4))]]);
    return one.filtered.get(text);
  }

  const plain = (value) => ({ ok: true, status: 200, json: async () => value, text: async () => JSON.stringify(value), blob: async () => new Blob([value]) });
  const refused = (text) => ({ ok: false, status: 404, text: async () => text });

  /** Read `0-5,9-12` as the rows that there are among these. */
  function rowsAsked(text, count) {
    const found = new Set();
    for (const part of (text || "").split(",")) {
      const [first, stop] = part.split("-").map(Number);
      for (let row = first; row < Math.min(stop, count); row += 1) found.add(row);
    }
    return [...found].sort((a, b) => a - b);
  }

  function windowAsked(tracks, asked) {
    const [begin, end] = [Number(asked.get("begin")), Number(asked.get("end"))];
    return begin < end ? [begin, end] : tracks.layout.extent;
  }

  function answerWindow(tracks, asked) {
    const [begin, end] = windowAsked(tracks, asked);
    const rows = rowsAsked(asked.get("rows"), tracks.offset.length - 1);
    const buffer = window.tilescope.tracks.windowOf(tracks, rows, begin, end, Math.max(Number(asked.get("pixels")) || 1000, 1));
    return { ok: true, status: 200, arrayBuffer: async () => buffer };
  }

  function found(tracks, asked) {
    const rank = asked.has("rank") ? Number(asked.get("rank")) : null;
    return plain(window.tilescope.tracks.search(tracks, asked.get("q") || "", rank));
  }

  /** Give the lane, label, begin and length of each event of a window, in lines. */
  function* events(tracks, [begin, end]) {
    for (const { lane, row, kind } of window.tilescope.tracks.rowsOf(tracks, ["run", "layer", "step", "io", "block", "event", "flag", "derived"])) {
      const [first, stop] = window.tilescope.tracks.touched(tracks, row, begin, end);
      for (let i = first; i < stop; i += 1) yield { lane, row, kind, i };
    }
  }

  const quoted = (text) => '"' + (/^[=+\-@\t\r]/.test(text) ? "'" : "") + text.replace(/"/g, '""') + '"';

  function csv(tracks, window_) {
    const { unit } = tracks.layout;
    const lines = [`lane,row,label,kind,begin_${unit},length_${unit},events`];
    for (const { lane, row, i } of events(tracks, window_)) {
      const name = tracks.labels[tracks.label[i]];
      const words = tracks.layout.colours[tracks.kinds[tracks.label[i]]].words;
      lines.push([quoted([...lane.path, lane.name].join("/")), row - lane.first, quoted(name), quoted(words), tracks.begin[i], tracks.length[i], window.tilescope.tracks.countOf(tracks, i)].join(","));
    }
    return lines.join("\n") + "\n";
  }

  /** Write a window as a trace of Chrome's; times in microseconds. */
  function chrome(tracks, window_) {
    const { lanes, clock } = tracks.layout;
    const list = [];
    for (const { lane, i } of events(tracks, window_)) {
      const scale = 1e6 / (lane.clock || clock || 1e9);
      list.push({ name: tracks.labels[tracks.label[i]], ph: "X", pid: 1, tid: lanes.indexOf(lane) + 1, ts: tracks.begin[i] * scale, dur: tracks.length[i] * scale });
    }
    const names = lanes.map((lane, at) => ({ name: "thread_name", ph: "M", pid: 1, tid: at + 1, args: { name: [...lane.path, lane.name].join("/") } }));
    return JSON.stringify({ traceEvents: [...names, ...list] });
  }

  const PERFETTO = "this file writes CSV and Chrome JSON, which Perfetto opens, too";
  const ROUTES = {
    "": answerWindow,
    layout: (tracks) => plain(tracks.layout),
    search: found,
    charts: (tracks, asked, head) => plain(head.charts),
    waits: () => refused("waits are not in this file"),
    "export.csv": (tracks, asked) => plain(csv(tracks, windowAsked(tracks, asked))),
    "export.json": (tracks, asked) => plain(chrome(tracks, windowAsked(tracks, asked))),
    "export.pftrace": () => refused(PERFETTO),
  };

  /** Answer a request of a timeline. */
  async function ask(link) {
    const [path, search] = link.split("?");
    const asked = new URLSearchParams(search);
    const [, , source, route] = path.split("/");
    const make = ROUTES[route || ""];
    if (!make) return refused(`${route}: not in this file`);
    const one = await opened(asked.get("report"), source);
    return make(seen(one, asked), asked, one.head);
  }

  window.tilescope = Object.assign(window.tilescope || {}, { ask, opened, holdTimelines });
})();
