import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { podUid } from "../../base/ids.ts";
import type { JournalInput } from "../../journal/entry.ts";
import { CriError, type Cri } from "../../ports/cri.ts";
import { type ExecSyncResponse, ExecSyncResponseSchema } from "../../ports/gen/runtime/v1/api_pb.js";
import { type HttpProbeRequest, ProbeTargetError } from "../../ports/network-probes.ts";
import { SimClock } from "../../sim/clock.ts";
import { SimConnection } from "../../sim/cri.ts";
import { noFaults } from "../../sim/cri-faults.ts";
import { SimRandom } from "../../sim/random.ts";
import { RuntimeWorld } from "../../sim/runtime-world.ts";
import { type HookContainer, HookRunner, type LifecycleHandler } from "./hooks.ts";

const cause = { code: "ContainerMissing", message: "container web has not been started yet" } as const;
const container: HookContainer = {
  pod: { namespace: "default", name: "pod", uid: podUid("uid-1") },
  name: "web",
  id: "c1",
  ports: [{ name: "http", containerPort: 8080 }],
  ips: ["10.0.0.2"],
  hide: (text) => text.replaceAll("swordfish", "<secret>"),
};

/** The environment of a hook: a scripted runtime and network. */
class Scene {
  readonly clock = new SimClock(1_700_000_000_000);
  readonly entries: JournalInput[] = [];
  readonly commands: (readonly string[])[] = [];
  readonly requests: HttpProbeRequest[] = [];
  exec: () => Partial<ExecSyncResponse> = () => ({});
  answer: (request: HttpProbeRequest) => void = () => {};
  readonly #abort = new AbortController();

  run(handler: LifecycleHandler, subject = container): Promise<void> {
    const clock = this.clock.incarnation();
    const simulated = new SimConnection(new RuntimeWorld(this.clock), clock, new SimRandom(1), noFaults).cri;
    const cri: Cri = {
      ...simulated,
      runtime: {
        ...simulated.runtime,
        execSync: async ({ cmd = [], timeout }) => {
          assert.equal(timeout, 0n, "a hook has no time limit of its own");
          this.commands.push(cmd);
          const { exitCode = 0, stdout = new Uint8Array(), stderr = new Uint8Array() } = this.exec();
          return create(ExecSyncResponseSchema, { exitCode, stdout, stderr });
        },
      },
    };
    const journal = { record: (entry: JournalInput) => this.entries.push(entry) };
    const networkProbes = {
      httpGet: async (request: HttpProbeRequest) => {
        this.requests.push(request);
        this.answer(request);
        return { status: 500 };
      },
    };
    const hooks = new HookRunner({ clock, cri, journal }, networkProbes);
    return hooks.run({ kind: "postStart", container: subject, handler, cause }, this.#abort.signal);
  }

  abort(reason: Error): void {
    this.#abort.abort(reason);
  }
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("an exec hook", () => {
  test("runs its command unchanged, and its output is in the journal", async () => {
    const scene = new Scene();
    scene.exec = () => ({ stdout: bytes("out\n"), stderr: bytes("err") });
    await scene.run({ exec: { command: ["sh", "-c", "echo $(X)"] } });
    assert.deepEqual(scene.commands, [["sh", "-c", "echo $(X)"]]);
    const [action, outcome] = scene.entries;
    assert.equal(action?.what, "PostStartHook");
    assert.equal(action.message, "run the postStart hook of container web: execute sh");
    assert.deepEqual(action.cause, cause);
    assert.equal(outcome?.result, "done");
    assert.deepEqual(outcome.data, { output: "out err" });
  });

  test("that fails reports how, with part of its output on one line and without control characters", async () => {
    const scene = new Scene();
    scene.exec = () => ({ exitCode: 3, stdout: bytes(`\u001b[31mred\nline ${"x".repeat(100_000)}`) });
    await assert.rejects(scene.run({ exec: { command: ["a"] } }), (error: Error) => {
      assert.match(error.message, /^exited with code 3: \\u001b\[31mred line x+…$/);
      assert.ok(error.message.length < 1100);
      return true;
    });
    assert.equal(scene.entries[1]?.result, "failed");
  });

  test("that prints a secret is reported without it, whether it fails or not", async () => {
    for (const exitCode of [0, 1]) {
      const scene = new Scene();
      scene.exec = () => ({ exitCode, stdout: Buffer.from("it is swordfish") });
      await scene.run({ exec: { command: ["sh"] } }).catch(() => {});
      assert.match(JSON.stringify(scene.entries), /it is <secret>/);
      assert.doesNotMatch(JSON.stringify(scene.entries), /swordfish/);
    }
  });

  test("that cannot run fails with the runtime's message, and its outcome may be unknown", async () => {
    const scene = new Scene();
    scene.exec = () => {
      throw new CriError("Unavailable", "ExecSync", "connection reset");
    };
    await assert.rejects(scene.run({ exec: { command: ["a"] } }), /connection reset/);
    assert.equal(scene.entries[1]?.result, "unknown");
  });
});

describe("an httpGet hook", () => {
  test("requests the pod's address, accepts any status, and sends its own user agent", async () => {
    const scene = new Scene();
    await scene.run({ httpGet: { path: "/ready?token=x", port: "http", scheme: "HTTP" } });
    const [request] = scene.requests;
    assert.equal(
      `${request?.scheme}://${request?.host}:${request?.port}${request?.path}`,
      "http://10.0.0.2:8080/ready?token=x",
    );
    assert.ok(request?.headers.some(([name, value]) => name === "User-Agent" && value === "kube-lifecycle/1.36"));
    assert.doesNotMatch(JSON.stringify(scene.entries), /token/);
  });

  test("requests its own host, if given", async () => {
    const scene = new Scene();
    await scene.run({ httpGet: { port: 80, host: "example.com" } }, { ...container, ips: [] });
    assert.equal(scene.requests[0]?.host, "example.com");
    const missing = scene.run({ httpGet: { port: 80 } }, { ...container, ips: [] });
    await assert.rejects(missing, /no IP address/);
  });

  test("interprets its path as a URL", async () => {
    const scene = new Scene();
    await scene.run({ httpGet: { path: "//status", port: 80 } });
    await scene.run({ httpGet: { path: "http://user:word@elsewhere/x y?z#w", port: 80 } });
    assert.deepEqual(
      scene.requests.map(({ host, path }) => `${host} ${path}`),
      ["10.0.0.2 /", "10.0.0.2 /x%20y?z"],
    );
    assert.doesNotMatch(JSON.stringify(scene.entries), /word/);
    await assert.rejects(scene.run({ httpGet: { path: "mailto:x", port: 80 } }), ProbeTargetError);
  });

  test("over TLS falls back to plain HTTP without credentials, and reports it", async () => {
    const scene = new Scene();
    scene.answer = ({ scheme }) => {
      if (scheme === "https") throw new ProbeTargetError("the response is not TLS", { plainText: true });
    };
    const httpHeaders = [
      { name: "authorization", value: "Bearer x" },
      { name: "X-A", value: "b" },
    ];
    await scene.run({ httpGet: { port: 80, scheme: "HTTPS", httpHeaders } });
    assert.deepEqual(
      scene.requests.map(({ scheme }) => scheme),
      ["https", "http"],
    );
    const names = scene.requests.map(({ headers }) => headers.map(([name]) => name.toLowerCase()));
    assert.ok(names[0]?.includes("authorization") && !names[1]?.includes("authorization") && names[1]?.includes("x-a"));
    const fallback = scene.entries.find(({ what }) => what === "LifecycleHTTPFallback");
    assert.match(fallback?.message ?? "", /^request to HTTPS lifecycle hook 10\.0\.0\.2:80 got HTTP response/);
  });

  test("that cannot reach its server fails, and other TLS errors cause no fallback", async () => {
    const scene = new Scene();
    scene.answer = () => {
      throw new ProbeTargetError("connection refused");
    };
    await assert.rejects(scene.run({ httpGet: { port: 80, scheme: "HTTPS" } }), /connection refused/);
    assert.equal(scene.requests.length, 1);
  });
});

describe("a sleep hook", () => {
  test("sleeps for its duration", async () => {
    const scene = new Scene();
    let endedMs: number | undefined;
    const work = scene.run({ sleep: { seconds: 5 } }).then(() => (endedMs = scene.clock.nowMs));
    await scene.clock.run(60_000);
    await work;
    assert.equal(endedMs, 5000);
  });

  test("ends with its signal, and leaves no timer", async () => {
    const scene = new Scene();
    const work = scene.run({ sleep: { seconds: 5 } });
    const reason = new Error("canceled");
    scene.abort(reason);
    await assert.rejects(work, (error) => error === reason);
    assert.deepEqual(scene.clock.pending(), []);
  });
});

test("there are no other hooks", async () => {
  for (const handler of [{}, { tcpSocket: { port: 80 } }]) {
    await assert.rejects(new Scene().run(handler), /invalid handler: a hook is exec, httpGet or sleep/);
  }
});
