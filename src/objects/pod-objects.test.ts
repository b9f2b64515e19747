import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import type { ApiObjects } from "./api-objects.ts";
import { Collection } from "./collection.ts";
import { PodObjects } from "./pod-objects.ts";
import type { ServiceAccountTokens } from "./service-account-tokens.ts";
import type { Service } from "./service-variables.ts";

const { signal } = new AbortController();
const pod = podWith({ containers: [{ name: "c" }] });
const tokensOf = [{ name: "v", projected: {} }];

/** @param refusals how often the server refuses a token */
function withTokens(refusals: number) {
  const clock = new ManualClock();
  const asked: number[] = [];
  const tokens = {
    refresh: async () => void asked.push(clock.monotonic()),
    has: () => asked.length > refusals,
  } as unknown as ServiceAccountTokens;
  const pods = new Set<string>([pod.metadata.uid]);
  const objects = { has: (uid: string) => pods.has(uid), known: async () => {} } as unknown as ApiObjects;
  const services = new Collection<Service>();
  services.replaced([]);
  const known = { services, memory: { all: () => [], known: Promise.resolve() } };
  return { clock, asked, pods, lookup: new PodObjects(clock, objects, tokens, () => undefined, known) };
}

test("a rejected first token is requested again after half a second, one and two", async () => {
  const { clock, asked, lookup } = withTokens(3);
  const begin = clock.monotonic();
  const settled = lookup.settle(pod, { spec: {}, tokensOf }, signal);
  for (const pauseMs of [500, 1000, 2000]) {
    await settle();
    await clock.advance(pauseMs);
  }
  await settled;
  assert.deepEqual(
    asked.map((atMs) => atMs - begin),
    [0, 500, 1500, 3500],
  );
  assert.deepEqual(clock.waits, []);
});

test("a token that is never given is waited for no longer than anything else", async () => {
  const { clock, lookup } = withTokens(Number.POSITIVE_INFINITY);
  const settled = lookup.settle(pod, { spec: {}, tokensOf }, signal);
  for (let passed = 0; passed < 10; passed++) await clock.advance(500);
  await settled;
  await settle();
  assert.deepEqual(clock.waits, []);
});

test("a rejected token is not requested again if the pod ends meanwhile", async () => {
  const { clock, asked, pods, lookup } = withTokens(Number.POSITIVE_INFINITY);
  const settled = lookup.settle(pod, { spec: {}, tokensOf }, signal);
  await settle();
  pods.clear();
  await clock.advance(500);
  await settled;
  assert.equal(asked.length, 1);
});

const never = new Promise<void>(() => {});

/** Right after a start without the API server; an earlier run knew services. */
function withoutServer() {
  const clock = new ManualClock();
  const tokens = { refresh: () => never, has: () => false } as unknown as ServiceAccountTokens;
  const known = async (_namespace: string, spec: object): Promise<void> => {
    if (Object.keys(spec).includes("volumes")) await never;
  };
  const objects = { has: () => true, known } as unknown as ApiObjects;
  const services = { services: new Collection<Service>(), memory: { all: () => [], known: Promise.resolve() } };
  return { clock, lookup: new PodObjects(clock, objects, tokens, () => undefined, services) };
}

test("without the API server a start waits for nothing that it doesn't need, and for no services that are remembered", async () => {
  const { clock, lookup } = withoutServer();
  const spec = { containers: pod.spec.containers };
  await lookup.settle(pod, { spec, services: "remembered" }, signal);
  assert.deepEqual(clock.waits, []);
});

for (const [what, needs] of [
  ["objects of volumes", { spec: { volumes: tokensOf } }],
  ["tokens", { spec: {}, tokensOf }],
  ["runtime classes", { spec: { runtimeClassName: "sandboxed" } }],
  ["services", { spec: {}, services: "live" }],
] as const) {
  test(`a start that needs ${what} waits five seconds for them`, async () => {
    const { clock, lookup } = withoutServer();
    let isOver = false;
    const settled = lookup.settle(pod, structuredClone(needs), signal).then(() => (isOver = true));
    await clock.advance(4999);
    assert.equal(isOver, false);
    await clock.advance(1);
    await settled;
  });
}
