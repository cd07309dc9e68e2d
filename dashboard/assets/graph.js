// Names in the boxes of the computation graph (dashboard/figures/graph.py): what they have room for.
(function () {
  "use strict";

  const EDGE = 10; // pixels of a box, left and right together, that a name keeps free
  // Heights of a box, in sizes of the font: with room for two lines, and with names that overlap.
  const TWO_LINES = 2.6;
  const TOO_LOW = 0.7;
  const context = document.createElement("canvas").getContext("2d");
  const wide = (text) => context.measureText(text).width;
  const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

  /** Give as many of the last parts of a path as fit: they tell boxes of one operation apart. */
  function ending(path, room) {
    if (wide(path) <= room) return path;
    const parts = path.split("/");
    const ends = parts.slice(1).map((_, at) => `…/${parts.slice(at + 1).join("/")}`);
    return ends.find((end) => wide(end) <= room) || window.tilescope.paint.elided(context, path, room);
  }

  /** Write a box: its name as far as there is room, and what stands beside or below it. */
  function written(name, { below, beside }, [room, sizes]) {
    const end = sizes < TOO_LOW ? "" : escaped(ending(name, room - wide(beside)));
    const two = below && sizes >= TWO_LINES && wide(below) <= room;
    return end && `${end}${beside}${two ? `<br>${below}` : ""}`;
  }

  /** Fit the names of a plot into its boxes, which grow with the window and the magnification. */
  function fitNames(plot) {
    const { boxes } = plot.layout.meta || {};
    if (!boxes) return;
    const number = plot.data.findIndex((trace) => trace.mode === "markers+text");
    const { xaxis, yaxis } = plot._fullLayout;
    const { size, family } = plot._fullData[number].textfont;
    context.font = `${size}px ${family}`;
    const pixels = [xaxis, yaxis].map((axis) => axis._length / Math.abs(axis.range[1] - axis.range[0]));
    const room = [boxes.width * pixels[0] - EDGE, (boxes.height * pixels[1]) / size];
    const texts = boxes.names.map((name, at) => written(name, boxes.rests[at], room));
    if (JSON.stringify(texts) === JSON.stringify(plot.data[number].text)) return;
    window.Plotly.restyle(plot, { text: [texts] }, [number]);
  }

  // Not before Plotly has ended what it is at, or it would draw none of them.
  const later = (plot) => requestAnimationFrame(() => plot.isConnected && plot._fullLayout && fitNames(plot));

  window.tilescope = Object.assign(window.tilescope || {}, { fitNames: later });
})();
