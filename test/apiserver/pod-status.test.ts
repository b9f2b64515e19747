import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ApiObject, Fields } from "./objects.ts";
import { statusProblems } from "./pod-status.ts";
import { podNamed } from "./testing.ts";

function podThat(spec: Fields, state: Fields): ApiObject {
  return { ...podNamed("p", spec), status: { containerStatuses: [{ name: "app", state }] } } as unknown as ApiObject;
}

const runs = { running: {} };
const over = (exitCode: number): Fields => ({ terminated: { exitCode } });

describe("the status of a pod", () => {
  const samples: readonly (readonly [spec: Fields, before: Fields, after: Fields, refused: boolean])[] = [
    [{ restartPolicy: "Always" }, over(0), runs, false],
    [{ restartPolicy: "OnFailure" }, over(1), runs, false],
    [{ restartPolicy: "OnFailure" }, over(0), runs, true],
    [{ restartPolicy: "Never" }, over(1), runs, true],
    [{ restartPolicy: "Never" }, over(1), { waiting: {} }, true],
    [{ restartPolicy: "Never" }, over(1), over(2), false],
    [{ restartPolicy: "Never" }, runs, over(2), false],
  ];
  for (const [spec, before, after, refused] of samples) {
    const words = `${JSON.stringify(spec)}: ${JSON.stringify(before)} to ${JSON.stringify(after)}`;
    it(`${refused ? "rejects" : "accepts"} ${words}`, () => {
      const fields = statusProblems(podThat(spec, after), podThat(spec, before)).map(([field]) => field);
      assert.deepEqual(fields, refused ? ["status.containerStatuses[0].state"] : []);
    });
  }
});
