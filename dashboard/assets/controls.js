// Controls write the address and follow it; downloads, saving plots, the grip, preferences, keys.
(function () {
  "use strict";

  const { countRuns, go, onArrival, read } = window.tilescope;
  const none = () => window.dash_clientside.no_update;
  const client = window.dash_clientside.tilescope;

  /** The id of the control that changed, with its new value; null when several are new at once. */
  function changed() {
    const context = window.dash_clientside.callback_context;
    if (!context || context.triggered.length !== 1) return null;
    const one = context.triggered[0];
    const place = one.prop_id.lastIndexOf(".");
    return { id: JSON.parse(one.prop_id.slice(0, place)), value: one.value };
  }

  function filterText(column) {
    const text = read("filter") || "";
    return text.startsWith(column + "~") ? text.slice(column.length + 1) : "";
  }

  /** Write numbers and ranges with a comma between each two, as the address has them. */
  const listed = (text) => text.replace(/\s*-\s*/g, "-").replace(/[\s,]+/g, ",");

  function boxText(id) {
    if (id.column) return filterText(id.column);
    const text = read(id.box) || "";
    return id.box === "tile" || id.box === "step" ? listed(text).replace(/,/g, ", ") : text;
  }

  /** What the controls of these ids show, by what the address says. */
  window.tilescope.shownBy = {
    choice: (id) => read(id.address) || id.default,
    switch: (id) => (read(id.switch) || id.default) === "on",
    box: boxText,
  };

  /** Put what was typed into a box into the address. */
  function take(id, text) {
    const typed = (text || "").trim();
    if (typed === boxText(id).trim()) return;
    if (id.column) return go({ filter: typed ? id.column + "~" + typed : null }, true);
    const numbers = id.box === "tile" || id.box === "step";
    go({ [id.box]: (numbers ? listed(typed) : typed) || null }, !numbers);
  }

  /** Put what was chosen into the address. */
  function choose(id, value) {
    if (value === null || value === undefined || (read(id.address) || id.default) === value) return;
    const dropped = id.address === "stage" ? { part: null } : {}; // stages have parts of their own
    go({ ...dropped, [id.address]: value === id.default ? null : value }, id.address !== "tab");
  }

  function flip(id, on) {
    const text = on ? "on" : "off";
    if (typeof on !== "boolean" || (read(id.switch) || id.default) === text) return;
    go({ [id.switch]: text === id.default ? null : text }, true);
  }

  // Enter and clicks are taken at once. Dash tells of them when it comes to it, and has by then set
  // the control back if the page still followed the click before. From the keyboard a tab is clicked.

  document.addEventListener("keydown", (event) => {
    const { id, value } = event.target;
    if (event.key !== "Enter" || event.isComposing || !id || !id.startsWith('{"box":')) return;
    take(JSON.parse(id), value);
  }, true);

  document.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    const tabs = tab && tab.parentElement.closest(`[id^='{"address":']`);
    if (tabs) choose(JSON.parse(tabs.id), tab.id.slice(`${tabs.id}-tab-`.length));
  }, true);

  document.addEventListener("change", ({ target }) => {
    if (target.id.includes('"switch":')) flip(JSON.parse(target.id), target.checked);
    const choices = target.type === "radio" && target.closest(`[id^='{"address":']`);
    if (choices) choose(JSON.parse(choices.id), target.value);
  }, true);

  Object.assign(client, {
    setChoice: () => {
      const one = changed();
      if (one) choose(one.id, one.value);
    },
    setSwitch: () => {
      const one = changed();
      if (one) flip(one.id, one.value);
    },
    setBox: (submits, blurs, values, ids) => {
      const one = changed();
      if (!one || !one.value) return;
      const at = ids.findIndex((id) => id.box === one.id.box && id.column === one.id.column && id.page === one.id.page);
      take(one.id, values[at]);
    },
    setWriting: (sizes, cycles, runs, now) => {
      if (now && now.sizes === sizes && now.cycles === cycles && now.runs === runs) return none();
      const kept = "; path=/; max-age=31536000; samesite=strict";
      document.cookie = "tilescope-units=" + sizes + kept;
      document.cookie = "tilescope-cycles=" + cycles + kept;
      if (now && now.runs !== runs) {
        document.cookie = "tilescope-runs=" + runs + "; path=/; samesite=strict";
        countRuns(runs);
        go({ step: null, range: null, selection: null }, true); // numbered by what is counted
      }
      return { sizes, cycles, runs };
    },
    reload: (clicks) => clicks || none(),
  });

  // Downloads carry the address of the view; plots are saved as they are seen.

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-download]");
    if (link) link.href = link.href.split("?")[0] + window.location.search;
    const save = event.target.closest("button[data-save]");
    if (save) savePlot(save.dataset.plot, save.dataset.save);
    document.querySelectorAll("details.exports[open], details.preferences[open]").forEach((menu) => {
      if (!menu.contains(event.target) || link || save) menu.open = false;
    });
  });

  const HEAD = 44; // pixels of a title above a saved plot
  const BYTES = /\d [kMG]?B$/;
  const plain = (text) => text.replace(/[<>&]/g, (letter) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;" })[letter]);

  /** Return what stands above a saved picture: the heading of its section, and the reports. */
  function pictureTitle(plot) {
    const section = plot.closest(".section, .split, section");
    const heading = section && [...section.querySelectorAll("h2")]
      .filter((one) => one.compareDocumentPosition(plot) & Node.DOCUMENT_POSITION_FOLLOWING).pop();
    const chosen = document.querySelector("#report-choice input, input#report-choice");
    const before = window.tilescope.read("report") || (chosen && chosen.value) || "";
    const reports = [before, window.tilescope.read("against")].filter(Boolean);
    return [heading && heading.textContent, reports.join(" → ")].filter(Boolean);
  }

  window.tilescope.pictureTitle = pictureTitle;

  /** Give the layout of a plot with what its page says around it: heading, report, unit. */
  function titled(plot) {
    const words = pictureTitle(plot).map(plain);
    const { title, margin, yaxis = {} } = plot.layout;
    const named = yaxis.title && yaxis.title.text;
    const unit = named || ((yaxis.ticktext || []).some((text) => BYTES.test(text)) ? "Bytes" : "");
    return Object.assign({}, plot.layout, {
      title: Object.assign({}, title, { text: words.join(" · "), x: 0.01, xanchor: "left", font: { size: 15 },
        y: 1, yref: "container", yanchor: "top", pad: { t: 12 } }),
      margin: Object.assign({}, margin, { t: ((margin || {}).t || 0) + HEAD }),
      yaxis: Object.assign({}, yaxis, { title: Object.assign({}, yaxis.title, { text: unit }) }),
    });
  }

  function savePlot(identifier, format) {
    const plot = document.querySelector(`#${CSS.escape(identifier)} .js-plotly-plot`);
    if (!plot) return;
    const paper = getComputedStyle(document.documentElement).getPropertyValue("--surface").trim();
    const figure = { data: plot.data, layout: Object.assign(titled(plot), { paper_bgcolor: paper }) };
    const size = { width: plot.offsetWidth, height: plot.offsetHeight + HEAD, scale: format === "png" ? 2 : 1 };
    window.Plotly.downloadImage(figure, Object.assign({ format, filename: window.tilescope.fileName(identifier) }, size));
  }

  // The grip: the height of the upper pane is kept in this browser.

  function setHeight(split, height) {
    const pixels = Math.min(Math.max(height, 120), window.innerHeight * 2);
    split.style.setProperty("--above", pixels + "px");
    tellHeight(split, pixels);
    localStorage.setItem("tilescope-split-" + split.dataset.split, String(Math.round(pixels)));
    window.dispatchEvent(new Event("resize"));
  }

  function tellHeight(split, pixels) {
    split.querySelector(".grip").setAttribute("aria-valuenow", String(Math.round(pixels)));
  }

  const heightOf = (split) => split.querySelector(".pane-above").getBoundingClientRect().height;

  document.addEventListener("pointerdown", (event) => {
    const grip = event.target.closest(".grip");
    if (!grip) return;
    const split = grip.parentElement;
    const begin = heightOf(split) - event.clientY;
    const move = (moved) => setHeight(split, begin + moved.clientY);
    grip.setPointerCapture(event.pointerId);
    grip.addEventListener("pointermove", move);
    grip.addEventListener("pointerup", () => grip.removeEventListener("pointermove", move), { once: true });
    event.preventDefault();
  });

  const restored = new WeakSet();

  function restore() {
    document.querySelectorAll(".split").forEach((split) => {
      if (restored.has(split)) return;
      restored.add(split);
      const kept = Number(localStorage.getItem("tilescope-split-" + split.dataset.split));
      if (kept) setHeight(split, kept);
      else tellHeight(split, heightOf(split));
    });
  }

  onArrival(restore);

  // Parts that fold: which are closed is kept in this browser, for all reports.

  const CLOSED = "tilescope-closed";
  const closed = () => (localStorage.getItem(CLOSED) || "").split(",").filter(Boolean);

  function fold() {
    document.querySelectorAll("details[data-kept]").forEach((part) => {
      if (restored.has(part)) return;
      restored.add(part);
      part.open = !closed().includes(part.dataset.kept);
    });
  }

  onArrival(fold);
  document.addEventListener("toggle", (event) => {
    const name = restored.has(event.target) && event.target.dataset.kept;
    if (!name) return;
    const others = closed().filter((each) => each !== name);
    localStorage.setItem(CLOSED, (event.target.open ? others : [...others, name]).join(","));
  }, true);

  // Keys. dashboard/keys.py lists them for the sheet.

  const typing = (target) =>
    target.closest && target.closest("input, textarea, select, [contenteditable=true], [role=combobox]");
  window.tilescope.typing = typing;

  function tab(by) {
    const found = [...document.querySelectorAll(".tabs [role=tab]:not([disabled])")];
    const now = found.findIndex((one) => one.getAttribute("aria-selected") === "true");
    if (found.length) found[(now + by + found.length) % found.length].click();
  }

  const press = (selector) => {
    const found = document.querySelector(selector);
    if (found) found.click();
    return Boolean(found);
  };
  const focus = (selector) => {
    const found = document.querySelector(selector);
    if (found) found.focus();
    return Boolean(found);
  };

  const KEYS = {
    "?": () => toggleSheet(),
    "/": () => focus("input[id*='\"box\":\"filter\"'], input[id*='filter'], input[id*='\"box\"']"),
    t: () => focus("input[id*='\"box\":\"tile\"'], input[id*='\"box\":\"step\"']"),
    "[": () => tab(-1),
    "]": () => tab(1),
    l: () => press("#theme-switch"),
    r: () => press("#reload"),
    p: () => focus("#page .plot[data-picks]"),
    z: () => window.tilescope.magnify(),
    o: () => focus("input#report-choice"),
    b: () => press(".fold-menu"),
    h: () => press(".page-help"),
    u: () => press(".preferences > summary"),
    e: () => press(".exports > summary"),
    s: () => window.tilescope.turnStage(),
    c: () => go({ tile: null, step: null, event: null, ipu: null, node: null }),
  };

  function toggleSheet() {
    const sheet = document.getElementById("keys-sheet");
    if (!sheet) return;
    if (sheet.open) sheet.close();
    else sheet.showModal();
  }

  document.addEventListener("keydown", (event) => {
    const grip = event.target.closest && event.target.closest(".grip");
    const by = { ArrowUp: -24, ArrowDown: 24 }[event.key];
    if (grip && by) {
      event.preventDefault();
      return setHeight(grip.parentElement, heightOf(grip.parentElement) + by);
    }
    if (event.altKey || event.ctrlKey || event.metaKey || typing(event.target)) return;
    const link = /^[1-9]$/.test(event.key) && document.querySelectorAll(".nav-link")[event.key - 1];
    if (link) return link.click();
    const canvas = event.target.closest && event.target.closest(".timeline");
    if (canvas && event.key.length === 1 && event.key !== "?") return;
    if (KEYS[event.key]) {
      event.preventDefault();
      KEYS[event.key]();
    }
  });
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-sheet]")) toggleSheet();
  });
})();
