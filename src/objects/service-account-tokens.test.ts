import assert from "node:assert/strict";
import { test } from "node:test";
import { settle } from "../../test/support/manual-clock.ts";
import { podWith } from "../../test/support/pods.ts";
import { ScriptedKube } from "../../test/support/scripted-kube.ts";
import { MemoryRecorder } from "../../test/support/sources.ts";
import type { Pod } from "../api/pod.ts";
import { podUid } from "../base/ids.ts";
import { ServiceAccountTokens } from "./service-account-tokens.ts";

const source = { path: "token", expirationSeconds: 3607 };
const volumes = [{ name: "v", projected: { sources: [{ serviceAccountToken: source }] } }];
const pod = podWith({ serviceAccountName: "robot", volumes });
const { signal } = new AbortController();

class World {
  readonly kube = new ScriptedKube();
  readonly journal = new MemoryRecorder();
  readonly renewed: string[] = [];
  readonly tokens: ServiceAccountTokens;

  constructor() {
    const { kube, journal } = this;
    const random = { uniform: () => 0, bytes: (count: number) => new Uint8Array(count) };
    const renewed = (renewedPod: Pod): void => void this.renewed.push(renewedPod.metadata.uid);
    this.tokens = new ServiceAccountTokens({ client: kube.client(), clock: kube.clock, random, journal, renewed });
  }

  /** @param skewMs how far the server's clock is ahead */
  async answer(token: string, skewMs = 0): Promise<unknown> {
    const request = await this.kube.next();
    const expirationTimestamp = new Date(this.kube.clock.now() + skewMs + 3_600_000).toISOString();
    await request.json({ spec: { expirationSeconds: 3600 }, status: { token, expirationTimestamp } });
    return request.body;
  }
}

test("a token is requested for its pod, used, and renewed after four fifths of its lifetime", async () => {
  const world = new World();
  assert.equal(world.tokens.get(pod, source), undefined);
  const first = world.tokens.refresh(pod, volumes, signal);
  assert.deepEqual(await world.answer("one"), {
    apiVersion: "authentication.k8s.io/v1",
    kind: "TokenRequest",
    spec: {
      audiences: [],
      expirationSeconds: 3607,
      boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "p", uid: "u" },
    },
  });
  await first;
  assert.deepEqual(world.tokens.get(pod, source), { token: "one" });
  await world.kube.clock.advance(2_879_000);
  await world.tokens.refresh(pod, volumes, signal);
  assert.ok(await world.kube.isQuiet());
  await world.kube.clock.advance(1000);
  const second = world.tokens.refresh(pod, volumes, signal);
  await world.answer("two");
  await second;
  assert.deepEqual(world.tokens.get(pod, source), { token: "two" });
  assert.doesNotMatch(JSON.stringify(world.journal.entries), /"one"|"two"/);
});

test("a token that cannot be renewed is used until it expires, and then the reason is reported", async () => {
  const world = new World();
  const first = world.tokens.refresh(pod, volumes, signal);
  await world.answer("one");
  await first;
  await world.kube.clock.advance(3_000_000);
  const failing = world.tokens.refresh(pod, volumes, signal);
  await (await world.kube.next()).json({ kind: "Status", message: "away", code: 503 }, 503);
  await failing;
  assert.deepEqual(world.tokens.get(pod, source), { token: "one" });
  await world.tokens.refresh(pod, volumes, signal);
  assert.ok(await world.kube.isQuiet(), "not asked again at once");
  await world.kube.clock.advance(600_000);
  assert.match(JSON.stringify(world.tokens.get(pod, source)), /failed to fetch token: POST .*: away/);
});

test("Retry-After for a token is respected and reported", async () => {
  const world = new World();
  const refused = world.tokens.refresh(pod, volumes, signal);
  const busy = { kind: "Status", message: "busy", code: 429 };
  await (await world.kube.next()).json(busy, 429, { "retry-after": "30" });
  await refused;
  assert.match(JSON.stringify(world.tokens.get(pod, source)), /: busy; the API server requests a pause of 30 s/);
  await world.kube.clock.advance(29_999);
  await world.tokens.refresh(pod, volumes, signal);
  assert.ok(await world.kube.isQuiet());
  await world.kube.clock.advance(1);
  const second = world.tokens.refresh(pod, volumes, signal);
  await world.answer("one");
  await second;
});

for (const [where, skewMs] of [
  ["behind", -7_200_000],
  ["ahead", 7_200_000],
] as const) {
  test(`a token of a server whose clock is two hours ${where} is valid for the server's lifetime`, async () => {
    const world = new World();
    const first = world.tokens.refresh(pod, volumes, signal);
    await world.answer("one", skewMs);
    await first;
    await world.kube.clock.advance(2_879_000);
    await world.tokens.refresh(pod, volumes, signal);
    assert.ok(await world.kube.isQuiet(), "not asked for again");
    assert.deepEqual(world.tokens.get(pod, source), { token: "one" });
    await world.kube.clock.advance(721_000);
    assert.equal(world.tokens.get(pod, source), undefined, "it is over");
  });
}

test("a removed pod leaves no token behind", async () => {
  const world = new World();
  const first = world.tokens.refresh(pod, volumes, signal);
  await world.answer("one");
  await first;
  world.tokens.remove(podUid("u"));
  assert.equal(world.tokens.get(pod, source), undefined);
});

for (const how of ["is waited for", "is renewed"] as const) {
  test(`a token that ${how} while its pod is removed is not stored`, async () => {
    const world = new World();
    const asked = how === "is renewed" ? world.tokens.renew(pod) : world.tokens.refresh(pod, volumes, signal);
    const request = await world.kube.next();
    world.tokens.remove(podUid("u"));
    await request.json({ spec: { expirationSeconds: 3600 }, status: { token: "late" } }).catch(() => {});
    await asked;
    await settle();
    assert.equal(world.tokens.get(pod, source), undefined);
    assert.deepEqual(world.renewed, []);
  });
}

test("a renewal delays nothing, is requested once, and its pod is synced afterwards", async () => {
  const world = new World();
  world.tokens.renew(pod);
  world.tokens.renew(pod);
  await world.answer("one");
  await settle();
  assert.deepEqual(world.tokens.get(pod, source), { token: "one" });
  assert.deepEqual(world.renewed, ["u"]);
  world.tokens.renew(pod);
  assert.ok(await world.kube.isQuiet(), "it is good");
  assert.deepEqual(world.renewed, ["u"]);
});

test("a rejected renewal is retried ten seconds later, not before", async () => {
  const world = new World();
  world.tokens.renew(pod);
  await (await world.kube.next()).json({ kind: "Status", message: "away", code: 503 }, 503);
  await world.kube.clock.advance(9999);
  world.tokens.renew(pod);
  assert.ok(await world.kube.isQuiet());
  await world.kube.clock.advance(1);
  world.tokens.renew(pod);
  await world.answer("one");
});

test("a stopping node requests no tokens", async () => {
  const world = new World();
  world.tokens.stop();
  world.tokens.renew(pod);
  assert.ok(await world.kube.isQuiet());
});
