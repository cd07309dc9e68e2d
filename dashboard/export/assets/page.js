// The page: makes elements of what the file holds (dashboard/export/pages.py), and has them follow the
// fragment of its address. Texts are put in as texts, never as HTML.
(function () {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const DRAWN = new Set(["svg", "path", "rect", "circle", "line", "text", "g", "polyline", "polygon"]);
  const NAMES = { className: "class", htmlFor: "for", tabIndex: "tabindex", colSpan: "colspan", rowSpan: "rowspan", vectorEffect: "vector-effect", strokeDasharray: "stroke-dasharray", strokeWidth: "stroke-width" };
  const PLOT = { displaylogo: false, responsive: true, modeBarButtons: [["toImage"], ["zoom2d", "pan2d", "resetScale2d"]], toImageButtonOptions: { format: "svg", filename: "tilescope" } };
  const PLOT_PIXELS = 420;
  const HARMLESS = /^(class|style|title|role|scope|lang|open|type|for|viewBox|preserveAspectRatio|d|x|y|x1|x2|y1|y2|r|cx|cy|width|height|fill|stroke|points|transform|opacity|(row|col)span|tabindex|stroke-\w+|vector-effect|aria-[\w-]+|data-[\w-]+)$/;
  const root = document.getElementById("exported");
  const built = new Map();
  let file = null;
  let plotly = null;

  const dark = () => document.documentElement.getAttribute("data-mantine-color-scheme") === "dark";

  function make(tag, name, ...inside) {
    const element = document.createElement(tag);
    if (name) element.className = name;
    element.append(...inside);
    return element;
  }

  function button(text, title, act) {
    const one = make("button", "button", text);
    Object.assign(one, { type: "button", title });
    one.addEventListener("click", act);
    return one;
  }

  // Elements

  /** Set what an element is known by; what could load or run something is left out. */
  function dress(element, properties) {
    for (const [key, value] of Object.entries(properties)) {
      const name = NAMES[key] || key;
      if (value === null || value === undefined || value === false || !HARMLESS.test(name)) continue;
      if (name !== "style") element.setAttribute(name, String(value));
      else for (const [rule, text] of Object.entries(value)) {
        if (rule.startsWith("--")) element.style.setProperty(rule, text);
        else element.style[rule] = text;
      }
    }
    return element;
  }

  /** Lead to a page of this file, if it has it; else the words alone. */
  function link(properties, page) {
    const [path, search] = (properties.href || "").split("?");
    const there = page.source.pages.some((one) => one.path === path) && !new URLSearchParams(search).has("object");
    if (!there && /\bbutton\b/.test(properties.className || "")) return document.createDocumentFragment();
    const element = dress(document.createElement(there ? "a" : "span"), properties);
    if (there) element.setAttribute("href", "#" + path + (search ? "?" + search : ""));
    return element;
  }

  /** Make the element of [tag, properties, child, ...]; text is text. */
  function node(data, page) {
    if (!Array.isArray(data)) return document.createTextNode(data);
    const [tag, properties, ...children] = data;
    if (SPECIAL[tag]) return SPECIAL[tag](properties, page, children);
    if (tag === "link" || tag === "a") {
      const element = link(properties, page);
      if (element.nodeType === Node.ELEMENT_NODE) element.append(...children.map((child) => node(child, page)));
      return element;
    }
    if (!/^[a-z][a-z0-9]*$/.test(tag) || tag === "script" || tag === "iframe") return document.createTextNode("");
    const element = dress(DRAWN.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag), properties);
    element.append(...children.map((child) => node(child, page)));
    return element;
  }

  function parts(_, page, children) {
    const found = document.createDocumentFragment();
    found.append(...children.map((child) => node(child, page)));
    return found;
  }

  /** Give the value of a choice: that of the address, or the first. */
  function chosenOf(page, key) {
    const options = page.choices.get(key);
    const now = window.tilescope.read(key);
    return options.some(([value]) => value === now) ? now : options[0][0];
  }

  /** Make a place for what depends on choices and theme, and fill it whenever these change. */
  function view(properties, page) {
    const place = make("div", "exported-view");
    const inside = Object.assign(Object.create(page), { views: [] });
    let shown = null;
    const follow = () => {
      const values = properties.keys.map((key) => `${key}=${chosenOf(page, key)}`).join("&");
      const part = (properties.made[values] || Object.values(properties.made)[0])[dark() ? 1 : 0];
      if (part !== shown) {
        shown = part;
        inside.views = [];
        place.replaceChildren(node(file.parts[part], inside));
        draw(place);
      }
      inside.views.forEach((act) => act());
    };
    page.views.push(follow);
    return place;
  }

  function choice(properties, page) {
    const { key, options, tabs, label } = properties;
    const group = make("div", tabs ? "exported-tabs" : "exported-choice");
    group.setAttribute("role", "group");
    group.setAttribute("aria-label", label);
    const buttons = options.map(([value, words], at) => group.appendChild(button(words, "", () => window.tilescope.go({ [key]: at ? value : null }, true))));
    page.views.push(() => buttons.forEach((one, at) => one.setAttribute("aria-pressed", String(options[at][0] === chosenOf(page, key)))));
    return group;
  }

  function figure({ number }) {
    const place = make("div", "exported-plot");
    place.dataset.figure = String(number);
    const { height } = file.figures[number].layout;
    place.style.height = `${height || PLOT_PIXELS}px`;
    return place;
  }

  function timeline(properties, page) {
    const place = dress(document.createElement("div"), properties);
    page.timelines.push(place);
    const note = make("p", "note exported-limit");
    window.tilescope.opened(page.source.key, properties["data-source"]).then(({ head }) => { note.textContent = limitOf(head); }, (problem) => { note.textContent = problem.message; });
    return make("div", "", place, note);
  }

  const KINDS = { run: "runs", layer: "layers", step: "steps", io: "overlapped I/O", block: "blocks", event: "events", flag: "flags", derived: "activity" };

  /** State down to what the file has the real rectangles. */
  function limitOf(head) {
    const { events, rectangles, finest, layout } = head;
    const count = (value) => value.toLocaleString("en-US");
    const limits = Object.entries(finest);
    if (!limits.length) return `All ${count(events)} events are in this file, each with its begin and length.`;
    const by = { unit: layout.unit, clock: layout.clock || layout.lanes[0].clock };
    const words = limits.map(([kind, length]) => `${KINDS[kind] || kind} longer than ${window.tilescope.paint.amount(length, by)}`);
    return `Of ${count(events)} events this file has ${count(rectangles)} rectangles. As they are: ${words.join(", ")}. Shorter ones that are close together stand as one, with their number, their time and the name that takes most of it, by which a search finds them.`;
  }

  function chosen({ source }, page) {
    const panel = window.tilescope.chosenOf(source);
    page.views.push(() => panel.follow());
    return panel.place;
  }

  const SPECIAL = { "@parts": parts, "@view": view, "@choice": choice, "@figure": figure, "@timeline": timeline, "@chosen": chosen, "@table": ({ number }) => window.tilescope.tableOf(file.tables[number]) };

  // Plots

  /** Load plotly.js out of the file when the first plot is shown. */
  function loaded() {
    plotly = plotly || window.tilescope.unpacked.textOf("plotly").then((code) => {
      const script = document.createElement("script");
      script.textContent = code;
      document.head.append(script);
      return window.Plotly;
    });
    return plotly;
  }

  async function draw(place) {
    const found = [...place.querySelectorAll(".exported-plot:not([data-drawn])")];
    if (!found.length) return;
    found.forEach((one) => { one.dataset.drawn = ""; });
    const Plotly = await loaded();
    for (const one of found) {
      const { data, layout } = file.figures[Number(one.dataset.figure)];
      await Plotly.newPlot(one, data, layout, PLOT);
      one.dataset.drawn = "yes";
    }
  }

  // Pages

  /** Make a page of a source, once. */
  function build(source, data) {
    const page = { source, data, views: [], timelines: [], choices: new Map(Object.entries(data.choices)), place: make("main", "page") };
    page.place.append(node(data.nodes, page));
    root.querySelector(".exported-body").append(page.place);
    return page;
  }

  function sourceNow() {
    const key = window.tilescope.read("report");
    return file.sources.find((one) => one.key === key) || file.sources[0];
  }

  function pageNow(source) {
    const { path } = window.tilescope.now();
    return source.pages.find((one) => one.path === path) || source.pages[0];
  }

  function opened(source, data) {
    const key = source.key + "\u0000" + data.path;
    if (!built.has(key)) built.set(key, build(source, data));
    return built.get(key);
  }

  /** Show what the address says. */
  function follow() {
    const source = sourceNow();
    const data = pageNow(source);
    const page = opened(source, data);
    for (const one of built.values()) one.place.hidden = one !== page;
    showHead(source, data);
    refresh(page);
    document.title = `${data.title} – ${source.key} – tilescope`;
  }

  /** Have a timeline ask for its own report, also where the address goes on to another. */
  function keepTo(report, timeline) {
    const link = timeline.link.bind(timeline);
    timeline.link = (path, more) => {
      const [place, search] = link(path, more).split("?");
      const asked = new URLSearchParams(search);
      asked.set("report", report);
      return place + "?" + asked;
    };
  }

  function refresh(page) {
    page.views.forEach((act) => act());
    const first = page.timelines.some((place) => !place.timeline);
    if (first) {
      window.tilescope.haveArrived();
      page.timelines.forEach((place) => keepTo(page.source.key, place.timeline));
    }
    else page.timelines.forEach((place) => place.timeline.follow());
    const hidden = window.tilescope.asked.list(window.tilescope.read("hidden"));
    page.place.querySelectorAll("[data-toggles=hidden]").forEach((one) => {
      one.classList.toggle("off", hidden.has(one.dataset.name));
      one.setAttribute("aria-pressed", String(!hidden.has(one.dataset.name)));
    });
  }

  const linkTo = (source, data) => "#" + data.path + "?" + new URLSearchParams({ report: source.key });

  function showHead(source, data) {
    const nav = root.querySelector(".exported-nav");
    nav.replaceChildren(...source.pages.map((one) => {
      const entry = make("a", "", one.title);
      entry.href = linkTo(source, one);
      if (one === data) entry.setAttribute("aria-current", "page");
      return entry;
    }));
    const choose = root.querySelector(".exported-source");
    if (choose) choose.value = source.key;
  }

  /** Make what stands above the pages. */
  function frame() {
    const mark = make("span", "mark");
    const head = make("header", "header exported-header", make("span", "brand", mark, "tilescope"));
    if (file.sources.length > 1) {
      const choose = make("select", "exported-source");
      choose.setAttribute("aria-label", "Report");
      choose.append(...file.sources.map(({ key }) => new Option(key, key)));
      choose.addEventListener("change", () => {
        const source = file.sources.find((one) => one.key === choose.value);
        const { path } = window.tilescope.now();
        window.location.hash = linkTo(source, source.pages.find((one) => one.path === path) || source.pages[0]);
      });
      head.append(choose);
    } else head.append(make("span", "report-name", file.sources[0].key));
    const nav = make("nav", "exported-nav");
    nav.setAttribute("aria-label", "Pages");
    const tools = make("div", "exported-tools", button("Print", "Print all pages of this report", () => window.print()), button("Light or dark", "Switch between light and dark", switchTheme));
    head.append(nav, tools);
    root.append(head, make("div", "exported-body"), make("footer", "note exported-foot", `Made ${file.made} by tilescope export. This file asks no server; what it shows is in it.`));
  }

  function setTheme(name) {
    document.documentElement.setAttribute("data-mantine-color-scheme", name);
  }

  function switchTheme() {
    setTheme(dark() ? "light" : "dark");
    built.forEach((page) => { if (!page.place.hidden) refresh(page); });
  }

  /** Make and show every page of the report for paper; afterwards the one of the address again. */
  function print() {
    const source = sourceNow();
    for (const data of source.pages) {
      const page = opened(source, data);
      page.place.hidden = false;
      refresh(page);
    }
  }

  // A branch of a tree folds what is below it.
  document.addEventListener("click", (event) => {
    const fold = event.target.closest && event.target.closest("[data-fold]");
    if (!fold) return;
    const level = (row) => Number((row.className.match(/level-(\d+)/) || [0, 0])[1]);
    const row = fold.closest("tr");
    const closed = fold.classList.toggle("closed");
    fold.setAttribute("aria-expanded", String(!closed));
    for (let next = row.nextElementSibling; next && level(next) > level(row); next = next.nextElementSibling) next.hidden = closed;
  });

  async function start() {
    setTheme(window.matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
    file = JSON.parse(await window.tilescope.unpacked.textOf("pages"));
    window.tilescope.holdTimelines(file.sources);
    frame();
    follow();
    window.addEventListener("popstate", follow);
    window.addEventListener("beforeprint", print);
    window.addEventListener("afterprint", follow);
    document.documentElement.dataset.ready = "yes";
  }

  start().catch((problem) => root.replaceChildren(make("p", "message fault", `This file cannot be shown: ${problem.message}`)));
})();
