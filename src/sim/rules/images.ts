import type { Container } from "../../api/container.ts";
import type { Pod } from "../../api/pod.ts";
import type { Volume } from "../../api/volume.ts";
import { lifeStarted } from "../../journal/entry.ts";
import type { SimEntry } from "../life/node.ts";
import { dataText } from "./entry-data.ts";
import type { Rule, RuleMaker } from "./rule.ts";
import { specContainers } from "./spec-containers.ts";

interface Failed {
  readonly atMs: number;
  readonly delayMs: number;
}

const firstDelayMs = 10_000;
const longestDelayMs = 300_000;

/** Images are pulled according to the pull policy, and failed pulls are retried with growing delays. */
export const images: RuleMaker = ({ clock, node, pods, world }, broken): Rule => {
  /** By pod and image. */
  const failures = new Map<string, Failed>();
  /** Actions of pulls in progress. */
  const underWay = new Map<number, string>();
  /** Containers whose image was pulled since their last creation. */
  const pulled = new Set<string>();

  const specOf = ({ pod, container }: SimEntry): Container | undefined =>
    specContainers(pods, pod?.uid).find(({ name }) => name === container);

  function pulling(entry: SimEntry): void {
    const ofVolume = volumeOf(pods, entry)?.image;
    const policy = ofVolume === undefined ? specOf(entry)?.imagePullPolicy : ofVolume.pullPolicy;
    const where = `${entry.pod?.uid}/${entry.container}`;
    if (policy === "Never") broken("pull policy", `${where} is pulled for under Never`);
    const image = dataText(entry, "image");
    // The pull record is on the disk: if it is unreadable, the image must be pulled again to check access.
    const isRecorded = node.diskFaultMs === Number.NEGATIVE_INFINITY;
    if (policy === "IfNotPresent" && world.images.has(image) && isRecorded) {
      broken("pull policy", `${where} is pulled for under IfNotPresent, though its image is there`);
    }
    const key = `${entry.pod?.uid} ${image}`;
    const failed = failures.get(key);
    if (failed !== undefined && clock.nowMs < failed.atMs + failed.delayMs - 1) {
      broken("pull back-off", `${where} pulled ${clock.nowMs - failed.atMs} ms after a failure, not ${failed.delayMs}`);
    }
    underWay.set(entry.seq, key);
  }

  function ended({ of, result, pod, container, data }: SimEntry): void {
    const key = underWay.get(of ?? 0);
    underWay.delete(of ?? 0);
    if (key === undefined) return;
    if (result === "done") {
      failures.delete(key);
      // A volume's image is a matter of its own.
      if (data?.["volume"] === undefined) pulled.add(`${pod?.uid}/${container}`);
    } else if (result === "failed") {
      const before = failures.get(key);
      const live = before !== undefined && clock.nowMs - before.atMs <= 2 * longestDelayMs ? before : undefined;
      const delayMs = live === undefined ? firstDelayMs : Math.min(2 * live.delayMs, longestDelayMs);
      failures.set(key, { atMs: clock.nowMs, delayMs });
    }
  }

  /** A user ends the waits; the delays keep growing. */
  function askedAgain(pod: string): void {
    for (const [key, failed] of failures) {
      if (key.startsWith(pod)) failures.set(key, { ...failed, atMs: clock.nowMs - failed.delayMs });
    }
  }

  return {
    entry: (entry) => {
      if (entry.what === lifeStarted) for (const known of [failures, underWay, pulled]) known.clear();
      if (entry.what === "PullImage") {
        if (entry.kind === "action") pulling(entry);
        else if (entry.kind === "outcome") ended(entry);
      }
      if (entry.what === "RetryRequested") askedAgain(`${entry.pod?.uid} `);
      if (entry.what !== "CreateContainer" || entry.kind !== "action") return;
      const key = `${entry.pod?.uid}/${entry.container}`;
      const isPulled = pulled.delete(key);
      if (specOf(entry)?.imagePullPolicy === "Always" && !isPulled) {
        broken("pull policy", `${key} was created without a pull under Always`);
      }
    },
  };
};

/** The volume whose image an entry is about; undefined: the image is the container's own. */
export function volumeOf(pods: ReadonlyMap<string, Pod>, { pod, data }: SimEntry): Volume | undefined {
  const wanted = data?.["volume"];
  if (wanted === undefined) return undefined;
  return pods.get(pod?.uid ?? "")?.spec.volumes?.find(({ name }) => name === wanted);
}
