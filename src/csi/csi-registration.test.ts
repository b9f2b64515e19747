import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { ManualClock, settle } from "../../test/support/manual-clock.ts";
import type { PluginInfo } from "../plugins/plugin-handler.ts";
import { CsiRegistration } from "./csi-registration.ts";
import { DriverStore } from "./driver-store.ts";

/** Registrations of the driver `d`, whose answers to NodeGetInfo and whose publishing wait as told. */
class Scene {
  readonly steps: string[] = [];
  nodeId = "n1";
  answers = Promise.resolve();
  published = Promise.resolve();
  readonly drivers = new DriverStore({
    clock: new ManualClock(),
    called: () => {},
    plugins: { connect: () => this.#calls() as never },
  });
  readonly registration = new CsiRegistration({
    drivers: this.drivers,
    install: async ({ nodeId }) => {
      this.steps.push(`install ${nodeId}`);
      await this.published;
    },
    uninstall: () => void this.steps.push("uninstall"),
  });

  #calls(): object {
    return {
      nodeGetInfo: async () => {
        const { nodeId } = this;
        await this.answers;
        return { nodeId, maxVolumesPerNode: 0n };
      },
      [Symbol.dispose]: () => {},
    };
  }
}

const { signal } = new AbortController();
const offer = (version: string): PluginInfo => {
  return { type: "CSIPlugin", name: "d", endpoint: "/csi.sock", versions: [version] };
};

let scene: Scene;
beforeEach(() => {
  scene = new Scene();
});

test("a registration that a higher version of the same endpoint has replaced takes nothing away as it ends", async () => {
  const { registration, drivers, steps } = scene;
  const [lower, higher] = [offer("1.0.0"), offer("1.1.0")];
  await registration.register(lower, signal);
  await registration.register(higher, signal);
  registration.deregister(lower);
  assert.deepEqual([steps, drivers.versionOf("d")], [["install n1", "install n1"], "1.1.0"]);
  registration.deregister(higher);
  assert.deepEqual([steps.at(-1), drivers.has("d")], ["uninstall", false]);
});

test("an answer that comes after another registration has replaced its own is not published", async () => {
  const { registration, drivers, steps } = scene;
  const late = Promise.withResolvers<void>();
  scene.answers = late.promise;
  const lower = registration.register(offer("1.0.0"), signal);
  await settle();
  [scene.answers, scene.nodeId] = [Promise.resolve(), "n2"];
  await registration.register(offer("1.1.0"), signal);
  late.resolve();
  await assert.rejects(lower, /another registration of driver d has replaced this one/u);
  assert.deepEqual([steps, drivers.versionOf("d")], [["install n2"], "1.1.0"]);
});

test("a registration that the API server refuses fails with its answer, and its end takes the driver away", async () => {
  const { registration, drivers, steps } = scene;
  scene.published = Promise.reject(new Error("error updating CSINode object with CSI driver node info: is forbidden"));
  const plugin = offer("1.0.0");
  await assert.rejects(registration.register(plugin, signal), /error updating CSINode object .*: is forbidden/u);
  registration.deregister(plugin);
  assert.deepEqual([steps, drivers.names], [["install n1", "uninstall"], []]);
});

test("a registration whose socket is gone adds nothing, whatever it was waiting for", async () => {
  for (let turns = 0; turns < 8; turns++) {
    scene = new Scene();
    const { registration, drivers, steps } = scene;
    const late = Promise.withResolvers<void>();
    scene.answers = late.promise;
    const stop = new AbortController();
    const plugin = offer("1.0.0");
    const registered = registration.register(plugin, stop.signal);
    for (let turn = 0; turn < turns; turn++) await Promise.resolve();
    stop.abort(new Error("its socket is gone"));
    registration.deregister(plugin);
    late.resolve();
    await assert.rejects(registered, /its socket is gone/u);
    assert.deepEqual([turns, steps, drivers.names], [turns, ["uninstall"], []]);
  }
});

test("a registration whose socket is gone already leaves that of the next one alone", async () => {
  const { registration, drivers } = scene;
  await registration.register(offer("1.0.0"), signal);
  const late = offer("1.1.0");
  const gone = AbortSignal.abort(new Error("its socket is gone"));
  await assert.rejects(registration.register(late, gone), /its socket is gone/u);
  registration.deregister(late);
  assert.equal(drivers.versionOf("d"), "1.0.0");
});
