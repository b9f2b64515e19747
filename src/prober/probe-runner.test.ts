import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import { containerId } from "../base/ids.ts";
import { TimerQueue } from "../base/timer-queue.ts";
import { CriError } from "../ports/cri.ts";
import { ExecSyncResponseSchema } from "../ports/gen/runtime/v1/api_pb.js";
import { type GrpcHealthAnswer, type NetworkProbes, ProbeTargetError } from "../ports/network-probes.ts";
import type { ProbeAction } from "./probe-action.ts";
import { type CommandService, type ProbeOutcome, ProbeRunner } from "./probe-runner.ts";

const http: ProbeAction = {
  kind: "http",
  request: { scheme: "http", host: "10.0.0.2", port: 80, path: "/", headers: [] },
};
const exec: ProbeAction = { kind: "exec", command: ["check"] };

type Answers = Partial<NetworkProbes & CommandService>;

/** A clock that can stand still while the event loop is busy: time passes, timers fire late. */
class BusyClock extends ManualClock {
  lostMs = 0;
  override monotonic(): number {
    return super.monotonic() + this.lostMs;
  }
}

function world(answers: Answers) {
  const clock = new BusyClock(0);
  const unexpected = (): Promise<never> => Promise.reject(new Error("not expected"));
  const network = { httpGet: unexpected, tcpConnect: unexpected, grpcHealth: unexpected, ...answers };
  const runner = new ProbeRunner(clock, new TimerQueue(clock, "probes"), { execSync: unexpected, ...answers }, network);
  const controller = new AbortController();
  const start = (action: ProbeAction | (() => ProbeAction), timeoutMs = 1000): Promise<ProbeOutcome> =>
    runner.run(
      {
        id: containerId("c1"),
        action: typeof action === "function" ? action : () => action,
        timeoutMs,
        dueMs: clock.monotonic(),
        hide: (text) => text.replaceAll("swordfish", "<secret>"),
      },
      controller.signal,
    );
  return { clock, controller, start };
}

async function outcomeOf(action: ProbeAction, answers: Answers): Promise<string> {
  const { kind, text } = await world(answers).start(action);
  return `${kind}: ${text}`;
}

function exits(exitCode: number, stdout = "", stderr = ""): Answers {
  const response = create(ExecSyncResponseSchema, {
    exitCode,
    stdout: Buffer.from(stdout),
    stderr: Buffer.from(stderr),
  });
  return { execSync: async () => response };
}

describe("an HTTP answer", () => {
  const rows: readonly [number, string | undefined, string][] = [
    [200, undefined, "success: HTTP status 200"],
    [204, undefined, "success: HTTP status 204"],
    [302, "elsewhere.example", "warning: Probe terminated redirects to elsewhere.example (HTTP status 302)"],
    [399, undefined, "warning: Probe terminated redirects (HTTP status 399)"],
    [400, undefined, "failure: HTTP status 400"],
    [503, undefined, "failure: HTTP status 503"],
  ];
  for (const [status, redirectedTo, expected] of rows) {
    test(`of status ${status} is a ${expected}`, async () => {
      const httpGet = async () => ({ status, ...(redirectedTo !== undefined && { redirectedTo }) });
      assert.equal(await outcomeOf(http, { httpGet }), expected);
    });
  }
});

describe("an Event", () => {
  const said = async (action: ProbeAction, answers: Answers): Promise<string | undefined> =>
    (await world(answers).start(action)).eventText;

  test("reports a failure status in upstream's words, without the body", async () => {
    const httpGet = async () => ({ status: 503, body: Buffer.from("stack trace") });
    assert.equal(await said(http, { httpGet }), "HTTP probe failed with statuscode: 503");
  });

  test("holds the body of a redirect that is not followed: sanitised, bounded, and without secrets", async () => {
    const answer = (body: string): Answers => ({
      httpGet: async () => ({ status: 302, redirectedTo: "0.0.0.0", body: Buffer.from(body) }),
    });
    const begin = "Probe terminated redirects, Response body: ";
    const link = '<a href="http://0.0.0.0/">Found</a>.';
    assert.equal(await said(http, answer(`${link}\n\n`)), begin + link);
    assert.equal(
      await outcomeOf(http, answer(link)),
      `warning: Probe terminated redirects to 0.0.0.0 (HTTP status 302): ${link}`,
    );
    assert.equal(
      await said(http, answer("\u001b[2J is swordfish\r\n!")),
      `${begin}${String.raw`\u001b[2J`} is <secret> !`,
    );
    const long = (await said(http, answer("x".repeat(10_240)))) ?? "";
    assert.ok(long.length > 850 && long.length <= 901 && long.endsWith("x…"));
    assert.ok((await outcomeOf(http, answer("x".repeat(10_240)))).length < 320);
  });

  test("holds more of a command's output than the journal does", async () => {
    assert.equal((await said(exec, exits(1, "x".repeat(5000))))?.length, 901);
    assert.equal(await said(exec, exits(1, "short")), undefined);
  });

  test("reports a health check's result in upstream's words", async () => {
    const grpc: ProbeAction = { kind: "grpc", host: "10.0.0.2", port: 9000, service: "" };
    const words = async (answer: GrpcHealthAnswer): Promise<string | undefined> =>
      await said(grpc, { grpcHealth: async () => answer });
    assert.equal(await words({ code: 0, status: "NOT_SERVING" }), 'service unhealthy (responded with "NOT_SERVING")');
    assert.equal(
      await words({ code: 12, message: "unknown service" }),
      "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service",
    );
    assert.match((await words({ code: 5, message: "nothing" })) ?? "", /^error: health rpc probe failed: .*nothing$/);
  });
});

describe("a health check", () => {
  const grpc: ProbeAction = { kind: "grpc", host: "10.0.0.2", port: 9000, service: "" };
  const rows = [
    [{ code: 0, status: "SERVING" }, "success: SERVING"],
    [{ code: 0, status: "NOT_SERVING" }, "failure: status NOT_SERVING"],
    [{ code: 12, message: "unknown service" }, "failure: the server has no grpc.health.v1.Health: unknown service"],
    [{ code: 4, message: "slow" }, "failure: the server timed out: slow"],
    [{ code: 5, message: "unknown" }, "failure: gRPC code 5: unknown"],
  ] as const;
  for (const [answer, expected] of rows) {
    test(`answered with ${JSON.stringify(answer)} is a ${expected.split(":", 1)[0]}`, async () => {
      assert.equal(await outcomeOf(grpc, { grpcHealth: async () => answer as { code: 0; status: string } }), expected);
    });
  }
});

test("a TCP probe succeeds when the connection opens and fails when it does not", async () => {
  const tcp: ProbeAction = { kind: "tcp", host: "10.0.0.2", port: 1 };
  assert.equal(await outcomeOf(tcp, { tcpConnect: async () => {} }), "success: connected");
  const refused = () => Promise.reject(new ProbeTargetError("connection refused"));
  assert.equal(await outcomeOf(tcp, { tcpConnect: refused }), "failure: connection refused");
});

describe("a command", () => {
  test("succeeds with exit code 0 alone, and its output explains a failure", async () => {
    assert.equal(await outcomeOf(exec, exits(0, "fine")), "success: exit code 0");
    assert.equal(await outcomeOf(exec, exits(1)), "failure: exit code 1");
    assert.equal(await outcomeOf(exec, exits(2, "out ", "no such file\n")), "failure: exit code 2: out no such file");
  });

  test("that prints a secret is reported without it, also in derived texts", async () => {
    assert.equal(await outcomeOf(exec, exits(1, "it is swordfish\n")), "failure: exit code 1: it is <secret>");
    const refused = async () => Promise.reject(new Error("no swordfish here"));
    assert.equal(await outcomeOf(exec, { execSync: refused }), "error: no <secret> here");
  });

  test("that prints terminal sequences or megabytes is sanitised and truncated", async () => {
    assert.equal(
      await outcomeOf(exec, exits(1, "\u001b]0;owned\u0007")),
      String.raw`failure: exit code 1: \u001b]0;owned\u0007`,
    );
    const long = await outcomeOf(exec, exits(1, "x".repeat(5_000_000)));
    assert.ok(long.length < 350);
    assert.ok(long.endsWith("…"));
  });

  test("that the runtime ended at its timeout has failed", async () => {
    const execSync = () => Promise.reject(new CriError("DeadlineExceeded", "ExecSync", "timeout 1s exceeded"));
    assert.equal(await outcomeOf(exec, { execSync }), "failure: still running after 1 s");
  });

  test("has its timeout counted from when the runtime receives it", async () => {
    const timeouts: unknown[] = [];
    const execSync: CommandService["execSync"] = async ({ timeout }) => {
      timeouts.push(timeout);
      return create(ExecSyncResponseSchema, {});
    };
    await world({ execSync }).start(exec, 3000);
    assert.deepEqual(timeouts, [3n]);
  });

  test("whose outcome is unknown counts against the runtime, not the container", async () => {
    const { clock, start } = world({ execSync: () => new Promise(() => {}) });
    const outcome = start(exec);
    for (let tries = 0; tries < 3; tries++) await clock.advance(11_000);
    assert.deepEqual(await outcome, { kind: "error", text: "the runtime does not answer", lateMs: 0 });
  });

  test("does not wait long when others hang", async () => {
    let begun = 0;
    const execSync = () => {
      begun++;
      return new Promise<never>(() => {});
    };
    const { clock, start } = world({ execSync });
    for (let index = 0; index < 20; index++) void start(exec, 60_000);
    await settle();
    assert.equal(begun, 8);
    await clock.advance(1100);
    assert.equal(begun, 20);
  });
});

test("a probe whose path leads to no host has failed", async () => {
  const action = (): never => {
    throw new ProbeTargetError("no Host in request URL");
  };
  const { kind, text } = await world({}).start(action);
  assert.deepEqual([kind, text], ["failure", "no Host in request URL"]);
});

describe("an impossible probe", () => {
  test("is tried three times at once and then gives no verdict", async () => {
    let tries = 0;
    const httpGet = () => Promise.reject(new Error(`broken ${++tries}`));
    assert.deepEqual(await world({ httpGet }).start(http), { kind: "error", text: "broken 3", lateMs: 0 });
  });

  test("is not retried after a response", async () => {
    let tries = 0;
    const httpGet = async () => {
      if (++tries === 1) throw new Error("broken");
      return { status: 500 };
    };
    assert.equal((await world({ httpGet }).start(http)).kind, "failure");
    assert.equal(tries, 2);
  });

  test("may lack a port or an address", async () => {
    const { start } = world({});
    const outcome = await start(() => {
      throw new Error("the pod has no IP address");
    });
    assert.deepEqual(outcome, { kind: "error", text: "the pod has no IP address", lateMs: 0 });
  });
});

describe("a probe without a response", () => {
  test("fails at its timeout, and is then canceled", async () => {
    let signal: AbortSignal | undefined;
    const httpGet: NetworkProbes["httpGet"] = (_request, its) => {
      signal = its;
      return new Promise(() => {});
    };
    const { clock, start } = world({ httpGet });
    const outcome = start(http);
    await clock.advance(999);
    assert.equal(signal?.aborted, false);
    await clock.advance(1);
    assert.deepEqual(await outcome, { kind: "failure", text: "no response in 1 s", lateMs: 0 });
    assert.equal(signal?.aborted, true);
    assert.deepEqual(clock.waits, []);
  });

  test("gets the time back that podwright itself was busy", async () => {
    const answer = Promise.withResolvers<{ status: number }>();
    const { clock, start } = world({ httpGet: () => answer.promise });
    const outcome = start(http);
    await settle();
    clock.lostMs = 3000;
    await clock.advance(1000);
    answer.resolve({ status: 200 });
    assert.deepEqual(await outcome, { kind: "success", text: "HTTP status 200", lateMs: 3000 });
  });

  test("fails eventually even when podwright was busy", async () => {
    const { clock, start } = world({ httpGet: () => new Promise(() => {}) });
    const outcome = start(http);
    await settle();
    clock.lostMs = 3000;
    await clock.advance(2000);
    assert.deepEqual(await outcome, { kind: "failure", text: "no response in 1 s", lateMs: 3000 });
  });

  test("rejects with the signal's reason when the container is gone", async () => {
    const { controller, start } = world({ httpGet: () => new Promise(() => {}) });
    const outcome = start(http);
    controller.abort(new Error("gone"));
    await assert.rejects(outcome, /gone/);
  });
});
