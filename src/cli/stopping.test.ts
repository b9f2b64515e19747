import assert from "node:assert/strict";
import { test } from "node:test";
import { podView } from "../../test/support/pod-views.ts";
import { engineFailure } from "./engine-process.ts";
import { stoppingLine } from "./stopping.ts";

test("the countdown tells the seconds until SIGKILL, then that it is sent, then that the rest is cleaned up", () => {
  const pod = podView({ state: "terminating", killAt: 30_000 });
  assert.equal(stoppingLine(pod, 2_100), "stopping web: 28 s until SIGKILL");
  assert.equal(stoppingLine(pod, 30_000), "stopping web: SIGKILL is sent");
  assert.equal(stoppingLine({ ...pod, killAt: undefined }, 0), "stopping web");
  assert.equal(stoppingLine({ ...pod, state: "terminated" }, 0), "stopping web: cleaning up");
});

test("an engine that does not start is told in its own words, or with the end of its log", () => {
  const own = engineFailure(
    '{"level":"info"}\npodwright: the runtime is used by kubelet 12\n  → stop it\n',
    "/s/engine.log",
  );
  assert.equal(own.message, "the engine did not start: the runtime is used by kubelet 12");
  assert.equal(own.exitCode, 3);
  assert.equal(own.remedy, "stop it");
  const crash = engineFailure("a\nb\nc\nd\ne\nError: boom\u001b[2J\n", "/s/engine.log");
  assert.equal(
    crash.message,
    String.raw`the engine did not start: b
  c
  d
  e
  Error: boom\u001b[2J`,
  );
  assert.equal(engineFailure("", "/s/engine.log").message, "the engine did not start");
});
