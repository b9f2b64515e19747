import assert from "node:assert/strict";
import { test } from "node:test";
import { containerView, podView } from "../../test/support/pod-views.ts";
import { podWith } from "../../test/support/pods.ts";
import { containerId } from "../base/ids.ts";
import { ProbeResults } from "../prober/probe-results.ts";
import { podDetail } from "./pod-detail.ts";

const secrets = "s3cr3t";

test("possible secrets are not sent to the page", () => {
  const pod = podWith(
    {
      containers: [
        {
          name: "app",
          image: "web:1",
          command: ["run", `--password=${secrets}`],
          args: [secrets],
          env: [{ name: "TOKEN", value: secrets }],
          readinessProbe: {
            httpGet: {
              port: 8080,
              path: `/ready?token=${secrets}`,
              httpHeaders: [{ name: "Authorization", value: secrets }],
            },
          },
          livenessProbe: { exec: { command: ["check", secrets] } },
        },
      ],
      volumes: [{ name: "v", secret: { secretName: "account" } }],
    },
    { annotations: { note: secrets }, labels: { key: secrets } },
  );
  const detail = podDetail({ view: podView({}), pod, status: undefined, entries: 0 }, new ProbeResults());
  assert.equal(JSON.stringify(detail).includes(secrets), false);
  assert.deepEqual(
    detail.containers[0]?.probes.map(({ type, what }) => [type, what]),
    [
      ["liveness", "exec check"],
      ["readiness", "GET :8080/ready"],
    ],
  );
});

test("a pod's texts cannot reorder or break the text around them, and are bounded", () => {
  const message = `a\u202Eb\u0007\n${"x".repeat(5000)}`;
  const view = podView({ message, containers: [containerView({ state: "waiting", reason: "Er\u2066r", message })] });
  const detail = podDetail(
    { view, pod: podWith({ containers: [{ name: "app" }] }), status: undefined, entries: 0 },
    new ProbeResults(),
  );
  for (const text of [detail.message, detail.containers[0]?.message ?? "", detail.containers[0]?.reason ?? ""]) {
    assert.doesNotMatch(text, /[\u0000-\u001f\u202a-\u202e\u2066-\u2069]/);
    assert.ok(text.length <= 601);
  }
});

test("containers are shown with their ports, resources, and last probe results", () => {
  const probes = new ProbeResults();
  const id = containerId("c1");
  probes.begin(id, "liveness", "success");
  probes.saw(id, "liveness", { kind: "failure", text: "no answer in 1 s", at: 5 });
  const pod = podWith({
    containers: [
      {
        name: "app",
        ports: [
          { containerPort: 80, hostPort: 8080, name: "http" },
          { containerPort: 53, protocol: "UDP" },
        ],
        resources: { requests: { cpu: "100m", memory: "64Mi" }, limits: { memory: "64Mi", cpu: "1" } },
        livenessProbe: { tcpSocket: { port: 80 }, periodSeconds: 3 },
      },
    ],
    initContainers: [{ name: "first" }],
  });
  const first = {
    ...containerView({ name: "first", id: "c0", state: "terminated", exitCode: 0, ready: false }),
    sidecar: false,
    done: true,
  };
  const view = podView({ initContainers: [first] });
  const detail = podDetail({ view, pod, status: undefined, entries: 7 }, probes);
  assert.deepEqual(
    detail.containers.map(({ name, kind }) => [name, kind]),
    [
      ["first", "init"],
      ["app", "container"],
    ],
  );
  const app = detail.containers[1];
  assert.deepEqual(app?.ports, ["8080→80/TCP http", "53/UDP"]);
  assert.deepEqual(app?.resources, ["cpu 100m ≤ 1", "memory ≤ 64Mi"]);
  assert.deepEqual(app?.probes, [
    {
      type: "liveness",
      what: "TCP :80",
      periodSeconds: 3,
      result: "success",
      last: { kind: "failure", text: "no answer in 1 s", at: 5 },
    },
  ]);
  assert.deepEqual([detail.readyContainers, detail.lastingContainers, detail.qos], [1, 1, "Burstable"]);
});
