import type { NodeReading } from "../src/page/view.ts";
import { type Child, h } from "./dom.ts";
import * as format from "./format.ts";
import { evictionPreview, garbagePreview } from "./previews.ts";
import { meter, sparkline } from "./spark.ts";
import type { State } from "./state.ts";

/** The line on top: which node this is, and whether what is shown is of this moment. */
export function header({ node, link }: State): Child {
  return [
    h(
      "h1",
      {},
      h("span", { class: "brand" }, "podwright"),
      node !== undefined && h("span", { class: "node" }, node.name),
    ),
    node !== undefined &&
      h(
        "p",
        { class: "facts" },
        node.runtime,
        " · podwright ",
        node.version,
        " · up ",
        h("time", { "data-since": node.startedAt }, ""),
      ),
    h("p", { class: `link ${link.state}` }, linkWord(link.state)),
  ];
}

function linkWord(state: State["link"]["state"]): string {
  switch (state) {
    case "connecting":
      return "connecting";
    case "live":
      return "live";
    case "lost":
      return "reconnecting";
    case "refused":
      return "no access";
  }
}

/** What is in the way, if anything is. */
export function notice({ link, lostAt, node }: State): Child {
  if (link.state === "lost" || link.state === "refused") {
    return h(
      "div",
      { class: `notice ${link.state}` },
      h("strong", {}, link.problem),
      link.remedy !== "" && h("span", {}, ` ${link.remedy}`),
      link.state === "lost" &&
        h(
          "span",
          {},
          lostAt === undefined || node === undefined
            ? " Trying again."
            : ` Showing the state of ${format.time(lostAt)}. Trying again.`,
        ),
    );
  }
  const failing = node?.checks.filter(({ ok }) => !ok) ?? [];
  if (failing.length === 0) return null;
  return h(
    "div",
    { class: "notice failing" },
    h("strong", {}, "The node is unhealthy. "),
    failing.map(({ name, detail }) => `${name}: ${detail}`).join("; "),
  );
}

/** The node's gauges with their history. */
export function gauges(state: State): Child {
  const { readings, capacity, pods } = state;
  const last = readings.at(-1);
  const { cpuCores: allCores, memoryBytes: allMemory, diskBytes: allDisk, maxPods } = capacity;
  const series = (of: (reading: NodeReading) => number | null): (number | null)[] => readings.map(of);
  const cpu = series((reading) => reading.cpuCores);
  const amounts: readonly Gauge[] = [
    {
      title: "CPU",
      now: cpu.findLast((value) => value !== null) ?? undefined,
      whole: allCores,
      values: cpu,
      text: format.cores,
      unit: "cores",
      least: (allCores ?? 1) / 10,
    },
    {
      title: "Memory",
      now: last?.memoryBytes ?? undefined,
      whole: allMemory,
      values: series((reading) => reading.memoryBytes),
      text: format.bytes,
      unit: "",
      least: (allMemory ?? 0) / 10,
    },
    {
      title: "Disk",
      now: last?.diskBytes ?? undefined,
      whole: allDisk,
      values: series((reading) => reading.diskBytes),
      text: format.bytes,
      unit: "",
      least: (allDisk ?? 0) / 10,
    },
    {
      title: "Pods",
      now: state.node === undefined ? undefined : pods.size,
      whole: maxPods,
      values: series((reading) => reading.pods),
      text: String,
      unit: "",
      least: 4,
    },
  ];
  return amounts.map((each) => gauge(each, spanOf(readings)));
}

interface Gauge {
  readonly title: string;
  readonly now: number | undefined;
  readonly whole: number | undefined;
  readonly values: readonly (number | null)[];
  readonly text: (value: number) => string;
  readonly unit: string;
  /** The curve's upper edge stands for this at least, so that noise does not look like a mountain. */
  readonly least: number;
}

function gauge({ title, now, whole, values, text, unit, least }: Gauge, span: string): Element {
  const known = values.filter((value) => value !== null);
  const peak = known.length === 0 ? undefined : Math.max(...known);
  const of = whole === undefined ? unit : `of ${text(whole)}${unit === "" ? "" : ` ${unit}`}`;
  return h(
    "div",
    { class: "gauge", "data-key": title },
    h("h2", {}, title),
    h(
      "p",
      { class: "amount" },
      h("strong", {}, now === undefined ? "–" : text(now)),
      now !== undefined && h("span", { class: "of" }, ` ${of}`),
      now !== undefined && whole !== undefined && h("span", { class: "share" }, format.percent(now, whole)),
    ),
    now !== undefined && whole !== undefined && meter(now, whole),
    values.length > 1 && sparkline(values, least, `${title} of the last ${span}`),
    h(
      "p",
      { class: "scale" },
      values.length > 1 && h("span", {}, span),
      values.length > 1 && peak !== undefined && h("span", {}, `peak ${text(peak)}`),
    ),
  );
}

/** How far back the readings go. */
function spanOf(readings: readonly NodeReading[]): string {
  const [first, last] = [readings[0], readings.at(-1)];
  return first === undefined || last === undefined ? "" : format.age(last.time - first.time);
}

export function footer({ node, previews }: State): Child {
  if (node === undefined) return null;
  return [
    h(
      "details",
      { "data-key": "checks" },
      h("summary", {}, node.healthy ? "All parts of podwright are healthy" : "Some part of podwright is unhealthy"),
      h(
        "dl",
        { class: "checks" },
        node.checks.map(({ name, ok, detail }) => [h("dt", { class: ok ? "good" : "bad" }, name), h("dd", {}, detail)]),
      ),
    ),
    evictionPreview(previews.evictions),
    garbagePreview(previews.garbage),
  ];
}
