import { containersOf } from "../api/all-containers.ts";
import { shortened } from "../base/shortened.ts";
import type { ContainerView, PodView } from "../server/local-api.ts";
import { podLabel } from "../server/pod-selector.ts";
import { lastingContainers, neverStarts, podMood, podStatusWord } from "../server/pod-words.ts";
import { formatAge, formatTable } from "./format.ts";
import { printable } from "../journal/text.ts";
import { ownCommand } from "./own-command.ts";
import type { Painter } from "./terminal.ts";

/** The table of `podwright ps`. */
export function podTable(pods: readonly PodView[], wide: boolean, now: number, paint: Painter): string[] {
  const heading = ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP"];
  if (wide) heading.push("PORTS", "SOURCE", "UID", "IMAGES");
  const rows = pods.map((pod) => {
    const row = [
      pod.namespace,
      pod.name,
      `${lastingContainers(pod).filter((container) => container.ready).length}/${lastingContainers(pod).length}`,
      colourOf(pod, paint)(podStatusWord(pod)),
      restarts(pod, now),
      formatAge(now - pod.createdAt),
      pod.ips[0] ?? "-",
    ];
    if (wide) {
      const ports = pod.hostPorts.map(
        (port) => `${port.hostPort}→${port.containerPort}/${port.protocol.toLowerCase()}`,
      );
      const images = new Set(pod.containers.map((container) => printable(container.image)));
      row.push(ports.join(",") || "-", pod.source, pod.uid, [...images].join(","));
    }
    return row;
  });
  return formatTable([heading, ...rows], paint);
}

function restarts(pod: PodView, now: number): string {
  const all = containersOf(pod);
  const count = all.reduce((sum, container) => sum + container.restartCount, 0);
  const restarted = all.filter((container) => container.restartCount > 0);
  const last = Math.max(...restarted.map((container) => container.startedAt ?? 0));
  return count === 0 || last <= 0 ? String(count) : `${count} (${formatAge(now - last)} ago)`;
}

function colourOf(pod: PodView, paint: Painter): (text: string) => string {
  switch (podMood(pod)) {
    case "failed":
    case "trouble":
      return paint.bad;
    case "ended":
    case "stopping":
      return paint.faint;
    case "good":
      return paint.good;
    case "starting":
      return paint.caution;
  }
}

/** The pod's addresses and logs, which `podwright run` prints once it is ready. */
export function addressLines(pod: PodView, paint: Painter, stateDirectory: string): string[] {
  const lines: string[] = [];
  const ip = pod.ips[0];
  for (const port of pod.hostPorts) {
    const anywhere = port.hostIP === "" || port.hostIP === "0.0.0.0" || port.hostIP === "::";
    const host = bracketed(anywhere ? "127.0.0.1" : port.hostIP);
    const url =
      port.protocol === "TCP"
        ? `http://${host}:${port.hostPort}`
        : `${host}:${port.hostPort}/${port.protocol.toLowerCase()}`;
    lines.push(`address   ${paint.accent(url)}   host port ${port.hostPort} → container port ${port.containerPort}`);
  }
  if (ip !== undefined) lines.push(`pod IP    ${ip}${pod.hostNetwork ? " (the host's network)" : ""}`);
  lines.push(`logs      ${ownCommand(stateDirectory, "logs", "-f", podLabel(pod))}   in ${pod.logDirectory}`);
  return lines;
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}

/** Why a pod is not ready, by its view: one line per unready container. */
export function notReadyLines(pod: PodView): string[] {
  const blocking = pod.initContainers.filter((container) => !container.done);
  const lines = [...blocking, ...pod.containers]
    .filter((container) => !container.ready && !neverStarts(pod, container))
    .map((container) => `container ${container.name} ${containerText(container)}`);
  const own = printable([pod.reason, pod.message].filter(Boolean).join(": "));
  if (own !== "") lines.unshift(own);
  return lines.length > 0 ? lines : [`the pod is ${pod.phase}`];
}

/** A termination message may be as long as a page. */
const [beginOfMessage, endOfMessage] = [100, 200];

/** `is waiting: ImagePullBackOff: …`, `ended with exit code 3 (Error)`, `runs but is not ready`. */
export function containerText(container: ContainerView): string {
  const message =
    container.state === "terminated" ? shortened(container.message, beginOfMessage, endOfMessage) : container.message;
  const detail = printable([container.reason, message].filter(Boolean).join(": "));
  switch (container.state) {
    case "waiting":
      return detail === "" ? "is waiting" : `is waiting: ${detail}`;
    case "running":
      return container.ready ? "runs" : "runs but is not ready";
    case "terminated": {
      const code = container.exitCode === undefined ? "ended" : `ended with exit code ${container.exitCode}`;
      return detail === "" ? code : `${code} (${detail})`;
    }
  }
}
