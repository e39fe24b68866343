// Asks for the state of the run once a second while someone looks, and shows it. Every text is set as text.
"use strict";

const EVERY_MS = 1000;
const AWAY_EVERY_MS = 5000;
const STALE_S = 5;
const LASTING = new Set(["heal", "flush", "final read", "stop"]);

const root = document.documentElement;
const at = (id) => document.getElementById(id);
const text = (id, value) => { if (at(id).textContent !== value) at(id).textContent = value; };
const count = (value) => (value ?? 0).toLocaleString("en");
const moment = (value) => `${value.toFixed(1)} s`;
const seconds = (value) => `${value.toFixed(value < 10 ? 1 : 0)} s`;

let last = null;
let timer = null;

function made(tag, content, ...classes) {
  const element = document.createElement(tag);
  element.textContent = content;
  element.classList.add(...classes);
  return element;
}

function notice(message) {
  at("notice").hidden = !message;
  text("notice", message || "");
}

function showActive(faults) {
  at("active").replaceChildren(...faults.map((each) => {
    const item = document.createElement("li");
    item.classList.toggle("healed", each.healed);
    const state = each.healed ? "healed, recovering; " : "";
    const since = `${state}since ${moment(each.began_at_s)}, for ${seconds(each.active_for_s)}`;
    item.append(made("div", each.fault, "name"), made("div", each.target), made("div", since, "soft"));
    return item;
  }));
  at("none-active").hidden = faults.length > 0;
}

function showPast(faults) {
  const headings = [...at("past").tHead.rows[0].cells].map((each) => each.textContent.toLowerCase());
  at("past").tBodies[0].replaceChildren(...faults.map((each) => {
    const row = document.createElement("tr");
    const effect = document.createElement("td");
    effect.append(made("span", each.effect, "effect", each.effect.replaceAll(" ", "-")));
    row.append(
      made("td", each.fault), made("td", each.target), made("td", moment(each.began_at_s), "number"),
      made("td", moment(each.lasted_for_s), "number"), effect, made("td", each.detail, "detail"),
    );
    // On a narrow page each cell stands alone, and says what it is.
    [...row.cells].slice(1).forEach((cell, number) => { cell.dataset.label = headings[number + 1]; });
    return row;
  }));
  at("past").hidden = faults.length === 0;
  at("none-past").hidden = faults.length > 0;
}

function show(run) {
  if (run.phase === null) {
    notice(run.message);
    return;
  }
  last = run;
  notice(run.age_s > STALE_S ? `The conductor has said nothing for ${seconds(run.age_s)}; this is what it said last.` : "");
  text("run", `${run.name}, seed ${run.seed}`);
  text("phase", run.phase);
  text("phase-for", `for ${seconds(run.phase_for_s)}`);
  at("progress").hidden = run.load_for_s === null || LASTING.has(run.phase);
  if (run.load_for_s !== null) {
    at("progress").value = Math.min(1, run.load_for_s / run.time_limit_s);
    if (!at("progress").hidden) text("phase-for", `${seconds(Math.min(run.load_for_s, run.time_limit_s))} of ${run.time_limit_s} s`);
  }
  text("acked", count(run.load.acked));
  text("acked-rate", `${count(Math.round(run.load.acked_per_s ?? 0))} per second`);
  text("unknown", count(run.load.unknown));
  text("failed", count(run.load.failed));
  text("read", count(run.load.read));
  text("errors", `${count(run.load.errors)} errors told by clients`);
  text("effective", run.planned ? `${run.effective} of ${run.done} bit; ${run.planned} planned` : "none planned");
  text("report", `: ${run.report}`);
  showActive(run.active);
  showPast(run.past);
}

function ended() {
  const where = last ? ` The report will be ${last.report}.` : "";
  notice(`The load has ended, and this interface with it. What was acknowledged is now read back and judged.${where}`);
  if (last) showActive([]);
  text("phase", "load ended");
  text("phase-for", "");
  at("progress").hidden = true;
}

async function look() {
  let wait = EVERY_MS;
  try {
    const answer = await fetch("chaos", { cache: "no-store" });
    if (answer.ok) show(await answer.json());
    else notice(`The state of the run cannot be read: ${answer.status} ${answer.statusText}`);
  } catch {
    ended();
    wait = AWAY_EVERY_MS;
  }
  timer = document.hidden ? null : setTimeout(look, wait);
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && timer === null) look();
});
if (self !== top) root.dataset.within = "";
look();
