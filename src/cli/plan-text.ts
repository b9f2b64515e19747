import { formatDuration, printable } from "../journal/text.ts";
import type { Plan, PlanStep, PodPlan } from "../server/local-api.ts";
import type { Painter } from "./terminal.ts";

/** The text of `podwright plan`. @param now wall-clock milliseconds, for the remaining time of waits */
export function planText({ pods, objects }: Plan, now: number, paint: Painter): string[] {
  const objectLines = objects.map(({ kind, namespace, name, change, detail }) => {
    const full = namespace === "" ? name : `${namespace}/${name}`;
    const more = detail === undefined ? "" : `, ${printable(detail)}`;
    return `${kind} ${paint.strong(printable(full))}  ${changeText(change, paint)}${more}`;
  });
  return [...objectLines, ...pods.flatMap((pod) => podLines(pod, now, paint))];
}

function podLines(pod: PodPlan, now: number, paint: Painter): string[] {
  const { namespace, name, uid, change, steps, waits, underWay, note } = pod;
  const marks = change === undefined ? "" : `  ${changeText(change, paint)}`;
  // A new pod has no UID yet.
  const id = change === "added" || change === "replaced" ? "" : `  ${paint.faint(`uid ${printable(uid)}`)}`;
  const lines = [
    ...underWay.map((operation) => `in progress: ${printable(operation)}`),
    ...waits.flatMap((wait) => [paint.caution(stepText(wait, leftText(wait.until, now))), ...reasons(wait, paint)]),
    ...steps.flatMap((step) => [stepText(step, ""), ...reasons(step, paint)]),
    ...(note === "" ? [] : [printable(note)]),
  ];
  const nothing = [paint.good("nothing: everything is as desired")];
  return [
    `${paint.strong(printable(`${namespace}/${name}`))}${marks}${id}`,
    ...(lines.length === 0 ? nothing : lines).map((line) => `  ${line}`),
  ];
}

function stepText({ text }: PlanStep, more: string): string {
  return `${printable(text)}${more}`;
}

function reasons({ because }: PlanStep, paint: Painter): string[] {
  return because.map((reason) => paint.faint(`  because ${printable(reason)}`));
}

function leftText(until: number | undefined, now: number): string {
  if (until === undefined) return "";
  return until > now ? ` in ${formatDuration(until - now)}` : " now";
}

function changeText(change: NonNullable<PodPlan["change"]>, paint: Painter): string {
  switch (change) {
    case "added":
      return paint.good("would be added");
    case "replaced":
      return paint.caution("would replace the existing one");
    case "updated":
      return paint.caution("would be changed in place");
    case "unchanged":
      return paint.faint("unchanged");
  }
}
