import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { RpcError } from "../ports/rpc.ts";
import type { CsiClient } from "./csi-client.ts";
import { DriverStore } from "./driver-store.ts";

const { signal } = new AbortController();

/** The connection's caller for its loss. */
function taken(onLost: () => void): object {
  lost = onLost;
  return {};
}

let closed: string[];
let answer: PromiseWithResolvers<object>;
let drivers: DriverStore;
let lost: () => void;
let capabilities: number[];
beforeEach(() => {
  closed = [];
  capabilities = [];
  answer = Promise.withResolvers();
  answer.promise.catch(() => {});
  const connect = (_service: unknown, path: string, _name: string, onLost: () => void): object => ({
    ...taken(onLost),
    nodeGetCapabilities: async () => ({
      capabilities: capabilities.map((type) => ({ type: { case: "rpc", value: { type } } })),
    }),
    nodePublishVolume: () => answer.promise,
    [Symbol.dispose]: () => {
      closed.push(path);
      answer.reject(new RpcError("Canceled", "the client is closed"));
    },
  });
  const plugins = { connect: connect as never };
  drivers = new DriverStore({ clock: new ManualClock(), called: () => {}, plugins });
});

async function publish(client: CsiClient): Promise<void> {
  await client.publish({ volumeId: "h" }, { signal });
}

test("a call in progress outlasts the registration that it was begun with, and its connection closes after it", async () => {
  const earlier = await drivers.add("d", "/1.sock", "1.0.0");
  const call = publish(earlier);
  drivers.remove("d");
  assert.equal(drivers.has("d"), false);
  const later = await drivers.add("d", "/2.sock", "1.0.0");
  assert.equal(drivers.get("d"), later);
  assert.deepEqual([closed, drivers.outstanding.map(({ volume }) => volume)], [[], ["h"]]);
  answer.resolve({});
  await call;
  assert.deepEqual([closed, drivers.outstanding], [["/1.sock"], []]);
});

test("a registration that replaces another one does not cancel its calls", async () => {
  const call = publish(await drivers.add("d", "/1.sock", "1.0.0"));
  await drivers.add("d", "/2.sock", "1.0.1");
  assert.deepEqual(closed, []);
  answer.resolve({});
  await call;
  assert.deepEqual(closed, ["/1.sock"]);
});

test("a volume's next call waits for one of an earlier registration, and also keeps its own connection open", async () => {
  const first = publish(await drivers.add("d", "/1.sock", "1.0.0"));
  const second = publish(await drivers.add("d", "/2.sock", "1.0.1"));
  await drivers.add("d", "/3.sock", "1.0.2");
  assert.deepEqual([drivers.outstanding.length, closed], [1, []]);
  answer.resolve({});
  await Promise.all([first, second]);
  assert.deepEqual(closed, ["/1.sock", "/2.sock"]);
});

test("a registration without calls closes its connection as it ends", async () => {
  await drivers.add("d", "/1.sock", "1.0.0");
  drivers.remove("d");
  assert.deepEqual(closed, ["/1.sock"]);
});

test("when podwright ends, calls in progress are canceled, also those of ended registrations", async () => {
  const call = publish(await drivers.add("d", "/1.sock", "1.0.0"));
  await drivers.add("d", "/2.sock", "1.0.1");
  drivers.close();
  await assert.rejects(call, /code = Canceled/u);
  assert.deepEqual([...new Set(closed)].toSorted(), ["/1.sock", "/2.sock"]);
});

test("all who wait for a driver wait for the same promise, which resolves when it registers", async () => {
  const registered = drivers.registered("d");
  assert.equal(drivers.registered("d"), registered);
  let isThere = false;
  const waiting = registered.then(() => (isThere = true));
  await drivers.add("e", "/2.sock", "1.0.0");
  assert.equal(isThere, false);
  await drivers.add("d", "/1.sock", "1.0.0");
  await waiting;
  await drivers.registered("d");
  drivers.remove("d");
  assert.notEqual(drivers.registered("d"), registered);
});

test("a driver is asked for its capabilities again once its connection was lost, and after a call that did not reach it", async () => {
  const client = await drivers.add("d", "/1.sock", "1.0.0");
  const stages = async (): Promise<boolean> => await client.supports("stageUnstage", { signal });
  assert.equal(await stages(), false);
  capabilities = [1];
  assert.equal(await stages(), false, "the same process has the same ones");
  lost();
  assert.equal(await stages(), true);
  capabilities = [];
  answer.reject(new RpcError("Unavailable", "connect ECONNREFUSED"));
  await assert.rejects(publish(client), /code = Unavailable/u);
  assert.equal(await stages(), false);
  capabilities = [1];
  answer = Promise.withResolvers();
  answer.reject(new RpcError("Internal", "by command", { isStatus: true }));
  await assert.rejects(publish(client), /code = Internal/u);
  assert.equal(await stages(), false);
});
