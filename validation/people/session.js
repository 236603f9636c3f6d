"use strict";
// A session as the Python environment lives it. `play` is the experiment's world, printed from its
// definition; `data` are the design's tables and every text that can be told.
const pick = (condition, a, b) => (condition ? a : b);

class KnownSession {
  constructor(data, play) {
    this.data = data;
    this.play = play;
    this.state = { ...data.start };
    this.rows = [];
    this.find(0);
  }

  get over() { return this.trial >= this.data.n_trials; }

  find(trial) {
    const { present, table, n_trials } = this.data;
    for (; trial < n_trials; trial++) {
      if (present && !present[trial]) continue;
      this.lived = this.play(this.state, table, trial, -1);
      if (this.lived.present) break;
      this.state = this.lived.after;
    }
    this.trial = trial;
  }

  key(names, lived) { return names.map((name) => told(lived.columns[name])).join("|"); }

  get screen() {
    const { texts, images, trials, shown } = this.data;
    const found = trials[this.trial].screens[this.key(shown, this.lived)];
    return {
      introduction: texts[found.introduction],
      question: texts[found.question],
      options: found.options.map((k) => texts[k]),
      order: found.order,
      images: found.images.map((k) => images[k]),
      asks: found.asks,
      numbers: found.numbers,
    };
  }

  // action and response are null where nothing was given; returns what the person is told.
  take(action, response, more = {}) {
    const { data } = this, t = this.trial, given = action !== null || response !== null;
    const lived = this.play(this.state, data.table, t, action === null ? -1 : action);
    const row = { trial: t };
    for (const name of data.fields) {
      row[name] = name in lived.columns ? number(lived.columns[name]) : data.table[name][t];
    }
    if (data.answers.includes("action")) row.action = action;
    if (data.answers.includes("response")) row.response = response;
    for (const name of data.paid) row[name] = given ? number(lived.columns[name]) : null;
    this.rows.push({ ...row, outcome: given ? "ok" : "empty", ...more });
    const who = given ? (action === null ? "number" : String(action)) : "nothing";
    const key = `${who}:${this.key([...data.shown, ...data.paid], lived)}`;
    const text = data.texts[data.trials[t].replies[key]];
    this.state = lived.after;
    this.find(t + 1);
    return text.replaceAll("{response}", told(response));
  }
}

const number = (x) => (Number.isNaN(x) ? null : x + 0);
const told = (x) => (x === null || Number.isNaN(x) ? "null" : String(x + 0));
