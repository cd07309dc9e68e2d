// The timeline: one canvas view for device and host. Fetches what a window of some rows shows as one
// binary answer (its layout: dashboard/timeline/packing.py), draws it, and follows the address.
(function () {
  "use strict";

  const COLUMNS = [["begin", Float64Array], ["length", Float32Array], ["time", Float32Array],
    ["item", Int32Array], ["count", Uint32Array], ["label", Uint16Array], ["colour", Uint8Array],
    ["share", Uint8Array]];
  const SETTLED = 250; // milliseconds after the last move until the address takes the window over
  const PATIENCE = 400; // milliseconds until it is said that the server reads
  const views = new WeakMap();

  /** Read an answer into typed arrays; `rows` maps a row to its first rectangle and one behind. */
  function unpack(buffer) {
    const head = new DataView(buffer);
    if (head.getUint32(0, false) !== 0x54535632) throw new Error("the answer is no timeline");
    const length = head.getUint32(4, true);
    const data = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    let offset = 8 + length;
    for (const [name, Type] of COLUMNS) {
      data[name] = new Type(buffer, offset, data.n);
      offset += data.n * Type.BYTES_PER_ELEMENT;
    }
    let first = 0;
    data.places = new Map(data.rows.map((row, at) => [row, [first, (first += data.counts[at])]]));
    return data;
  }

  class Timeline {
    constructor(place) {
      this.place = place;
      this.view = null;
      this.layout = null;
      this.data = null;
      this.strip_ = null;
      this.asked = null;
      this.written = null;
      this.selected = -1;
      this.hits = this.searched = null;
      this.build();
      window.tilescope.listen(this);
      window.tilescope.toolbar(this);
      this.follow();
    }

    build() {
      const make = (tag, name, parent) => {
        const element = document.createElement(tag);
        element.className = name;
        parent.appendChild(element);
        return element;
      };
      this.place.replaceChildren();
      this.bar = make("div", "timeline-bar", this.place);
      this.strip = make("canvas", "timeline-overview", this.place);
      this.strip.setAttribute("aria-hidden", "true");
      this.scroller = make("div", "timeline-scroller", this.place);
      this.sizer = make("div", "timeline-sizer", this.scroller);
      this.canvas = make("canvas", "timeline-canvas", this.sizer);
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("role", "application");
      this.canvas.setAttribute("aria-label", this.place.dataset.words);
      if (this.place.dataset.tiles) this.tiles = window.tilescope.tiles(this, make("div", "timeline-tiles", this.place));
      this.tip = make("div", "timeline-tip", this.place);
      this.note = make("div", "timeline-note", this.place);
      this.note.setAttribute("aria-live", "polite");
    }

    /** Take over what the address says: report, options, window, selection. */
    follow() {
      const { asked, read } = window.tilescope;
      const selected = read(this.place.dataset.selects);
      this.selected = /^\d+$/.test(selected || "") ? Number(selected) : -1;
      this.state = asked.state();
      this.takeRange(read("range") || "");
      const options = asked.optionsOf(this.place.dataset.source).map(asked.option).join("\u0000");
      if (options !== this.asked) {
        this.asked = options;
        this.forget();
      }
      window.tilescope.showFilter(this);
      this.colours = null;
      this.placed = null;
      this.fetch();
      this.draw();
    }

    /** Show the window of the address, unless it is the one that this view wrote there itself. */
    takeRange(text) {
      if (text === this.written) return;
      this.written = text;
      const asked = window.tilescope.asked.range(text);
      this.view = asked && this.layout ? this.inside(asked.begin, asked.end) : asked || (this.layout ? this.extent() : null);
    }

    forget() {
      this.layout = this.data = this.strip_ = this.placed = this.hits = this.searched = null;
    }

    /** The files changed: fetch all again, and keep what is in view. */
    reload() {
      this.stale = Boolean(this.layout);
      this.fetch();
    }

    extent() {
      return { begin: this.layout.extent[0], end: this.layout.extent[1] };
    }

    width() {
      return Math.max(this.place.clientWidth, 240);
    }

    link(path, more) {
      return window.tilescope.asked.link(this.place.dataset.source, path, more);
    }

    async get(path, more) {
      const response = await window.tilescope.ask(this.link(path, more));
      if (!response.ok) throw new Error((await response.text()).trim());
      return response;
    }

    async window_(begin, end, rows) {
      const pixels = Math.round((this.width() - window.tilescope.paint.GUTTER) * (end - begin) / (this.view.end - this.view.begin));
      const { sketch } = window.tilescope.asked;
      const response = await this.get("", { begin, end, pixels: Math.min(Math.max(pixels, 1), 8192), rows, ...sketch(this.layout.sketch) });
      const data = unpack(await response.arrayBuffer());
      data.asked = rows;
      return data;
    }

    /** Fetch what is missing: the layout, the strip, then the window; one request at a time. */
    async fetch() {
      if (this.busy) {
        this.again = true;
        return;
      }
      this.busy = true;
      try {
        if (!this.layout) await this.fetchLayout();
        else if (this.stale) await window.tilescope.refresh(this);
        this.locate();
        const wanted = this.wanted();
        if (wanted) this.data = await this.window_(wanted.begin, wanted.end, wanted.rows);
        this.draw(); // the strip and charts may come later
        if (this.layout.sketch) this.fetchWhole(this.layout); // nothing waits for it
        if (!this.strip_) this.strip_ = await this.fetchStrip();
        await window.tilescope.fetchCharts(this);
        window.tilescope.fetchArrows(this); // nothing waits for the arrows
        if (this.failed) this.say((this.failed = ""));
      } catch (problem) {
        this.failed = problem.message;
        this.say(problem.message, true);
      }
      this.busy = false;
      if (this.again) {
        this.again = false;
        this.fetch();
      }
      this.draw();
    }

    async fetchLayout() {
      const patience = window.setTimeout(() => this.say("Reading the events…", true), PATIENCE);
      try {
        const { sketch } = window.tilescope.asked;
        this.layout = await (await this.get("/layout", sketch(this.place.dataset.source === "host"))).json();
      } finally {
        window.clearTimeout(patience);
      }
      this.say(this.layout.sketch ? "Reading the events…" : "", this.layout.sketch);
      this.view = this.view || this.extent();
      this.show(this.view.begin, this.view.end, true);
      window.tilescope.findAgain(this);
    }

    /** Take the place of a sketch when all is read. */
    async fetchWhole(sketch) {
      if (this.sketch === sketch) return;
      this.sketch = sketch;
      try {
        await (await this.get("/layout")).arrayBuffer(); // to its end, or its connection stays taken
        if (this.layout !== sketch) return;
        this.say("");
        this.reload();
      } catch (problem) {
        this.say((this.failed = problem.message), true);
      }
    }

    async fetchStrip() {
      const { lanes } = this.layout;
      const each = Math.ceil(lanes.length / 16); // of many lanes some
      const rows = lanes.filter((_, at) => at % each === 0).map((lane) => lane.overview).sort((a, b) => a - b);
      const kept = this.view;
      const [begin, end] = this.layout.extent;
      this.view = { begin, end };
      const asked = this.window_(begin, end, window.tilescope.rows.written(rows));
      this.view = kept;
      return asked;
    }

    /** Work out where rows stand, and make room for them. */
    locate() {
      if (this.placed || !this.layout) return;
      this.placed = window.tilescope.rows.place(this.layout, this.state);
      this.tall = window.tilescope.asked.tall(this.placed.height, this.place.dataset.source);
      this.scroller.style.height = this.tall + 4 + "px";
      this.sizer.style.height = window.tilescope.paint.RULER + this.placed.height + "px";
    }

    inView() {
      const { RULER } = window.tilescope.paint;
      const from = this.scroller.scrollTop;
      return window.tilescope.rows.between(this.placed.entries, from, from + this.tall - RULER);
    }

    /** Give what to fetch, or null when the last answer has the window in fine enough pixels. */
    wanted() {
      const { view, data } = this;
      const seen = this.inView();
      const span = view.end - view.begin;
      const [first, last] = this.layout.extent;
      if (data) {
        const [begin, end] = data.window;
        const inside = Math.max(view.begin, first) >= begin - 1 && Math.min(view.end, last) <= end + 1;
        const fine = (end - begin) / span <= 2;
        const has = this.placed.entries.slice(...seen).every((entry) => entry.kind !== "row" || this.holds(entry.row));
        if (inside && fine && has) return null;
      }
      return window.tilescope.asked.wanted(this.layout, this.placed, view, seen);
    }

    /** Tell whether the last answer was asked for a row. */
    holds(row) {
      this.data.held = this.data.held || this.data.asked.split(",").filter(Boolean).map((part) => part.split("-").map(Number));
      return this.data.held.some(([first, stop]) => row >= first && row < stop);
    }

    /** Tell assistive technology, and with `seen` everybody. */
    say(text, seen) {
      this.note.textContent = text;
      this.note.classList.toggle("seen", Boolean(seen));
    }

    draw() {
      if (this.dirty) return;
      this.dirty = true;
      window.requestAnimationFrame(() => {
        this.dirty = false;
        if (this.layout && this.view && !this.paused && this.place.isConnected) this.paint();
      });
    }

    paint() {
      const started = performance.now();
      const { paint } = window.tilescope;
      this.colours = this.colours || paint.palette(this.place, this.layout.colours);
      this.locate();
      if (!this.layout.events && !(this.layout.charts || []).length) this.say("Nothing was recorded.", true);
      paint.drawOverview(this);
      paint.drawMain(this);
      if (this.tiles) this.tiles.draw();
      if (this.data) this.place.dataset.drawn = String(this.data.n);
      window.tilescope.showBar(this);
      window.tilescope.relist(this);
      (this.frames = this.frames || []).push(performance.now() - started);
    }

    inside(begin, end) {
      return window.tilescope.asked.inside(this.layout, begin, end);
    }

    /** Show another window. */
    show(begin, end, quiet) {
      this.view = this.inside(begin, end);
      this.tip.style.display = "none";
      this.draw();
      if (quiet) return;
      this.fetch();
      window.clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.settle(), SETTLED);
    }

    settle() {
      const begin = Math.max(Math.round(this.view.begin), 0);
      const end = Math.max(Math.round(this.view.end), begin + 1);
      const [first, last] = this.layout.extent;
      const all = begin <= first && end >= last;
      this.written = all ? "" : begin + "-" + end;
      window.tilescope.go({ range: this.written }, true);
    }

    zoom(factor, at) {
      if (!this.layout) return;
      const span = this.view.end - this.view.begin;
      const middle = at === undefined ? this.view.begin + span / 2 : at;
      const share = (middle - this.view.begin) / span;
      const next = Math.max(span * factor, window.tilescope.asked.SMALLEST);
      this.show(middle - share * next, middle + (1 - share) * next);
    }

    pan(share) {
      if (!this.layout) return;
      const by = (this.view.end - this.view.begin) * share;
      this.show(this.view.begin + by, this.view.end + by);
    }

    /** Zoom to a span, with some room on both sides. */
    fit(begin, end) {
      const margin = Math.max((end - begin) * 0.08, 2);
      this.show(begin - margin, end + margin);
    }

    select(i) {
      if (i < 0) return;
      if (this.data.count[i] > 1) return this.fit(this.data.begin[i], this.data.begin[i] + this.data.length[i]);
      if (this.data.item[i] < 0) return;
      this.choose(this.data.item[i]);
      this.say("Selected: " + window.tilescope.describe(this, i).join(", "));
    }

    choose(item) {
      this.selected = item;
      window.tilescope.go({ [this.place.dataset.selects]: item < 0 ? null : item });
      this.draw();
    }

    /** Select the next (1) or previous (-1) rectangle of the row that holds the selection. */
    step(by) {
      const { data } = this;
      if (!data) return;
      let from = data.item.indexOf(this.selected);
      if (this.selected < 0 || from < 0) {
        const inView = (i) => data.begin[i] + data.length[i] >= this.view.begin && data.begin[i] < this.view.end;
        const seen = Array.from({ length: data.n }, (_, i) => i).filter(inView);
        from = [seen.find((i) => data.item[i] >= 0), seen.find((i) => data.count[i] > 1)].find((i) => i !== undefined);
        if (from !== undefined) this.select(from); // of many together it zooms in, as a click does
        return;
      }
      const [first, stop] = [...data.places.values()].find((place) => from >= place[0] && from < place[1]);
      const to = from + by;
      if (to < first || to >= stop) return;
      const end = data.begin[to] + data.length[to];
      if (end > this.view.end || data.begin[to] < this.view.begin) {
        const shift = (data.begin[to] + end - this.view.begin - this.view.end) / 2;
        this.show(this.view.begin + shift, this.view.end + shift);
      }
      this.select(to);
    }

    /** Put a name into a list of the address, or take it out. */
    toggle(key, name) {
      const next = window.tilescope.asked.list(window.tilescope.read(key));
      if (!next.delete(name)) next.add(name);
      window.tilescope.go({ [key]: [...next].map((text) => encodeURIComponent(text)).join(",") }, true);
    }
  }

  function attach(place) {
    if (views.has(place)) return;
    place.timeline = new Timeline(place);
    views.set(place, place.timeline);
  }

  // Dash calls the function below only once it has laid out all of the page.
  window.tilescope.onArrival(() => document.querySelectorAll(".timeline").forEach(attach));

  /** Called by Dash when the place appears, and when address, theme or report change. */
  function timeline(identifier, search, theme, shown) {
    const place = document.getElementById(identifier);
    if (!place) return search;
    attach(place);
    const view = views.get(place);
    const state = shown ? shown.report + shown.stamp : "";
    if (state && view.shown && view.shown !== state) {
      view.reload();
      window.dash_clientside.set_props("stamped", { data: state });
    }
    view.shown = state || view.shown;
    view.follow();
    return search;
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.tilescope = Object.assign(window.dash_clientside.tilescope || {}, { timeline });
})();
