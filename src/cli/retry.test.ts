import assert from "node:assert/strict";
import { test } from "node:test";
import { podUid } from "../base/ids.ts";
import { retryLine } from "./retry.ts";

test("a retry of a pod that has ended, or is being stopped, says that nothing will happen", () => {
  const pod = { namespace: "default", name: "job", uid: podUid("1") };
  assert.deepEqual(
    (["syncing", "terminating", "terminated"] as const).map((state) =>
      retryLine({ ...pod, state }, "/var/lib/podwright"),
    ),
    [
      "retrying job; 'podwright why job' shows the result",
      "job is being stopped: there is nothing to retry; 'podwright why job' shows the reason",
      "job has ended: there is nothing to retry; 'podwright why job' shows the reason",
    ],
  );
});
