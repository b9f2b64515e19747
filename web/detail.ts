import type { ContainerDetail, PodDetail, ProbeView } from "../src/page/view.ts";
import { type Child, h, section } from "./dom.ts";
import * as format from "./format.ts";
import { startUp, timelineOf, whyOf } from "./life.ts";
import type { State } from "./state.ts";

/** Everything about one pod. */
export function podDetails(pod: PodDetail, state: State): Child {
  const life = state.lives.get(pod.uid);
  return [
    h("div", { class: "story" }, whyOf(life), timelineOf(life)),
    h(
      "div",
      { class: "parts" },
      section("Containers", h("ul", { class: "containers" }, pod.containers.map(containerItem))),
      startUp(life),
      pod.conditions.length > 0 && section("Conditions", conditions(pod)),
      section("Pod", facts(pod)),
    ),
  ];
}

const kinds = { container: "", init: "init", sidecar: "sidecar", ephemeral: "ephemeral" } as const;

function containerItem(container: ContainerDetail): Element {
  const { name, kind, image, restarts, message, ports, resources, probes } = container;
  return h(
    "li",
    { class: `container ${toneOf(container)}`, "data-key": `${kind} ${name}` },
    h(
      "p",
      { class: "headline" },
      h("strong", {}, name),
      kinds[kind] !== "" && h("span", { class: "tag" }, kinds[kind]),
      h("span", { class: "state" }, stateText(container)),
      h("span", { class: "since" }, sinceText(container)),
    ),
    message !== "" && h("p", { class: "message" }, message),
    h("p", { class: "image" }, image),
    h(
      "p",
      { class: "more" },
      [restarts > 0 ? format.plural(restarts, "restart") : "", ...ports, ...resources]
        .filter(Boolean)
        .map((text) => h("span", {}, text)),
    ),
    probes.length > 0 && h("ul", { class: "probes" }, probes.map(probeItem)),
  );
}

function toneOf({ state, ready, kind, exitCode, reason }: ContainerDetail): string {
  if (state === "running") return ready || kind === "ephemeral" || kind === "init" ? "good" : "starting";
  if (state === "terminated") return exitCode === 0 ? "ended" : "failed";
  return /BackOff|Err|Error/.test(reason) ? "trouble" : "starting";
}

function stateText({ state, reason, ready, kind, exitCode }: ContainerDetail): string {
  if (state === "running") return ready || kind === "ephemeral" || kind === "init" ? "running" : "running, not ready";
  if (state === "waiting") return reason === "" ? "waiting" : reason;
  return `${reason === "" ? "ended" : reason}${exitCode === undefined ? "" : `, exit code ${exitCode}`}`;
}

function sinceText({ state, startedAt, finishedAt }: ContainerDetail): Child {
  const at = state === "running" ? startedAt : finishedAt;
  if (at === undefined) return null;
  const words = state === "running" ? "for " : state === "waiting" ? "ended " : "";
  const ago = state === "running" ? "" : " ago";
  return [words, h("time", { "data-since": at, title: format.dateTime(at) }, ""), ago];
}

function probeItem({ type, what, periodSeconds, result, last }: ProbeView): Element {
  const tone = result === "success" ? "good" : result === "failure" ? "trouble" : "starting";
  const verdict = { success: "passes", failure: "fails", unknown: "no verdict yet" }[result];
  return h(
    "li",
    { class: `probe ${tone}`, "data-key": type },
    h("span", { class: "type" }, type),
    h("span", { class: "verdict" }, verdict),
    h("span", { class: "what" }, `${what}, every ${format.duration(periodSeconds * 1000)}`),
    last !== undefined &&
      h(
        "span",
        { class: "last" },
        lastText(last),
        " ",
        h("time", { "data-since": last.at, title: format.dateTime(last.at) }, ""),
        " ago",
      ),
  );
}

function lastText({ kind, text }: NonNullable<ProbeView["last"]>): string {
  const words = {
    success: "last passed",
    warning: "last passed with a warning",
    failure: "last failed",
    error: "last could not run",
  };
  return text === "" || kind === "success" ? words[kind] : `${words[kind]}: ${text}`;
}

function conditions({ conditions: all }: PodDetail): Element {
  return h(
    "ul",
    { class: "conditions" },
    all.map(({ type, status, reason, message, since }) =>
      h(
        "li",
        { class: status === "True" ? "good" : "starting", "data-key": type },
        h("span", { class: "type" }, type),
        h("span", { class: "status" }, status),
        h(
          "span",
          { class: "since" },
          since !== undefined && h("time", { "data-since": since, title: format.dateTime(since) }, ""),
        ),
        (reason !== "" || message !== "") &&
          h("span", { class: "message" }, [reason, message].filter(Boolean).join(": ")),
      ),
    ),
  );
}

function facts(pod: PodDetail): Element {
  const { ips, hostNetwork, qos, source, uid, createdAt, priority, serviceAccount, resize, killAt, phase } = pod;
  const reason = [pod.reason, pod.message].filter(Boolean).join(": ");
  const rows: readonly (readonly [string, Child])[] = [
    ["Phase", reason === "" ? phase : `${phase} (${reason})`],
    ["Address", ips.length === 0 ? "none yet" : `${ips.join(", ")}${hostNetwork ? " (the host's network)" : ""}`],
    ["QoS class", qos],
    ["Source", source],
    ["Priority", priority ?? ""],
    ["Service account", serviceAccount ?? ""],
    ["Resize", resize ?? ""],
    ["Killed", killAt === undefined ? "" : `at ${format.time(killAt)} at the latest`],
    ["First seen", format.dateTime(createdAt)],
    ["UID", h("code", {}, uid)],
  ];
  return h(
    "dl",
    { class: "facts" },
    rows.filter(([, value]) => value !== "").map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]),
  );
}
