import type { LifeLine, LifeView, Outcome, PhaseView, SubjectView } from "../src/page/view.ts";
import { type Child, h, section } from "./dom.ts";
import * as format from "./format.ts";

/** Why the pod and its containers are as they are: what happened last, the causes, and what comes next. */
export function whyOf(life: LifeView | undefined): Child {
  if (life === undefined) return section("Why", h("p", { class: "faint" }, "…"));
  const isEmpty = life.subjects.length === 0;
  return section(
    "Why",
    isEmpty && h("p", { class: "faint" }, "The journal has no entries of this pod any more."),
    h("ul", { class: "why" }, life.subjects.map(subject)),
  );
}

function subject({ container, last, after, because, next }: SubjectView): Element {
  return h(
    "li",
    { class: toneOf(last.outcome), "data-key": container ?? "" },
    h("p", { class: "of" }, container === undefined ? "the pod" : `container ${container}`),
    h("p", { class: "last" }, last.text, " ", at(last.time)),
    after !== undefined && h("p", { class: "after" }, after.text, " ", at(after.time)),
    because.map(({ text, time }) => h("p", { class: "because" }, text, time !== undefined && [" ", at(time)])),
    next !== undefined && h("p", { class: "next" }, next.text, " (", h("time", { "data-until": next.until }, ""), ")"),
  );
}

function at(ms: number): Element {
  return h("time", { class: "at", title: format.dateTime(ms) }, format.time(ms));
}

function toneOf(outcome: Outcome | undefined): string {
  switch (outcome) {
    case "failed":
      return "failed";
    case "unknown":
    case "interrupted":
      return "starting";
    case "done":
      return "good";
    case "running":
    case undefined:
      return "plain";
  }
}

/** What happened, the newest first, each with its causes. */
export function timelineOf(life: LifeView | undefined): Child {
  if (life === undefined) return null;
  const { lines, omitted, truncated } = life;
  return section(
    "Timeline",
    h(
      "div",
      { class: "scroll", tabindex: 0, role: "region", "aria-label": "Timeline, newest first" },
      h("ol", { class: "timeline", reversed: true }, lines.toReversed().map(lineItem)),
      omitted > 0 && h("p", { class: "faint" }, `${omitted} earlier lines: podwright timeline`),
      truncated && h("p", { class: "faint" }, "The journal does not have the pod's first entries any more."),
    ),
  );
}

function lineItem({ seq, time, sinceMs, container, text, kind, what, outcome, because }: LifeLine): Element {
  return h(
    "li",
    { class: `${kind} ${toneOf(outcome)}`, "data-key": seq },
    h(
      "time",
      { class: "at", title: `${format.dateTime(time)}, ${format.duration(sinceMs)} after the first` },
      format.time(time),
    ),
    h("span", { class: "of" }, container ?? ""),
    h(
      "div",
      {},
      h("p", { title: what }, text),
      because.map((cause) => h("p", { class: "because" }, cause)),
    ),
  );
}

const outcomes = { ready: "Start-up", ended: "Start-up, never ready", starting: "Start-up, so far" } as const;

/** What the start-up was spent on, as bars over its time; the chain that delayed it is marked. */
export function startUp(life: LifeView | undefined): Child {
  if (life === undefined || life.startUp.phases.length === 0) return null;
  const { outcome, totalMs, phases } = life.startUp;
  const title = life.truncated ? "A later start" : outcomes[outcome];
  return h(
    "section",
    { "data-key": "Start-up" },
    h("h3", {}, title, h("span", { class: "total" }, format.duration(totalMs))),
    h(
      "ol",
      { class: "phases" },
      phases.map((phase, index) => phaseItem(phase, index, totalMs)),
    ),
  );
}

function phaseItem(
  { label, container, offsetMs, durationMs, critical, result }: PhaseView,
  index: number,
  totalMs: number,
): Element {
  const scale = 1000 / Math.max(1, totalMs);
  const x = Math.min(1000, offsetMs * scale);
  const width = Math.max(4, Math.min(1000 - x, durationMs * scale));
  return h(
    "li",
    { class: `${critical ? "critical" : "beside"} ${toneOf(result)}`, "data-key": index },
    h("span", { class: "label" }, container === undefined ? "" : `${container}: `, label),
    h("span", { class: "took" }, format.duration(durationMs)),
    h(
      "svg",
      { class: "bar", viewBox: "0 0 1000 6", preserveAspectRatio: "none", "aria-hidden": "true" },
      h("rect", { class: "track", width: 1000, height: 6 }),
      h("rect", { class: "fill", x: Math.min(x, 996), width, height: 6 }),
    ),
  );
}
