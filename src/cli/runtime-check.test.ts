import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { type Cri, CriError } from "../ports/cri.ts";
import { StatusResponseSchema, VersionResponseSchema } from "../ports/gen/runtime/v1/api_pb.js";
import { checkRuntime } from "./runtime-check.ts";

type Status = NonNullable<MessageInitShape<typeof StatusResponseSchema>["status"]>;

function answering(status: Status): Cri {
  const unimplemented = async (): Promise<never> => {
    throw new CriError("Unimplemented", "RuntimeConfig", "unknown method");
  };
  const version = { runtimeName: "cri-o", runtimeVersion: "1.37.0", runtimeApiVersion: "v1" };
  const runtime = {
    version: async () => create(VersionResponseSchema, version),
    status: async () => create(StatusResponseSchema, { status }),
    runtimeConfig: unimplemented,
  };
  return { runtime, images: {} } as unknown as Cri;
}

const endpoint = "unix:///run/crio/crio.sock";
const ready = { type: "RuntimeReady", status: true };

test("a ready runtime is reported with its version", async () => {
  const cri = answering({ conditions: [ready, { type: "NetworkReady", status: true }] });
  assert.deepEqual(await checkRuntime(cri, new ManualClock(0), endpoint), [
    { name: "runtime", ok: "ok", detail: `cri-o 1.37.0 at ${endpoint}` },
    { name: "pod network", ok: "ok", detail: "ready" },
  ]);
});

test("a runtime that is not ready, or has no network, is reported with its own reason", async () => {
  const network = { type: "NetworkReady", status: false, reason: "NetworkPluginNotReady", message: "no CNI\nnone" };
  const [, without] = await checkRuntime(answering({ conditions: [ready, network] }), new ManualClock(0), endpoint);
  assert.equal(without?.ok, "failed");
  assert.equal(without?.detail, "not ready: NetworkPluginNotReady: no CNI; none");
  assert.match(without?.remedy ?? "", /network plugin/u);
  const [silent] = await checkRuntime(answering({ conditions: [] }), new ManualClock(0), endpoint);
  assert.equal(silent?.detail, "cri-o 1.37.0 is not ready: no reason given");
});

test("a runtime that does not answer fails with the reason and its endpoint", async () => {
  const version = async (): Promise<never> => {
    throw new CriError("Unavailable", "Version", "connect ENOENT /run/crio/crio.sock");
  };
  const cri = { runtime: { version }, images: {} } as unknown as Cri;
  const found = await checkRuntime(cri, new ManualClock(0), endpoint);
  assert.equal(found.length, 1);
  assert.match(found[0]?.detail ?? "", /no usable runtime at unix:\/\/\/run\/crio\/crio\.sock: .*ENOENT/u);
});
