// Joins Locust's own page to the run: the Chaos tab shows the page beside it, faults show behind the charts, and the
// end is said. Whatever Locust's page is changed to, what is not found there is not drawn; nothing here fails it.
"use strict";
(() => {
  const EVERY_MS = 1000;
  const TAB = "chaos";
  const CHARTS = "[_echarts_instance_]";
  const BITING = new Set(["bit", "not healed", "cut short"]);

  let state = null;
  let end = null;
  const watched = new WeakSet();

  const chosen = () => new URL(location.href).searchParams.get("tab");

  function showPage() {
    const there = document.getElementById("gapless-chaos");
    const room = document.querySelector("#root main > *");
    if (chosen() !== TAB || !room) {
      there?.remove();
      return;
    }
    if (there) return;
    const frame = document.createElement("iframe");
    frame.id = "gapless-chaos";
    frame.title = "Chaos";
    frame.src = "gapless/";
    frame.addEventListener("load", () => {
      const body = frame.contentDocument.body;
      new ResizeObserver(() => { frame.style.height = `${body.offsetHeight}px`; }).observe(body);
    });
    room.append(frame);
  }

  // ECharts has no list of its charts for others; React keeps each as the first state of what drew it.
  function chartIn(box) {
    const key = Object.keys(box).find((each) => each.startsWith("__reactFiber$"));
    for (const node of [box[key]?.return, box[key]?.return?.alternate]) {
      const chart = node?.memoizedState?.memoizedState;
      if (typeof chart?.convertToPixel === "function") return chart;
    }
    return null;
  }

  // Each fault as the times that it lasted, in milliseconds of this browser's clock, as the points of the charts are.
  function faults() {
    const began = Date.now() - state.at_s * 1000;
    const each = (fault, from_s, to_s, missed) =>
      ({ name: `${fault.fault} ${fault.target}`, from: began + from_s * 1000, to: began + to_s * 1000, missed });
    return [
      ...[...state.past].reverse().map((fault) => each(fault, fault.began_at_s, fault.began_at_s + fault.lasted_for_s, !BITING.has(fault.effect))),
      ...state.active.map((fault) => each(fault, fault.began_at_s, state.at_s, false)),
    ];
  }

  function mark(box) {
    const chart = chartIn(box);
    const room = chart?.getModel().getComponent("grid")?.coordinateSystem.getRect();
    if (!room || !state) return;
    if (!watched.has(chart)) {
      watched.add(chart);
      // A new point or another part of the time moves what is behind it.
      chart.on("finished", () => mark(box));
    }
    let marks = box.querySelector(".gapless-faults");
    if (!marks) {
      marks = document.createElement("div");
      marks.className = "gapless-faults";
      box.append(marks);
    }
    Object.assign(marks.style, { left: `${room.x}px`, top: `${room.y}px`, width: `${room.width}px`, height: `${room.height}px` });
    const at = (time) => Math.min(room.width, Math.max(0, chart.convertToPixel({ xAxisIndex: 0 }, time) - room.x));
    marks.replaceChildren(...faults().flatMap((fault) => {
      const [left, right] = [at(fault.from), at(fault.to)];
      if (right <= 0 || left >= room.width) return [];
      const band = document.createElement("span");
      band.style.left = `${left}px`;
      band.style.width = `${Math.max(2, right - left)}px`;
      band.classList.toggle("missed", fault.missed);
      band.textContent = fault.name;
      return [band];
    }));
  }

  function showFaults() {
    for (const box of document.querySelectorAll(CHARTS)) {
      try { mark(box); } catch { /* a chart that is being made, or one of another kind */ }
    }
  }

  function showEnd() {
    if (!end) {
      end = document.createElement("p");
      end.id = "gapless-notice";
      end.setAttribute("role", "status");
      document.body.prepend(end);
    }
    const where = state ? ` The report will be ${state.report}.` : "";
    end.textContent = `The load has ended, and this interface with it. What was acknowledged is now read back and judged.${where}`;
  }

  async function look() {
    try {
      const answer = await fetch("gapless/chaos", { cache: "no-store" });
      const told = answer.ok ? await answer.json() : null;
      state = told?.phase ? told : state;
      showFaults();
    } catch {
      showEnd();
    }
    setTimeout(look, EVERY_MS);
  }

  addEventListener("DOMContentLoaded", () => {
    showPage();
    // Locust changes the tab and the theme by its own means, which tell no one.
    new MutationObserver(() => { theme(); showPage(); })
      .observe(document.getElementById("root"), { childList: true, subtree: true, attributes: true, attributeFilter: ["aria-selected", "class"] });
    look();
  });
})();
