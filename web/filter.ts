import type { Mood, PodDetail } from "../src/page/view.ts";

/** The choices of the filter, with the moods that each stands for. */
export const moodChoices = [
  { id: "all", label: "All", moods: ["failed", "trouble", "starting", "good", "stopping", "ended"] },
  { id: "trouble", label: "In trouble", moods: ["failed", "trouble"] },
  { id: "changing", label: "Changing", moods: ["starting", "stopping"] },
  { id: "good", label: "Running", moods: ["good"] },
  { id: "ended", label: "Ended", moods: ["ended"] },
] as const satisfies readonly { readonly id: string; readonly label: string; readonly moods: readonly Mood[] }[];

export type MoodChoice = (typeof moodChoices)[number]["id"];

export interface Filter {
  readonly text: string;
  /** Empty: every one. */
  readonly namespace: string;
  readonly mood: MoodChoice;
}

export function hasMood({ mood }: PodDetail, choice: MoodChoice): boolean {
  const moods: readonly Mood[] = moodChoices.find(({ id }) => id === choice)?.moods ?? [];
  return moods.includes(mood);
}

/** Every word of the text must occur in the pod's name, parts or state. */
export function matchesText(pod: PodDetail, text: string): boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const { namespace, name, word, source, ips, containers } = pod;
  const ofContainers = containers.flatMap((container) => [container.name, container.image, container.reason]);
  const all = [`${namespace}/${name}`, word, source, ...ips, ...ofContainers].join("\n").toLowerCase();
  return words.every((each) => all.includes(each));
}

/** The shown pods, by namespace and name: a stable order while a pod crashes and returns. */
export function chosen(pods: Iterable<PodDetail>, filter: Filter): PodDetail[] {
  return [...pods]
    .filter((pod) => filter.namespace === "" || pod.namespace === filter.namespace)
    .filter((pod) => hasMood(pod, filter.mood) && matchesText(pod, filter.text))
    .sort((a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name));
}

function compare(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
