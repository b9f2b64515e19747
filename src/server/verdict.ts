import type { JournalEntry } from "../journal/entry.ts";
import { shortened } from "../base/shortened.ts";
import { isUpkeep } from "../journal/explain.ts";
import { manifestReturn } from "../journal/manifest-return.ts";
import { printable } from "../journal/text.ts";
import { nodeHoldout, serverHoldout } from "./holdout.ts";
import type { ContainerView, InitContainerView, PodView } from "./local-api.ts";
import { othersWithClaim } from "./claim-users.ts";
import { lastingContainers, neverStarts } from "./pod-words.ts";
import { span } from "./span.ts";
import { volumeWait } from "./volume-wait.ts";
import { containersOf } from "../api/all-containers.ts";

/** The inputs of a verdict. */
export interface VerdictInputs {
  readonly pod: PodView;
  /** Of this pod, by sequence number. */
  readonly entries: readonly JournalEntry[];
  /** Of podwright's last start; 0: unknown. */
  readonly startSeq: number;
  /** Of the node itself, by sequence number. */
  readonly nodeEntries?: readonly JournalEntry[];
  /** The node's pods: one of them may have what this one waits for. */
  readonly listed?: readonly PodView[];
  /** Wall-clock milliseconds. */
  readonly now: number;
}

/** Longer texts do not fit a line; the point of a runtime's message is at its end. */
const [beginOfMessage, endOfMessage] = [60, 97];
const beginOfWait = 400;

/** A pod's state in one line for people: `Running and Ready for 2 min, no restarts`. Pure. */
export function verdict(inputs: VerdictInputs): string {
  const { pod } = inputs;
  if (pod.state === "terminating") return terminating(inputs);
  if (pod.state === "terminated" && pod.finalizers !== undefined) {
    const holdout = nodeHoldout(inputs) ?? serverHoldout(inputs, pod.finalizers);
    return whole("Terminating: it has stopped", holdout);
  }
  if (pod.holdout !== undefined) {
    const holdout = nodeHoldout(inputs) ?? pod.holdout;
    return whole("Terminating: it has stopped", holdout);
  }
  if (pod.phase === "Succeeded") return succeeded(inputs);
  if (pod.phase === "Failed") return failed(inputs);
  if (pod.phase === "Unknown") return detailed("Unknown", pod.reason, pod.message);
  if (pod.state === "terminated") return `Ended${agoOf(lastEnd(pod), inputs.now)}`;
  const trouble = inTrouble(inputs);
  if (trouble !== undefined) return trouble;
  if (pod.phase === "Pending") return pending(inputs);
  return pod.ready ? ready(inputs) : notReady(inputs);
}

function ready(inputs: VerdictInputs): string {
  const { pod, now } = inputs;
  const since = pod.readySince === undefined ? "" : ` for ${span(now - pod.readySince)}`;
  return `Running and Ready${since}, ${restarts(inputs)}`;
}

function restarts({ pod, entries, now }: VerdictInputs): string {
  const restarted = containersOf(pod).filter(({ restartCount }) => restartCount > 0);
  const count = restarted.reduce((sum, container) => sum + container.restartCount, 0);
  if (count === 0) return "no restarts";
  const last = Math.max(...restarted.map(({ startedAt = 0 }) => startedAt));
  const ago = span(now - last);
  const text = count === 1 ? `restarted once, ${ago} ago` : `restarted ${count} times, last ${ago} ago`;
  return detailed(text, "", manifestReturn(entries)?.message ?? "");
}

function terminating(inputs: VerdictInputs): string {
  const { pod, now } = inputs;
  const hooks = running(inputs).filter(({ what }) => what === "PreStopHook");
  const names = hooks.map(({ container = "" }) => printable(container));
  const left = pod.killAt === undefined ? undefined : pod.killAt - now;
  const kill = left === undefined ? "" : left > 0 ? `, SIGKILL in ${span(left)}` : ", SIGKILL is due";
  if (names.length > 0) {
    return `Terminating: ${names.join(", ")} ${verb(names, "runs its", "run their")} preStop hook${kill}`;
  }
  const alive = containersOf(pod).filter(({ state }) => state === "running");
  if (alive.length === 0) {
    const holdout = nodeHoldout(inputs) ?? "its resources are being removed";
    return whole("Terminating: its containers have ended", holdout);
  }
  const who = alive.map(({ name }) => printable(name));
  return `Terminating: ${who.join(", ")} ${verb(who, "has", "have")} not ended yet${kill}`;
}

/** With a reason if the node ended it: otherwise it would seem to have ended by itself. */
function succeeded({ pod, now }: VerdictInputs): string {
  const completed = `Completed${agoOf(lastEnd(pod), now)}`;
  return pod.reason === "" ? completed : detailed(`${completed}: ${printable(pod.reason)}`, "", pod.message);
}

function failed({ pod, now }: VerdictInputs): string {
  // Evicted, DeadlineExceeded, OutOfcpu: the reason is a verdict of its own.
  if (pod.reason !== "") {
    return detailed(pod.reason === "Evicted" ? "Evicted" : `Failed: ${pod.reason}`, "", pod.message);
  }
  const ended = containersOf(pod).find(({ state, exitCode = 0 }) => state === "terminated" && exitCode !== 0);
  if (ended === undefined) return detailed("Failed", "", pod.message);
  return `Failed: ${endText(ended)}${agoOf(ended.finishedAt, now)}`;
}

/** A container that fails to start, in a pod that should run. */
function inTrouble(inputs: VerdictInputs): string | undefined {
  const { pod } = inputs;
  const unfinished = pod.initContainers.filter(({ done }) => !done);
  const waiting = [...unfinished, ...pod.containers, ...pod.initContainers]
    .filter((container) => container.state !== "running" && !neverStarts(pod, container))
    .find(({ state, reason, message }) => !onItsWay.has(reason) || (state === "waiting" && message !== ""));
  if (waiting === undefined) return undefined;
  const { name, reason, message, state } = waiting;
  const next = nextTry(inputs, name);
  if (state === "terminated") {
    if (next === undefined) return undefined;
    return `Restarting: ${endText(waiting)}${next}`;
  }
  if (reason === "CrashLoopBackOff") {
    const obstacle = failedMount(inputs, waiting) ?? failedStart(inputs, name);
    const what =
      obstacle === undefined
        ? (killText(inputs, name) ?? exitText(waiting))
        : detailed(`${printable(name)} does not start`, "", obstacle);
    return `Restarting: ${what}${next ?? ""}`;
  }
  const word = pod.phase === "Running" ? "Running, not Ready" : "Pending";
  const volume = onItsWay.has(reason) ? awaitedVolume(inputs) : undefined;
  if (volume !== undefined) return waitsFor(word, volume);
  if (isPull.test(reason)) {
    const image = volumeOfImage(inputs, waiting) ?? printable(waiting.image);
    return `${detailed(`${word}: cannot pull ${image} for ${printable(name)}`, "", message || reason)}${next ?? ""}`;
  }
  return `${detailed(`${word}: ${printable(name)} does not start: ${reason}`, "", message)}${next ?? ""}`;
}

/** The volume for whose image the container waits, rather than for its own: the state does not tell. */
function volumeOfImage({ entries }: VerdictInputs, { name, message }: ContainerView): string | undefined {
  const missing = entries.findLast(({ what, container }) => what === "VolumeImageMissing" && container === name);
  if (missing?.message.endsWith(message) !== true) return undefined;
  return `the image of volume ${printable(textOf(missing, "volume"))}`;
}

/** What failed in the last restart before the container was reached. */
function failedMount({ entries }: VerdictInputs, { name, finishedAt = Infinity }: ContainerView): string | undefined {
  const isSetUp = (what: string): boolean => what === "MountVolume" || what === "MapVolume";
  const last = entries.findLastIndex(({ what, result }) => isSetUp(what) && result === "failed");
  const mount = entries[last];
  if (mount === undefined || mount.time < finishedAt) return undefined;
  const since = entries.slice(last + 1);
  if (since.some((entry) => entry.kind === "action" && entry.container === name && !isUpkeep(entry))) return undefined;
  return mount.message;
}

/** Why the container's last start failed: its exit code is not its program's, which never ran. */
function failedStart({ entries }: VerdictInputs, name: string): string | undefined {
  const start = entries.findLast((entry) => {
    return entry.kind === "action" && entry.what === "StartContainer" && entry.container === name;
  });
  return entries.find(({ of, result }) => start !== undefined && of === start.seq && result === "failed")?.message;
}

/** Waiting reasons without a problem, unless there is a message. */
const onItsWay: ReadonlySet<string> = new Set(["", "ContainerCreating", "PodInitializing", "Completed"]);
const isPull =
  /^(?:ErrImage\w*|ImagePull\w*|ImageInspectError|InvalidImageName|RegistryUnavailable|SignatureValidationFailed)$/u;

function pending(inputs: VerdictInputs): string {
  const { pod, entries } = inputs;
  if (pod.reason !== "" || pod.message !== "") return detailed("Pending", pod.reason, pod.message);
  const volume = awaitedVolume(inputs);
  if (volume !== undefined) return waitsFor("Pending", volume);
  const wait = lastWait(entries, undefined);
  if (wait !== undefined) return detailed("Pending", "", wait.message);
  const init = pod.initContainers.find(({ done }) => !done);
  if (init?.state === "running") return `Pending: ${initText(init, inputs)}`;
  const doing = running(inputs).at(-1);
  if (doing !== undefined) return detailed("Pending", "", `${doing.message}, for ${span(inputs.now - doing.time)}`);
  return detailed("Pending", "", entries.at(-1)?.message ?? "not started yet");
}

function awaitedVolume({ pod, entries, listed = [] }: VerdictInputs): string | undefined {
  return volumeWait(entries, (volume) => othersWithClaim(pod, volume, listed));
}

function waitsFor(word: string, volume: string): string {
  return whole(`${word}: waits for a volume`, volume);
}

/** The wait is in podwright's own words, and what to do about it may be anywhere in them. */
function whole(head: string, wait: string): string {
  return `${head}: ${shortened(flat(wait), beginOfWait, endOfMessage)}`;
}

function initText(init: InitContainerView, { now }: VerdictInputs): string {
  const since = init.startedAt === undefined ? "" : ` for ${span(now - init.startedAt)}`;
  const what = init.sidecar ? "sidecar" : "init container";
  return `${what} ${printable(init.name)} runs${since}${init.sidecar ? " and has not passed its startup probe" : ""}`;
}

function notReady(inputs: VerdictInputs): string {
  const { pod, entries } = inputs;
  const lasting = lastingContainers(pod).filter((container) => !container.ready);
  const [first] = lasting;
  if (first === undefined) {
    return detailed("Running, not Ready", pod.reason, pod.message || "its readiness gates are not met");
  }
  if (first.state === "terminated") return `Running, not Ready: ${endText(first)}`;
  if (first.state === "waiting") return `Running, not Ready: ${printable(first.name)} has not started yet`;
  const began = first.startedAt ?? 0;
  const unhealthy = entries.findLast(({ what, container }) => what === "Unhealthy" && container === first.name);
  const more =
    lasting.length > 1
      ? ` (${lasting
          .slice(1)
          .map(({ name }) => printable(name))
          .join(", ")} neither)`
      : "";
  if (unhealthy !== undefined && (unhealthy.repeated?.lastTime ?? unhealthy.time) >= began) {
    const probe = (textOf(unhealthy, "probe") || "probe").replace(/^(startup|readiness|liveness)$/u, "$1 probe");
    const output = textOf(unhealthy, "output");
    return detailed(`Running, not Ready: ${printable(first.name)} fails its ${probe}${more}`, "", output);
  }
  return `Running, not Ready: ${printable(first.name)} has not passed its probes yet${more}`;
}

/** `, next try in 14 s`; undefined without a wait. */
function nextTry({ entries, now }: VerdictInputs, container: string): string | undefined {
  const wait = lastWait(entries, container) ?? lastWait(entries, undefined);
  if (wait?.until === undefined) return undefined;
  return wait.until > now ? `, next try in ${span(wait.until - now)}` : ", next try is due";
}

/** The wait of a container or, without a name, of the pod, unless an action followed it. */
function lastWait(entries: readonly JournalEntry[], container: string | undefined): JournalEntry | undefined {
  const own = entries.filter((entry) => entry.container === container);
  const wait = own.findLastIndex(({ kind, until }) => kind === "decision" && until !== undefined);
  if (own.slice(wait + 1).some((entry) => entry.kind === "action" && !isUpkeep(entry))) return undefined;
  return own[wait];
}

/** Actions without an outcome, oldest first. One from before podwright's start was interrupted. */
function running({ entries, startSeq }: VerdictInputs): JournalEntry[] {
  const ended = new Set(entries.flatMap(({ kind, of }) => (kind === "outcome" && of !== undefined ? [of] : [])));
  return entries.filter(({ kind, seq }) => kind === "action" && seq > startSeq && !ended.has(seq));
}

/** What ended the container's last instance, unless it exited by itself: the kernel or podwright. */
function killText({ entries }: VerdictInputs, name: string): string | undefined {
  const own = entries.filter(({ container }) => container === name);
  const since = own.slice(own.findLastIndex(({ kind, what }) => kind === "action" && what === "StartContainer") + 1);
  if (since.some((entry) => entry.what === "ContainerDied" && textOf(entry, "reason") === "OOMKilled")) {
    return `${printable(name)} was OOM-killed`;
  }
  const message = since.find(({ what }) => what === "Killing")?.cause?.message;
  return message === undefined ? undefined : detailed(`${printable(name)} was killed`, "", message);
}

/** `app exits with 3` */
function exitText({ name, exitCode, reason }: ContainerView): string {
  if (exitCode === undefined) return `${printable(name)} ends (${printable(reason)})`;
  return exitCode === 0
    ? `${printable(name)} exits with 0, and should keep running`
    : `${printable(name)} exits with ${exitCode}`;
}

/** `app exited with 3 (Error)` */
function endText({ name, exitCode, reason, message }: ContainerView): string {
  const code = exitCode === undefined ? "ended" : `exited with ${exitCode}`;
  return detailed(`${printable(name)} ${code}${reason === "" ? "" : ` (${printable(reason)})`}`, "", message);
}

function detailed(head: string, reason: string, message: string): string {
  return [head, printable(reason), shortened(flat(message), beginOfMessage, endOfMessage)]
    .filter((part) => part !== "")
    .join(": ");
}

function flat(message: string): string {
  return printable(message).replaceAll(/\s+/gu, " ").trim();
}

function textOf({ data }: JournalEntry, name: string): string {
  const value = data?.[name];
  return typeof value === "string" ? value : "";
}

function lastEnd(pod: PodView): number | undefined {
  const ends = containersOf(pod).flatMap(({ finishedAt }) => finishedAt ?? []);
  return ends.length === 0 ? undefined : Math.max(...ends);
}

function agoOf(time: number | undefined, now: number): string {
  return time === undefined ? "" : ` ${span(now - time)} ago`;
}

function verb(names: readonly string[], one: string, several: string): string {
  return names.length === 1 ? one : several;
}
