"use strict";
// What a page can do besides being read: tables in another order or with fewer rows, parts
// folded away. Without it the page is whole.
(() => {
  const all = (where, what) => [...where.querySelectorAll(what)];
  const make = (tag, more, text) => {
    const one = Object.assign(document.createElement(tag), more);
    if (text !== undefined) one.textContent = text;
    return one;
  };

  // Tables: each head sorts, a field above keeps the rows that hold its words.
  const tables = all(document, ".table").map((box) => {
    const table = box.querySelector("table");
    const body = table.tBodies[0];
    return { box, body, heads: table.tHead ? [...table.tHead.rows[0].cells] : [], rows: [...body.rows], words: [], told: null };
  });
  const keep = (one) => {
    let there = 0;
    for (const row of one.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !one.words.every((word) => text.includes(word));
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
