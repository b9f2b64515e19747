import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { CsiDriver, type CsiDriverOptions } from "../../test/support/csi-driver.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { until } from "../../test/support/podwright.ts";
import { pluginClient } from "../grpc/plugin-client.ts";
import { systemFiles } from "../linux/files/files.ts";
import { systemVolumeFiles } from "../linux/files/volume-files.ts";
import { systemClock } from "../linux/processes/clock.ts";
import { MemoryFiles } from "../sim/files.ts";
import { silentLog } from "../sim/machine.ts";
import { SimVolumeFiles } from "../sim/volume-files.ts";
import type { PluginHandler, PluginInfo } from "./plugin-handler.ts";
import { PluginRegistry } from "./plugin-registry.ts";

/** A registry on its own directory, with a recording handler. */
class Scene implements AsyncDisposable {
  readonly root = mkdtempSync(join(tmpdir(), "podwright-plugins-"));
  readonly seen: string[] = [];
  readonly entries: string[] = [];
  /** The handler's reason to refuse plugins. */
  refusal: string | undefined;
  /** The handler's error of registrations. */
  failure: string | undefined;
  readonly registry: PluginRegistry;
  #stop = new AbortController();
  #run: Promise<void>;

  constructor() {
    const handler: PluginHandler = {
      type: "CSIPlugin",
      validate: () => this.refusal,
      register: async ({ name, versions }: PluginInfo) => {
        if (this.failure !== undefined) throw new Error(this.failure);
        this.seen.push(`register ${name} ${versions.join(" ")}`);
      },
      deregister: ({ name }) => void this.seen.push(`deregister ${name}`),
    };
    this.registry = new PluginRegistry(
      {
        clock: systemClock,
        files: systemFiles,
        volumeFiles: systemVolumeFiles,
        journal: { record: ({ message }) => this.entries.push(message) },
        log: silentLog,
        plugins: pluginClient(systemClock),
        handlers: [handler],
        onSockets: () => {},
      },
      join(this.root, "plugins_registry"),
    );
    this.#run = this.registry.run(this.#stop.signal);
  }

  driver(options: Partial<CsiDriverOptions> = {}): CsiDriver {
    const name = options.name ?? "d.example.org";
    return new CsiDriver({ root: this.root, directory: join(this.root, name), ...options, name });
  }

  async pause(): Promise<void> {
    this.#stop.abort(new Error("the place is another's"));
    await this.#run;
  }

  goOn(): void {
    this.#stop = new AbortController();
    this.#run = this.registry.run(this.#stop.signal);
  }

  async sees(...seen: string[]): Promise<void> {
    await until(seen.join(", "), async () => this.seen.length >= seen.length);
    assert.deepEqual(this.seen, seen);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new Error("the test is over"));
    await this.#run;
    rmSync(this.root, { recursive: true });
  }
}

test("a plugin is registered and notified when its socket appears, and deregistered when it disappears", async () => {
  await using scene = new Scene();
  await using driver = scene.driver();
  await driver.register();
  await scene.sees("register d.example.org 1.0.0");
  await until("the plugin to be told", async () => driver.notified.length > 0);
  assert.deepEqual(driver.notified, [{ registered: true, error: "" }]);
  assert.deepEqual(scene.registry.sockets, [{ path: driver.registrationSocket, isRegistered: true }]);
  await driver.unregister();
  await scene.sees("register d.example.org 1.0.0", "deregister d.example.org");
  assert.deepEqual(scene.registry.sockets, []);
});

test("a replaced socket is registered again", async () => {
  await using scene = new Scene();
  await using driver = scene.driver();
  await driver.register();
  await scene.sees("register d.example.org 1.0.0");
  await using other = scene.driver({ versions: ["1.1.0"] });
  await driver.unregister();
  await other.register();
  await scene.sees("register d.example.org 1.0.0", "deregister d.example.org", "register d.example.org 1.1.0");
});

test("a socket that is moved over another one is registered again", async () => {
  await using scene = new Scene();
  await using driver = scene.driver();
  await driver.register();
  await scene.sees("register d.example.org 1.0.0");
  await using other = scene.driver({ name: "e.example.org" });
  mkdirSync(join(scene.root, "aside"));
  await other.register();
  await scene.sees("register d.example.org 1.0.0", "register e.example.org 1.0.0");
  renameSync(other.registrationSocket, driver.registrationSocket);
  await until("both registrations to end", async () => scene.seen.length >= 5);
  assert.deepEqual(scene.seen.slice(2).toSorted(), [
    "deregister d.example.org",
    "deregister e.example.org",
    "register e.example.org 1.0.0",
  ]);
});

test("a rejected plugin receives the reason in upstream's words, and is retried", async () => {
  await using scene = new Scene();
  scene.refusal = "it is not wanted";
  await using driver = scene.driver();
  await driver.register();
  await until("the plugin to be told twice", async () => driver.notified.length >= 2);
  assert.deepEqual(driver.notified[0], {
    registered: false,
    error: "RegisterPlugin error -- plugin validation failed with err: it is not wanted",
  });
  assert.match(scene.registry.refused[0]?.problem ?? "", /plugin validation failed with err: it is not wanted$/u);
  scene.refusal = undefined;
  await scene.sees("register d.example.org 1.0.0");
  assert.deepEqual(scene.registry.refused, []);
});

test("a plugin whose registration fails receives the reason, and is deregistered", async () => {
  await using scene = new Scene();
  scene.failure = "no answer";
  await using driver = scene.driver();
  await driver.register();
  await until("the plugin to be told", async () => driver.notified.length > 0);
  assert.equal(driver.notified[0]?.error, "RegisterPlugin error -- plugin registration failed with err: no answer");
  // The plugin is told before it is deregistered, and this process may see its answer first.
  await until("its deregistration", async () => scene.seen.length > 0);
  assert.equal(scene.seen[0], "deregister d.example.org");
});

test("a plugin of an unknown type receives that error", async () => {
  await using scene = new Scene();
  await using driver = scene.driver({ type: "DevicePlugin" });
  await driver.register();
  await until("the plugin to be told", async () => driver.notified.length > 0);
  assert.match(driver.notified[0]?.error ?? "", /no handler registered for plugin type: DevicePlugin at socket/);
});

test("sockets in subdirectories are found; files, dead sockets and names with a dot are not", async () => {
  await using scene = new Scene();
  const registry = join(scene.root, "plugins_registry");
  await using driver = scene.driver();
  await driver.register();
  await scene.sees("register d.example.org 1.0.0");
  mkdirSync(join(registry, "deep"));
  writeFileSync(join(registry, "file.sock"), "");
  symlinkSync("/nowhere", join(registry, "dangling.sock"));
  symlinkSync(scene.root, join(registry, "loop"));
  await using hidden = scene.driver({ name: "hidden.example.org", socket: ".hidden.sock" });
  await hidden.register();
  await using below = scene.driver({ name: "e.example.org", socket: "deep/e.sock" });
  await below.register();
  await scene.sees("register d.example.org 1.0.0", "register e.example.org 1.0.0");
  rmSync(join(registry, "deep"), { recursive: true });
  await scene.sees("register d.example.org 1.0.0", "register e.example.org 1.0.0", "deregister e.example.org");
});

test("a plugin that hangs does not delay others", async () => {
  await using scene = new Scene();
  await using silent = scene.driver({ name: "silent.example.org" });
  using _hang = silent.hang("GetInfo");
  await silent.register();
  await using driver = scene.driver();
  await driver.register();
  await scene.sees("register d.example.org 1.0.0");
});

test("nobody registers between two runs, and what has registered since a time is dropped until the next", async () => {
  await using scene = new Scene();
  await using first = scene.driver({ name: "a.example.org" });
  await first.register();
  await scene.sees("register a.example.org 1.0.0");
  // Told once the plugin knows it: a registration that a pause interrupts has never been one.
  const isTold = (name: string): boolean => scene.entries.some((text) => text.startsWith(`plugin ${name} `));
  await until("its registration", async () => isTold("a.example.org"));
  const sinceMs = systemClock.monotonic() + 1e-6;
  await using second = scene.driver({ name: "b.example.org" });
  await second.register();
  await until("both", async () => isTold("b.example.org"));
  await scene.pause();
  scene.registry.drop(sinceMs, "it may be another kubelet's");
  await scene.sees("register a.example.org 1.0.0", "register b.example.org 1.0.0", "deregister b.example.org");
  assert.match(scene.entries.at(-1) ?? "", /b\.example\.org \(CSIPlugin\) deregistered: it may be another kubelet's/u);
  assert.deepEqual(scene.registry.sockets, [{ path: first.registrationSocket, isRegistered: true }]);
  await using third = scene.driver({ name: "c.example.org" });
  await third.register();
  await first.unregister();
  assert.equal(scene.seen.length, 3);
  scene.goOn();
  await until("the others", async () => scene.registry.sockets.filter(({ isRegistered }) => isRegistered).length === 2);
  assert.deepEqual(scene.seen.slice(3).toSorted(), [
    "deregister a.example.org",
    "register b.example.org 1.0.0",
    "register c.example.org 1.0.0",
  ]);
});

/** A simulated registry with one socket, whose plugin `d` answers at once. */
class SimScene {
  readonly clock = new ManualClock();
  readonly files = new MemoryFiles(this.clock);
  readonly stop = new AbortController();
  readonly registry: PluginRegistry;

  constructor(handler: Omit<PluginHandler, "type">, notified = (): void => {}) {
    const { clock, files } = this;
    const calls = {
      getInfo: async () => ({ type: "CSIPlugin", name: "d", endpoint: "/d.sock", supportedVersions: ["1.0.0"] }),
      notifyRegistrationStatus: async () => notified(),
      [Symbol.dispose]: () => {},
    };
    this.files.bind("/reg/d.sock");
    this.registry = new PluginRegistry(
      {
        ...{ clock, files, volumeFiles: new SimVolumeFiles(files), log: silentLog },
        journal: { record: () => 0 },
        plugins: { connect: () => calls as never },
        handlers: [{ type: "CSIPlugin", ...handler }],
        onSockets: () => {},
      },
      "/reg",
    );
  }

  async replaceSocket(): Promise<void> {
    await this.files.remove("/reg/d.sock");
    this.files.bind("/reg/d.sock");
    await this.clock.advance(0);
  }
}

test("whenever a socket goes after its plugin was told, the plugin is deregistered once", async () => {
  for (let turns = 0; turns < 20; turns++) {
    const seen: string[] = [];
    const handler = {
      validate: () => undefined,
      register: async () => void seen.push("register"),
      deregister: () => void seen.push("deregister"),
    };
    const gone = Promise.withResolvers<void>();
    const goes = async (): Promise<void> => {
      for (let turn = 0; turn < turns; turn++) await Promise.resolve();
      registry.drop(0, "its socket is gone");
      stop.abort(new Error("the test is over"));
      gone.resolve();
    };
    const { registry, stop } = new SimScene(handler, () => void goes());
    const run = registry.run(stop.signal);
    await gone.promise;
    await run;
    assert.deepEqual([turns, ...seen], [turns, "register", "deregister"]);
  }
});

test("a plugin whose socket is replaced while it is registered is deregistered before the next one is validated", async () => {
  const seen: string[] = [];
  const first = Promise.withResolvers<void>();
  const handler = {
    validate: () => {
      seen.push("validate");
      return undefined;
    },
    register: async () => {
      if (seen.push("register") === 2) await first.promise;
    },
    deregister: () => void seen.push("deregister"),
  };
  const scene = new SimScene(handler);
  const { registry, clock, stop } = scene;
  const run = registry.run(stop.signal);
  await clock.advance(100);
  await scene.replaceSocket();
  assert.deepEqual(seen, ["validate", "register", "deregister", "validate", "register"]);
  first.reject(new Error("the API server does not respond"));
  await clock.advance(1000);
  stop.abort(new Error("the test is over"));
  await run;
  assert.deepEqual(seen, ["validate", "register", "deregister", "validate", "register"]);
});

test("the pauses between tries double for one socket, and another one after it starts with the shortest", async () => {
  let problem: string | undefined = "by command";
  const triedAtMs: number[] = [];
  const handler = {
    validate: () => {
      triedAtMs.push(clock.monotonic() - sinceMs);
      return problem;
    },
    register: async () => {},
    deregister: () => {},
  };
  const scene = new SimScene(handler);
  const { registry, clock, stop } = scene;
  let sinceMs = clock.monotonic();
  const run = registry.run(stop.signal);
  await clock.advance(4000);
  assert.deepEqual(triedAtMs.splice(0), [0, 500, 1500, 3500]);
  problem = undefined;
  await clock.advance(10_000);
  assert.deepEqual([triedAtMs.splice(0), registry.sockets[0]?.isRegistered], [[7500], true]);
  problem = "by command";
  for (const what of ["after one that was registered", "after one that was refused"]) {
    sinceMs = clock.monotonic();
    await scene.replaceSocket();
    await clock.advance(2000);
    assert.deepEqual(triedAtMs.splice(0), [0, 500, 1500], what);
  }
  stop.abort(new Error("the test is over"));
  await run;
});
