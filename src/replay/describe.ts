import { allContainers } from "../api/all-containers.ts";
import type { Cause } from "../journal/entry.ts";
import { formatDuration, type Paint, printable } from "../journal/text.ts";
import type { Decided, DecisionLine, RecordedInputs } from "./format.ts";
import type { Difference, Replay } from "./replay.ts";

/** What a replay came to, for people. */
export function replayText({ decisions, pods, lives, cutOff, different, first }: Replay, paint: Paint): string[] {
  const from = `${count(decisions, "decision")} about ${count(pods, "pod")} in ${count(lives, "life", "lives")}`;
  const lines: string[] = [];
  if (decisions === 0) lines.push("nothing to compare: the recording has no decisions");
  else if (first === undefined) lines.push(`${from}: ${paint.good("all unchanged")}`);
  else {
    lines.push(`${from}: ${paint.bad(`${different} ${different === 1 ? "differs" : "differ"} now`)}`);
    lines.push("", ...differenceText(first, paint));
  }
  if (cutOff.length > 0) {
    lines.push(paint.caution(`skipped, incomplete: line ${cutOff.join(", ")}`));
  }
  return lines;
}

function differenceText({ line, recorded, now }: Difference, paint: Paint): string[] {
  const { namespace, name, uid } = recorded.pod;
  const then = decidedText(recorded.decided, recorded);
  const today = "error" in now ? [`nothing, because of a bug: ${printable(now.error)}`] : decidedText(now, recorded);
  const marked = (lines: readonly string[], others: readonly string[]): string[] =>
    lines.map((each) => (others.includes(each) ? `    ${each}` : paint.caution(`  ≠ ${each}`)));
  return [
    `${paint.strong(printable(`${namespace}/${name}`))}  ${paint.faint(`uid ${printable(uid)}`)}`,
    `line ${line}, ${new Date(recorded.time).toISOString()}`,
    ...inputsText(recorded).map((each) => `    ${each}`),
    "decided then",
    ...marked(then, today),
    "decided now",
    ...marked(today, then),
  ];
}

/** The essence of what a decision was made from. */
function inputsText({ pod, status, context }: RecordedInputs): string[] {
  const sandboxes = status.sandboxes.map(({ id, ready, attempt }) => {
    return `sandbox ${short(id)}, attempt ${attempt}, is ${ready ? "ready" : "not ready"}`;
  });
  const instances = status.containers.map(({ id, name, state, exitCode, reason, restartCount }) => {
    const how = state === "exited" ? `exited with code ${exitCode} (${reason})` : state;
    return `container ${name} (${short(id)}), restart count ${restartCount}: ${how}`;
  });
  const facts = Object.entries(context.containers).flatMap(([name, known]) => {
    const { backOffEndsAtMs, retryAtMs, unhealthy, started } = known;
    return [
      ...(backOffEndsAtMs === undefined ? [] : [`container ${name}: back-off ${ends(backOffEndsAtMs, context.nowMs)}`]),
      ...(retryAtMs === undefined
        ? []
        : [`container ${name}: retry delay after a failed start ${ends(retryAtMs, context.nowMs)}`]),
      ...(unhealthy === undefined ? [] : [`container ${name}: ${unhealthy.cause.message}`]),
      ...(started === false ? [`container ${name}: its startup probe has not succeeded yet`] : []),
    ];
  });
  const names = allContainers(pod.spec)
    .map(({ name }) => name)
    .join(", ");
  return [
    `restartPolicy ${pod.spec.restartPolicy ?? "Always"}, containers ${names}`,
    ...(sandboxes.length === 0 ? ["no sandbox"] : sandboxes),
    ...instances,
    ...facts,
    ...(context.busy.length === 0 ? [] : [`under way: ${context.busy.join(", ")}`]),
    ...(context.resize?.underWay === true ? ["a resize is under way"] : []),
  ].map(printable);
}

type Decision = Decided["stop"][number] | Decided["start"][number];

function decidedText(decided: Decided, { context }: Pick<DecisionLine, "context">): string[] {
  const { killPod, createSandbox, restartAll, resize, sandboxWaitUntilMs } = decided;
  const left = (untilMs: number): string => formatDuration(untilMs - context.nowMs);
  const lines = [
    ...(killPod === undefined ? [] : [told("stop the pod", killPod)]),
    ...(restartAll === undefined ? [] : [told("restart all containers", restartAll.cause)]),
    ...decided.stop.map(actionText),
    ...(createSandbox === undefined
      ? []
      : [told(`create sandbox, attempt ${createSandbox.attempt}`, createSandbox.cause)]),
    ...decided.start.map(actionText),
    ...decided.wait.map(({ container, exited, untilMs, cause }) => {
      const what = exited === undefined ? "retry" : "next restart";
      return told(`container ${container} waits ${left(untilMs)} before its ${what}`, cause);
    }),
    ...(resize?.updates ?? []).map(({ container, change }) => `resize container ${container}: ${change}`),
    ...(resize?.restarts ?? []).flatMap((restart) => [actionText(restart.stop), actionText(restart.start)]),
    ...(resize === undefined ? [] : [told("resize the pod", resize.cause)]),
    ...(sandboxWaitUntilMs === undefined ? [] : [`the next sandbox waits ${left(sandboxWaitUntilMs)}`]),
  ];
  const all = lines.length === 0 ? ["nothing"] : lines;
  return (decided.sandbox === undefined ? all : [...all, `in sandbox ${short(decided.sandbox)}`]).map(printable);
}

function actionText(action: Decision): string {
  if ("attempt" in action) {
    const { container, kind, attempt, restart, leftover, target, cause } = action;
    const more = [
      ...(restart ? ["a restart"] : []),
      ...(leftover === undefined ? [] : [`in place of ${short(leftover)}`]),
      ...(target === undefined ? [] : [`beside ${target.name} (${short(target.id ?? "not running")})`]),
    ];
    return told([`start ${kind} container ${container}, attempt ${attempt}`, ...more].join(", "), cause);
  }
  const { container, id, graceSeconds, restarts, cause } = action;
  const grace = graceSeconds === undefined ? "" : `, grace ${graceSeconds} s`;
  const again = restarts === undefined ? "" : restarts ? ", to restart it" : ", for good";
  return told(`stop container ${container} (${short(id)})${grace}${again}`, cause);
}

function told(text: string, cause: Cause): string {
  return `${text}: ${causeText(cause)}`;
}

function causeText({ message, entry, because }: Cause): string {
  const seen = entry === undefined ? "" : ` [entry ${entry}]`;
  return `${message}${seen}${because === undefined ? "" : `, because ${causeText(because)}`}`;
}

function ends(untilMs: number, nowMs: number): string {
  return untilMs > nowMs ? `ends in ${formatDuration(untilMs - nowMs)}` : "is over";
}

function short(id: string): string {
  return id.slice(0, 12);
}

function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}
