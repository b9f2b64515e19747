import assert from "node:assert/strict";
import { test } from "node:test";
import { podView } from "../../test/support/pod-views.ts";
import { renderWhy } from "../journal/render.ts";
import { explain, verdictOf } from "./why.ts";

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

test("a pod that waits for a driver is told since when it is away, which the node's own entries say", () => {
  const message =
    "volume disk (d) cannot be unpublished: driver name d not found in the list of registered CSI drivers";
  const stopped = { ...view, ...pod, state: "terminated", finalizers: [] } as const;
  const entries = [
    { kind: "note", what: "PluginGone", message: "", seq: 1, time: 880_000, data: { name: "d" } },
    { kind: "observation", what: "VolumeHeld", message, pod, seq: 2, time: 990_000 },
  ] as const;
  const listed = { pods: [stopped], health: { knowsAllPods: true } };
  assert.match(
    verdictOf(explanation, entries, listed, 1_000_000),
    /; driver d has been away for 2 min: start it again;/u,
  );
});

test("a pod of which the journal has no entry any more gets its verdict, and is said to have lost them", () => {
  const running = { ...view, ...pod };
  const found = explain({ entries: [], refs: [pod] }, { uid }, [running]);
  assert.ok(found);
  assert.match(
    verdictOf(found, [], { pods: [running], health: { knowsAllPods: true } }, 1_000_000),
    /^Running and Ready/u,
  );
  const text = renderWhy(found, { now: 1_000_000, timeZone: "UTC" });
  assert.match(
    text,
    /^default\/web  uid uid-web, created 1970-01-01 00:06:40\.000\nthe journal does not have any entry of it/u,
  );
  assert.equal(explain({ entries: [], refs: [pod] }, { uid }, []), undefined, "it has gone meanwhile");
});
