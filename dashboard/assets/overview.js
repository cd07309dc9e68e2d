// Which part of a plot is shown (dashboard/elements/overview.py): the strip above it, and the magnification.
(function () {
  "use strict";

  const { go, onArrival, read } = window.tilescope;
  const HANDLE = 9; // pixels at an end of the window that change it
  const LEAST = 6; // pixels that a drag must have, or it is a click
  const strips = () => document.querySelectorAll(".overview");
  const countOf = (strip) => Number(strip.dataset.count);

  /** The window of the address, as first place and the one after the last; all without it. */
  function windowOf(strip) {
    const found = (read("range") || "").match(/^(\d+)-(\d+)$/);
    const count = countOf(strip);
    const [begin, end] = found ? [Number(found[1]), Math.min(Number(found[2]), count)] : [0, count];
    return begin < end ? [begin, end] : [0, count];
  }

  function draw(strip, [begin, end]) {
    const place = strip.querySelector(".overview-window").style;
    place.left = `${(100 * begin) / countOf(strip)}%`;
    place.width = `${(100 * (end - begin)) / countOf(strip)}%`;
    strip.classList.toggle("whole", begin === 0 && end === countOf(strip));
  }

  /** Lie above the plot's axis, whose left end depends on what is written there. */
  function align(strip) {
    const plot = document.getElementById(strip.dataset.overview);
    const area = plot && plot.querySelector(".nsewdrag");
    if (!area) return;
    const [inner, outer] = [area.getBoundingClientRect(), strip.parentElement.getBoundingClientRect()];
    strip.style.marginLeft = `${Math.max(inner.left - outer.left, 0)}px`;
    strip.style.width = `${inner.width}px`;
  }

  function show() {
    for (const strip of strips()) {
      align(strip);
      if (strip !== dragging) draw(strip, windowOf(strip));
    }
    document.querySelectorAll(".magnifier").forEach((panel) => {
      restore(panel.dataset.magnifies);
      tell(panel);
    });
  }

  function choose(strip, begin, end) {
    const count = countOf(strip);
    const width = Math.min(Math.max(Math.round(end - begin), 1), count);
    const first = Math.min(Math.max(Math.round(begin), 0), count - width);
    go({ range: width === count ? null : `${first}-${first + width}` }, true);
  }

  let dragging = null;

  /** What a drag makes of the window: an end moves, all of it moves, or a new one is drawn. */
  function dragOf(strip, event) {
    const box = strip.getBoundingClientRect();
    const at = (x) => Math.min(Math.max(((x - box.left) / box.width) * countOf(strip), 0), countOf(strip));
    const [begin, end] = windowOf(strip);
    const pixel = (place) => box.left + (place / countOf(strip)) * box.width;
    const down = at(event.clientX);
    const whole = end - begin === countOf(strip);
    if (Math.abs(event.clientX - pixel(begin)) < HANDLE) return (x) => [at(x), end].sort((a, b) => a - b);
    if (Math.abs(event.clientX - pixel(end)) < HANDLE) return (x) => [begin, at(x)].sort((a, b) => a - b);
    if (whole || down < begin || down > end) return (x) => [down, at(x)].sort((a, b) => a - b);
    const room = (by) => Math.min(Math.max(by, -begin), countOf(strip) - end);
    return (x) => [begin + room(at(x) - down), end + room(at(x) - down)];
  }

  document.addEventListener("pointerdown", (event) => {
    const strip = event.target.closest && event.target.closest(".overview");
    if (!strip || event.button) return;
    const drag = dragOf(strip, event);
    const from = event.clientX;
    dragging = strip;
    strip.setPointerCapture(event.pointerId);
    const move = (now) => draw(strip, drag(now.clientX));
    const done = (now) => {
      strip.removeEventListener("pointermove", move);
      dragging = null;
      if (Math.abs(now.clientX - from) < LEAST || now.type === "pointercancel") return show();
      choose(strip, ...drag(now.clientX));
    };
    strip.addEventListener("pointermove", move);
    strip.addEventListener("pointerup", done, { once: true });
    strip.addEventListener("pointercancel", done, { once: true });
  });
  document.addEventListener("dblclick", (event) => {
    if (event.target.closest && event.target.closest(".overview")) go({ range: null }, true);
  });

  // The magnification: of a plot with a strip by the window of the address, of another by its axes.

  const SMALLEST = 0.1; // of a plot without a strip
  const LARGEST = 50;
  const stripOf = (name) => [...strips()].find((strip) => strip.dataset.overview === name);

  function drawnPlot(name) {
    const place = document.getElementById(name);
    const plot = place && place.querySelector(".js-plotly-plot");
    return plot && plot.layout && plot.layout.meta && plot.layout.meta.whole ? plot : null;
  }

  /** How much larger than in whole a plot is shown; null when there is nothing to show. */
  function magnification(name) {
    const strip = stripOf(name);
    if (strip) {
      const [begin, end] = windowOf(strip);
      return countOf(strip) / (end - begin);
    }
    const plot = drawnPlot(name);
    if (!plot) return null;
    const [begin, end] = plot.layout.xaxis.range;
    const [first, last] = plot.layout.meta.whole.x;
    return (last - first) / (end - begin);
  }

  /** Show a plot larger by a factor than in whole, around a place: a share of what is seen of it. */
  function magnify(name, factor, [across, down] = [0.5, 0.5]) {
    const strip = stripOf(name);
    if (strip) {
      const [begin, end] = windowOf(strip);
      const width = Math.min(countOf(strip) / factor, countOf(strip));
      return choose(strip, begin + across * (end - begin - width), begin + across * (end - begin - width) + width);
    }
    const plot = drawnPlot(name);
    if (!plot) return;
    const kept = Math.min(Math.max(factor, SMALLEST), LARGEST);
    const { x, y } = plot.layout.meta.whole;
    const around = ([begin, end], [first, last], share) => {
      const width = (last - first) / kept;
      const from = kept === 1 ? first : begin + share * (end - begin - width);
      return [from, from + width];
    };
    relayout(plot, around(plot.layout.xaxis.range, x, across), around(plot.layout.yaxis.range, y, down));
  }

  function relayout(plot, x, y) {
    window.tilescope.silence(plot);
    window.Plotly.relayout(plot, { "xaxis.range": x, "yaxis.range": y }).then(show);
  }

  // What is seen of a plot without a strip stands in the address, too: x and y of its corners.

  const restored = new WeakMap(); // plot -> the `meta` of the figure that was last set to the address
  const cornersOf = ({ x, y }) => [...x, ...y].map((place) => Number(place.toFixed(3))).join(",");

  window.tilescope.moved = (plot, changes) => {
    const { meta, xaxis, yaxis } = plot.layout;
    if (meta && meta.whole && restored.get(plot) === meta) {
      // A double click, or two quick ones on two boxes: Plotly would fit the centres of the boxes.
      if (changes["xaxis.autorange"]) return relayout(plot, meta.whole.x, meta.whole.y);
      const now = cornersOf({ x: xaxis.range, y: yaxis.range });
      go({ seen: now === cornersOf(meta.whole) ? null : now }, true);
    }
    show();
  };

  /** Show of a figure that is new what the address says. */
  function restore(name) {
    const plot = drawnPlot(name);
    if (!plot || !plot._fullLayout || restored.get(plot) === plot.layout.meta) return;
    restored.set(plot, plot.layout.meta);
    const [left, right, low, high] = (read("seen") || "").split(",").map(Number);
    if (left < right && low !== high && Number.isFinite(high)) relayout(plot, [left, right], [low, high]);
  }

  /** Move what is seen of a plot by a share of it. */
  function moveBy(name, share) {
    const strip = stripOf(name);
    if (strip) {
      const [begin, end] = windowOf(strip);
      return choose(strip, begin + share * (end - begin), end + share * (end - begin));
    }
    const plot = drawnPlot(name);
    if (!plot) return;
    const [begin, end] = plot.layout.xaxis.range;
    relayout(plot, [begin + share * (end - begin), end + share * (end - begin)], plot.layout.yaxis.range);
  }

  const ACTS = {
    out: (name) => magnify(name, magnification(name) / 2),
    in: (name) => magnify(name, magnification(name) * 2),
    left: (name) => moveBy(name, -0.2),
    right: (name) => moveBy(name, 0.2),
    all: (name) => magnify(name, 1),
    fold: () => unfold(!isOpen()),
  };
  const OPEN = "tilescope-magnifier";
  const isOpen = () => localStorage.getItem(OPEN) === "open";

  /** Show the panel or hide it; this is kept in this browser. */
  function unfold(open) {
    localStorage.setItem(OPEN, open ? "open" : "closed");
    show();
  }

  /** Write how large a plot is shown. */
  function tell(panel) {
    const now = magnification(panel.dataset.magnifies);
    const percent = 100 * (now || 1);
    const digits = percent < 1000 && percent % 1 > 0.05 ? 1 : 0;
    const words = percent.toLocaleString("en", { maximumFractionDigits: digits }) + " %";
    const [fold, typed] = [panel.querySelector(".magnifier-fold"), panel.querySelector("input")];
    if (fold.textContent !== words) fold.textContent = words;
    if (typed !== document.activeElement) typed.value = words;
    fold.setAttribute("aria-expanded", String(isOpen()));
    panel.classList.toggle("open", isOpen());
    panel.classList.toggle("idle", !now);
  }

  /** Take a magnification as it was typed: 250, 250 %, 1,000. */
  function take(typed) {
    const percent = Number(typed.value.replace(/[,%\s]/g, ""));
    const name = typed.closest(".magnifier").dataset.magnifies;
    if (percent > 0 && typed.value !== typed.dataset.before) magnify(name, percent / 100);
    show();
  }

  document.addEventListener("click", (event) => {
    const act = event.target.closest && event.target.closest("[data-magnifier]");
    if (act) ACTS[act.dataset.magnifier](act.closest(".magnifier").dataset.magnifies);
  });
  const isTyped = (event) => event.target.matches && event.target.matches(".magnification");
  document.addEventListener("focusin", (event) => {
    if (isTyped(event)) event.target.dataset.before = event.target.value;
  });
  document.addEventListener("focusout", (event) => {
    if (isTyped(event)) take(event.target);
  });
  document.addEventListener("keydown", (event) => {
    if (!isTyped(event) || !["Enter", "Escape"].includes(event.key)) return;
    if (event.key === "Escape") event.target.value = "";
    event.target.blur();
  });
  // The wheel: over a strip, and over its plot with Ctrl, as turning it alone moves the page there.

  const PAUSE = 90; // milliseconds without a turn after which it is done
  let turned = null;

  function turn(name, event, box) {
    event.preventDefault();
    const share = (at, from, size) => Math.min(Math.max((at - from) / size, 0), 1);
    const place = [share(event.clientX, box.left, box.width), share(event.clientY, box.top, box.height)];
    const first = !turned;
    if (first) turned = { name, place, by: 1 };
    turned.by *= Math.exp(-Math.min(Math.max(event.deltaY, -120), 120) / 250);
    clearTimeout(turned.timer);
    turned.timer = setTimeout(() => {
      const { by } = turned;
      turned = null;
      magnify(name, magnification(name) * by, place);
    }, PAUSE);
  }

  document.addEventListener("wheel", (event) => {
    const strip = event.target.closest && event.target.closest(".overview");
    if (strip) {
      const [begin, end] = windowOf(strip);
      const { left, top, width, height } = strip.getBoundingClientRect();
      const part = width / countOf(strip);
      return turn(strip.dataset.overview, event, { left: left + begin * part, top, width: (end - begin) * part, height });
    }
    const plot = event.ctrlKey && event.target.closest && event.target.closest(".plot");
    const name = plot && nameOf(plot);
    const area = name && plot.querySelector(".nsewdrag");
    if (area && magnification(name)) turn(name, event, area.getBoundingClientRect());
  }, { passive: false });

  /** The name by which a plot is magnified, if it is. */
  function nameOf(plot) {
    const panel = [...document.querySelectorAll(".magnifier")].find((each) => {
      const place = document.getElementById(each.dataset.magnifies);
      return place && plot.contains(place);
    });
    return panel ? panel.dataset.magnifies : "";
  }

  const PLOT_KEYS = { "+": "in", "-": "out", 0: "all" };

  document.addEventListener("keydown", (event) => {
    const plot = event.target.closest && event.target.closest(".plot[data-picks]");
    const act = PLOT_KEYS[event.key];
    if (!plot || !act || event.altKey || event.ctrlKey || event.metaKey || !nameOf(plot)) return;
    event.preventDefault();
    ACTS[act](nameOf(plot));
  });

  window.tilescope.magnify = () => {
    const typed = document.querySelector(".magnification");
    if (!typed) return;
    if (!isOpen()) unfold(true);
    typed.focus();
    typed.select();
  };

  const KEYS = {
    ArrowLeft: (begin, width) => [begin - width / 5, width],
    ArrowRight: (begin, width) => [begin + width / 5, width],
    "+": (begin, width) => [begin + width / 4, width / 2],
    "-": (begin, width) => [begin - width / 2, width * 2],
    0: (begin, width, count) => [0, count],
  };

  document.addEventListener("keydown", (event) => {
    const strip = event.target.closest && event.target.closest(".overview");
    if (!strip || !KEYS[event.key] || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const [begin, end] = windowOf(strip);
    const [next, width] = KEYS[event.key](begin, end - begin, countOf(strip));
    const kept = Math.min(Math.max(width, 1), countOf(strip));
    const first = Math.min(Math.max(next, 0), countOf(strip) - kept);
    choose(strip, first, first + kept);
  }, true);

  onArrival(show);
  window.addEventListener("popstate", show);
  window.addEventListener("resize", show);
})();
