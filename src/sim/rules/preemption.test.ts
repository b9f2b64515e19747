import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../../base/ids.ts";
import type { Pod } from "../../api/pod.ts";
import { preemptionProblems } from "./preemption.ts";

const node = { cpu: "1", memory: "512Mi" };

function pod(name: string, cpu: string, priority?: number, isGuaranteed = false): Pod {
  const requests = { cpu, memory: "64Mi" };
  const resources = isGuaranteed ? { requests, limits: requests } : { requests };
  const spec = { containers: [{ name: "c", resources }], ...(priority !== undefined && { priority }) };
  return { metadata: { namespace: "default", name, uid: podUid(name) }, spec };
}

function problems(critical: Pod, there: readonly Pod[], ...victims: readonly Pod[]): string[] {
  const parts = there.map((each) => ({ pod: each, isSure: true, grants: [each] }));
  return preemptionProblems({ pod: critical, grants: [critical], parts, victims: [...victims] }, node).map(
    ([rule, detail]) => {
      return `${rule}: ${detail}`;
    },
  );
}

const critical = pod("critical", "500m", 2_000_000_000);
const [small, large] = [pod("small", "200m"), pod("large", "600m", 1000)];
const sure = pod("sure", "200m", undefined, true);

test("as many pods as necessary make room for a critical pod", () => {
  assert.deepEqual(problems(critical, [small, large, sure], large), []);
  assert.deepEqual(problems(critical, [small, large, sure], small), [
    "preemption makes enough room: there is still too little cpu",
  ]);
  assert.deepEqual(problems(critical, [small, large, sure], large, small), [
    "preemption makes enough room: there is room without small, which is Burstable",
  ]);
  assert.deepEqual(problems(critical, [small], small), [
    "preemption makes enough room: there is room without small, which is Burstable",
  ]);
});

test("pods of a higher QoS class are preempted only for what lower ones cannot provide", () => {
  const others = [pod("a", "200m"), pod("b", "300m"), pod("c", "500m", undefined, true)];
  const [a, b, c] = others;
  assert.ok(a && b && c);
  assert.deepEqual(problems(critical, others, a, b), []);
  assert.deepEqual(problems(critical, others, c), [
    "preemption makes enough room: there is room without c, which is Guaranteed",
  ]);
  assert.deepEqual(problems(pod("critical", "600m", 2_000_000_000), others, a, c), []);
});

test("a pod whose resize is not granted has the QoS class of its allocation", () => {
  const refused = pod("refused", "400m", 1000, true);
  const part = { pod: refused, isSure: true, grants: [pod("refused", "300m", 1000)] };
  const parts = [part, { pod: large, isSure: true, grants: [large] }];
  const preemption = { pod: critical, grants: [critical], parts, victims: [refused] };
  assert.deepEqual(preemptionProblems(preemption, { cpu: "1100m", memory: "512Mi" }), []);
  const asWanted = { ...preemption, parts: parts.map((each) => ({ ...each, grants: [each.pod] })) };
  assert.deepEqual(preemptionProblems(asWanted, { cpu: "1100m", memory: "512Mi" }), [
    ["preemption makes enough room", "there is room without refused, which is Guaranteed"],
  ]);
});

test("only for critical pods, and only pods of a lower priority", () => {
  const others = [pod("peer", "1", 2_000_000_000)];
  const [peer] = others;
  assert.ok(peer);
  assert.deepEqual(problems(critical, others, peer), ["equally important pods stay: peer counts as much"]);
  assert.deepEqual(problems(pod("higher", "500m", 2_000_001_000), others, peer), []);
  const [asked, ...more] = problems(pod("needed", "500m", 1_000_000), [large], large);
  assert.equal(asked, "only critical pods are made room for: it is not critical");
  assert.deepEqual(more, ["equally important pods stay: large counts as much"]);
  const annotations = { "kubernetes.io/config.source": "file" };
  const own = { ...peer, metadata: { ...peer.metadata, annotations } };
  const [fixed, open] = [
    { ...own, spec: { containers: own.spec.containers } },
    { ...large, metadata: own.metadata },
  ];
  assert.deepEqual(problems(pod("higher", "500m", 2_000_001_000), [fixed], fixed), [
    "equally important pods stay: peer counts as much",
  ]);
  assert.deepEqual(problems(critical, [open], open), []);
});
