"use strict";
// What a page can do besides being read: values under the pointer, tables in another order or with
// fewer rows, participants left out, parts folded away. Without it the page is whole.
(() => {
  const all = (where, what) => [...where.querySelectorAll(what)];
  const make = (tag, more, text) => {
    const one = Object.assign(document.createElement(tag), more);
    if (text !== undefined) one.textContent = text;
    return one;
  };

  // Tables: each head sorts, a field above keeps the rows that hold its words.
  const absent = new Set(); // participants that are left out, on the whole page
  const tables = all(document, ".table").map((box) => {
    const table = box.querySelector("table");
    const body = table.tBodies[0];
    return { box, body, heads: table.tHead ? [...table.tHead.rows[0].cells] : [], rows: [...body.rows], words: [], told: null };
  });
  const keep = (one) => {
    let there = 0;
    for (const row of one.rows) {
      const text = row.textContent.toLowerCase();
      const out = [...row.cells].some((cell) => absent.has(cell.textContent));
      row.hidden = out || !one.words.every((word) => text.includes(word));
      there += !row.hidden;
    }
    if (one.told) one.told.textContent = there < one.rows.length ? `${there} of ${one.rows.length} rows` : "";
  };
  const value = (text) => {
    const plain = text.replace(/[$,%\s]/g, "").replace(/\u2212/g, "-");
    return /^[-+]?(\d|\.\d)/.test(plain) ? parseFloat(plain) : NaN;
  };
  const sort = (one, k) => {
    const now = one.heads[k].getAttribute("aria-sort");
    const way = now === "ascending" ? "descending" : now === "descending" ? null : "ascending";
    for (const head of one.heads) head.removeAttribute("aria-sort");
    const cell = (row) => (row.cells[k] ? row.cells[k].textContent.trim() : "");
    const told = one.rows.map(cell).filter((text) => text && text !== "-");
    const numbers = told.length > 0 && told.every((text) => !isNaN(value(text)));
    const against = (a, b) => {
      const [x, y] = [cell(a), cell(b)];
      const [gone, lost] = [!x || x === "-", !y || y === "-"];
      if (gone || lost) return gone - lost; // what is missing stays below, whichever way
      const order = numbers ? value(x) - value(y) : x.localeCompare(y, "en", { numeric: true });
      return way === "descending" ? -order : order;
    };
    if (way) one.heads[k].setAttribute("aria-sort", way);
    one.body.append(...(way ? [...one.rows].sort(against) : one.rows));
  };
  for (const one of tables) {
    if (one.rows.length < 3) continue;
    one.heads.forEach((head, k) => {
      const button = make("button", { type: "button", className: "sorts" }, head.textContent);
      button.addEventListener("click", () => sort(one, k));
      head.replaceChildren(button);
    });
    if (one.rows.length < 10) continue;
    const field = make("input", { type: "search", autocomplete: "off" });
    const label = make("label", { className: "filter" }, "Rows with ");
    one.told = make("output", {});
    label.append(field, " ", one.told);
    field.addEventListener("input", () => {
      one.words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      keep(one);
    });
    one.box.before(label);
  }

  // Figures: the value next to the pointer, all values as a table, a switch for each series.
  const tip = make("div", { className: "tip", hidden: true });
  document.body.append(tip);
  const switches = [];
  const toggle = (name) => {
    if (!absent.delete(name)) absent.add(name);
    for (const one of switches) {
      const out = absent.has(one.name);
      one.button.setAttribute("aria-pressed", String(!out));
      for (const mark of one.marks) mark.style.display = out ? "none" : "";
    }
    tables.forEach(keep);
  };
  for (const figure of all(document, "figure")) {
    const kept = figure.querySelector("script.spots");
    const svg = figure.querySelector("svg");
    if (!kept || !svg) continue;
    const { panels, series, spots } = JSON.parse(kept.textContent);
    const wide = svg.viewBox.baseVal.width;
    const lines = ([, , panel, which, x, y]) => {
      const at = panels[panel];
      const named = (axis, text) => (text ? [axis ? `${axis}: ${text}` : text] : []);
      const head = [at.title, series[which]].filter(Boolean).join(", ");
      return [...(head ? [head] : []), ...named(at.x, x), ...named(at.y, y)];
    };
    const shown = (spot) => !absent.has(series[spot[3]]);
    svg.addEventListener("pointermove", (event) => {
      const box = svg.getBoundingClientRect();
      const scale = wide / box.width;
      const [x, y] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
      let best = null;
      let least = (18 * scale) ** 2;
      for (const spot of spots) {
        const far = (spot[0] - x) ** 2 + (spot[1] - y) ** 2;
        if (far < least && shown(spot)) [best, least] = [spot, far];
      }
      tip.hidden = best === null;
      if (best === null) return;
      tip.replaceChildren(...lines(best).map((line) => make("div", {}, line)));
      const left = box.left + best[0] / scale + 12;
      const flips = left + tip.offsetWidth > innerWidth - 4;
      tip.style.left = `${Math.max(4, flips ? left - 24 - tip.offsetWidth : left)}px`;
      tip.style.top = `${box.top + best[1] / scale + 12}px`;
    });
    svg.addEventListener("pointerleave", () => { tip.hidden = true; });
    const several = series.filter((name, k) => name && all(svg, `[id*="series-${k}-"]`).length);
    if (several.length > 1) {
      const bar = make("div", { className: "switches" });
      bar.setAttribute("role", "group");
      bar.setAttribute("aria-label", "What the page shows");
      for (const name of several) {
        const marks = all(svg, `[id*="series-${series.indexOf(name)}-"]`);
        const button = make("button", { type: "button" }, name);
        button.setAttribute("aria-pressed", "true");
        button.addEventListener("click", () => toggle(name));
        switches.push({ name, marks, button });
        bar.append(button);
      }
      figure.querySelector("figcaption").after(bar);
    }
    const values = make("details", { className: "values" });
    values.append(make("summary", {}, `Values (${spots.length})`));
    values.addEventListener("toggle", () => {
      if (values.children.length > 1) return;
      const table = make("table", {});
      const head = ["panel", "series", "x", "y"].map((name) => make("th", { scope: "col" }, name));
      table.createTHead().insertRow().append(...head);
      const body = table.createTBody();
      for (const [, , panel, which, x, y] of spots) {
        const row = body.insertRow();
        for (const text of [panels[panel].title, series[which], x, y]) row.insertCell().textContent = text;
      }
      const box = make("div", { className: "wide", tabIndex: 0 });
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", "Values of the figure");
      box.append(table);
      values.append(box);
    });
    if (spots.length) figure.append(values);
  }

  // Parts that fold: long ones are closed at first; print and links open them.
  const folds = all(document, "details.fold");
  for (const fold of folds) if (fold.classList.contains("long")) fold.open = false;
  const reveal = () => {
    const aim = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!aim) return;
    for (let at = aim; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    aim.scrollIntoView();
  };

  // Paper has an edge: columns beyond it go on below, behind the names of their rows.
  const split = ({ box, heads }) => {
    const wide = heads.map((head) => head.offsetWidth);
    const sum = (some) => some.reduce((total, one) => total + one, 0);
    if (sum(wide) <= box.clientWidth) return [];
    const named = heads.findIndex((head, k) => k && (!head.classList.contains("words") || sum(wide.slice(0, k + 1)) > box.clientWidth / 2));
    const parts = [];
    let left = 0;
    for (let k = named; k < wide.length; k++) {
      if (!parts.length || wide[k] > left) left = box.clientWidth - sum(wide.slice(0, named)), parts.push(new Set());
      parts.at(-1).add(k);
      left -= wide[k];
    }
    const pieces = parts.map((part) => {
      const piece = box.cloneNode(true);
      piece.classList.toggle("alone", part.size === 1);
      for (const row of piece.querySelectorAll("tr"))
        [...row.cells].forEach((cell, k) => { if (k >= named && !part.has(k)) cell.remove(); });
      return piece;
    });
    box.after(...pieces);
    box.hidden = true;
    return [() => { box.hidden = false; for (const piece of pieces) piece.remove(); }];
  };
  let undo = [];
  addEventListener("beforeprint", () => {
    const closed = folds.filter((fold) => !fold.open);
    for (const fold of closed) fold.open = true;
    document.body.classList.add("paper");
    undo = [...tables.flatMap(split), () => { for (const fold of closed) fold.open = false; }];
    document.body.classList.remove("paper");
  });
  addEventListener("afterprint", () => { for (const one of undo.splice(0)) one(); });
  addEventListener("hashchange", reveal);
  reveal();
})();
