import type { PodDetail } from "../src/page/view.ts";
import { type Child, h } from "./dom.ts";
import { chosen } from "./filter.ts";
import * as format from "./format.ts";
import { podDetails } from "./detail.ts";
import { sparkline } from "./spark.ts";
import type { State } from "./state.ts";

/** The list of the pods that the filter lets through, some of them unfolded. */
export function podList(state: State): Child {
  const shown = chosen(state.pods.values(), state.filter);
  if (state.node === undefined) return h("p", { class: "empty" }, waitingText(state));
  if (state.pods.size === 0) {
    return h(
      "div",
      { class: "empty" },
      h("p", {}, "No pod runs here."),
      h("p", {}, "A new pod appears automatically, e.g. ", h("code", {}, "podwright run examples/hello.yaml")),
    );
  }
  if (shown.length === 0) {
    return h("p", { class: "empty" }, `None of the ${format.plural(state.pods.size, "pod")} matches. `, clearButton());
  }
  return [
    h(
      "div",
      { class: "columns", "aria-hidden": "true" },
      ["Pod", "State", "Ready", "Restarts", "CPU", "Memory", "Age"].map((title) => h("span", {}, title)),
    ),
    h(
      "ul",
      { class: "pods" },
      shown.map((pod) => podItem(pod, state)),
    ),
    h("p", { class: "count", role: "status" }, countText(shown.length, state.pods.size)),
  ];
}

function waitingText({ link }: State): string {
  return link.state === "refused" ? "No access." : "Waiting for the node …";
}

function clearButton(): Element {
  return h("button", { type: "button", "data-clear": true }, "Show all");
}

function countText(shown: number, all: number): string {
  return shown === all ? format.plural(all, "pod") : `${shown} of ${format.plural(all, "pod")}`;
}

function podItem(pod: PodDetail, state: State): Element {
  const isOpen = state.open.has(pod.uid);
  const detailId = `pod-${pod.uid}`;
  return h(
    "li",
    { class: `pod ${pod.mood}${isOpen ? " open" : ""}`, "data-key": pod.uid },
    h(
      "h2",
      {},
      h(
        "button",
        {
          type: "button",
          class: "row",
          "data-pod": pod.uid,
          "aria-expanded": String(isOpen),
          "aria-controls": isOpen ? detailId : undefined,
        },
        h(
          "span",
          { class: "title" },
          stateMark(pod),
          h("span", { class: "name" }, pod.name),
          h("span", { class: "namespace" }, pod.namespace),
        ),
        h("span", { class: "word" }, pod.word),
        cell("ready", `${pod.readyContainers}/${pod.lastingContainers}`, "ready"),
        cell(
          pod.restarts > 0 ? "restarts some" : "restarts",
          String(pod.restarts),
          pod.restarts === 1 ? "restart" : "restarts",
        ),
        ...podGauges(pod, state),
        h("span", { class: "age" }, h("time", { "data-age": pod.createdAt, datetime: isoOf(pod.createdAt) }, "")),
      ),
    ),
    isOpen &&
      h(
        "div",
        { class: "details", id: detailId, role: "region", "aria-label": `Pod ${pod.name}` },
        podDetails(pod, state),
      ),
  );
}

/** A number with its unit, which wide screens say in the heading instead. */
function cell(name: string, amount: string, unit: string): Element {
  return h("span", { class: name }, amount, h("span", { class: "unit" }, ` ${unit}`));
}

/** A shape besides the colour, for viewers who cannot distinguish colours. */
export function stateMark({ mood }: PodDetail): Element {
  const shapes = {
    good: h("circle", { cx: 5, cy: 5, r: 4 }),
    starting: h("path", { d: "M5 1a4 4 0 0 1 0 8z" }),
    stopping: h("path", { d: "M5 1a4 4 0 0 0 0 8z" }),
    ended: h("path", { d: "M2 5l2 2.500 4-5", class: "stroke" }),
    trouble: h("path", { d: "M5 .5 9.500 9h-9z" }),
    failed: h("path", { d: "M2 2l6 6M8 2l-6 6", class: "stroke" }),
  };
  return h("svg", { class: "mark", viewBox: "0 0 10 10", "aria-hidden": "true" }, shapes[mood]);
}

function podGauges(pod: PodDetail, { podReadings, capacity }: State): Element[] {
  const readings = podReadings.get(pod.uid) ?? [];
  const cpu = readings.map(([value]) => value);
  const memory = readings.map(([, value]) => value);
  // One reading may be missing, as after a restart; what is older is not how it is now.
  const cpuNow = cpu.slice(-2).findLast((value) => value !== null);
  const memoryNow = memory.slice(-2).findLast((value) => value !== null);
  return [
    h(
      "span",
      { class: "cpu" },
      cpuNow !== undefined &&
        cpuNow !== null && [sparkline(cpu, (capacity.cpuCores ?? 1) / 50, "CPU"), h("span", {}, format.cores(cpuNow))],
    ),
    h(
      "span",
      { class: "memory" },
      memoryNow !== undefined &&
        memoryNow !== null && [sparkline(memory, 4 * 1024 * 1024, "memory"), h("span", {}, format.bytes(memoryNow))],
    ),
  ];
}

function isoOf(ms: number): string {
  return Number.isFinite(ms) ? new Date(ms).toISOString() : "";
}
