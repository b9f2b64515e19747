import assert from "node:assert/strict";
import { test } from "node:test";
import { decidePull, judgePullFailure, looksFirst } from "./pull-decision.ts";
import { goDuration, pullMessages } from "./pull-messages.ts";

test("each policy decides by the image's presence", () => {
  assert.deepEqual(
    (["Always", "IfNotPresent", "Never"] as const).map((policy) => [
      looksFirst(policy),
      decidePull(policy, true),
      decidePull(policy, false),
    ]),
    [
      [false, "pull", "pull"],
      [true, "use", "pull"],
      [true, "use", "refuse"],
    ],
  );
});

test("failures marked by the runtime have their own reasons", () => {
  assert.deepEqual(judgePullFailure("app:1", "RegistryUnavailable: 503"), {
    reason: "RegistryUnavailable",
    message: "image pull failed for app:1 because the registry is unavailable: 503",
  });
  assert.deepEqual(judgePullFailure("app:1", "SignatureValidationFailed"), {
    reason: "SignatureValidationFailed",
    message: "image pull failed for app:1 because the signature validation failed",
  });
  assert.deepEqual(judgePullFailure("app:1", "no such host"), { reason: "ErrImagePull", message: "no such host" });
});

test("durations are formatted as in Go", () => {
  const texts = [0, 0.4, 850, 1_000, 1_200, 59_999, 120_500, 3_600_000, 3_723_004].map(goDuration);
  assert.deepEqual(texts, ["0s", "0s", "850ms", "1s", "1.2s", "59.999s", "2m0.5s", "1h0m0s", "1h2m3.004s"]);
});

test("the texts are upstream's", () => {
  assert.equal(
    pullMessages.pulled("x", 1_200.7, 2_300, 42n),
    'Successfully pulled image "x" in 1.2s (2.3s including waiting). Image size: 42 bytes.',
  );
  assert.equal(
    pullMessages.present("docker.io/library/busybox:latest", true),
    'Container image "docker.io/library/busybox:latest" already present on machine and can be accessed by the pod',
  );
  assert.equal(pullMessages.present("busybox", false), 'Container image "busybox" already present on machine');
});
