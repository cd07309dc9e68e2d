// The tree of programs: what a line looks like, folding, the keys, and going to a line; operations.
(function () {
  "use strict";

  const { go, read } = window.tilescope;
  const GRID = "programs-tree";
  const INDENT = 16;
  const ROW = 26; // pixels, as in dashboard/pages/programs/page.py
  const DEEPEST = 24; // levels that are drawn further in

  const gridOf = (id) => {
    try {
      return window.dash_ag_grid.getApi(id);
    } catch {
      return null; // not on this page
    }
  };
  const grid = () => gridOf(GRID);

  /** Turn a program over: open or closed, other than its level has it; `turned=LEVEL:ROWS`. */
  function turn(program) {
    const level = read("level") || "0";
    const [rows, before] = (read("turned") || "").split(":").reverse();
    const now = before === undefined || before === level ? rows.split(",").filter(Boolean) : [];
    const one = String(program);
    const next = now.includes(one) ? now.filter((other) => other !== one) : [...now, one];
    go({ turned: next.length ? level + ":" + next.join(",") : null }, true);
  }

  // React is there once Dash is; components are looked up when the first line is drawn.
  window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {};
  window.dashAgGridComponentFunctions.ProgramLine = function (props) {
    const make = window.React.createElement;
    const line = props.data;
    if (!line) return make("span", { className: "quiet" }, "…");
    const folds = line.fold
      ? make("button", {
          className: line.fold === "open" ? "fold" : "fold closed",
          tabIndex: -1,
          "aria-expanded": line.fold === "open",
          "aria-label": line.fold === "open" ? "Close" : "Open",
          // A listener of the element itself, so that the grid does not take it for a choice.
          ref: (button) => {
            if (button) button.onclick = (event) => (event.stopPropagation(), turn(line.program));
          },
        })
      : make("span", { className: "fold-none" });
    return make(
      "div",
      { className: "program-line", style: { paddingLeft: Math.min(line.depth, DEEPEST) * INDENT } },
      folds,
      make("span", { className: "program-tick", style: { background: `var(--step-${line.type}, var(--quiet))` } }),
      make("span", { className: "program-kind" }, line.words),
      make("span", { className: "program-name" }, line.name)
    );
  };

  /** A name in a tree; what is folded or not, other than its level has it, is in `folded`. */
  window.dashAgGridComponentFunctions.Branch = function ({ data, value }) {
    const make = window.React.createElement;
    if (!data || data.depth === undefined) return value || "";
    const opened = data.fold === "open";
    const folds = data.fold
      ? make("button", {
          className: opened ? "fold" : "fold closed",
          tabIndex: -1,
          "aria-expanded": opened,
          "aria-label": `${value}: ${opened ? "hide" : "show"} what is in it`,
          ref: (button) => {
            if (button) button.onclick = (event) => (event.stopPropagation(), flip(data.fold_key));
          },
        })
      : make("span", { className: "fold-none" });
    const style = { paddingLeft: Math.min(data.depth, DEEPEST) * INDENT };
    return make("div", { className: "program-line", style }, folds, make("span", { className: "program-name" }, value));
  };

  function flip(key) {
    const now = (read("folded") || "").split(",").filter(Boolean);
    const next = now.includes(key) ? now.filter((one) => one !== key) : [...now, key];
    go({ folded: next.join(",") || null }, true);
  }

  const PATIENCE = 20000; // milliseconds for the lines to come
  const known = new WeakSet();
  let asked = 0;
  let refreshed = 0;

  /** Show the lines again, and the chosen one among them. */
  function showLine(place) {
    if (!place || !place.props) return;
    const mine = ++asked;
    const line = Number(place.props["data-line"]);
    const count = Number(place.props["data-lines"]);
    const began = Date.now();
    (function wait() {
      if (mine !== asked || Date.now() - began > PATIENCE) return;
      const api = grid();
      const ready = api && api.getRenderedNodes().some((node) => node.data);
      // A grid that has just been made asks for its lines itself; a link may lead here before.
      if (ready && !known.has(api)) known.add(api);
      else if (ready && mine !== refreshed) {
        refreshed = mine;
        api.refreshInfiniteCache();
      }
      if (!ready || api.getDisplayedRowCount() !== count) return setTimeout(wait, 30);
      refreshed = mine;
      if (line >= 0 && !seen(api, line)) api.ensureIndexVisible(line, "middle");
    })();
  }

  function seen(api, line) {
    const range = api.getVerticalPixelRange();
    return line * ROW >= range.top && (line + 1) * ROW <= range.bottom;
  }

  // The chosen line is marked at once; the lines that the server sends again mark the others.
  function markLine() {
    const program = read("program");
    document.querySelectorAll(`#${GRID} .ag-row`).forEach((row) => {
      row.classList.toggle("chosen", row.getAttribute("row-id") === program);
    });
  }

  window.addEventListener("popstate", markLine);
  window.tilescope.onReturn(markLine);

  function goTo(changes) {
    if (changes) go(changes, true);
  }

  document.addEventListener(
    "keydown",
    (event) => {
      if (!event.target.closest || event.altKey || event.ctrlKey || event.metaKey) return;
      const box = event.target.closest("input[id*='\"box\":\"find\"']");
      const previous = document.getElementById("programs-previous");
      if (box && previous && event.key === "Enter" && event.shiftKey) {
        previous.click();
        event.stopPropagation();
      }
      const api = event.target.closest(`#${GRID} .ag-cell`) && grid();
      const focused = api && api.getFocusedCell();
      const row = focused && api.getDisplayedRowAtIndex(focused.rowIndex);
      if (!row || !row.data) return;
      const turns = { ArrowRight: "closed", ArrowLeft: "open" }[event.key];
      if (!turns) return;
      if (row.data.fold === turns) turn(row.data.program);
      event.preventDefault();
      event.stopPropagation();
    },
    true
  );

  /** Show the other stage of the compilation, with the same program chosen. */
  function turnStage() {
    if (!document.querySelector("input[id*='\"address\":\"stage\"']")) return;
    go({ stage: read("stage") === "written" ? null : "written", part: null }, true);
  }

  // The table of operations: its columns, and the row that is chosen.

  const none = () => window.dash_clientside.no_update;

  function chooseColumns(fields) {
    const shown = [...document.querySelectorAll(".columns-choice input")];
    if (!fields || !shown.length) return;
    const order = shown.map((box) => box.value).filter((field) => fields.includes(field));
    go({ columns: order.join(",") || null }, true);
  }

  /** Ask for the rows again where another one is marked than the one that is chosen. */
  function showOperation() {
    const now = read("operation");
    const api = document.getElementById("operations-table") && gridOf("operations-table");
    let stale = false;
    const wrong = (row) => (row.mark === "chosen") !== (row.operation === now);
    if (api) api.forEachNode((node) => (stale = stale || (Boolean(node.data) && wrong(node.data))));
    if (stale) api.refreshInfiniteCache();
    return none();
  }

  window.tilescope.turnStage = turnStage;
  window.tilescope.onReturn(showOperation);
  Object.assign(window.dash_clientside.tilescope, {
    showLine, goTo, chooseColumns, showOperation,
  });
})();
