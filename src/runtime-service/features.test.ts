import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { CriError, type Cri } from "../ports/cri.ts";
import {
  CgroupDriver,
  RuntimeConfigResponseSchema,
  StatusResponseSchema,
  VersionResponseSchema,
} from "../ports/gen/runtime/v1/api_pb.js";
import { discoverRuntime, statedFeatures } from "./features.ts";

interface Answers {
  readonly version?: MessageInitShape<typeof VersionResponseSchema> | CriError;
  readonly status?: MessageInitShape<typeof StatusResponseSchema> | CriError;
  readonly runtimeConfig?: MessageInitShape<typeof RuntimeConfigResponseSchema> | CriError;
}

const unimplemented = (method: string): CriError => new CriError("Unimplemented", method, `unknown method ${method}`);
const version = { runtimeName: "containerd", runtimeVersion: "2.1.9", runtimeApiVersion: "v1" };

/** A runtime with these answers; what has none is Unimplemented. */
function answering(answers: Answers): Cri {
  const answer =
    <Init, Message>(method: string, given: Init | CriError | undefined, make: (init: Init) => Message) =>
    async (): Promise<Message> => {
      if (given === undefined) throw unimplemented(method);
      if (given instanceof CriError) throw given;
      return make(given);
    };
  const runtime = {
    version: answer("Version", answers.version, (init) => create(VersionResponseSchema, init)),
    status: answer("Status", answers.status, (init) => create(StatusResponseSchema, init)),
    runtimeConfig: answer("RuntimeConfig", answers.runtimeConfig, (init) => create(RuntimeConfigResponseSchema, init)),
  };
  return { runtime, images: {} } as unknown as Cri;
}

test("a new runtime reports its cgroup driver, handlers and features", async () => {
  const info = await discoverRuntime(
    answering({
      version,
      status: {
        status: {
          conditions: [
            { type: "RuntimeReady", status: true },
            {
              type: "NetworkReady",
              status: false,
              reason: "NetworkPluginNotReady",
              message: "cni plugin not initialized",
            },
          ],
        },
        runtimeHandlers: [
          { name: "" },
          { name: "runc", features: { recursiveReadOnlyMounts: true, userNamespaces: true } },
        ],
        features: { supplementalGroupsPolicy: true },
      },
      runtimeConfig: { linux: { cgroupDriver: CgroupDriver.CGROUPFS } },
    }),
  );
  assert.deepEqual(info, {
    name: "containerd",
    version: "2.1.9",
    apiVersion: "v1",
    cgroupDriver: "cgroupfs",
    hasRuntimeConfig: true,
    conditions: [
      { type: "RuntimeReady", status: true, reason: "", message: "" },
      { type: "NetworkReady", status: false, reason: "NetworkPluginNotReady", message: "cni plugin not initialized" },
    ],
    runtimeReady: true,
    networkReady: false,
    handlers: [
      { name: "", recursiveReadOnlyMounts: false, userNamespaces: false },
      { name: "runc", recursiveReadOnlyMounts: true, userNamespaces: true },
    ],
    supplementalGroupsPolicy: true,
    userNamespacesHostNetwork: false,
  });
});

test("handlers come by name, in whatever order the runtime lists them", () => {
  const handlers = ["runc", "", "crun"].map((name) => ({ name }));
  for (const listed of [handlers, handlers.toReversed()]) {
    const { handlers: stated } = statedFeatures(create(StatusResponseSchema, { runtimeHandlers: listed }));
    assert.deepEqual(
      stated.map(({ name }) => name),
      ["", "crun", "runc"],
    );
  }
});

test("an old runtime without RuntimeConfig, handlers and features is not an error", async () => {
  const info = await discoverRuntime(answering({ version, status: {} }));
  assert.equal(info.cgroupDriver, undefined);
  assert.equal(info.hasRuntimeConfig, false);
  assert.deepEqual(info.handlers, []);
  assert.equal(info.runtimeReady, false);
  assert.equal(info.supplementalGroupsPolicy, false);
});

test("the systemd driver is known although its number is zero, and Linux settings may be missing", async () => {
  const systemd = answering({ version, status: {}, runtimeConfig: { linux: { cgroupDriver: CgroupDriver.SYSTEMD } } });
  assert.equal((await discoverRuntime(systemd)).cgroupDriver, "systemd");
  const silent = answering({ version, status: {}, runtimeConfig: {} });
  const { cgroupDriver, hasRuntimeConfig } = await discoverRuntime(silent);
  assert.deepEqual([cgroupDriver, hasRuntimeConfig], [undefined, true]);
});

test("a runtime of another CRI version is refused with a remedy", async () => {
  const other = answering({ version: { ...version, runtimeApiVersion: "v1alpha2" }, status: {} });
  await assert.rejects(discoverRuntime(other), { name: "PodwrightError", exitCode: 3, message: /v1alpha2/ });
});

test("a socket without CRI v1 says how to enable it", async () => {
  await assert.rejects(discoverRuntime(answering({})), {
    name: "PodwrightError",
    exitCode: 3,
    remedy: /disabled_plugins/,
  });
});

test("a runtime that does not answer stays a CriError", async () => {
  const away = new CriError("Unavailable", "Version", "connect ENOENT");
  await assert.rejects(discoverRuntime(answering({ version: away })), away);
  const broken = new CriError("Unknown", "RuntimeConfig", "no cgroup");
  await assert.rejects(discoverRuntime(answering({ version, status: {}, runtimeConfig: broken })), broken);
});
