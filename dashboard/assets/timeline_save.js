// A timeline as an image, as a drawing, and its events as a file.
(function () {
  "use strict";

  const SHARP = 2; // dots a pixel of an image, as plots have them

  // Controls and halves of letters stand in no XML, and a drawing with one would not open.
  const written = (text) => text.toWellFormed().replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd");
  const escaped = (text) => written(text).replace(/[&<>"]/g, (letter) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[letter]);

  /** What the painting uses of a canvas context, written as SVG. */
  class Drawing {
    constructor(width, height) {
      Object.assign(this, { width, height, parts: [], open: [], clips: 0, globalAlpha: 1, fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, font: "12px sans-serif", textAlign: "left", textBaseline: "alphabetic", path: [] });
      this.measure = document.createElement("canvas").getContext("2d");
    }

    save() { this.open.push(0); }

    restore() { this.parts.push("</g>".repeat(this.open.pop() || 0)); }

    measureText(text) {
      this.measure.font = this.font;
      return this.measure.measureText(text);
    }

    alpha() { return this.globalAlpha < 1 ? ` opacity="${this.globalAlpha.toFixed(2)}"` : ""; }

    fillRect(x, y, width, height) {
      this.parts.push(`<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${Math.max(width, 0).toFixed(2)}" height="${Math.max(height, 0).toFixed(2)}" fill="${this.fillStyle}"${this.alpha()}/>`);
    }

    strokeRect(x, y, width, height) {
      this.parts.push(`<rect x="${x.toFixed(2)}" y="${y.toFixed(2)}" width="${Math.max(width, 0).toFixed(2)}" height="${Math.max(height, 0).toFixed(2)}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"/>`);
    }

    fillText(text, x, y) {
      const anchor = { left: "start", right: "end", center: "middle" }[this.textAlign];
      const lower = this.textBaseline === "middle" ? 4 : 0;
      const [, weight, size] = this.font.match(/^(\d+ )?([\d.]+)px/) || [];
      this.parts.push(`<text x="${x.toFixed(2)}" y="${(y + lower).toFixed(2)}" fill="${this.fillStyle}" text-anchor="${anchor}" font-size="${size}"${weight ? ` font-weight="${weight.trim()}"` : ""}>${escaped(text)}</text>`);
    }

    beginPath() { this.path = []; }

    moveTo(x, y) { this.path.push(`M${x.toFixed(2)} ${y.toFixed(2)}`); }

    lineTo(x, y) { this.path.push(`L${x.toFixed(2)} ${y.toFixed(2)}`); }

    bezierCurveTo(a, b, c, d, x, y) { this.path.push("C" + [a, b, c, d, x, y].map((value) => value.toFixed(2)).join(" ")); }

    closePath() { this.path.push("Z"); }

    arc(x, y, r) { this.path.push(`M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`); }

    rect(x, y, width, height) { this.path.push(`M${x} ${y}h${width}v${height}h${-width}Z`); }

    fill() { this.parts.push(`<path d="${this.path.join("")}" fill="${this.fillStyle}"${this.alpha()}/>`); }

    stroke() { this.parts.push(`<path d="${this.path.join("")}" fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"/>`); }

    drawImage(image, x, y, width, height) {
      this.parts.push(`<image href="${image.toDataURL()}" x="${x}" y="${y}" width="${width}" height="${height}" preserveAspectRatio="none" style="image-rendering:pixelated"/>`);
    }

    clip() {
      this.clips += 1;
      this.parts.push(`<clipPath id="clip${this.clips}"><path d="${this.path.join("")}"/></clipPath><g clip-path="url(#clip${this.clips})">`);
      this.open[this.open.length - 1] += 1;
    }

    text(background, font, head, title) {
      const parts = `${title}<g transform="translate(0 ${head})">${this.parts.join("")}</g>`;
      return `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height + head}" font-family="${escaped(font)}"><rect width="100%" height="100%" fill="${background}"/>${parts}</svg>`;
    }
  }

  function save(blob, kind, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = window.tilescope.fileName(name || "timeline") + "." + kind;
    link.click();
    window.setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const HEAD = 34; // pixels of a title above a saved picture
  const UNITS = { device: "cycles of the tiles, and time", host: "time", together: "time" };

  const titleOf = ({ place }) =>
    [...window.tilescope.pictureTitle(place), UNITS[place.dataset.source]].filter(Boolean).join(" · ");

  /** Save what is in view, below what it is, of which report, and in which units. */
  function saveImage(timeline, kind) {
    const { colours, tall } = timeline;
    const width = timeline.width();
    if (kind === "svg") {
      const drawing = new Drawing(width, tall);
      window.tilescope.paint.drawInto(drawing, timeline, width, tall, timeline.scroller.scrollTop);
      const title = `<text x="8" y="22" fill="${colours.tokens.text}" font-size="14">${escaped(titleOf(timeline))}</text>`;
      return save(new Blob([drawing.text(colours.tokens.surface, colours.font, HEAD, title)], { type: "image/svg+xml" }), kind);
    }
    const copy = document.createElement("canvas");
    copy.width = width * SHARP;
    copy.height = (tall + HEAD) * SHARP;
    const context = copy.getContext("2d");
    context.scale(SHARP, SHARP);
    context.fillStyle = colours.tokens.surface;
    context.fillRect(0, 0, width, tall + HEAD);
    context.fillStyle = colours.tokens.text;
    context.font = `14px ${colours.font}`;
    context.fillText(titleOf(timeline), 8, 22);
    context.translate(0, HEAD);
    window.tilescope.paint.drawInto(context, timeline, width, tall, timeline.scroller.scrollTop);
    copy.toBlob((blob) => save(blob, kind));
  }

  /** Save the events of what is chosen, or in view; what stands against it is told. */
  async function saveEvents(timeline, kind) {
    const { begin, end } = timeline.state.chosen || timeline.view;
    try {
      const answer = await timeline.get("/export." + kind, { begin: Math.floor(begin), end: Math.ceil(end) });
      save(await answer.blob(), kind, timeline.place.dataset.source);
    } catch (problem) {
      timeline.say(problem.message, true);
    }
  }

  window.tilescope = Object.assign(window.tilescope || {}, { saveImage, saveEvents });
})();
