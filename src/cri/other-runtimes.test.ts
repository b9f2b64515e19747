import assert from "node:assert/strict";
import { test } from "node:test";
import { startCriServer } from "../../test/support/cri-server.ts";
import { startRuntimeServer } from "../../test/support/runtime-server.ts";
import { isUnary } from "../ports/rpc-methods.ts";
import type { Cri } from "../ports/cri.ts";
import { ImageService, RuntimeService, Signal } from "../ports/gen/runtime/v1/api_pb.js";
import { crioWays, usualWays } from "../sim/runtime-ways.ts";
import { connectCri } from "./client.ts";
import { systemClock } from "../linux/processes/clock.ts";

const sandboxConfig = {
  metadata: { name: "web", namespace: "default", uid: "uid-1", attempt: 0 },
  labels: { "io.kubernetes.pod.uid": "uid-1" },
};

/** What a container is made from, with that limit of memory. */
function configOf(memoryLimitInBytes: bigint, attempt = 0) {
  return {
    metadata: { name: "app", attempt },
    image: { image: "busybox:latest" },
    command: ["sim", "run"],
    stopSignal: Signal.SIGUSR1,
    linux: { resources: { memoryLimitInBytes } },
  };
}

async function runSandbox({ runtime }: Cri): Promise<string> {
  return (await runtime.runPodSandbox({ config: sandboxConfig })).podSandboxId;
}

test("every call, unary or streaming, has exactly gRPC's content type, which multiplexers require", async () => {
  await using server = await startCriServer({}, crioWays);
  using cri = connectCri(server.endpoint, systemClock);
  type Calls = Record<string, (request: object) => Promise<unknown> & AsyncIterable<unknown>>;
  const services = [
    [RuntimeService, cri.runtime],
    [ImageService, cri.images],
  ] as const;
  let calls = 0;
  for (const [service, bound] of services) {
    for (const method of service.methods) {
      const call = (bound as unknown as Calls)[method.localName];
      assert.ok(call, method.name);
      const answer = call({});
      const ended = isUnary(method) ? answer : answer[Symbol.asyncIterator]().next();
      await assert.rejects(ended, { code: "Unimplemented" }, method.name);
      calls++;
    }
  }
  assert.ok(calls > 30);
  assert.deepEqual(new Set(server.requests.map((headers) => headers["content-type"])), new Set(["application/grpc"]));
  assert.equal(server.requests.length, calls);
  assert.equal(server.connections, 1);
});

test("over the wire, a runtime of CRI-O's ways ends its event stream well, and hides stop signals and the order of handlers", async () => {
  await using server = await startRuntimeServer(crioWays);
  using cri = connectCri(server.wire.endpoint, systemClock);
  assert.equal((await cri.runtime.version({})).runtimeName, "cri-o");
  const events: unknown[] = [];
  for await (const event of cri.runtime.getContainerEvents({})) events.push(event);
  assert.deepEqual(events, []);
  const podSandboxId = await runSandbox(cri);
  const { containerId } = await cri.runtime.createContainer({ podSandboxId, config: configOf(0n), sandboxConfig });
  const { status, info } = await cri.runtime.containerStatus({ containerId, verbose: true });
  assert.equal(status?.stopSignal, Signal.RUNTIME_DEFAULT);
  assert.match(info["info"] ?? "", /"org\.opencontainers\.image\.stopSignal":"SIGUSR1"/u);
  const orders = new Set<string>();
  for (let asked = 0; asked < 20; asked++) {
    const { runtimeHandlers } = await cri.runtime.status({});
    orders.add(runtimeHandlers.map(({ name }) => name).join());
  }
  assert.ok(orders.size > 1);
});

test("over the wire, a runtime of CRI-O's ways refuses too little memory, and forgets resizes when it starts again", async () => {
  await using server = await startRuntimeServer(crioWays);
  using cri = connectCri(server.wire.endpoint, systemClock);
  const podSandboxId = await runSandbox(cri);
  const create = async (bytes: bigint): Promise<string> =>
    (await cri.runtime.createContainer({ podSandboxId, config: configOf(bytes), sandboxConfig })).containerId;
  await assert.rejects(create(8n << 20n), /set memory limit 8388608 too low/u);
  const containerId = await create(16n << 20n);
  await cri.runtime.startContainer({ containerId });
  const told = async (): Promise<bigint | undefined> =>
    (await cri.runtime.containerStatus({ containerId })).status?.resources?.linux?.memoryLimitInBytes;
  await cri.runtime.updateContainerResources({ containerId, linux: { memoryLimitInBytes: 32n << 20n } });
  assert.equal(await told(), 32n << 20n);
  await server.restart();
  // A call that meets the old connection's end fails.
  await cri.runtime.version({}).catch(() => {});
  assert.equal(await told(), 16n << 20n);
  assert.equal(server.world.containers.get(containerId)?.resources?.memoryLimitInBytes, 32n << 20n);
});

test("over the wire, a container that CRI-O makes late waits, unseen, for the next request of its name", async () => {
  for (const ways of [crioWays, usualWays]) {
    await using server = await startRuntimeServer(ways);
    using cri = connectCri(server.wire.endpoint, systemClock);
    const podSandboxId = await runSandbox(cri);
    const request = { podSandboxId, config: configOf(0n), sandboxConfig };
    server.setFaults({ hang: 1 });
    for (;;) {
      // Of calls that hang only some have their effect.
      await assert.rejects(cri.runtime.createContainer(request, { timeoutMs: 200 }), { code: "DeadlineExceeded" });
      const isMade = server.world.containers.size > 0 || server.world.hasLate(podSandboxId);
      if (isMade) break;
    }
    server.setFaults({});
    const { containers } = await cri.runtime.listContainers({});
    if (ways === usualWays) {
      assert.equal(containers.length, 1);
      await assert.rejects(cri.runtime.createContainer(request), /name is reserved/u);
      continue;
    }
    assert.deepEqual(containers, []);
    const { containerId } = await cri.runtime.createContainer(request);
    await cri.runtime.startContainer({ containerId });
    assert.equal((await cri.runtime.listContainers({})).containers.length, 1);
  }
});
