import assert from "node:assert/strict";
import { test } from "node:test";
import { clientLimits } from "./client-limits.ts";
import { withDefaults } from "./defaults.ts";

test("requests and Events have the kubelet's rates and bursts", () => {
  const usual = { perSecond: 50, burst: 100 };
  assert.deepEqual(clientLimits(withDefaults({})), { requests: usual, events: usual });
  const given = withDefaults({ kubeAPIQPS: 7, kubeAPIBurst: 8, eventRecordQPS: 1, eventBurst: 2 });
  assert.deepEqual(clientLimits(given), {
    requests: { perSecond: 7, burst: 8 },
    events: { perSecond: 1, burst: 2 },
  });
});

test("a rate or burst of 0 means client-go's, neither no limit nor no request", () => {
  const none = { kubeAPIQPS: 0, kubeAPIBurst: 0, eventRecordQPS: 0, eventBurst: 0 };
  const clientGo = { perSecond: 5, burst: 10 };
  assert.deepEqual(clientLimits({ ...withDefaults({}), ...none }), { requests: clientGo, events: clientGo });
});
