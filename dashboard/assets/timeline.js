// The timeline: one canvas view for device and host. Fetches what a window shows as one binary answer
// (its layout: dashboard/timeline/packing.py), draws it, and follows wheel, pointer and keys.
(function () {
  "use strict";

  const COLUMNS = [["begin", Float64Array], ["end", Float64Array], ["item", Int32Array],
    ["count", Uint32Array], ["label", Uint16Array], ["row", Uint16Array], ["colour", Uint8Array]];
  const MARGIN = 0.5; // of the window, fetched on each side so that a pan has something to show
  const SETTLED = 250; // milliseconds after the last move until the address takes the window over
  const views = new WeakMap();

  /** Read an answer into typed arrays. */
  function unpack(buffer) {
    const head = new DataView(buffer);
    if (head.getUint32(0, false) !== 0x54535631) throw new Error("the answer is no timeline");
    const length = head.getUint32(4, true);
    const data = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    let offset = 8 + length;
    for (const [name, Type] of COLUMNS) {
      const bytes = data.n * Type.BYTES_PER_ELEMENT;
      data[name] = new Type(buffer.slice(offset, offset + bytes));
      offset += bytes;
    }
    return data;
  }

  class Timeline {
    constructor(place) {
      this.place = place;
      this.view = null;
      this.data = null;
      this.whole = null;
      this.asked = "";
      this.written = null;
      this.selected = -1;
      this.dirty = false;
      this.busy = false;
      this.again = false;
      this.build();
      window.tilescope.listen(this);
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
      this.strip = make("canvas", "timeline-overview", this.place);
      this.strip.setAttribute("aria-hidden", "true");
      this.scroller = make("div", "timeline-scroller", this.place);
      this.canvas = make("canvas", "timeline-canvas", this.scroller);
      this.canvas.tabIndex = 0;
      this.canvas.setAttribute("role", "application");
      this.canvas.setAttribute("aria-label", this.place.dataset.words);
      this.tip = make("div", "timeline-tip", this.place);
      this.note = make("div", "timeline-note", this.place);
      this.note.setAttribute("aria-live", "polite");
    }

    /** Take over what the address says: report, option, window, selection. */
    follow() {
      const { read } = window.tilescope;
      const asked = [read("report") || "", read("show") || ""].join("\u0000");
      const selected = read(this.place.dataset.selects);
      this.selected = selected === null ? -1 : Number(selected);
      this.takeRange(read("range") || "");
      if (asked !== this.asked) {
        this.asked = asked;
        this.whole = null;
        this.data = null;
      }
      this.colours = null;
      this.fetch();
      this.draw();
    }

    /** Show the window of the address, unless it is the one that this view wrote there itself. */
    takeRange(text) {
      if (text === this.written) return;
      this.written = text;
      const range = text.match(/^(\d+)-(\d+)$/);
      if (range && Number(range[1]) < Number(range[2])) {
        this.view = { begin: Number(range[1]), end: Number(range[2]) };
      } else this.view = this.whole ? this.extent() : null;
    }

    reload() {
      this.whole = null;
      this.fetch();
    }

    extent() {
      return { begin: this.whole.extent[0], end: this.whole.extent[1] };
    }

    width() {
      return Math.max(this.place.clientWidth, 240);
    }

    link(window_) {
      const { read } = window.tilescope;
      const search = new URLSearchParams({ pixels: String(2 * this.width()) });
      for (const key of ["report", "show"]) if (read(key)) search.set(key, read(key));
      if (window_) {
        search.set("begin", String(Math.floor(window_.begin)));
        search.set("end", String(Math.ceil(window_.end)));
      }
      return "timeline/" + this.place.dataset.source + "?" + search;
    }

    /** Fetch what is missing: the whole for the strip, then the window; one request at a time. */
    async fetch() {
      if (this.busy) {
        this.again = true;
        return;
      }
      this.busy = true;
      try {
        if (!this.whole) {
          this.whole = await this.get(null);
          this.data = this.whole;
          this.view = this.view || this.extent();
          this.draw();
        }
        if (!this.covers()) this.data = await this.get(this.wanted());
        if (this.note.classList.contains("seen")) this.say("");
      } catch (problem) {
        this.say(problem.message, true);
      }
      this.busy = false;
      if (this.again) {
        this.again = false;
        this.fetch();
      }
      this.draw();
    }

    async get(window_) {
      const response = await fetch("/" + this.link(window_));
      if (!response.ok) throw new Error((await response.text()).trim());
      return unpack(await response.arrayBuffer());
    }

    wanted() {
      const span = this.view.end - this.view.begin;
      const [begin, end] = this.whole.extent;
      return {
        begin: Math.max(this.view.begin - MARGIN * span, Math.min(begin, this.view.begin)),
        end: Math.min(this.view.end + MARGIN * span, Math.max(end, this.view.end)),
      };
    }

    /** Tell whether the last answer holds the window, in fine enough pixels. */
    covers() {
      const [begin, end] = this.data.window;
      const whole = this.whole.extent;
      const inside = Math.max(this.view.begin, whole[0]) >= begin - 1 && Math.min(this.view.end, whole[1]) <= end + 1;
      return inside && (end - begin) / (this.view.end - this.view.begin) <= 2.5;
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
        if (this.data && this.view && this.place.isConnected) this.paint();
      });
    }

    paint() {
      const { paint } = window.tilescope;
      this.colours = this.colours || paint.palette(this.place, this.data.colours);
      const size = { width: this.width() };
      this.placed = paint.layoutRows(this.data.rows);
      if (!this.data.rows.some((row) => row.overview) || !this.whole.n) this.say("Nothing was recorded.", true);
      paint.drawOverview(this.strip, size, this.view, this.whole, this.colours);
      this.place.dataset.drawn = String(this.data.n);
      paint.drawMain(this.canvas, size, this.view, this.data, this.placed, this.colours, this.selected);
    }

    /** Show another window, no smaller than a few units and inside the whole. */
    show(begin, end) {
      const [first, last] = this.whole.extent;
      const whole = last - first;
      const span = Math.min(Math.max(end - begin, 8), whole);
      const from = Math.min(Math.max(begin, first), last - span);
      this.view = { begin: from, end: from + span };
      this.tip.style.display = "none";
      this.draw();
      this.fetch();
      window.clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.settle(), SETTLED);
    }

    settle() {
      const begin = Math.round(this.view.begin);
      const end = Math.max(Math.round(this.view.end), begin + 1);
      const [first, last] = this.whole.extent;
      const all = begin <= first && end >= last;
      this.written = all ? "" : begin + "-" + end;
      window.tilescope.go({ range: this.written }, true);
    }

    zoom(factor, at) {
      const span = this.view.end - this.view.begin;
      const middle = at === undefined ? this.view.begin + span / 2 : at;
      const share = (middle - this.view.begin) / span;
      const next = Math.max(span * factor, 8);
      this.show(middle - share * next, middle + (1 - share) * next);
    }

    pan(share) {
      const by = (this.view.end - this.view.begin) * share;
      this.show(this.view.begin + by, this.view.end + by);
    }

    select(i) {
      if (i < 0) return;
      if (this.data.count[i] > 1) {
        const margin = (this.data.end[i] - this.data.begin[i]) * 0.1 + 4;
        this.show(this.data.begin[i] - margin, this.data.end[i] + margin);
        return;
      }
      if (this.data.item[i] < 0) return;
      this.selected = this.data.item[i];
      this.say("Selected: " + window.tilescope.describe(this, i).join(", "));
      window.tilescope.go({ [this.place.dataset.selects]: this.selected });
      this.draw();
    }

    /** Select the next (1) or previous (-1) rectangle of the row that holds the selection. */
    step(by) {
      const { data } = this;
      let from = data.item.indexOf(this.selected);
      if (this.selected < 0 || from < 0) {
        const inView = (i) => data.item[i] >= 0 && data.end[i] > this.view.begin && data.begin[i] < this.view.end;
        from = Array.from({ length: data.n }, (_, i) => i).find(inView);
        if (from !== undefined) this.select(from);
        return;
      }
      const to = from + by;
      if (to < 0 || to >= data.n || data.row[to] !== data.row[from]) return;
      if (data.end[to] > this.view.end || data.begin[to] < this.view.begin) {
        const by_ = (data.begin[to] + data.end[to] - this.view.begin - this.view.end) / 2;
        this.show(this.view.begin + by_, this.view.end + by_);
      }
      this.select(to);
    }

  }

  /** Called by Dash when the place appears, and when address, theme or report change. */
  function timeline(identifier, search, theme, shown) {
    const place = document.getElementById(identifier);
    if (!place) return search;
    const state = shown ? shown.report + shown.stamp : "";
    const view = views.get(place);
    if (!view) {
      const made = new Timeline(place);
      made.state = state;
      views.set(place, made);
      return search;
    }
    if (state && view.state && view.state !== state) view.reload();
    view.state = state;
    view.follow();
    return search;
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.tilescope = Object.assign(window.dash_clientside.tilescope || {}, { timeline });
})();
