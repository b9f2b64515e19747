import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Container } from "../api/container.ts";
import { describeProbe, probeAction } from "./probe-action.ts";

const container: Container = {
  name: "c",
  ports: [{ name: "web", containerPort: 8080 }],
  env: [
    { name: "FILE", value: "/tmp/health" },
    { name: "NODE", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
  ],
};

describe("probeAction", () => {
  test("expands plain variables in a command, and no others", () => {
    const probe = { exec: { command: ["cat", "$(FILE)", "$$(FILE)", "$(OTHER)"] } };
    assert.deepEqual(probeAction(container, probe, ""), {
      kind: "exec",
      command: ["cat", "/tmp/health", "$(FILE)", "$(OTHER)"],
    });
  });

  test("refuses a command that grows out of all proportion, before it is made", () => {
    const command = Array.from({ length: 600 }, () => "$(LONG)".repeat(1000));
    const env = [{ name: "LONG", value: "x".repeat(100_000) }];
    const message = "the expanded command does not fit: the command of a probe has at most 262144 bytes";
    assert.throws(() => probeAction({ name: "c", env }, { exec: { command } }, ""), { message });
  });

  test("targets the pod's address by default, and a container port by its name", () => {
    const action = probeAction(container, { httpGet: { port: "web", path: "/healthz" } }, "10.0.0.2");
    assert.deepEqual(action, {
      kind: "http",
      request: {
        scheme: "http",
        host: "10.0.0.2",
        port: 8080,
        path: "/healthz",
        headers: [
          ["Host", "10.0.0.2:8080"],
          ["User-Agent", "kube-probe/1.36"],
          ["Accept", "*/*"],
        ],
      },
    });
    assert.deepEqual(probeAction(container, { tcpSocket: { port: 5432 } }, "fd00::2"), {
      kind: "tcp",
      host: "fd00::2",
      port: 5432,
    });
    assert.deepEqual(probeAction(container, { grpc: { port: 9000 } }, "10.0.0.2"), {
      kind: "grpc",
      host: "10.0.0.2",
      port: 9000,
      service: "",
    });
  });

  test("targets another host when the probe names one, even before the pod has an address", () => {
    const action = probeAction(container, { tcpSocket: { port: 1, host: "127.0.0.1" } }, "");
    assert.deepEqual(action, { kind: "tcp", host: "127.0.0.1", port: 1 });
  });

  test("is impossible without an address, a port of that name, or a handler", () => {
    assert.throws(() => probeAction(container, { tcpSocket: { port: 1 } }, ""), /no IP address/);
    assert.throws(() => probeAction(container, { tcpSocket: { port: "db" } }, "10.0.0.2"), /no port named "db"/);
    assert.throws(() => probeAction(container, {}, "10.0.0.2"), /no exec/);
  });
});

test("a probe's name contains nothing that may be secret", () => {
  assert.equal(describeProbe({ httpGet: { port: 8080, path: "/healthz?token=x" } }), "GET :8080/healthz");
  assert.equal(describeProbe({ httpGet: { port: "web", host: "app" } }), "GET app:web/");
  assert.equal(describeProbe({ exec: { command: ["curl", "-u", "user:pass"] } }), "exec curl");
  assert.equal(describeProbe({ tcpSocket: { port: 5432 } }), "TCP :5432");
  assert.equal(describeProbe({ grpc: { port: 9000, service: "live" } }), "gRPC :9000 live");
});

test("a probe's name is printable and short, whatever its author has written", () => {
  assert.equal(describeProbe({ httpGet: { port: 80, path: "/\u001b[2J\n" } }), String.raw`GET :80/\u001b[2J`);
  const long = describeProbe({ httpGet: { port: 80, path: `/${"a".repeat(1_000_000)}` } });
  assert.equal(long, `GET :80/${"a".repeat(92)}…`);
  assert.equal(describeProbe({ exec: { command: ["a".repeat(1_000_000)] } }).length, 101);
});
