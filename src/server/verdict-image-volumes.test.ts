import assert from "node:assert/strict";
import { test } from "node:test";
import { containerView, podView } from "../../test/support/pod-views.ts";
import type { JournalEntry } from "../journal/entry.ts";
import { verdict } from "./verdict.ts";

const now = 1_000_000;

function missing(message: string): JournalEntry {
  const entry = { seq: 1, time: now, kind: "observation", what: "VolumeImageMissing", container: "app" } as const;
  return { ...entry, message: `no image for volume "models" (ErrImagePull): ${message}`, data: { volume: "models" } };
}

function verdictOf(message: string, entries: readonly JournalEntry[]): string {
  const state = { state: "waiting", ready: false, reason: "ErrImagePull", message } as const;
  const containers = [containerView({ image: "demo:1", ...state })];
  const pod = podView({ ready: false, readySince: undefined, phase: "Pending", containers });
  return verdict({ pod, entries, now, startSeq: 0 });
}

test("a pod that waits for the image of a volume says so, and not that its container's image is missing", () => {
  const text = 'failed to pull image "models:1": not found';
  assert.equal(verdictOf(text, [missing(text)]), `Pending: cannot pull the image of volume models for app: ${text}`);
  const own = "demo:1: not found";
  assert.equal(verdictOf(own, [missing(text)]), `Pending: cannot pull demo:1 for app: ${own}`);
});
