// Tables: headings that sort, a field that filters, rows as they are asked for.
(function () {
  "use strict";

  const SHOWN = 12; // rows at first
  const MORE = 200; // rows added at a time
  const LEAST = 6; // rows of a table that has a filter

  const made = (tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    return element;
  };

  const valueOf = (cell) => (Array.isArray(cell) ? cell[0] : cell);
  const textOf = (cell) => (Array.isArray(cell) ? cell[1] : cell === null || cell === undefined ? "" : String(cell));

  /** Compare two cells: numbers by value, texts by their letters; what is missing comes last. */
  function compared(a, b, down) {
    const [x, y] = [valueOf(a), valueOf(b)];
    const missing = (value) => value === null || value === undefined || value === "";
    if (missing(x) || missing(y)) return Number(missing(x)) - Number(missing(y));
    const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y));
    return down ? -order : order;
  }

  class Table {
    constructor(data) {
      this.data = data;
      this.order = data.rows.map((_, i) => i);
      this.shown = SHOWN;
      this.sorted = null;
      this.place = made("div", "exported-table");
      const tools = made("div", "exported-table-tools");
      this.note = made("span", "note");
      this.note.setAttribute("role", "status");
      if (data.rows.length > LEAST) {
        this.filter = made("input", "exported-filter");
        Object.assign(this.filter, { type: "search", placeholder: "Filter rows" });
        this.filter.setAttribute("aria-label", "Filter rows");
        this.filter.addEventListener("input", () => this.arrange());
        tools.append(this.filter);
      }
      tools.append(this.note);
      this.table = made("table");
      const scroller = made("div", "exported-scroller");
      scroller.tabIndex = 0;
      scroller.setAttribute("role", "group");
      scroller.setAttribute("aria-label", "Table");
      scroller.append(this.table);
      this.more = made("button", "button", "Show more");
      this.more.type = "button";
      this.more.addEventListener("click", () => { this.shown += MORE; this.draw(); });
      this.place.append(tools, scroller, this.more);
      this.head();
      this.body = this.table.appendChild(made("tbody"));
      this.arrange();
    }

    head() {
      const row = this.table.createTHead().insertRow();
      this.heads = this.data.columns.map((column, at) => {
        const cell = row.appendChild(made("th", column.right ? "number" : ""));
        cell.scope = "col";
        if (column.note) cell.title = column.note;
        const button = cell.appendChild(made("button", "", column.title));
        button.type = "button";
        button.addEventListener("click", () => this.sort(at));
        return cell;
      });
    }

    /** Sort by a column: the largest first, then the smallest, then as it was. */
    sort(at) {
      const { right } = this.data.columns[at];
      const ways = right ? [true, false] : [false, true];
      const now = this.sorted && this.sorted.at === at ? ways.indexOf(this.sorted.down) : -1;
      this.sorted = now === 1 ? null : { at, down: ways[now + 1] };
      this.arrange();
    }

    arrange() {
      const { rows } = this.data;
      const wanted = this.filter ? this.filter.value.trim().toLowerCase() : "";
      this.order = rows.map((_, i) => i).filter((i) => !wanted || rows[i].some((cell) => textOf(cell).toLowerCase().includes(wanted)));
      if (this.sorted) this.order.sort((a, b) => compared(rows[a][this.sorted.at], rows[b][this.sorted.at], this.sorted.down));
      this.heads.forEach((cell, at) => cell.setAttribute("aria-sort", !this.sorted || this.sorted.at !== at ? "none" : this.sorted.down ? "descending" : "ascending"));
      this.draw();
    }

    draw() {
      const { rows, pinned, count } = this.data;
      const seen = this.order.slice(0, this.shown);
      this.body.replaceChildren(...pinned.map((cells) => this.line(cells, -1)), ...seen.map((i) => this.line(rows[i], i)));
      this.more.hidden = seen.length >= this.order.length;
      const some = this.order.length < rows.length ? `${this.order.length.toLocaleString("en-US")} of ` : "";
      const left = count > rows.length ? `; the file has the first ${rows.length.toLocaleString("en-US")}` : "";
      this.note.textContent = `${some}${count.toLocaleString("en-US")} ${count === 1 ? "row" : "rows"}${left}`;
    }

    line(cells, i) {
      const row = made("tr", i < 0 ? "pinned" : "");
      cells.forEach((cell, at) => {
        const { right, share, branch } = this.data.columns[at];
        const box = row.appendChild(made("td", right ? "number" : "", textOf(cell)));
        if (typeof valueOf(cell) === "number") box.dataset.value = String(valueOf(cell));
        if (share && typeof valueOf(cell) === "number") box.style.setProperty("--part", String(Math.min(Math.max(valueOf(cell), 0), 1)));
        if (share) box.classList.add("share");
        if (!right) box.title = textOf(cell);
        const { depth } = this.data.extra;
        if (branch && depth && i >= 0) box.style.paddingLeft = `${8 + 14 * (depth[i] || 0)}px`;
      });
      if (i >= 0) this.picks(row, i);
      return row;
    }

    /** Have a click on a row choose what it is of, where a timeline shows that. */
    picks(row, i) {
      const { pickable } = window.tilescope;
      row.addEventListener("click", () => {
        const place = this.place.closest("[data-picks-key]");
        const key = place && place.dataset.picksKey;
        const values = place && (this.data.extra[place.dataset.picksField] || []);
        if (key && pickable.includes(key) && values[i] !== undefined && values[i] !== null) window.tilescope.go({ [key]: values[i] });
      });
    }
  }

  window.tilescope = Object.assign(window.tilescope || {}, { tableOf: (data) => new Table(data).place, pickable: ["step", "event"] });
})();
