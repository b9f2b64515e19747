import assert from "node:assert/strict";
import { test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import { type MergeKeys, strategicPatch } from "./strategic-patch.ts";

const keys: MergeKeys = {
  conditions: { key: "type", anyOrder: true },
  podIPs: { key: "ip" },
  addresses: { key: "type", replace: true },
};

test("unchanged fields are not sent, and empty ones count as absent", () => {
  const before = { phase: "Running", conditions: [{ type: "Ready", status: "True", lastProbeTime: null }] };
  const after = { phase: "Running", conditions: [{ type: "Ready", status: "True" }], podIPs: [], lastState: {} };
  assert.equal(strategicPatch(before, after, keys), undefined);
});

test("fields are set, partly changed and removed", () => {
  const before = { phase: "Pending", reason: "x", resources: { requests: { cpu: "1", memory: "2" } } };
  const after = { phase: "Running", resources: { requests: { cpu: "2" } }, podIP: "10.0.0.1" };
  assert.deepEqual(strategicPatch(before, after, keys), {
    phase: "Running",
    reason: null,
    resources: { requests: { cpu: "2", memory: null } },
    podIP: "10.0.0.1",
  });
});

test("conditions are merged by their type: those of others are left alone, own ones that are over are deleted", () => {
  const ready = { type: "Ready", status: "False", reason: "ContainersNotReady" };
  const other = { type: "example.org/gate", status: "True" };
  const before = { conditions: [other, ready, { type: "DisruptionTarget", status: "True" }] };
  const after = { conditions: [other, { type: "Ready", status: "True" }] };
  assert.deepEqual(strategicPatch(before, after, keys), {
    "$setElementOrder/conditions": [{ type: "example.org/gate" }, { type: "Ready" }],
    conditions: [
      { type: "Ready", status: "True", reason: null },
      { $patch: "delete", type: "DisruptionTarget" },
    ],
  });
});

test("the order of conditions does not matter, that of addresses does", () => {
  const list = [{ type: "a" }, { type: "b" }];
  assert.equal(strategicPatch({ conditions: list }, { conditions: list.toReversed() }, keys), undefined);
  const ips = [{ ip: "10.0.0.1" }, { ip: "fd00::1" }];
  assert.deepEqual(strategicPatch({ podIPs: ips }, { podIPs: ips.toReversed() }, keys), {
    "$setElementOrder/podIPs": ips.toReversed(),
    podIPs: [],
  });
});

test("lists without a key are replaced, also where the server would merge them", () => {
  const before = { containerStatuses: [{ name: "a" }], addresses: [{ type: "InternalIP", address: "1" }] };
  const after = { containerStatuses: [{ name: "b" }], addresses: [{ type: "InternalIP", address: "2" }] };
  assert.deepEqual(strategicPatch(before, after, keys), {
    containerStatuses: [{ name: "b" }],
    addresses: [{ type: "InternalIP", address: "2" }, { $patch: "replace" }],
  });
});

test("a status that is the same needs no patch, whatever it is", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      assert.equal(strategicPatch(value, structuredClone(value), keys), undefined);
    }),
  );
});

test("a field with the name of an inherited property is a normal field", () => {
  const after = { labels: { constructor: "x" } };
  assert.deepEqual(strategicPatch({ labels: {} }, after, {}), { labels: { constructor: "x" } });
  assert.deepEqual(strategicPatch({ labels: { a: "b" } }, { labels: { a: "b", constructor: "x" } }, {}), after);
});
