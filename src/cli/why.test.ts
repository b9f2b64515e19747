import assert from "node:assert/strict";
import { test } from "node:test";
import { podView } from "../../test/support/pod-views.ts";
import { verdictOf } from "./why.ts";

const { namespace, name, uid, ...view } = podView({});
const pod = { namespace, name, uid };
const explanation = { incarnation: { pod, firstTime: 1, lastTime: 1, entryCount: 1, lastMessage: "started" } };
const verdict = (listed: Parameters<typeof verdictOf>[2]): string => verdictOf(explanation, [], listed, 1_000_000);

test("a pod that is not listed is gone, unless the engine does not know all pods yet", () => {
  assert.match(verdict(undefined), /^Unknown: no engine is running/u);
  assert.match(verdict({ pods: [], health: { knowsAllPods: true } }), /^Gone: /u);
  assert.match(verdict({ pods: [], health: { knowsAllPods: false } }), /^Unknown: podwright is starting/u);
  assert.match(
    verdict({ pods: [], health: { knowsAllPods: false, unlisted: [uid] } }),
    /^Unknown: podwright is starting/u,
  );
  assert.match(verdict({ pods: [], health: { knowsAllPods: false, unlisted: [] } }), /^Gone: /u);
  assert.match(verdict({ pods: [{ ...view, ...pod }], health: { knowsAllPods: false } }), /^Running and Ready/u);
});
