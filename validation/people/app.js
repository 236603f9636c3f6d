"use strict";
// The page: jsPsych goes from trial to trial, `KnownSession` knows what each shows and brings.
const asked = new URLSearchParams(location.search);
const place = document.getElementById("chair");
const saving = document.getElementById("saving");
const storage = {
  get(key) { try { return JSON.parse(localStorage.getItem(key)); } catch { return null; } },
  set(key, value) { try { localStorage.setItem(key, JSON.stringify(value)); } catch { /* no room */ } },
};

function make(tag, more = {}, ...inside) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(more)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value);
  }
  made.append(...inside);
  return made;
}

// A row of signs is a picture: all rows of a part are drawn at one scale, and none is broken.
const isRow = (line) => /^[^\p{L}\s]+$/u.test(line);

function paragraphs(text) {
  return text.split(/\n\n+/).map((part) => {
    const lines = part.split("\n");
    if (lines.some((line) => isRow(line) && /(.)\1{3}/u.test(line))) {
      return make("div", { class: "drawn" },
        ...lines.map((line) => make("p", isRow(line) ? { class: "row" } : {}, line)));
    }
    return make("p", {}, ...lines.flatMap((line, k) => (k ? [make("br"), line] : [line])));
  });
}

// A number as people type it, with a point or a comma; NaN for anything else.
function stands(typed) {
  const text = typed.trim().replace(/^(\d*),(\d+)$/, "$1.$2");
  return /^[+-]?(\d+\.?\d*|\.\d+)$/.test(text) ? Number(text) : NaN;
}

let current = null; // the session that is run; jsPsych copies what trials are given

class KnownTrial {
  static info = { name: "knownminds", version: "1", parameters: {}, data: {} };
  constructor(jsPsych) { this.jsPsych = jsPsych; }

  trial(display) {
    const run = current, { session } = run, screen = session.screen, begun = performance.now();
    let action = null, clock = null, gone = false;
    const whole = make("section", { tabindex: "-1", "aria-label": "Question" });
    const give = (chosen, response) => {
      if (gone) return;
      gone = true;
      clearTimeout(clock);
      const rt_s = Math.round(performance.now() - begun) / 1000;
      const more = chosen === null && response === null ? {} : { rt_s };
      const several = screen.numbers.map((_, k) => (response === null ? null : response[k]));
      const text = several.length ? several.map((x) => session.take(null, x, more)).at(-1)
        : session.take(chosen, response, more);
      const row = session.rows.at(-1);
      run.keep();
      if (!text) return this.jsPsych.finishTrial(row);
      const on = make("button", { type: "button", class: "on",
        onclick: () => this.jsPsych.finishTrial(row) }, "Go on");
      whole.replaceChildren(make("div", { role: "status" }, ...paragraphs(text)), on);
      on.focus();
    };
    const form = make("form", { onsubmit: (event) => event.preventDefault() });
    if (screen.options.length) form.append(this.options(screen, (k, button) => {
      action = k;
      if (screen.asks === "action") return give(k, null);
      form.querySelectorAll("[aria-pressed]").forEach((one) =>
        one.setAttribute("aria-pressed", String(one === button)));
    }));
    if (screen.numbers.length) this.shares(form, screen.numbers, (shares) => give(null, shares));
    else if (screen.asks !== "action") this.number(form, run.data.range, (response) => {
      if (screen.asks === "both" && action === null) return "Choose one of the options as well.";
      give(screen.asks === "both" ? action : null, response);
      return "";
    });
    const stays = run.data.stays ? [] : paragraphs(screen.introduction);
    const pictures = screen.images.map((src, k) =>
      make("img", { src, alt: `Picture ${k + 1}, to which the question belongs` }));
    whole.append(...stays, ...pictures, ...paragraphs(screen.question), form);
    display.replaceChildren(make("h1", { class: "where" }, run.where()), whole);
    whole.focus({ preventScroll: true });
    scrollTo(0, 0);
    if (run.data.seconds) clock = setTimeout(() => give(null, null), 1000 * run.data.seconds);
    run.stop = () => { gone = true; clearTimeout(clock); };
  }

  options(screen, chosen) {
    const pressed = screen.asks === "both" ? { "aria-pressed": "false" } : {};
    return make("div", { class: "options", role: "group", "aria-label": "Options" },
      ...screen.order.map((k) => {
        const button = make("button", { type: "button", "data-action": k, ...pressed },
          screen.options[k]);
        button.addEventListener("click", () => chosen(k, button));
        return button;
      }));
  }

  // Numbers that sum to 1, within what rounding to two decimals may miss: nothing is normalised.
  shares(form, names, stated) {
    const wrong = make("p", { id: "wrong", class: "wrong", role: "alert" });
    const fields = names.map((name, k) => make("input", { id: `share-${k}`, type: "text",
      inputmode: "decimal", autocomplete: "off", "aria-describedby": "wrong" }));
    form.append(make("p", {}, "Numbers from 0 to 1, which sum to 1"),
      ...fields.map((field, k) => make("div", { class: "share" },
        make("label", { for: field.id }, names[k]), field)),
      make("button", { class: "on" }, "Answer"), wrong);
    form.addEventListener("submit", () => {
      const values = fields.map((field) => stands(field.value));
      const odd = values.findIndex((x) => !(x >= 0 && x <= 1));
      const sum = values.reduce((a, b) => a + b, 0);
      const far = Math.abs(sum - 1) > 0.005 * values.length + 1e-9;
      wrong.textContent = odd >= 0 ? `Type a number from 0 to 1 for ${names[odd]}.`
        : far ? `The numbers sum to 1; these sum to ${Number(sum.toFixed(4))}.` : "";
      if (wrong.textContent) fields[Math.max(odd, 0)].focus();
      else stated(values);
    });
  }

  number(form, [low, high], stated) {
    const most = Number.isFinite(high) ? ` from ${low} to ${high}` : ` from ${low} on`;
    const field = make("input", { id: "response", type: "text", inputmode: "decimal",
      autocomplete: "off", "aria-describedby": "wrong" });
    const wrong = make("p", { id: "wrong", class: "wrong", role: "alert" });
    form.append(make("label", { for: "response" }, `A number${most}`),
      make("div", { class: "number" }, field, make("button", { class: "on" }, "Answer")), wrong);
    form.addEventListener("submit", () => {
      const value = stands(field.value);
      wrong.textContent = value >= low && value <= high ? stated(value) : `Type a number${most}.`;
      if (wrong.textContent) field.focus();
    });
  }
}

class Run {
  constructor(data, participant) {
    this.data = data;
    this.participant = participant;
    this.session = new KnownSession(data, PLAY);
    this.kept = `knownminds ${data.design} ${participant}`;
    this.closed = 0;
    this.sent = "";
  }

  get answers() { return this.session.rows.map(({ trial, action = null, response = null, rt_s }) =>
    ({ trial, action, response, rt_s })); }

  where() {
    const done = this.session.rows.length;
    return this.data.ends_early || this.data.present
      ? `Question ${done + 1}` : `Question ${done + 1} of ${this.data.n_trials}`;
  }

  keep() {
    storage.set(this.kept, { answers: this.answers, closed: this.closed, over: this.session.over });
  }

  restore(before) {
    for (const { action, response, rt_s } of before.answers) {
      this.session.take(action, response, rt_s === undefined ? {} : { rt_s });
    }
    this.closed = before.closed + 1;
    this.keep();
  }

  get file() {
    const { environment, settings, seed, subject, design, knownminds_page } = this.data;
    return { knownminds_page, environment, settings, seed, subject, design,
      participant: this.participant, ended: this.session.over, closed: this.closed,
      rows: this.session.rows };
  }

  get name() {
    const who = this.participant || this.data.subject;
    return `${this.data.environment}-${String(who).replace(/[^\w-]+/g, "_")}`;
  }

  csv() {
    const { environment, settings, subject, seed } = this.data, rows = this.session.rows;
    const names = [...new Set(rows.flatMap(Object.keys))];
    const head = ["environment", "subject", "session", ...names, "environment_settings"];
    const who = this.participant || String(subject);
    const lines = rows.map((row, k) => [environment, who, "0", ...names.map((name) => row[name]),
      k ? null : JSON.stringify(settings)]);
    return [head, ...lines].map((line) => line.map(cell).join(",")).join("\n") + "\n";
  }

  async send(leaving = false) {
    const { post } = this.data;
    if (!post) return "";
    const data = JSON.stringify(this.file);
    try {
      const answer = await fetch(post.url, { method: "POST", keepalive: leaving,
        headers: { "Content-Type": "application/json", Accept: "*/*" },
        body: JSON.stringify({ ...post.fields, filename: `${this.name}.json`, data }) });
      return answer.ok ? "Your answers were sent." : `They could not be sent (${answer.status}).`;
    } catch { return "They could not be sent."; }
  }

  end(stopped) {
    this.done = true;
    const { rows } = this.session, missing = rows.filter((row) => row.outcome === "empty").length;
    const save = (text, kind, end) => make("a", { class: "on", download: `${this.name}.${end}`,
      href: URL.createObjectURL(new Blob([text], { type: kind })) }, `Save as ${end.toUpperCase()}`);
    const status = make("p", { role: "status" });
    saving.replaceChildren(make("section", { tabindex: "-1", "aria-label": "End" },
      make("h1", {}, stopped ? "You have stopped" : "That was the last question"),
      make("p", {}, `${rows.length - missing} answers were given` +
        (missing ? `, and ${missing} questions passed without one.` : ".") +
        (stopped ? " What was not asked any more counts as missing." : "")),
      make("div", { class: "options" }, save(JSON.stringify(this.file, null, 1), "application/json",
        "json"), save(this.csv(), "text/csv", "csv")),
      make("p", {}, "Thank you. Save the file and hand it to whoever asked you, unless they said otherwise."),
      status));
    place.hidden = true;
    saving.hidden = false;
    document.getElementById("stop").hidden = true;
    saving.firstChild.focus();
    this.send().then((said) => { status.textContent = said; });
  }
}

const cell = (value) => {
  if (value === null || value === undefined) return "";
  const text = String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

async function lead(run) {
  const start = document.getElementById("start");
  const first = run.session.over ? "" : run.session.screen.introduction;
  const before = storage.get(run.kept);
  const begin = async (again) => {
    if (again) run.restore(before);
    start.remove();
    const stop = document.getElementById("stop");
    stop.hidden = false;
    if (run.session.over) return run.end(false);
    const jsPsych = initJsPsych({ display_element: place, override_safe_mode: true,
      on_finish: () => run.done || run.end(false) });
    stop.onclick = () => {
      if (!confirm("Stop here? Questions that were not asked will count as missing.")) return;
      run.stop?.();
      run.end(true);
    };
    window.knownminds = current = run;
    await jsPsych.run([{ timeline: [{ type: KnownTrial }],
      loop_function: () => !run.session.over && !run.done }]);
  };
  const ready = make("button", { type: "button", class: "on", onclick: () => begin(false) }, "Begin");
  const inside = [make("h1", {}, document.title), ...(run.data.stays ? paragraphs(first) : [])];
  if (before?.answers.length) {
    const n = before.answers.length;
    inside.push(make("p", {}, `This session was begun in this browser and closed after ${n} ${n === 1 ? "question" : "questions"}.`),
      make("div", { class: "options" },
        make("button", { type: "button", class: "on", onclick: () => begin(true) }, "Go on"),
        make("button", { type: "button", onclick: () => { run.restore(before); start.remove(); run.end(!run.session.over); } }, "Save what there is")));
  } else inside.push(ready);
  start.replaceChildren(...inside);
  start.querySelector("button").focus({ preventScroll: true });
  addEventListener("pagehide", () => { if (!run.done && run.session.rows.length) run.send(true); });
}

window.knownmindsSession = (data) => {
  const named = asked.get("participant") ?? asked.get("PROLIFIC_PID") ?? "";
  lead(new Run(data, named.trim()));
};

function load(subject) {
  document.body.append(make("script", { src: `sessions/${subject}.js`,
    onerror: () => ask(`There is no session ${subject} beside this page.`) }));
}

function ask(wrong = "") {
  const start = document.getElementById("start");
  const field = make("input", { id: "subject", type: "text", inputmode: "numeric",
    autocomplete: "off", "aria-describedby": "wrong" });
  const said = make("p", { id: "wrong", class: "wrong", role: "alert" }, wrong);
  start.replaceChildren(make("h1", {}, document.title),
    make("form", { onsubmit: (event) => {
      event.preventDefault();
      const n = Number(field.value);
      if (Number.isInteger(n) && n >= 1 && n <= SUBJECTS) load(n);
      else { said.textContent = `Your number is one from 1 to ${SUBJECTS}.`; field.focus(); }
    } }, make("label", { for: "subject" }, `Your number, from 1 to ${SUBJECTS}`),
    make("div", { class: "number" }, field, make("button", { class: "on" }, "Go on")), said));
}

const given = asked.get("subject") ?? (SUBJECTS === 1 ? "1" : null);
if (given === null) ask();
else if (/^[1-9]\d*$/.test(given) && Number(given) <= SUBJECTS) load(Number(given));
else ask(`There is no session ${given}; your number is one from 1 to ${SUBJECTS}.`);
