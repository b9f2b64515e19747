import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { nextSteps } from "./next-steps.ts";

test("the next steps have the first pod's name as a user would type it", () => {
  const pod = (namespace: string, name: string): Parameters<typeof nextSteps>[0][number] => {
    return { namespace, name, uid: podUid("u") };
  };
  assert.deepEqual(nextSteps([pod("default", "web"), pod("default", "db")], "/var/lib/podwright"), [
    "  podwright timeline web   its history, with causes",
    "  podwright logs -f web    its output",
    "  podwright ui             everything in a browser",
  ]);
  assert.match(nextSteps([pod("tools", "db")], "/srv/pods")[1] ?? "", /logs --state-dir \/srv\/pods -f tools\/db/u);
});
