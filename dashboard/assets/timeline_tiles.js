// What the tiles do, below the timeline and on its axis: an image of rows of tiles, columns of time.
(function () {
  "use strict";

  const HEIGHT = 224;
  const NOTHING = 0xff;
  const SOON = 60; // milliseconds without a move until the image is fetched

  function unpack(buffer) {
    const head = new DataView(buffer);
    if (head.getUint32(0, false) !== 0x54534231) throw new Error("the answer is no image of tiles");
    const length = head.getUint32(4, true);
    const data = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    data.cells = new Uint8Array(buffer, 8 + length);
    return data;
  }

  function channels(colour) {
    const found = colour.match(/^#(..)(..)(..)$/);
    return found ? found.slice(1).map((part) => parseInt(part, 16)) : [136, 136, 136];
  }

  class Tiles {
    constructor(timeline, place) {
      this.timeline = timeline;
      this.place = place;
      this.canvas = document.createElement("canvas");
      this.canvas.className = "timeline-tiles-canvas";
      this.canvas.setAttribute("role", "img");
      this.canvas.setAttribute("aria-label", "Tiles over time");
      this.bar = document.createElement("div");
      this.bar.className = "timeline-tiles-bar";
      this.note = document.createElement("span");
      place.append(this.bar, this.canvas);
      for (const [text, title, factor] of [["−", "Show more tiles", 2], ["+", "Show fewer tiles", 0.5], ["All", "Show all tiles", 0]]) {
        const button = document.createElement("button");
        button.type = "button";
        button.className = "button";
        button.textContent = text;
        button.title = title;
        button.setAttribute("aria-label", title);
        button.addEventListener("click", () => this.zoom(factor, 0.5));
        this.bar.append(button);
      }
      this.bar.append(this.note);
      this.canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      this.canvas.addEventListener("pointermove", (event) => this.hover(event));
      this.canvas.addEventListener("pointerleave", () => { this.note.textContent = this.words(); });
    }

    asked() {
      const { view, width } = { view: this.timeline.view, width: this.timeline.width() };
      const { GUTTER } = window.tilescope.paint;
      return {
        begin: String(Math.floor(view.begin)), end: String(Math.ceil(view.end)),
        columns: String(Math.min(Math.round((width - GUTTER) / 1.5), 720)), height: "112",
        tiles: window.tilescope.read("tiles") || this.ofIpu(),
      };
    }

    /** Give the tiles of the chosen IPU as a range, or nothing. */
    ofIpu() {
      const ipu = Number(window.tilescope.read("ipu") || NaN);
      const ipus = this.timeline.layout.lanes.filter((lane) => /^IPU \d+$/.test(lane.name)).length;
      const each = Math.floor(Number(this.timeline.place.dataset.tiles) / Math.max(ipus, 1));
      return ipu < ipus ? `${ipu * each}-${(ipu + 1) * each}` : "";
    }

    draw() {
      this.place.hidden = window.tilescope.read("bsp") === "off";
      if (this.place.hidden) return;
      const wanted = this.timeline.link("/tiles", this.asked());
      if (wanted !== this.wanted && !this.failed) {
        this.wanted = wanted;
        window.clearTimeout(this.timer);
        this.timer = window.setTimeout(() => this.fetch(wanted), this.data ? SOON : 0);
      }
      if (this.data) this.paint();
    }

    async fetch(link) {
      try {
        const response = await window.tilescope.ask(link);
        if (!response.ok) throw new Error((await response.text()).trim());
        const data = unpack(await response.arrayBuffer());
        if (link !== this.wanted) return;
        this.data = data;
        this.image = null;
        this.note.textContent = this.words();
        this.timeline.draw();
      } catch (problem) {
        this.failed = true;
        this.canvas.remove();
        this.bar.textContent = problem.message;
      }
    }

    words() {
      if (!this.data) return "";
      const { tiles, by_step } = this.data;
      const many = Math.ceil((tiles[tiles.length - 1] - tiles[0]) / (tiles.length - 1));
      const rows = many > 1 ? `a row is ${many} tiles` : "a row a tile";
      const whose = window.tilescope.read("against") ? "of the upper report, " : "";
      return `Tiles ${whose}${tiles[0].toLocaleString("en-US")} to ${(tiles[tiles.length - 1] - 1).toLocaleString("en-US")}, ${rows}; the colour is what most of the time goes to` +
        (by_step ? "" : "; zoom in to place each step on each tile") +
      (window.tilescope.filteredBy() ? "; of all steps, the filter leaves none out here" : "");
    }

    /** Colour the cells: the paler the smaller the share of what a cell shows. */
    coloured() {
      const { data, timeline } = this;
      const rows = data.tiles.length - 1;
      const image = document.createElement("canvas");
      image.width = data.columns;
      image.height = rows;
      const style = getComputedStyle(timeline.place);
      const fills = data.activities.map(([token]) => channels(style.getPropertyValue("--" + token).trim()));
      const pale = channels(timeline.colours.tokens.idle);
      const pixels = new ImageData(data.columns, rows);
      for (let i = 0; i < data.cells.length; i += 1) {
        const cell = data.cells[i];
        const share = cell === NOTHING ? 0 : 0.25 + (0.75 * (cell & 15)) / 15;
        const fill = cell === NOTHING ? pale : fills[cell >> 4];
        for (let part = 0; part < 3; part += 1) pixels.data[4 * i + part] = pale[part] + share * (fill[part] - pale[part]);
        pixels.data[4 * i + 3] = 255;
      }
      image.getContext("2d").putImageData(pixels, 0, 0);
      return image;
    }

    paint() {
      const { timeline, data } = this;
      const { GUTTER } = window.tilescope.paint;
      if (!this.image || this.colours !== timeline.colours) this.image = this.coloured();
      this.colours = timeline.colours;
      const width = timeline.width();
      const ratio = window.devicePixelRatio || 1;
      if (this.canvas.width !== Math.round(width * ratio)) {
        this.canvas.width = Math.round(width * ratio);
        this.canvas.height = Math.round(HEIGHT * ratio);
        this.canvas.style.height = HEIGHT + "px";
      }
      const context = this.canvas.getContext("2d");
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      context.clearRect(0, 0, width, HEIGHT);
      context.imageSmoothingEnabled = false;
      const scale = (width - GUTTER) / (timeline.view.end - timeline.view.begin);
      const left = GUTTER + (data.window[0] - timeline.view.begin) * scale;
      context.save();
      context.beginPath();
      context.rect(GUTTER, 0, width - GUTTER, HEIGHT);
      context.clip();
      context.drawImage(this.image, left, 0, (data.window[1] - data.window[0]) * scale, HEIGHT);
      context.restore();
      this.names(context, GUTTER);
      this.canvas.setAttribute("aria-label", this.words());
    }

    names(context, gutter) {
      const { data, timeline } = this;
      const rows = data.tiles.length - 1;
      context.font = "11px " + timeline.colours.font;
      context.fillStyle = timeline.colours.tokens.quiet;
      context.textAlign = "right";
      context.textBaseline = "middle";
      const step = Math.max(1, Math.ceil(rows / 9));
      for (let row = 0; row < rows; row += step) {
        const y = Math.max(((row + 0.5) * HEIGHT) / rows, 6);
        context.fillText("Tile " + data.tiles[row].toLocaleString("en-US"), gutter - 8, Math.min(y, HEIGHT - 6));
      }
      context.textAlign = "left";
    }

    hover(event) {
      const { data, timeline } = this;
      const box = this.canvas.getBoundingClientRect();
      const { GUTTER } = window.tilescope.paint;
      if (!data || event.clientX - box.left < GUTTER) return;
      const share = (event.clientX - box.left - GUTTER) / (box.width - GUTTER);
      const value = timeline.view.begin + share * (timeline.view.end - timeline.view.begin);
      const column = Math.floor(((value - data.window[0]) / (data.window[1] - data.window[0])) * data.columns);
      const row = Math.floor(((event.clientY - box.top) / box.height) * (data.tiles.length - 1));
      const cell = data.cells[row * data.columns + column];
      if (cell === undefined || column < 0 || column >= data.columns) return;
      const [first, stop] = [data.tiles[row], data.tiles[row + 1] - 1];
      const words = cell === NOTHING ? "nothing" : `${data.activities[cell >> 4][1]} ${Math.round((100 * (cell & 15)) / 15)} %`;
      this.note.textContent = `${first === stop ? "Tile " + first : "Tiles " + first + " to " + stop}: ${words}`;
    }

    wheel(event) {
      if (!this.data) return;
      event.preventDefault();
      const box = this.canvas.getBoundingClientRect();
      if (event.shiftKey || event.altKey || event.clientX - box.left < window.tilescope.paint.GUTTER) {
        return this.zoom(Math.pow(1.002, event.deltaY || event.deltaX), (event.clientY - box.top) / box.height);
      }
      const share = (event.clientX - box.left - window.tilescope.paint.GUTTER) / (box.width - window.tilescope.paint.GUTTER);
      const { view } = this.timeline;
      this.timeline.zoom(Math.pow(1.0015, event.deltaY), view.begin + share * (view.end - view.begin));
    }

    /** Show `factor` times as many tiles around a height; with 0 all of them. */
    zoom(factor, at) {
      if (!this.data) return;
      const { tiles } = this.data;
      const [first, stop] = [tiles[0], tiles[tiles.length - 1]];
      const next = Math.max(Math.round((stop - first) * factor), 1);
      const from = Math.max(Math.round(first + at * (stop - first) - at * next), 0);
      const all = !factor || (factor > 1 && next >= Number(this.timeline.place.dataset.tiles));
      window.tilescope.go({ tiles: all ? null : `${from}-${from + next}` }, true);
    }
  }

  const tiles = (timeline, place) => new Tiles(timeline, place);

  window.tilescope = Object.assign(window.tilescope || {}, { tiles });
})();
