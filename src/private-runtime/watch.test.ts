import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { CriError } from "../ports/cri.ts";
import { VersionResponseSchema } from "../ports/gen/runtime/v1/api_pb.js";
import { SimClock } from "../sim/clock.ts";
import { silentLog } from "../sim/machine.ts";
import { watchPrivateRuntime } from "./watch.ts";

test("a private runtime that stays down is started again, a brief outage is ignored", async () => {
  const clock = new SimClock(0);
  const end = new AbortController();
  let answers = true;
  let starts = 0;
  void watchPrivateRuntime(
    {
      clock: clock.incarnation(),
      log: silentLog,
      runtime: {
        version: () =>
          answers
            ? Promise.resolve(create(VersionResponseSchema))
            : Promise.reject(new CriError("Unavailable", "Version", "connection refused")),
      },
      ensure: async () => {
        starts++;
        answers = true;
      },
    },
    end.signal,
  );
  await clock.run(60_000);
  answers = false;
  await clock.run(80_000);
  answers = true;
  await clock.run(120_000);
  assert.equal(starts, 0);
  answers = false;
  await clock.run(170_000);
  assert.equal(starts, 1);
  end.abort(new Error("over"));
  await clock.run(300_000);
  assert.equal(starts, 1);
});
