import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { fc } from "../../test/support/fast-check.ts";
import type { Container } from "../api/container.ts";
import type { Pod } from "../api/pod.ts";
import { podUid, sandboxId } from "../base/ids.ts";
import type { Cause } from "../journal/entry.ts";
import { plainPaint } from "../journal/text.ts";
import type { PodActionsContext } from "../runtime/actions/pod-actions-context.ts";
import { computePodActions } from "../runtime/actions/pod-actions.ts";
import { containerHash } from "../runtime/config/hash.ts";
import type { ContainerStatus, PodStatus } from "../runtime/status/pod-status.ts";
import { readySandbox, runtimeContainer, runtimeStatus } from "../../test/support/runtime-status.ts";
import { replayText } from "./describe.ts";
import { recordingHeader, recordingLine } from "./flight-recorder.ts";
import { RecordingError, replay } from "./replay.ts";

const secret = "hunter2-of-the-north";
const names = ["init", "side", "web", "job"] as const;
const cause: Cause = {
  code: "ContainerExited",
  message: "somebody said so",
  because: { code: "RestartPolicy", message: "for a reason", entry: 7 },
};
const maybe = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(value, { nil: undefined });
const amounts = fc.record({ cpu: fc.constantFrom("100m", "1"), memory: fc.constantFrom("64Mi", "1Gi") });
const ms = fc.integer({ min: 0, max: 2000 });

/** A container with a secret in every place where one may stand. */
const containerOf = (name: string, sidecar: boolean): fc.Arbitrary<Container> =>
  fc
    .record({
      image: fc.constantFrom("a:1", "b:2"),
      restartPolicy: sidecar ? fc.constant("Always" as const) : maybe(fc.constantFrom("Always", "Never", "OnFailure")),
      resources: maybe(fc.record({ requests: amounts, limits: amounts })),
      restart: fc.boolean(),
    })
    .map(({ restart, restartPolicy, resources, ...fields }) => ({
      ...fields,
      name,
      ...(restartPolicy && { restartPolicy }),
      ...(resources && { resources }),
      ...(restart && {
        resizePolicy: [{ resourceName: "memory", restartPolicy: "RestartContainer" }],
        restartPolicyRules: [{ action: "RestartAllContainers", exitCodes: { operator: "In", values: [3] } }],
      }),
      command: ["serve", secret],
      args: [secret],
      env: [{ name: "PASSWORD", value: secret }],
      livenessProbe: { exec: { command: [secret] } },
      lifecycle: { preStop: { exec: { command: [secret] } } },
      volumeMounts: [{ name: "keys", mountPath: `/${secret}` }],
      workingDir: `/${secret}`,
    }));

const pods: fc.Arbitrary<Pod> = fc
  .record({
    restartPolicy: maybe(fc.constantFrom("Always", "Never", "OnFailure")),
    hostNetwork: maybe(fc.boolean()),
    init: fc.tuple(containerOf("init", false), containerOf("side", true)),
    regular: fc.tuple(containerOf("web", false), containerOf("job", false)),
    resources: maybe(fc.record({ limits: amounts })),
  })
  .map(({ restartPolicy, hostNetwork, init, regular, resources }) => ({
    metadata: {
      name: "pod",
      namespace: "default",
      uid: podUid("uid"),
      annotations: { "kubectl.kubernetes.io/last-applied-configuration": secret },
      labels: { key: secret },
    },
    spec: {
      ...(restartPolicy && { restartPolicy }),
      ...(hostNetwork !== undefined && { hostNetwork }),
      ...(resources && { resources }),
      initContainers: init,
      containers: regular,
      ephemeralContainers: [{ name: "debug", image: "a:1", targetContainerName: "web", command: [secret] }],
      volumes: [{ name: "keys", hostPath: { path: `/${secret}` } }],
    },
  }));

const instanceOf = (name: string): fc.Arbitrary<ContainerStatus> =>
  fc
    .record({
      state: fc.constantFrom("created" as const, "running" as const, "exited" as const, "unknown" as const),
      exitCode: fc.constantFrom(0, 1, 3),
      restartCount: fc.nat(5),
      image: fc.constantFrom("a:1", "b:2"),
      hashed: fc.boolean(),
      finishedAt: fc.bigInt({ min: 0n, max: 2n ** 63n }),
      sandbox: fc.constantFrom("sandbox", "before"),
      resources: maybe(
        fc.record({
          cpuRequest: maybe(fc.constantFrom(100n, 1000n)),
          cpuLimit: maybe(fc.constantFrom(100n, 1000n)),
          memoryLimit: maybe(fc.constantFrom(1n << 26n, 1n << 30n)),
        }),
      ),
    })
    .map(({ hashed, image, sandbox, ...fields }) =>
      runtimeContainer(name, {
        ...fields,
        image,
        sandboxId: sandboxId(sandbox),
        hash: hashed ? containerHash({ name, image }) : "",
        reason: fields.exitCode === 0 ? "Completed" : "Error",
        message: secret,
        logPath: `/${secret}`,
        terminationMessagePath: `/${secret}`,
      }),
    );

const statuses = (pod: Pod): fc.Arbitrary<PodStatus> =>
  fc
    .record({
      sandboxes: fc.array(fc.record({ ready: fc.boolean(), hostNetwork: fc.boolean(), attempt: fc.nat(3) }), {
        maxLength: 2,
      }),
      containers: fc.tuple(...names.map((name) => maybe(instanceOf(name)))),
    })
    .map(({ sandboxes, containers }) =>
      runtimeStatus(
        pod,
        containers.filter((container) => container !== undefined),
        sandboxes.map((sandbox) => readySandbox(sandbox)),
      ),
    );

const contexts: fc.Arbitrary<PodActionsContext> = fc
  .record({
    nowMs: ms,
    busy: fc.subarray([...names]).map((some) => new Set<string>(some)),
    backOff: maybe(ms),
    retry: maybe(ms),
    sandboxRetryAt: maybe(ms),
    sandboxBackOffEndsAt: maybe(ms),
    evidence: maybe(fc.nat()),
    stopped: fc.boolean(),
    begun: fc.boolean(),
    unhealthy: fc.boolean(),
    started: fc.boolean(),
    resize: maybe(
      fc.record({
        actuated: maybe(
          fc.record({
            containers: fc.constantFrom(new Map([["web", { requests: { cpu: "200m" } }]]), new Map()),
            pod: fc.constant(undefined),
          }),
        ),
        underWay: fc.boolean(),
        retryAtMs: maybe(ms),
        cause: fc.constant(cause),
      }),
    ),
  })
  .map(({ backOff, retry, evidence, stopped, begun, unhealthy, started, ...plain }) => ({
    ...plain,
    backOffEndsAt: () => backOff,
    retryAt: () => retry,
    evidence: () => evidence,
    restartCause: () => (stopped ? cause : undefined),
    startsOver: () => begun,
    unhealthy: () => (unhealthy ? { cause, graceSeconds: 3 } : undefined),
    started: () => started,
  }));

const decisions = fc
  .tuple(pods, contexts)
  .chain(([pod, context]) => statuses(pod).map((status) => ({ pod, status, context })))
  .map((inputs) => ({ ...inputs, actions: computePodActions(inputs.pod, inputs.status, inputs.context) }));

const header = recordingHeader("test", 0);
const [sample] = fc.sample(decisions, { numRuns: 1, seed: 4 });
const line = sample === undefined ? "" : recordingLine(sample, 0);

describe("a recording", () => {
  test("replays to equal decisions, and contains only the inputs of decisions", () => {
    fc.assert(
      fc.property(decisions, (decision) => {
        const text = header + recordingLine(decision, 1000);
        assert.ok(!text.includes(secret));
        assert.deepEqual(replay(text), {
          ...{ decisions: 1, pods: 1, lives: 1, cutOff: [], different: 0, first: undefined },
        });
      }),
      { numRuns: 500 },
    );
  });

  test("with changed decisions shows the present decision for each", () => {
    fc.assert(
      fc.property(decisions, (decision) => {
        const recorded = JSON.parse(recordingLine(decision, 1000)) as { decided: object };
        const changed = { ...recorded, decided: { ...recorded.decided, sandboxWaitUntilMs: 5555 } };
        const result = replay(`${header}${JSON.stringify(changed)}\n`);
        assert.equal(result.different, 1);
        assert.equal(result.first?.line, 2);
        const text = replayText(result, plainPaint).join("\n");
        assert.match(text, /decided then\n(?:.*\n)* {2}≠ the next sandbox waits .*\n(?:.*\n)*decided now\n/);
      }),
      { numRuns: 100 },
    );
  });

  test("is filtered by a pod's name, namespace and name, or UID", () => {
    for (const selector of ["pod", "default/pod", "uid"]) assert.equal(replay(header + line, selector).decisions, 1);
    assert.equal(replay(header + line, "other").decisions, 0);
    assert.deepEqual(replayText(replay(header), plainPaint), ["nothing to compare: the recording has no decisions"]);
  });

  test("is read up to a truncation, at its end or before the next run's part", () => {
    const cut = line.slice(0, 50);
    assert.deepEqual(replay(header + line + cut).cutOff, [3]);
    const twoLives = replay(`${header}${line}${cut}\n${header}${line}`);
    assert.deepEqual([twoLives.cutOff, twoLives.lives, twoLives.decisions], [[3], 2, 2]);
  });

  const broken: readonly (readonly [what: string, text: string, error: RegExp])[] = [
    ["an empty file", "", /^line 1: the file is empty$/],
    ["any other text", "apiVersion: v1\n", /^line 1: not a podwright recording: no header$/],
    ["decisions without a header", line, /^line 1: not a podwright recording/],
    [
      "a newer recording",
      `{"format":"podwright-recording","version":2,"podwright":"9.9.9"}\n`,
      /^line 1: recorded by podwright 9\.9\.9 in version 2 of the format; this podwright reads version 1$/,
    ],
    ["invalid header", `{"format":"podwright-recording"}\n`, /^line 1: invalid header: version: /],
    ["a broken line", `${header}{\n${line}`, /^line 2: not JSON$/],
    ["a line of something else", `${header}{"time":1}\n`, /^line 2: pod: /],
    ["a wrong value", header + line.replace('"nowMs":', '"nowMs":"x","x":'), /^line 2: context.nowMs: /],
    ["an unknown field", header + line.replace('"time":', '"more":1,"time":'), /^line 2: the line: Unrecognized key/],
  ];
  for (const [what, text, error] of broken) {
    test(`is rejected with its line: ${what}`, () => {
      assert.throws(
        () => replay(text),
        (thrown) => thrown instanceof RecordingError && error.test(thrown.message),
      );
    });
  }
});
