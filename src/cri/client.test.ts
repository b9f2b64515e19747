import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { WireType } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { startCriServer } from "../../test/support/cri-server.ts";
import { CriError } from "../ports/cri.ts";
import type { RpcCode } from "../ports/rpc.ts";
import { VersionResponseSchema } from "../ports/gen/runtime/v1/api_pb.js";
import { connectCri } from "./client.ts";
import { systemClock } from "../linux/processes/clock.ts";

const mebibyte = 1024 * 1024;

/** The CriError that a call rejects with. */
async function criError(call: Promise<unknown>): Promise<CriError> {
  const error: unknown = await call.then(
    () => assert.fail("the call succeeded"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof CriError, String(error));
  return error;
}

/** Answers when the client has gone. */
function untilAborted(_request: unknown, context: HandlerContext): Promise<never> {
  return new Promise((_resolve, reject) => {
    context.signal.addEventListener("abort", () => reject(new ConnectError("aborted", Code.Canceled)), { once: true });
  });
}

test("int64 values past 2^53 arrive exactly", async () => {
  const large = 2n ** 63n - 1n;
  await using server = await startCriServer({
    runtime: { containerStatus: () => ({ status: { id: "c", createdAt: large, startedAt: -large } }) },
  });
  using cri = connectCri(server.endpoint, systemClock);
  const { status } = await cri.runtime.containerStatus({ containerId: "c" });
  assert.equal(status?.createdAt, large);
  assert.equal(status?.startedAt, -large);
});

test("an endpoint may be a bare path and the images may live elsewhere", async () => {
  await using runtimeServer = await startCriServer({ runtime: { version: () => ({ runtimeName: "one" }) } });
  await using imageServer = await startCriServer({ images: { listImages: () => ({ images: [{ id: "i" }] }) } });
  using cri = connectCri(runtimeServer.path, systemClock, { imageEndpoint: imageServer.endpoint });
  assert.equal((await cri.runtime.version({})).runtimeName, "one");
  assert.equal((await cri.images.listImages({})).images[0]?.id, "i");
  assert.equal(runtimeServer.connections, 1);
  assert.equal(imageServer.connections, 1);
});

test("endpoints that are not Unix sockets are rejected with a remedy", () => {
  for (const endpoint of [
    "",
    "tcp://127.0.0.1:1",
    "npipe:////./pipe/x",
    "run/c.sock",
    "unix://c.sock",
    `/${"x".repeat(107)}`,
  ]) {
    assert.throws(() => connectCri(endpoint, systemClock), { name: "PodwrightError", exitCode: 2 }, endpoint);
  }
});

test("a list of 20 MiB arrives whole, one past 64 MiB is refused, and the connection lives on", async (t) => {
  // The server's library reports there that the client refused its answer.
  t.mock.method(console, "error", () => {});
  let size = 20 * mebibyte;
  await using server = await startCriServer({
    runtime: {
      version: () => ({ runtimeName: "x" }),
      listContainers: () => ({ containers: [{ id: "c", labels: { text: "x".repeat(size) } }] }),
    },
  });
  using cri = connectCri(server.endpoint, systemClock);
  const { containers } = await cri.runtime.listContainers({});
  assert.equal(containers[0]?.labels["text"]?.length, size);
  size = 70 * mebibyte;
  const error = await criError(cri.runtime.listContainers({}));
  assert.equal(error.code, "ResourceExhausted");
  assert.equal((await cri.runtime.version({})).runtimeName, "x");
  assert.equal(server.connections, 1);
});

test("a request past 64 MiB is refused before it is sent", async () => {
  await using server = await startCriServer({});
  using cri = connectCri(server.endpoint, systemClock);
  const error = await criError(cri.images.pullImage({ image: { image: "x".repeat(65 * mebibyte) } }));
  assert.equal(error.code, "ResourceExhausted");
});

test("every gRPC status keeps its code and the runtime's own words", async () => {
  const words = 'failed to create: "/bin/ſh": no such file ([oci] %2F)\nsecond line';
  const codes = Object.values(Code).filter((code) => typeof code === "number");
  await using server = await startCriServer({
    runtime: {
      stopContainer: ({ timeout }) => {
        throw new ConnectError(words, codes[Number(timeout)]);
      },
    },
  });
  using cri = connectCri(server.endpoint, systemClock);
  assert.equal(codes.length, 16);
  for (const [index, code] of codes.entries()) {
    const error = await criError(cri.runtime.stopContainer({ timeout: BigInt(index) }));
    assert.equal(error.code, Code[code]);
    assert.equal(error.message, words);
    assert.equal(error.method, "StopContainer");
  }
});

test("a long error text arrives whole, one past HTTP/2's limits fails, and the next call works", async () => {
  let length = 50_000;
  await using server = await startCriServer({
    runtime: {
      version: () => ({ runtimeName: "x" }),
      startContainer: () => {
        throw new ConnectError("x".repeat(length), Code.Unknown);
      },
    },
  });
  using cri = connectCri(server.endpoint, systemClock);
  assert.equal((await criError(cri.runtime.startContainer({}))).message.length, length);
  length = 200_000;
  assert.equal((await criError(cri.runtime.startContainer({}))).code, "Unavailable");
  assert.equal((await cri.runtime.version({})).runtimeName, "x");
});

test("a method that the runtime lacks is Unimplemented, unary or streaming", async () => {
  await using server = await startCriServer({});
  using cri = connectCri(server.endpoint, systemClock);
  assert.equal((await criError(cri.runtime.runtimeConfig({}))).code, "Unimplemented");
  assert.equal(
    (await criError(cri.runtime.getContainerEvents({})[Symbol.asyncIterator]().next())).code,
    "Unimplemented",
  );
});

test("a string that is not UTF-8 is an Internal error and not a crash", async () => {
  const answer = create(VersionResponseSchema);
  // An unknown field is written back as it came: here field 2, a string, with a byte that UTF-8 never has.
  answer.$unknown = [{ no: 2, wireType: WireType.LengthDelimited, data: new Uint8Array([1, 0xff]) }];
  await using server = await startCriServer({ runtime: { version: () => answer } });
  using cri = connectCri(server.endpoint, systemClock);
  assert.equal((await criError(cri.runtime.version({}))).code, "Internal");
});

test("a deadline ends the call on both sides", async () => {
  const gone = Promise.withResolvers<void>();
  let announcedMs: number | undefined;
  await using server = await startCriServer({
    runtime: {
      status: (request, context) => {
        announcedMs = context.timeoutMs();
        context.signal.addEventListener("abort", () => gone.resolve());
        return untilAborted(request, context);
      },
    },
  });
  using cri = connectCri(server.endpoint, systemClock);
  const started = performance.now();
  const error = await criError(cri.runtime.status({}, { timeoutMs: 100 }));
  assert.equal(error.code, "DeadlineExceeded");
  assert.ok(error.outcomeUnknown);
  assert.ok(performance.now() - started < 1000);
  await gone.promise;
  assert.ok(announcedMs !== undefined && announcedMs <= 100);
  assert.equal((await criError(cri.runtime.status({}, { timeoutMs: 0 }))).code, "DeadlineExceeded");
});

test("the caller's signal cancels a call on both sides, whatever its reason", async () => {
  const begun = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  await using server = await startCriServer({
    images: {
      pullImage: (request, context) => {
        begun.resolve();
        context.signal.addEventListener("abort", () => gone.resolve());
        return untilAborted(request, context);
      },
    },
  });
  using cri = connectCri(server.endpoint, systemClock);
  const controller = new AbortController();
  const pull = criError(cri.images.pullImage({}, { signal: controller.signal }));
  await begun.promise;
  controller.abort(new Error("the pod was deleted"));
  const error = await pull;
  assert.equal(error.code, "Canceled");
  assert.match(error.message, /the pod was deleted/);
  await gone.promise;
  assert.equal((await criError(cri.images.pullImage({}, { signal: controller.signal }))).code, "Canceled");
});

test("a stream ends for the runtime by its signal and by leaving the loop", async () => {
  let open = 0;
  await using server = await startCriServer({
    runtime: {
      async *getContainerEvents(request, context) {
        open++;
        context.signal.addEventListener("abort", () => open--);
        yield { containerId: "first" };
        await untilAborted(request, context);
      },
    },
  });
  using cri = connectCri(server.endpoint, systemClock);
  for await (const event of cri.runtime.getContainerEvents({})) {
    assert.equal(event.containerId, "first");
    break;
  }
  const controller = new AbortController();
  const error = await criError(
    (async () => {
      for await (const _event of cri.runtime.getContainerEvents({}, { signal: controller.signal })) controller.abort();
    })(),
  );
  assert.equal(error.code, "Canceled");
  const abandoned = cri.runtime.getContainerEvents({})[Symbol.asyncIterator]();
  await abandoned.next();
  const pending = abandoned.next();
  await abandoned.return?.();
  assert.deepEqual(await pending, { done: true, value: undefined });
  while (open > 0) await new Promise((resolve) => setTimeout(resolve, 5));
});

test("500 calls at once share one connection", async () => {
  await using server = await startCriServer({
    runtime: {
      podSandboxStatus: async ({ podSandboxId }) => {
        await new Promise((resolve) => setTimeout(resolve, 20));
        return { status: { id: podSandboxId } };
      },
    },
  });
  using cri = connectCri(server.endpoint, systemClock);
  const ids = Array.from({ length: 500 }, (_, index) => `sandbox-${index}`);
  const answers = await Promise.all(ids.map((podSandboxId) => cri.runtime.podSandboxStatus({ podSandboxId })));
  assert.deepEqual(
    answers.map((answer) => answer.status?.id),
    ids,
  );
  assert.equal(server.connections, 1);
});

test("a stalled reader of events holds up no other call, and loses nothing", async () => {
  const events = 200;
  await using server = await startCriServer({
    runtime: {
      async *getContainerEvents() {
        for (let index = 0; index < events; index++) yield { containerId: `${index}`.padEnd(256 * 1024, ".") };
      },
      listContainers: () => ({ containers: [{ id: "x".repeat(4 * mebibyte) }] }),
    },
  });
  using cri = connectCri(server.endpoint, systemClock);
  const stream = cri.runtime.getContainerEvents({})[Symbol.asyncIterator]();
  await stream.next();
  for (let index = 0; index < 20; index++) {
    const { containers } = await cri.runtime.listContainers({}, { timeoutMs: 5_000 });
    assert.equal(containers[0]?.id.length, 4 * mebibyte);
  }
  let received = 1;
  while ((await stream.next()).done !== true) received++;
  assert.equal(received, events);
});

test("the client's own error codes are distinguished from the runtime's", async () => {
  await using server = await startCriServer({});
  using cri = connectCri(server.endpoint, systemClock);
  const codes: RpcCode[] = [];
  codes.push((await criError(cri.runtime.stopContainer({ timeout: 2n ** 70n }))).code);
  using nowhere = connectCri("/nonexistent/cri.sock", systemClock);
  const error = await criError(nowhere.runtime.version({}));
  codes.push(error.code);
  assert.match(error.message, /unix:\/\/\/nonexistent\/cri\.sock.*ENOENT/);
  assert.deepEqual(codes, ["Internal", "Unavailable"]);
});
