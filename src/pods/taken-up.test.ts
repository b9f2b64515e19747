import assert from "node:assert/strict";
import { test } from "node:test";
import { testContainer } from "../../test/support/observed.ts";
import { podUid, type PodUid } from "../base/ids.ts";
import type { PodStatus } from "../runtime/status/pod-status.ts";
import { takenUp, takenUpText } from "./taken-up.ts";

function said(pods: Readonly<Record<string, PodStatus["containers"]>>, unwanted = ""): string | undefined {
  const get = (uid: PodUid) => {
    const status = { uid, namespace: "ns", name: uid, sandboxes: [], containers: pods[uid] ?? [] };
    return { status, error: undefined, observed: 1 };
  };
  const found = takenUp({ uids: () => Object.keys(pods).map((uid) => podUid(uid)), get }, (uid) => uid !== unwanted);
  return found && takenUpText(found);
}

test("running pods at the start are logged in one line; a machine without pods logs nothing", () => {
  const runs = testContainer({ state: "running" });
  const ended = testContainer({ state: "exited" });
  assert.equal(said({}), undefined);
  assert.equal(said({ gone: [] }), undefined);
  assert.equal(said({ a: [runs] }), "took over 1 pod with 1 running container");
  assert.equal(
    said({ a: [runs, runs, ended], b: [runs], c: [runs] }, "c"),
    "took over 2 pods with 3 running containers; 1 orphaned pod",
  );
});
